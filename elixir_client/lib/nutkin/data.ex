defmodule Nutkin.Data do
  @moduledoc """
  The values for the data slots of a model: checked against the slots, and turned into blobs.
  """

  alias Nutkin.{Blob, Model}
  alias Nutkin.Error.InvalidData

  @typedoc "The address of each slot's blob as it goes into a request, and the blobs by address."
  @type t :: %{addresses: %{String.t() => {:bin, binary()}}, blobs: %{binary() => Blob.t()}}

  @doc """
  Encodes `values`, a map from slot name to value (names as strings), for `model`. Every slot must be there and no other.

  A value is a number, nested lists of numbers, a `Nutkin.Tensor` or an `Nx.Tensor`.

      iex> model = Nutkin.Model.build(fn -> Nutkin.Model.Language.data(:y) end)
      iex> {:ok, data} = Nutkin.Data.encode(model, %{"y" => [1, 2, 3]})
      iex> {Map.keys(data.addresses), map_size(data.blobs)}
      {["y"], 1}
      iex> {:error, error} = Nutkin.Data.encode(model, %{"x" => 1})
      iex> Exception.message(error)
      "no value for the data slot y; expected values for y; give it as data: %{y: ...}"
  """
  @spec encode(Model.t(), %{String.t() => term()}) :: {:ok, t()} | {:error, InvalidData.t()}
  def encode(model, values) do
    with :ok <- check_names(Model.slots(model), Map.keys(values)) do
      Enum.reduce_while(values, {:ok, %{addresses: %{}, blobs: model.blobs}}, fn {name, value}, {:ok, data} ->
        case Blob.cast(value) do
          {:ok, blob} ->
            addresses = Map.put(data.addresses, name, {:bin, blob.sha})
            {:cont, {:ok, %{addresses: addresses, blobs: Map.put(data.blobs, blob.sha, blob)}}}

          {:error, error} ->
            {:halt, {:error, %{error | node: name}}}
        end
      end)
    end
  end

  defp check_names(slots, names) do
    expected = if slots == [], do: "no data", else: "values for #{Enum.join(slots, ", ")}"

    case {slots -- names, names -- slots} do
      {[], []} ->
        :ok

      {[missing | _], _} ->
        message = "no value for the data slot #{missing}"
        hint = "give it as data: %{#{missing}: ...}"
        {:error, InvalidData.exception(message: message, node: missing, expected: expected, hint: hint)}

      {[], [unknown | _]} ->
        message = "the model has no data slot #{unknown}"
        {:error, InvalidData.exception(message: message, node: unknown, expected: expected)}
    end
  end
end
