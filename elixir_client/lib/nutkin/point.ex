defmodule Nutkin.Point do
  @moduledoc false
  # Where a log density is wanted, as callers write it and as a message has it.

  alias Nutkin.{Error, Tensor}

  @typedoc "The flat unconstrained position, or the constrained value of every parameter by name."
  @type source :: Tensor.source() | map() | keyword()

  @doc "The fields of the message. The error of a value has the name of its parameter."
  @spec encode(source()) ::
          {:ok, %{position: Tensor.t()} | %{values: %{String.t() => Tensor.t()}}} | {:error, Error.t()}
  # Structs are tensors.
  def encode(%_{} = position), do: position(position)
  def encode(%{} = values), do: values(values)
  def encode([{_name, _value} | _] = values), do: values(values)
  def encode(position), do: position(position)

  defp position(position) do
    with {:ok, tensor} <- Tensor.cast(position, type: :f64), do: {:ok, %{position: tensor}}
  end

  defp values(values) do
    Enum.reduce_while(values, {:ok, %{values: %{}}}, fn {name, value}, {:ok, %{values: done}} ->
      case Tensor.cast(value) do
        {:ok, tensor} -> {:cont, {:ok, %{values: Map.put(done, to_string(name), tensor)}}}
        {:error, error} -> {:halt, {:error, %{error | node: to_string(name)}}}
      end
    end)
  end
end
