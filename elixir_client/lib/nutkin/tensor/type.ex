defmodule Nutkin.Tensor.Type do
  @moduledoc """
  The types of tensor elements: Nx's tuples, their names, their sizes, and their bytes as numbers.

  A type is a tuple as in Nx, `{:f, 64}`; where a type is given, its name does as well, `"f64"` or `:f64`.
  """

  @type t ::
          {:u | :s, 2 | 4 | 8 | 16 | 32 | 64}
          | {:f, 8 | 16 | 32 | 64}
          | {:bf, 16}
          | {:f8_e4m3fn, 8}
          | {:c, 64 | 128}

  @typedoc "An element: complex ones are pairs, and what is no finite number has Nx's names."
  @type element :: number() | :nan | :infinity | :neg_infinity | {element(), element()}

  @types Map.merge(
           for(
             kind <- [:u, :s],
             bits <- [2, 4, 8, 16, 32, 64],
             into: %{},
             do: {"#{kind}#{bits}", {kind, bits}}
           ),
           %{
             "f8" => {:f, 8},
             "f8_e4m3fn" => {:f8_e4m3fn, 8},
             "bf16" => {:bf, 16},
             "f16" => {:f, 16},
             "f32" => {:f, 32},
             "f64" => {:f, 64},
             "c64" => {:c, 64},
             "c128" => {:c, 128}
           }
         )
  @names Map.new(@types, fn {name, type} -> {type, name} end)

  @doc """
  The type that a tuple, a string or an atom means.

  ## Examples

      iex> Nutkin.Tensor.Type.fetch("f64")
      {:ok, {:f, 64}}
      iex> Nutkin.Tensor.Type.fetch({:bf, 16})
      {:ok, {:bf, 16}}
      iex> Nutkin.Tensor.Type.fetch(:f65)
      :error

  """
  @spec fetch(term()) :: {:ok, t()} | :error
  def fetch(name) when is_binary(name), do: Map.fetch(@types, name)
  def fetch(name) when is_atom(name), do: Map.fetch(@types, Atom.to_string(name))
  def fetch(type) when is_map_key(@names, type), do: {:ok, type}
  def fetch(_other), do: :error

  @doc """
  The name of a type, as it travels.

  ## Examples

      iex> Nutkin.Tensor.Type.name({:f, 64})
      "f64"

  """
  @spec name(t()) :: String.t()
  def name(type), do: Map.fetch!(@names, type)

  @doc "All names, sorted."
  @spec names() :: [String.t()]
  def names, do: Enum.sort(Map.keys(@types))

  @doc """
  The bytes of `count` elements. Types of less than 8 bits are packed, and the last byte filled up.

  ## Examples

      iex> Nutkin.Tensor.Type.byte_size({:f, 64}, 3)
      24
      iex> Nutkin.Tensor.Type.byte_size({:u, 2}, 5)
      2

  """
  @spec byte_size(t(), non_neg_integer()) :: non_neg_integer()
  def byte_size({_kind, bits}, count), do: div(bits * count + 7, 8)

  @doc """
  The bytes of numbers as elements of a type, or the place of the first that it cannot hold.

  Floating types take every number and the atoms `:nan`, `:infinity` and `:neg_infinity`, integer types take
  integers in their range. Complex and 8-bit and brain floating types are read and passed on, not written.

  ## Examples

      iex> Nutkin.Tensor.Type.encode([1, -2], {:s, 16})
      {:ok, <<1, 0, 254, 255>>}
      iex> Nutkin.Tensor.Type.encode([1, 300], {:u, 8})
      {:error, {:element, 1}}
      iex> Nutkin.Tensor.Type.encode([1.0], {:c, 64})
      {:error, :read_only}

  """
  @spec encode([element()], t()) :: {:ok, binary()} | {:error, {:element, non_neg_integer()} | :read_only}
  def encode(elements, {kind, bits}) when kind in [:u, :s] do
    range = if kind == :u, do: 0..(2 ** bits - 1), else: -(2 ** (bits - 1))..(2 ** (bits - 1) - 1)

    case Enum.find_index(elements, &(not is_integer(&1) or &1 not in range)) do
      nil -> {:ok, pad(for(element <- elements, into: <<>>, do: <<element::little-size(bits)>>))}
      index -> {:error, {:element, index}}
    end
  end

  def encode(elements, {:f, bits}) when bits in [16, 32, 64], do: encode_floats(elements, bits, 0, [])
  def encode(_elements, _type), do: {:error, :read_only}

  defp pad(bits) when is_binary(bits), do: bits
  defp pad(bits), do: <<bits::bitstring, 0::size(8 - rem(bit_size(bits), 8))>>

  defp encode_floats([], _bits, _index, done), do: {:ok, IO.iodata_to_binary(Enum.reverse(done))}

  defp encode_floats([element | rest], bits, index, done) do
    case encode_float(element, bits) do
      :error -> {:error, {:element, index}}
      bytes -> encode_floats(rest, bits, index + 1, [bytes | done])
    end
  end

  defp encode_float(number, bits) when is_number(number) do
    bytes = <<number::float-little-size(bits)>>
    # Beyond the range of a short type the emulator writes an infinity, which is no pattern of a float.
    if match?(<<_::float-little-size(bits)>>, bytes), do: bytes, else: :error
  rescue
    # An integer that is beyond the range of a double.
    ArgumentError -> :error
  end

  defp encode_float(:nan, 16), do: <<0x7E00::little-16>>
  defp encode_float(:infinity, 16), do: <<0x7C00::little-16>>
  defp encode_float(:neg_infinity, 16), do: <<0xFC00::little-16>>
  defp encode_float(:nan, 32), do: <<0x7FC00000::little-32>>
  defp encode_float(:infinity, 32), do: <<0x7F800000::little-32>>
  defp encode_float(:neg_infinity, 32), do: <<0xFF800000::little-32>>
  defp encode_float(:nan, 64), do: <<0x7FF8000000000000::little-64>>
  defp encode_float(:infinity, 64), do: <<0x7FF0000000000000::little-64>>
  defp encode_float(:neg_infinity, 64), do: <<0xFFF0000000000000::little-64>>
  defp encode_float(_other, _bits), do: :error

  @doc """
  The first `count` elements in the bytes of a type.

  ## Examples

      iex> Nutkin.Tensor.Type.decode(<<0, 0, 128, 63, 0, 0, 128, 127>>, {:f, 32}, 2)
      [1.0, :infinity]

  """
  @spec decode(binary(), t(), non_neg_integer()) :: [element()]
  def decode(data, {_kind, bits} = type, count) do
    wanted = bits * count
    <<data::bitstring-size(wanted), _rest::bitstring>> = data
    decode(data, type)
  end

  defp decode(data, {:u, bits}), do: for(<<x::unsigned-little-size(bits) <- data>>, do: x)
  defp decode(data, {:s, bits}), do: for(<<x::signed-little-size(bits) <- data>>, do: x)
  defp decode(data, {:f, 64}), do: decode_f64(data, [])
  defp decode(data, {:f, 32}), do: decode_f32(data, [])
  defp decode(data, {:f, 16}), do: for(<<bytes::binary-2 <- data>>, do: decode_float(bytes, 16))
  # These two are the upper halves of f16 and f32.
  defp decode(data, {:f, 8}), do: for(<<byte <- data>>, do: decode_float(<<0, byte>>, 16))

  defp decode(data, {:bf, 16}),
    do: for(<<half::binary-2 <- data>>, do: decode_float(<<0, 0, half::binary>>, 32))

  defp decode(data, {:f8_e4m3fn, 8}), do: for(<<byte::binary-1 <- data>>, do: decode_e4m3fn(byte))
  defp decode(data, {:c, 64}), do: pairs(decode_f32(data, []))
  defp decode(data, {:c, 128}), do: pairs(decode_f64(data, []))

  # The common case of finite doubles is one match an element.
  defp decode_f64(<<x::float-little-64, rest::binary>>, done), do: decode_f64(rest, [x | done])

  defp decode_f64(<<bytes::binary-8, rest::binary>>, done),
    do: decode_f64(rest, [not_finite(bytes, 64) | done])

  defp decode_f64(<<>>, done), do: Enum.reverse(done)

  defp decode_f32(<<x::float-little-32, rest::binary>>, done), do: decode_f32(rest, [x | done])

  defp decode_f32(<<bytes::binary-4, rest::binary>>, done),
    do: decode_f32(rest, [not_finite(bytes, 32) | done])

  defp decode_f32(<<>>, done), do: Enum.reverse(done)

  defp decode_float(bytes, bits) do
    case bytes do
      <<x::float-little-size(bits)>> -> x
      _other -> not_finite(bytes, bits)
    end
  end

  # A pattern of floats matches finite ones only, so what comes here has all bits of the exponent set.
  defp not_finite(bytes, bits) do
    <<pattern::little-size(bits)>> = bytes
    mantissa_bits = %{16 => 10, 32 => 23, 64 => 52}[bits]

    case <<pattern::size(bits)>> do
      <<0::1, _exponent::size(bits - mantissa_bits - 1), 0::size(mantissa_bits)>> -> :infinity
      <<1::1, _exponent::size(bits - mantissa_bits - 1), 0::size(mantissa_bits)>> -> :neg_infinity
      _other -> :nan
    end
  end

  defp decode_e4m3fn(<<_sign::1, 0b1111::4, 0b111::3>>), do: :nan
  defp decode_e4m3fn(<<sign::1, 0::4, mantissa::3>>), do: (1 - 2 * sign) * mantissa * 2.0 ** -9

  defp decode_e4m3fn(<<sign::1, exponent::4, mantissa::3>>) do
    (1 - 2 * sign) * (8 + mantissa) * 2.0 ** (exponent - 10)
  end

  defp pairs([real, imaginary | rest]), do: [{real, imaginary} | pairs(rest)]
  defp pairs([]), do: []
end
