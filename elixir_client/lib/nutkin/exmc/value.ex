defmodule Nutkin.Exmc.Value do
  @moduledoc false
  # The values of a model of eXMC: numbers, lists and tensors, those of Nx also where Nx is not loaded as far as their
  # elements are in the memory of the BEAM; and text, which refers to a variable or to the data.

  alias Nutkin.Error.InvalidModel
  alias Nutkin.Model.{Builder, Language, Node}
  alias Nutkin.Nx.Captured
  alias Nutkin.Tensor

  @obs_data "__obs_data"

  @typedoc "What is known while a model is written: the node and the shape of each free variable, the data, ids in use."
  @type scope :: %{
          nodes: %{String.t() => Node.t()},
          shapes: %{String.t() => tuple()},
          data: term(),
          ids: [String.t()]
        }

  @doc "The node of a value. `what` is what errors call it, `id` the node of eXMC whose it is."
  @spec node(term(), String.t(), String.t(), scope()) :: Node.t()
  def node(%Node{} = node, _what, _id, _scope), do: node

  def node(@obs_data, _what, id, scope) do
    data!(id, scope)
    Builder.once({__MODULE__, @obs_data}, fn -> Language.data(@obs_data) end)
  end

  def node(id, _what, _owner, scope) when is_binary(id), do: Map.fetch!(scope.nodes, id)
  def node(value, what, id, _scope), do: constant(value, "#{what} of #{id}")

  @doc "The name of the slot for the data of a model."
  @spec obs_data() :: String.t()
  def obs_data, do: @obs_data

  @doc "The shape of a value."
  @spec shape(term(), scope()) :: tuple()
  def shape(@obs_data, scope), do: shape(scope.data, scope)
  def shape(id, scope) when is_binary(id), do: Map.fetch!(scope.shapes, id)
  def shape(%{__struct__: Nx.Tensor} = tensor, _scope), do: flat_shape(tensor)
  def shape(%Tensor{shape: shape}, _scope), do: shape

  def shape(value, _scope) do
    case Tensor.cast(value) do
      {:ok, %{shape: shape}} -> shape
      # Not a value: whoever writes it down says so.
      {:error, _error} -> {}
    end
  end

  @doc "The shape that shapes have together, or `:error`."
  @spec broadcast([tuple()]) :: tuple() | :error
  def broadcast(shapes) do
    shapes
    |> Enum.map(&(&1 |> Tuple.to_list() |> Enum.reverse()))
    |> Enum.reduce([], fn
      _shape, :error -> :error
      shape, sizes -> joined(shape, sizes)
    end)
    |> case do
      :error -> :error
      sizes -> sizes |> Enum.reverse() |> List.to_tuple()
    end
  end

  defp joined([], sizes), do: sizes
  defp joined(sizes, []), do: sizes

  defp joined([a | as], [b | bs]) do
    rest = joined(as, bs)
    if rest == :error or (a != b and a != 1 and b != 1), do: :error, else: [max(a, b) | rest]
  end

  @doc "Whether a value of one shape is as one of another where they meet."
  @spec fits?(tuple(), tuple()) :: boolean()
  def fits?(shape, into), do: broadcast([shape, into]) == into

  @doc "The node of an observed value: a slot for data where it has axes, so that other data compile nothing anew."
  @spec observed(term(), String.t(), String.t(), scope()) :: Node.t()
  def observed(value, slot, id, scope) do
    if shape(value, scope) == {}, do: node(value, "the observed value", id, scope), else: Language.data(slot)
  end

  @doc "A value as data of a run: of f64, where it has other floats."
  @spec data(term()) :: term()
  def data(%{__struct__: Nx.Tensor, type: {kind, bits}} = tensor) when kind in [:f, :bf] and bits < 64,
    do: tensor |> tensor() |> Tensor.new(type: :f64)

  def data(other), do: tensor(other)

  @doc "A tensor for the options of a run."
  @spec tensor(term()) :: term()
  def tensor(%{__struct__: Nx.Tensor, data: %{__struct__: Nx.BinaryBackend, state: state}} = tensor)
      when is_binary(state),
      do: Tensor.from_binary(state, tensor.type, flat_shape(tensor))

  def tensor(other), do: other

  # Between constants of f32 alone, arithmetic would be in f32. A float without axes is written down as the number that it is.
  defp constant(%{__struct__: Nx.Tensor} = tensor, what) do
    case data(tensor) do
      %{__struct__: Nx.Tensor} = tensor -> Captured.node(tensor)
      %Tensor{shape: {}, type: {:f, _bits}} = tensor -> tensor |> Tensor.to_number() |> Builder.node(what)
      tensor -> Builder.node(tensor, what)
    end
  end

  defp constant(value, what), do: Builder.node(value, what)

  defp data!(id, %{data: nil}) do
    raise InvalidModel,
      message: "#{id} refers to #{@obs_data}, and the model has no data",
      node: id,
      hint: "give them by Exmc.Builder.data(ir, tensor)"
  end

  defp data!(_id, _scope), do: :ok

  defp flat_shape(tensor) do
    axes = for {_name, size} <- Map.get(tensor, :vectorized_axes, []), do: size
    List.to_tuple(axes ++ Tuple.to_list(tensor.shape))
  end
end
