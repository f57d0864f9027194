defmodule Nutkin.Test.HostileBytes do
  @moduledoc false
  # Terms of the wire at random, and bytes damaged at random. The same seed gives the same.

  alias Nutkin.Tensor

  @bytes [0x00, 0x01, 0x7F, 0x80, 0x90, 0xA0, 0xC1, 0xC4, 0xC6, 0xC7, 0xD4, 0xD9, 0xDC, 0xDD, 0xDF, 0xFF]
  @lengths [<<0xFFFFFFFF::32>>, <<0x7FFFFFFF::32>>, <<0x00100000::32>>]
  @edges [0, 127, 128, 255, 256, 65_535, 65_536, 0xFFFFFFFF, 0x100000000, 0xFFFFFFFFFFFFFFFF]

  # A term that can be encoded, with strings in place of bins: so that what is decoded is equal to it.
  def term(depth \\ 4) do
    case :rand.uniform(if depth == 0, do: 7, else: 10) do
      1 ->
        Enum.random([nil, true, false])

      2 ->
        Enum.random(@edges)

      3 ->
        -Enum.random([1, 32, 33, 128, 129, 32_768, 32_769, 2_147_483_648, 2_147_483_649, 0x8000000000000000])

      4 ->
        (:rand.uniform() - 0.5) * :math.pow(10, :rand.uniform(600) - 300)

      5 ->
        String.duplicate("ä", Enum.random([0, 1, 15, 16, 127, 128]))

      6 ->
        String.duplicate("a", Enum.random([0, 1, 31, 32, 255, 256]))

      7 ->
        tensor()

      8 ->
        for _ <- 1..:rand.uniform(20), do: term(depth - 1)

      9 ->
        []

      10 ->
        for i <- 1..:rand.uniform(20), into: %{}, do: {"k#{i}", term(depth - 1)}
    end
  end

  defp tensor do
    shape = List.to_tuple(for _ <- 1..:rand.uniform(4), do: :rand.uniform(3))
    count = Tuple.product(shape)
    Tensor.from_binary(:rand.bytes(8 * count), {:f, 64}, shape)
  end

  # Some changes: bytes replaced, flipped, left out, repeated, cut off, or a length made large.
  def damage(bytes) do
    Enum.reduce(1..Enum.random([1, 1, 2, 3, 8]), bytes, fn _change, bytes ->
      place = :rand.uniform(byte_size(bytes) + 1) - 1
      <<before::binary-size(place), rest::binary>> = bytes

      case :rand.uniform(6) do
        1 -> before <> <<Enum.random(@bytes)>> <> drop(rest, 1)
        2 -> before <> <<:rand.uniform(256) - 1>> <> drop(rest, 1)
        3 -> before <> drop(rest, Enum.random([1, 2, 8]))
        4 -> before <> binary_part(rest, 0, min(50, byte_size(rest))) <> rest
        5 -> before
        6 -> before <> Enum.random(@lengths) <> drop(rest, 4)
      end
    end)
  end

  defp drop(bytes, count) do
    count = min(count, byte_size(bytes))
    binary_part(bytes, count, byte_size(bytes) - count)
  end
end
