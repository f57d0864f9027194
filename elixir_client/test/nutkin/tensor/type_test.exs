defmodule Nutkin.Tensor.TypeTest do
  use ExUnit.Case, async: true

  alias Nutkin.Tensor.Type

  doctest Nutkin.Tensor.Type

  test "every name of the protocol is a type" do
    names = ~w(u2 u4 u8 u16 u32 u64 s2 s4 s8 s16 s32 s64 f8 f8_e4m3fn bf16 f16 f32 f64 c64 c128)
    assert Enum.sort(names) == Type.names()

    for name <- names do
      {:ok, type} = Type.fetch(name)
      assert Type.name(type) == name
      assert Type.fetch(type) == {:ok, type}
    end

    for unknown <- ["f65", :x, {:f, 65}, {:f, "64"}, 64, nil, ~c"f64"],
        do: assert(Type.fetch(unknown) == :error)
  end

  test "integers keep their values, at the ends of their range" do
    for kind <- [:u, :s], bits <- [2, 4, 8, 16, 32, 64] do
      {low, high} = if kind == :u, do: {0, 2 ** bits - 1}, else: {-(2 ** (bits - 1)), 2 ** (bits - 1) - 1}
      elements = [low, high, 1, 0, high]
      assert {:ok, data} = Type.encode(elements, {kind, bits})
      assert byte_size(data) == Type.byte_size({kind, bits}, 5)
      assert Type.decode(data, {kind, bits}, 5) == elements
      assert Type.encode([0, low - 1], {kind, bits}) == {:error, {:element, 1}}
      assert Type.encode([high + 1], {kind, bits}) == {:error, {:element, 0}}
    end
  end

  test "small integers are packed, the first in the highest bits" do
    assert Type.encode([0, 1, 1, 0], {:s, 2}) == {:ok, <<0x14>>}
    assert Type.encode([1, 2, 3], {:u, 4}) == {:ok, <<0x12, 0x30>>}
  end

  test "floats keep their values, and what is no finite number" do
    for bits <- [16, 32, 64] do
      elements = [0.0, 1.5, -2.0, :nan, :infinity, :neg_infinity, 0.25]
      assert {:ok, data} = Type.encode(elements, {:f, bits})
      assert byte_size(data) == Type.byte_size({:f, bits}, 7)
      assert Type.decode(data, {:f, bits}, 7) == elements
      assert Type.encode([1, 10 ** 400], {:f, bits}) == {:error, {:element, 1}}
      assert Type.encode([:other], {:f, bits}) == {:error, {:element, 0}}
    end

    assert Type.encode([1.0e5], {:f, 16}) == {:error, {:element, 0}}
  end

  test "every pattern of a NaN is one" do
    for pattern <- [0x7FF0000000000001, 0xFFF8000000000000, 0x7FFFFFFFFFFFFFFF] do
      assert Type.decode(<<pattern::little-64>>, {:f, 64}, 1) == [:nan]
    end

    assert Type.decode(<<0xFF800001::little-32>>, {:f, 32}, 1) == [:nan]
  end

  test "short floats are read" do
    assert Type.decode(<<0x3FC0::little-16, 0x7F80::little-16, 0xFFC0::little-16>>, {:bf, 16}, 3) == [
             1.5,
             :infinity,
             :nan
           ]

    # e5m2: the upper byte of f16.
    assert Type.decode(<<0x3E, 0xC0, 0x7C, 0xFC, 0x7F>>, {:f, 8}, 5) == [
             1.5,
             -2.0,
             :infinity,
             :neg_infinity,
             :nan
           ]

    # e4m3fn: the largest is 448, the smallest 2^-9, there is no infinity.
    assert Type.decode(<<0x3C, 0x7E, 0x01, 0x08, 0x80, 0xFF, 0xC0>>, {:f8_e4m3fn, 8}, 7) ==
             [1.5, 448.0, 0.001953125, 0.015625, -0.0, :nan, -2.0]
  end

  test "complex numbers are pairs" do
    assert Type.decode(<<1.0::float-little-32, 2.0::float-little-32>>, {:c, 64}, 1) == [{1.0, 2.0}]

    assert Type.decode(<<-1.0::float-little-64, 0x7FF0000000000000::little-64>>, {:c, 128}, 1) == [
             {-1.0, :infinity}
           ]
  end
end
