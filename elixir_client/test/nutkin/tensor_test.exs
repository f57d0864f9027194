defmodule Nutkin.TensorTest do
  use ExUnit.Case, async: true

  alias Nutkin.Error.InvalidData
  alias Nutkin.Tensor

  doctest Nutkin.Tensor

  describe "new" do
    test "takes numbers, ranges and lists of any depth" do
      assert %Tensor{type: {:s, 64}, shape: {}, data: <<7, 0::56>>} = Tensor.new(7)
      assert %Tensor{type: {:f, 64}, shape: {2}} = halves = Tensor.new([0.5, 1])
      assert halves.data == <<0.5::float-little-64, 1.0::float-little-64>>
      assert Tensor.to_list(Tensor.new(1..3)) == [1, 2, 3]
      assert Tensor.to_list(Tensor.new([1..2, [3, 4]])) == [[1, 2], [3, 4]]
      assert Tensor.shape(Tensor.new([[[1], [2]], [[3], [4]], [[5], [6]]])) == {3, 2, 1}
    end

    test "takes what is no finite number" do
      tensor = Tensor.new([1, :nan, :infinity, :neg_infinity])
      assert tensor.type == {:f, 64}
      assert Tensor.to_list(tensor) == [1.0, :nan, :infinity, :neg_infinity]
    end

    test "takes a tensor, and converts it" do
      tensor = Tensor.new([[1, 2], [3, 4]])
      assert Tensor.new(tensor) == tensor
      assert Tensor.new(tensor, type: :f32) == Tensor.new([[1.0, 2.0], [3.0, 4.0]], type: "f32")
    end

    test "of random nested lists gives the lists back" do
      :rand.seed(:exsss, 1)

      for _ <- 1..100 do
        shape = for _ <- 1..:rand.uniform(4), do: :rand.uniform(4)
        list = nested(shape, fn -> :rand.normal() end)
        tensor = Tensor.new(list)
        assert Tensor.shape(tensor) == List.to_tuple(shape)
        assert Tensor.to_list(tensor) == list
        assert Tensor.to_flat_list(tensor) == List.flatten(list)
        assert Tensor.size(tensor) == Enum.product(shape)
      end
    end

    test "refuses what has no shape, and says where" do
      for {value, path, message} <- [
            {[], nil, "an empty list"},
            {[[], []], "[0]", "an empty list"},
            {[[1, 2], [3]], "[1]", "lists of unequal lengths"},
            {[[[1], [2]], [[3], [4, 5]]], "[1][1]", "lists of unequal lengths"},
            {[1 | 2], nil, "an improper list"},
            {[[1, 2], [3 | 4]], "[1]", "an improper list"},
            {[1, [2]], "[1]", "lists of unequal depth"},
            {[[1], 2], "[1]", "lists of unequal depth"},
            {[1, true], "[1]", "not a number"},
            {[1, nil], "[1]", "not a number"},
            {[[1, "2"]], "[0][1]", "not a number"},
            {%{}, nil, "not a number"},
            {~c"", nil, "an empty list"},
            {[Tensor.new(1), 2], "[0]", "a tensor inside a list"}
          ] do
        assert {:error, %InvalidData{path: ^path, message: ^message}} = Tensor.cast(value)
      end
    end

    test "refuses numbers that do not fit their type, and says where" do
      for {value, type, path, found} <- [
            {2 ** 63, nil, nil, "9223372036854775808"},
            {[[0, 1], [2, -1]], :u8, "[1][1]", "-1"},
            {[1, 2.5], :s32, "[1]", "2.5"},
            {[1, :nan], :s64, "[1]", ":nan"},
            {[1.0, 1.0e300], :f32, "[1]", "1.0e300"},
            {[10 ** 400, 1.0], nil, "[0]", "1" <> String.duplicate("0", 400)}
          ] do
        opts = if type, do: [type: type], else: []
        assert {:error, %InvalidData{path: ^path, found: ^found} = error} = Tensor.cast(value, opts)
        assert error.message =~ "cannot hold"
      end

      assert {:ok, %Tensor{type: {:u, 64}}} = Tensor.cast(2 ** 64 - 1, type: :u64)

      assert_raise InvalidData, ~r/numbers cannot be written as c64; use from_binary/, fn ->
        Tensor.new(1, type: :c64)
      end

      assert_raise InvalidData, ~r/an unknown type; expected one of bf16, .*found :f65/, fn ->
        Tensor.new(1, type: :f65)
      end
    end
  end

  describe "concatenate, stack and slice" do
    test "agree with lists" do
      :rand.seed(:exsss, 2)

      for _ <- 1..50 do
        [a, b] =
          for n <- [:rand.uniform(4), :rand.uniform(4)], do: nested([n, 2], fn -> :rand.uniform(100) end)

        joined = Tensor.concatenate([Tensor.new(a), Tensor.new(b)])
        assert Tensor.to_list(joined) == a ++ b
        assert Tensor.to_list(Tensor.slice(joined, length(a), length(b))) == b
        assert Tensor.to_list(Tensor.stack([Tensor.new(b), Tensor.new(b)])) == [b, b]
      end
    end

    test "refuse tensors that do not fit each other" do
      assert_raise ArgumentError, "s64 {2} and f64 {2} cannot be joined", fn ->
        Tensor.concatenate([Tensor.new([1, 2]), Tensor.new([1.0, 2.0])])
      end

      assert_raise ArgumentError, "s64 {1, 2} and s64 {1, 3} cannot be joined", fn ->
        Tensor.concatenate([Tensor.new([[1, 2]]), Tensor.new([[1, 2, 3]])])
      end

      assert_raise ArgumentError, "s64 {2} and s64 {3} cannot be joined", fn ->
        Tensor.stack([Tensor.new([1, 2]), Tensor.new([1, 2, 3])])
      end
    end

    test "a slice shares the bytes" do
      tensor = Tensor.new(1..1000)
      assert :binary.referenced_byte_size(Tensor.slice(tensor, 10, 20).data) >= 8000
    end
  end

  test "one number, or a list" do
    assert Tensor.to_number(Tensor.new([[3]])) == 3

    assert_raise ArgumentError, ~r/s64 \{2\} is not one number/, fn ->
      Tensor.to_number(Tensor.new([1, 2]))
    end

    assert_raise ArgumentError, ~r/a scalar tensor has no list/, fn -> Tensor.to_list(Tensor.new(1)) end
    assert Tensor.to_flat_list(Tensor.new(1)) == [1]
  end

  test "prints its first elements" do
    assert inspect(Tensor.new([[1, 2, 3], [4, 5, 6]]), limit: 4) == """
           #Nutkin.Tensor<
             s64[2][3]
             [[1, 2, 3], [4, ...]]
           >\
           """

    assert inspect(Tensor.new([:nan, :infinity, :neg_infinity])) =~ "[NaN, Inf, -Inf]"
    assert inspect(Tensor.new(1.5)) =~ "f64\n  1.5\n"

    assert inspect(Tensor.from_binary(<<1.0::float-little-32, -2.0::float-little-32>>, :c64, {})) =~
             "1.0+-2.0i"

    assert inspect(Tensor.new(Enum.to_list(1..1_000_000)), limit: 2) =~ "[1, 2, ...]"
  end

  test "bits that fill no byte are those of small types" do
    bits = <<1::4, 15::4, 7::4>>
    tensor = Tensor.from_bits(bits, {:u, 4}, {3})
    assert Tensor.to_list(tensor) == [1, 15, 7]
    assert Tensor.bits(tensor) == bits
  end

  describe "Nx" do
    @describetag :nx

    test "tensors come and go, of every type that both know" do
      for type <- [{:u, 8}, {:s, 32}, {:s, 64}, {:bf, 16}, {:f, 16}, {:f, 32}, {:f, 64}, {:c, 64}] do
        nx = apply(Nx, :tensor, [[[1, 2, 3], [4, 5, 6]], [type: type]])
        tensor = Tensor.new(nx)
        assert {tensor.type, tensor.shape} == {type, {2, 3}}
        assert Tensor.to_nx(tensor) == nx
      end

      scalar = apply(Nx, :tensor, [1.5, [type: :f64]])
      assert Tensor.to_number(Tensor.new(scalar)) == 1.5
      assert Tensor.to_nx(Tensor.new(1.5)) == scalar
    end

    test "vectorized axes come first" do
      nx = apply(Nx, :vectorize, [apply(Nx, :tensor, [[[1, 2, 3], [4, 5, 6]]]), :rows])
      assert Tensor.to_list(Tensor.new(nx)) == [[1, 2, 3], [4, 5, 6]]
    end
  end

  @tag :without_nx
  test "to_nx says what is missing" do
    assert_raise RuntimeError, ~r/Nx is not loaded/, fn -> Tensor.to_nx(Tensor.new(1)) end
  end

  defp nested([], number), do: number.()
  defp nested([size | shape], number), do: Enum.map(1..size, fn _ -> nested(shape, number) end)
end
