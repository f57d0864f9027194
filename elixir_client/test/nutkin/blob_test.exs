defmodule Nutkin.BlobTest do
  use ExUnit.Case, async: true

  alias Nutkin.Blob
  alias Nutkin.Tensor

  doctest Nutkin.Blob

  test "is addressed by the SHA-256 of its bytes" do
    {:ok, blob} = Blob.cast([[1.0, 2.0], [3.0, 4.0]])
    bytes = IO.iodata_to_binary(blob.iodata)
    assert bytes == <<3, "f64", 2, 2::little-64, 2::little-64>> <> Tensor.new([1.0, 2.0, 3.0, 4.0]).data
    assert blob.sha == :crypto.hash(:sha256, bytes)
    assert blob.size == byte_size(bytes)
    assert Blob.cast(Tensor.new([[1.0, 2.0], [3.0, 4.0]])) == {:ok, blob}
    assert Blob.cast(blob) == {:ok, blob}
  end

  test "does not copy large binaries, whole or in pieces" do
    data = :binary.copy(<<1>>, 3_000_000)
    {:ok, blob} = Blob.cast(Tensor.from_binary(data, :u8, {3_000_000}))
    assert :binary.referenced_byte_size(List.last(blob.iodata)) == 3_000_000

    for {_offset, chunk} <- Blob.chunks(blob, 1_000_000), part <- chunk, byte_size(part) > 1000 do
      assert :binary.referenced_byte_size(part) == 3_000_000
    end
  end

  test "comes in pieces of any size, in order and without gaps" do
    parts = for n <- [1, 100, 0, 7, 300], do: :rand.bytes(n)
    blob = Blob.from_serialized(parts)
    bytes = IO.iodata_to_binary(parts)

    for max <- [1, 2, 7, 100, 101, 407, 408, 409, 10_000] do
      chunks = for {offset, chunk} <- Blob.chunks(blob, max), do: {offset, IO.iodata_to_binary(chunk)}
      assert Enum.map_join(chunks, &elem(&1, 1)) == bytes

      Enum.reduce(chunks, 0, fn {offset, chunk}, expected ->
        assert offset == expected
        assert byte_size(chunk) in 1..max
        offset + byte_size(chunk)
      end)

      assert length(chunks) == ceil(byte_size(bytes) / max)
    end
  end

  @tag :nx
  test "of an Nx tensor is what Nx.serialize/2 writes" do
    nx = apply(Nx, :tensor, [[1.0, 2.0], [type: :f64, names: [:x]]])
    assert {:ok, %Blob{encoding: :nx} = blob} = Blob.cast(nx)
    assert IO.iodata_to_binary(blob.iodata) == IO.iodata_to_binary(apply(Nx, :serialize, [nx]))
    assert apply(Nx, :deserialize, [IO.iodata_to_binary(blob.iodata)]) == nx
  end
end
