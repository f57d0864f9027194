defmodule Nutkin.Data do
  @moduledoc """
  The values for the data slots of a model: checked against the slots, and turned into blobs.
  """

  alias Nutkin.{Blob, Model, Tensor}
  alias Nutkin.Error.InvalidData

  @typedoc "The address of each slot's blob as it goes into a request, and the blobs by address."
  @type t :: %{addresses: %{String.t() => {:bin, binary()}}, blobs: %{binary() => Blob.t()}}

  @doc """
  Encodes `values`, a map from slot name to value (names as strings), for `model`. Every slot must be there and no other;
  where `slots` is `:some`, slots may be missing.

  A value is a number, nested lists of numbers, a `Nutkin.Tensor`, an `Nx.Tensor` or a `Nutkin.Blob`. Numbers and lists
  become the type that the slot declares. What declares a shape gets a value of that shape; a blob's is checked by the
  worker.

      iex> model = Nutkin.Model.build(fn -> Nutkin.Model.Language.data(:y) end)
      iex> {:ok, data} = Nutkin.Data.encode(model, %{"y" => [1, 2, 3]})
      iex> {Map.keys(data.addresses), map_size(data.blobs)}
      {["y"], 1}
      iex> {:error, error} = Nutkin.Data.encode(model, %{"x" => 1})
      iex> Exception.message(error)
      "no value for the data slot y; expected values for y; found values for x; give it as data: %{y: ...}"
  """
  @spec encode(Model.t(), %{String.t() => term()}, :all | :some) :: {:ok, t()} | {:error, InvalidData.t()}
  def encode(model, values, slots \\ :all) do
    known = Model.slots(model)
    given = Map.keys(values)

    with :ok <- check_names(if(slots == :all, do: known, else: known -- known -- given), given, known) do
      slots = for %{"kind" => "data", "name" => name} = slot <- model.nodes, into: %{}, do: {name, slot}

      Enum.reduce_while(values, {:ok, %{addresses: %{}, blobs: model.blobs}}, fn {name, value}, {:ok, data} ->
        with {:ok, value} <- cast(value, slots[name]["type"]),
             :ok <- check_shape(shape(value), slots[name]["shape"]),
             {:ok, blob} <- Blob.cast(value) do
          addresses = Map.put(data.addresses, name, {:bin, blob.sha})
          {:cont, {:ok, %{addresses: addresses, blobs: Map.put(data.blobs, blob.sha, blob)}}}
        else
          {:error, error} -> {:halt, {:error, %{error | node: name}}}
        end
      end)
    end
  end

  # Tensors have a type, which is theirs to change.
  defp cast(%module{} = tensor, _type) when module in [Tensor, Nx.Tensor, Blob], do: {:ok, tensor}
  defp cast(value, type), do: Tensor.cast(value, type: type)

  # Vectorized axes are the first ones.
  defp shape(%{__struct__: Nx.Tensor, shape: shape, vectorized_axes: [_ | _] = axes}) do
    Keyword.values(axes) ++ Tuple.to_list(shape)
  end

  defp shape(%{shape: shape}), do: Tuple.to_list(shape)
  defp shape(%Blob{}), do: nil

  defp check_shape(shape, declared) when shape == nil or declared == nil or shape == declared, do: :ok

  defp check_shape(shape, declared) do
    fits =
      length(shape) == length(declared) and
        Enum.all?(Enum.zip(shape, declared), fn {size, free} -> free in [nil, size] end)

    if fits do
      :ok
    else
      [expected, found] = for sizes <- [declared, shape], do: inspect(List.to_tuple(sizes))

      {:error,
       InvalidData.exception(message: "the shape is not the declared one", expected: expected, found: found)}
    end
  end

  defp check_names(needed, names, known) do
    expected = if known == [], do: "no data", else: "values for #{Enum.join(known, ", ")}"

    case {needed -- names, names -- known} do
      {[], []} ->
        :ok

      {[missing | _], unknown} ->
        message = "no value for the data slot #{missing}"
        found = if unknown != [], do: "values for #{Enum.join(unknown, ", ")}"
        hint = "give it as data: %{#{key(missing)} ...}"
        error = [message: message, node: missing, expected: expected, found: found, hint: hint]
        {:error, InvalidData.exception(error)}

      {[], [unknown | _]} ->
        message = "the model has no data slot #{unknown}"
        hint = "leave it out, as by Map.take(data, [#{Enum.map_join(known, ", ", &Model.Printer.label/1)}])"
        {:error, InvalidData.exception(message: message, node: unknown, expected: expected, hint: hint)}
    end
  end

  # As it is written in a map.
  defp key(name) do
    case Model.Printer.label(name) do
      ":" <> name -> name <> ":"
      quoted -> quoted <> " =>"
    end
  end
end
