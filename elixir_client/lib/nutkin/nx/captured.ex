defmodule Nutkin.Nx.Captured do
  @moduledoc false
  # Tensors that a traced function holds: constants of the model, one for each tensor, however often it is used.

  alias Nutkin.Model.{Builder, Node}
  alias Nutkin.Tensor

  @compile {:no_warn_undefined, Nx}

  @doc "The constant of a tensor, whose elements are shared, not copied, where they are in the memory of the BEAM."
  @spec node(struct()) :: Node.t()
  def node(tensor) do
    %Tensor{} = tensor = host(tensor)
    Builder.once({__MODULE__, tensor}, fn -> Builder.node(tensor, "a captured tensor") end)
  end

  @doc "A complex number, which Elixir has none of."
  @spec complex(struct(), String.t()) :: Tensor.t()
  def complex(%{re: re, im: im}, type) do
    parts = Tensor.new([re, im], type: if(type == "c64", do: :f32, else: :f64))
    Tensor.from_binary(parts.data, type, {})
  end

  defp host(%{data: %{__struct__: Nx.BinaryBackend, state: state}} = tensor) do
    sizes = Enum.map(tensor.vectorized_axes, &elem(&1, 1)) ++ Tuple.to_list(tensor.shape)
    Tensor.from_bits(state, tensor.type, List.to_tuple(sizes))
  end

  defp host(tensor), do: Tensor.new(tensor)
end
