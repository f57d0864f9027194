defmodule Benchmarks.Line do
  @moduledoc """
  What a program of the benchmarks says: a line of JSON.
  """

  @spec say(map() | keyword()) :: :ok
  def say(message), do: IO.puts(json(message))

  defp json(nil), do: "null"
  defp json(number) when is_number(number), do: to_string(number)
  defp json(text) when is_binary(text), do: inspect(text)

  defp json(pairs),
    do: "{#{Enum.map_join(pairs, ", ", fn {name, value} -> ~s("#{name}": #{json(value)}) end)}}"
end
