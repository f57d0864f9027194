defmodule Benchmarks.Refresh do
  @moduledoc """
  Other data of the same meaning and shape, which a worker has not seen: what is neither an index nor 0 or 1 is moved
  by a billionth for each unit of a number.
  """

  alias Nutkin.Tensor

  @spec all(%{String.t() => Tensor.t()}, integer()) :: %{String.t() => Tensor.t()}
  def all(data, number), do: Map.new(data, fn {name, tensor} -> {name, one(tensor, number)} end)

  defp one(%Tensor{type: {:f, 64}, data: data} = tensor, number) do
    if indicators?(data), do: tensor, else: %{tensor | data: moved(data, number * 1.0e-9)}
  end

  defp one(tensor, _number), do: tensor

  defp moved(data, by),
    do: for(<<value::float-little-64 <- data>>, into: <<>>, do: <<value + by::float-little-64>>)

  defp indicators?(<<value::float-little-64, rest::binary>>) when value in [0.0, 1.0], do: indicators?(rest)
  defp indicators?(rest), do: rest == <<>>
end
