defmodule Nutkin.Test.JSON do
  @moduledoc false
  # Reads JSON, and what the golden frames write in it: {"$hex": …} for bytes, {"$tensor": {type, shape, hex}}.
  # There for Elixir before 1.18, which has no reader of its own.

  alias Nutkin.Tensor

  @doc "The term. `bytes` makes of the bytes of a $hex what is wanted."
  def decode!(text, bytes \\ & &1) do
    {term, rest} = value(skip(text))
    "" = skip(rest)
    meaning(term, bytes)
  end

  defp value("{" <> rest), do: members(skip(rest), %{})
  defp value("[" <> rest), do: elements(skip(rest), [])
  defp value("\"" <> rest), do: string(rest, [])
  defp value("true" <> rest), do: {true, rest}
  defp value("false" <> rest), do: {false, rest}
  defp value("null" <> rest), do: {nil, rest}

  defp value(text) do
    size = number_size(text, 0)
    <<number::binary-size(size), rest::binary>> = text
    {number(number), rest}
  end

  defp number_size(<<char, rest::binary>>, size) when char in ~c"+-.0123456789eE",
    do: number_size(rest, size + 1)

  defp number_size(_rest, size), do: size

  defp number(text) do
    case Integer.parse(text) do
      {integer, ""} -> integer
      # Elixir wants a fraction before an exponent.
      {integer, "e" <> exponent} -> String.to_float("#{integer}.0e#{exponent}")
      {_integer, _fraction} -> String.to_float(text)
    end
  end

  defp members("}" <> rest, map), do: {map, rest}
  defp members("," <> rest, map), do: members(skip(rest), map)

  defp members("\"" <> rest, map) do
    {key, rest} = string(rest, [])
    ":" <> rest = skip(rest)
    {value, rest} = value(skip(rest))
    members(skip(rest), Map.put(map, key, value))
  end

  defp elements("]" <> rest, done), do: {Enum.reverse(done), rest}
  defp elements("," <> rest, done), do: elements(skip(rest), done)

  defp elements(text, done) do
    {value, rest} = value(text)
    elements(skip(rest), [value | done])
  end

  defp string("\"" <> rest, done), do: {IO.iodata_to_binary(Enum.reverse(done)), rest}

  defp string("\\u" <> <<hex::binary-4, rest::binary>>, done) do
    case String.to_integer(hex, 16) do
      high when high in 0xD800..0xDBFF ->
        "\\u" <> <<hex::binary-4, rest::binary>> = rest
        low = String.to_integer(hex, 16)
        string(rest, [<<0x10000 + (high - 0xD800) * 0x400 + (low - 0xDC00)::utf8>> | done])

      code ->
        string(rest, [<<code::utf8>> | done])
    end
  end

  defp string("\\" <> <<escaped, rest::binary>>, done) do
    string(rest, [
      Map.get(%{?n => "\n", ?t => "\t", ?r => "\r", ?b => "\b", ?f => "\f"}, escaped, escaped) | done
    ])
  end

  defp string(<<char::utf8, rest::binary>>, done), do: string(rest, [<<char::utf8>> | done])

  defp skip(<<space, rest::binary>>) when space in ~c" \n\r\t", do: skip(rest)
  defp skip(text), do: text

  defp meaning(%{"$hex" => hex}, bytes), do: bytes.(Base.decode16!(hex, case: :lower))

  defp meaning(%{"$tensor" => %{"type" => type, "shape" => shape, "hex" => hex}}, _bytes) do
    Tensor.from_binary(Base.decode16!(hex, case: :lower), type, List.to_tuple(shape))
  end

  defp meaning(map, bytes) when is_map(map),
    do: Map.new(map, fn {key, value} -> {key, meaning(value, bytes)} end)

  defp meaning(list, bytes) when is_list(list), do: Enum.map(list, &meaning(&1, bytes))
  defp meaning(term, _bytes), do: term
end
