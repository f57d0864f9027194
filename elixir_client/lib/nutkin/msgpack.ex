defmodule Nutkin.Msgpack do
  @moduledoc """
  The codec of the wire: [MessagePack](https://msgpack.org), as far as the protocol uses it.

  | Elixir | MessagePack |
  |---|---|
  | nil, true, false | nil, bool |
  | integers of 64 bits | int, in the shortest form |
  | floats | float 64 |
  | strings, other atoms | str |
  | `{:bin, iodata}` | bin |
  | `{:encoded, iodata}` | what it is already |
  | lists, maps with string or atom keys | array, map |
  | `Nutkin.Tensor` | ext 1 |

  Decoding gives plain terms back: str and bin are both binaries, keys are strings, floats are doubles. It makes no
  atoms, takes time and memory in proportion to the frame (at the worst, for lists of numbers of one byte, some 50 bytes
  for each), and shares the bytes of tensors, strings and bins with the frame instead of copying them.
  """

  alias Nutkin.Error.Protocol
  alias Nutkin.Tensor

  @tensor_ext 1
  @max_depth 64

  @typedoc "What can be encoded."
  @type encodable ::
          nil
          | boolean()
          | integer()
          | float()
          | String.t()
          | atom()
          | {:bin, iodata()}
          | {:encoded, iodata()}
          | Tensor.t()
          | [encodable()]
          | %{optional(String.t() | atom()) => encodable()}

  @typedoc "What decoding gives."
  @type decoded ::
          nil
          | boolean()
          | integer()
          | float()
          | binary()
          | Tensor.t()
          | [decoded()]
          | %{String.t() => decoded()}

  @doc """
  The encoded term as iodata, in which the bytes of tensors and bins are not copied.

  Raises `Nutkin.Error.Protocol` for a term that has no encoding.

  ## Examples

      iex> IO.iodata_to_binary(Nutkin.Msgpack.encode!(["ping", 7, %{}]))
      <<0x93, 0xA4, "ping", 7, 0x80>>
      iex> IO.iodata_to_binary(Nutkin.Msgpack.encode!({:bin, [<<1>>, 2]}))
      <<0xC4, 2, 1, 2>>

  """
  @spec encode!(encodable()) :: iodata()
  def encode!(nil), do: <<0xC0>>
  def encode!(false), do: <<0xC2>>
  def encode!(true), do: <<0xC3>>
  def encode!(atom) when is_atom(atom), do: string(Atom.to_string(atom))
  def encode!(integer) when is_integer(integer), do: integer(integer)
  def encode!(float) when is_float(float), do: <<0xCB, float::float-64>>
  def encode!(string) when is_binary(string), do: string(string)
  def encode!({:bin, bytes}), do: [bin_header(IO.iodata_length(bytes)), bytes]
  def encode!({:encoded, bytes}), do: bytes

  def encode!(%Tensor{} = tensor) do
    payload = Tensor.Payload.encode(tensor)
    [ext_header(IO.iodata_length(payload)), @tensor_ext, payload]
  end

  def encode!(list) when is_list(list), do: [array_header(length(list)) | Enum.map(list, &encode!/1)]

  def encode!(map) when is_map(map) and not is_struct(map) do
    [map_header(map_size(map)) | Enum.map(map, fn {key, value} -> [key(key) | encode!(value)] end)]
  end

  def encode!(other) do
    raise Protocol,
      message: "a term that cannot be sent",
      expected: "a number, string, atom, list, map, tensor or {:bin, bytes}",
      found: inspect(other, limit: 5)
  end

  defp key(key) when is_binary(key), do: string(key)
  defp key(key) when is_atom(key) and key not in [nil, true, false], do: string(Atom.to_string(key))

  defp key(key) do
    raise Protocol,
      message: "a map key that cannot be sent",
      expected: "a string or an atom",
      found: inspect(key)
  end

  defp integer(i) when i in 0..127, do: <<i>>
  defp integer(i) when i in -32..-1, do: <<i>>
  defp integer(i) when i in 0..0xFF, do: <<0xCC, i>>
  defp integer(i) when i in 0..0xFFFF, do: <<0xCD, i::16>>
  defp integer(i) when i in 0..0xFFFFFFFF, do: <<0xCE, i::32>>
  defp integer(i) when i in 0..0xFFFFFFFFFFFFFFFF, do: <<0xCF, i::64>>
  defp integer(i) when i in -0x80..-1, do: <<0xD0, i>>
  defp integer(i) when i in -0x8000..-1, do: <<0xD1, i::16>>
  defp integer(i) when i in -0x80000000..-1, do: <<0xD2, i::32>>
  defp integer(i) when i in -0x8000000000000000..-1, do: <<0xD3, i::64>>

  defp integer(i) do
    raise Protocol, message: "an integer that cannot be sent", expected: "at most 64 bits", found: inspect(i)
  end

  defp string(string) do
    if String.valid?(string) do
      [str_header(byte_size(string)), string]
    else
      raise Protocol,
        message: "a string that cannot be sent",
        expected: "UTF-8",
        found: inspect(string, limit: 20),
        hint: "send bytes as {:bin, bytes}"
    end
  end

  defp str_header(n) when n < 32, do: <<0b101::3, n::5>>
  defp str_header(n) when n <= 0xFF, do: <<0xD9, n>>
  defp str_header(n) when n <= 0xFFFF, do: <<0xDA, n::16>>
  defp str_header(n), do: <<0xDB, n::32>>

  defp bin_header(n) when n <= 0xFF, do: <<0xC4, n>>
  defp bin_header(n) when n <= 0xFFFF, do: <<0xC5, n::16>>
  defp bin_header(n), do: <<0xC6, n::32>>

  defp array_header(n) when n < 16, do: <<0b1001::4, n::4>>
  defp array_header(n) when n <= 0xFFFF, do: <<0xDC, n::16>>
  defp array_header(n), do: <<0xDD, n::32>>

  defp map_header(n) when n < 16, do: <<0b1000::4, n::4>>
  defp map_header(n) when n <= 0xFFFF, do: <<0xDE, n::16>>
  defp map_header(n), do: <<0xDF, n::32>>

  defp ext_header(1), do: <<0xD4>>
  defp ext_header(2), do: <<0xD5>>
  defp ext_header(4), do: <<0xD6>>
  defp ext_header(8), do: <<0xD7>>
  defp ext_header(16), do: <<0xD8>>
  defp ext_header(n) when n <= 0xFF, do: <<0xC7, n>>
  defp ext_header(n) when n <= 0xFFFF, do: <<0xC8, n::16>>
  defp ext_header(n), do: <<0xC9, n::32>>

  @doc """
  The one term that the bytes hold.

  Refused are bytes that are cut off or left over, nesting deeper than #{@max_depth}, maps whose keys are not strings or
  occur twice, strings that are not UTF-8, floats that are not finite, extensions other than tensors.

  ## Examples

      iex> Nutkin.Msgpack.decode(<<0x93, 0xA4, "pong", 7, 0x80>>)
      {:ok, ["pong", 7, %{}]}
      iex> {:error, error} = Nutkin.Msgpack.decode(<<0x93, 1, 2>>)
      iex> Exception.message(error)
      "bytes that are not msgpack: an array of 3 is cut off (at byte 1)"

  """
  @spec decode(binary()) :: {:ok, decoded()} | {:error, Protocol.t()}
  def decode(bytes) when is_binary(bytes) do
    case value(bytes, 0) do
      {term, <<>>} -> {:ok, term}
      {_term, rest} -> invalid("more bytes after the end of the message", rest)
    end
  catch
    {:invalid, what, rest} ->
      place = "byte #{byte_size(bytes) - byte_size(rest)}"
      {:error, Protocol.exception(message: "bytes that are not msgpack: #{what}", path: place)}
  end

  @spec invalid(String.t(), binary()) :: no_return()
  defp invalid(what, rest), do: throw({:invalid, what, rest})

  defp value(<<0::1, i::7, rest::binary>>, _depth), do: {i, rest}
  defp value(<<0b111::3, i::5, rest::binary>>, _depth), do: {i - 32, rest}
  defp value(<<0b101::3, n::5, rest::binary>>, _depth), do: str(n, rest)
  defp value(<<0b1001::4, n::4, rest::binary>>, depth), do: array(n, rest, depth)
  defp value(<<0b1000::4, n::4, rest::binary>>, depth), do: map(n, rest, depth)
  defp value(<<0xC0, rest::binary>>, _depth), do: {nil, rest}
  defp value(<<0xC2, rest::binary>>, _depth), do: {false, rest}
  defp value(<<0xC3, rest::binary>>, _depth), do: {true, rest}
  defp value(<<0xC4, n, rest::binary>>, _depth), do: bytes(n, "bin", rest)
  defp value(<<0xC5, n::16, rest::binary>>, _depth), do: bytes(n, "bin", rest)
  defp value(<<0xC6, n::32, rest::binary>>, _depth), do: bytes(n, "bin", rest)
  defp value(<<0xC7, n, type, rest::binary>>, _depth), do: ext(n, type, rest)
  defp value(<<0xC8, n::16, type, rest::binary>>, _depth), do: ext(n, type, rest)
  defp value(<<0xC9, n::32, type, rest::binary>>, _depth), do: ext(n, type, rest)
  defp value(<<0xCA, f::float-32, rest::binary>>, _depth), do: {f, rest}
  defp value(<<0xCB, f::float-64, rest::binary>>, _depth), do: {f, rest}
  defp value(<<0xCA, _::32, _::binary>> = rest, _depth), do: invalid("a float that is not finite", rest)
  defp value(<<0xCB, _::64, _::binary>> = rest, _depth), do: invalid("a float that is not finite", rest)
  defp value(<<0xCC, i, rest::binary>>, _depth), do: {i, rest}
  defp value(<<0xCD, i::16, rest::binary>>, _depth), do: {i, rest}
  defp value(<<0xCE, i::32, rest::binary>>, _depth), do: {i, rest}
  defp value(<<0xCF, i::64, rest::binary>>, _depth), do: {i, rest}
  defp value(<<0xD0, i::signed-8, rest::binary>>, _depth), do: {i, rest}
  defp value(<<0xD1, i::signed-16, rest::binary>>, _depth), do: {i, rest}
  defp value(<<0xD2, i::signed-32, rest::binary>>, _depth), do: {i, rest}
  defp value(<<0xD3, i::signed-64, rest::binary>>, _depth), do: {i, rest}
  defp value(<<0xD4, type, rest::binary>>, _depth), do: ext(1, type, rest)
  defp value(<<0xD5, type, rest::binary>>, _depth), do: ext(2, type, rest)
  defp value(<<0xD6, type, rest::binary>>, _depth), do: ext(4, type, rest)
  defp value(<<0xD7, type, rest::binary>>, _depth), do: ext(8, type, rest)
  defp value(<<0xD8, type, rest::binary>>, _depth), do: ext(16, type, rest)
  defp value(<<0xD9, n, rest::binary>>, _depth), do: str(n, rest)
  defp value(<<0xDA, n::16, rest::binary>>, _depth), do: str(n, rest)
  defp value(<<0xDB, n::32, rest::binary>>, _depth), do: str(n, rest)
  defp value(<<0xDC, n::16, rest::binary>>, depth), do: array(n, rest, depth)
  defp value(<<0xDD, n::32, rest::binary>>, depth), do: array(n, rest, depth)
  defp value(<<0xDE, n::16, rest::binary>>, depth), do: map(n, rest, depth)
  defp value(<<0xDF, n::32, rest::binary>>, depth), do: map(n, rest, depth)
  defp value(<<0xC1, _::binary>> = rest, _depth), do: invalid("0xC1, which has no meaning", rest)
  defp value(rest, _depth), do: invalid("a value is cut off", rest)

  defp bytes(n, what, rest) do
    case rest do
      <<bytes::binary-size(n), rest::binary>> -> {bytes, rest}
      _cut -> invalid("a #{what} of #{n} bytes is cut off", rest)
    end
  end

  defp str(n, rest) do
    {string, after_string} = bytes(n, "string", rest)
    if String.valid?(string), do: {string, after_string}, else: invalid("a string that is not UTF-8", rest)
  end

  defp ext(n, @tensor_ext, rest) do
    {payload, after_payload} = bytes(n, "tensor", rest)

    case Tensor.Payload.decode(payload) do
      {:ok, tensor} -> {tensor, after_payload}
      {:error, reason} -> invalid(reason, rest)
    end
  end

  defp ext(_n, type, rest), do: invalid("an extension of the unknown type #{type}", rest)

  # An element takes a byte at least: a length that the rest cannot hold is refused before anything is built.
  defp array(_n, rest, @max_depth), do: invalid("nesting deeper than #{@max_depth}", rest)
  defp array(n, rest, _depth) when n > byte_size(rest), do: invalid("an array of #{n} is cut off", rest)
  defp array(n, rest, depth), do: elements(n, rest, depth + 1, [])

  defp elements(0, rest, _depth, done), do: {Enum.reverse(done), rest}

  defp elements(n, rest, depth, done) do
    {element, rest} = value(rest, depth)
    elements(n - 1, rest, depth, [element | done])
  end

  defp map(_n, rest, @max_depth), do: invalid("nesting deeper than #{@max_depth}", rest)
  defp map(n, rest, _depth) when 2 * n > byte_size(rest), do: invalid("a map of #{n} is cut off", rest)

  defp map(n, rest, depth) do
    {pairs, after_pairs} = pairs(n, rest, depth + 1, [])
    map = Map.new(pairs)
    if map_size(map) == n, do: {map, after_pairs}, else: invalid("a map with a key twice", rest)
  end

  defp pairs(0, rest, _depth, done), do: {done, rest}

  defp pairs(n, rest, depth, done) do
    {key, rest} = key(rest, depth)
    {value, rest} = value(rest, depth)
    pairs(n - 1, rest, depth, [{key, value} | done])
  end

  defp key(<<0b101::3, _::5, _::binary>> = rest, depth), do: value(rest, depth)
  defp key(<<tag, _::binary>> = rest, depth) when tag in [0xD9, 0xDA, 0xDB], do: value(rest, depth)
  defp key(rest, _depth), do: invalid("a map key that is no string", rest)
end
