defmodule Nutkin.DataTest do
  use ExUnit.Case, async: true

  alias Nutkin.{Blob, Data, Model, Tensor}
  alias Nutkin.Error.InvalidData
  alias Nutkin.Model.Language

  doctest Nutkin.Data

  setup do
    model =
      Model.build(fn ->
        Language.data(:y)
        Language.data("sigma")
        Language.deterministic(:five, Language.tensor([5.0, 5.0]))
      end)

    %{model: model}
  end

  test "each slot gets the address of its blob, next to the blobs of the model", %{model: model} do
    tensor = Tensor.new([[1.0, 2.0]])
    assert {:ok, data} = Data.encode(model, %{"y" => [1, 2], "sigma" => tensor})
    assert %{"y" => {:bin, y}, "sigma" => {:bin, sigma}} = data.addresses
    assert {:ok, %Blob{sha: ^y}} = Blob.cast([1, 2])
    assert {:ok, %Blob{sha: ^sigma}} = Blob.cast(tensor)
    assert Enum.sort(Map.keys(data.blobs)) == Enum.sort([y, sigma | Map.keys(model.blobs)])
    assert map_size(model.blobs) == 1
  end

  test "equal values are one blob", %{model: model} do
    {:ok, data} = Data.encode(model, %{"y" => [5.0, 5.0], "sigma" => [5.0, 5.0]})
    assert map_size(data.blobs) == 1
  end

  test "a missing and an unknown slot are named, with those that there are", %{model: model} do
    assert {:error, %InvalidData{node: "sigma", expected: "values for y, sigma"} = error} =
             Data.encode(model, %{"y" => 1})

    assert Exception.message(error) =~ "no value for the data slot sigma"
    assert Exception.message(error) =~ "data: %{sigma: ...}"
    assert {:error, %InvalidData{node: "z"}} = Data.encode(model, %{"y" => 1, "sigma" => 1, "z" => 1})
    assert {:error, %InvalidData{expected: "no data"}} = Data.encode(Model.build(fn -> :ok end), %{"z" => 1})
  end

  describe "a slot that declares" do
    test "a type gets numbers and lists of this type" do
      model = Model.build(fn -> [Language.data(:y, type: :f64), Language.data(:n, type: :s32)] end)

      for {y, as} <- [{[1, 2], [1.0, 2.0]}, {3, 3.0}, {1..2, [1.0, 2.0]}, {[:nan, 1], [:nan, 1.0]}] do
        assert {:ok, data} = Data.encode(model, %{"y" => y, "n" => 1})
        assert data.addresses["y"] == {:bin, sha(Tensor.new(as, type: :f64))}
        assert data.addresses["n"] == {:bin, sha(Tensor.new(1, type: :s32))}
      end

      assert {:error, %InvalidData{node: "n", path: "[1]", found: "1.5"} = error} =
               Data.encode(model, %{"y" => 1, "n" => [1, 1.5]})

      assert error.message == "a number that s32 cannot hold"
    end

    test "a type leaves tensors as they are" do
      model = Model.build(fn -> Language.data(:y, type: :f64) end)
      tensor = Tensor.new([1, 2])
      {:ok, blob} = Blob.cast(tensor)

      for given <- [tensor, blob] do
        assert {:ok, %{addresses: %{"y" => {:bin, sha}}}} = Data.encode(model, %{"y" => given})
        assert sha == blob.sha
      end
    end

    test "a shape refuses any other" do
      model = Model.build(fn -> Language.data(:x, shape: {nil, 2}) end)
      assert {:ok, _data} = Data.encode(model, %{"x" => [[1, 2], [3, 4], [5, 6]]})
      assert {:ok, _data} = Data.encode(model, %{"x" => Blob.from_serialized("told by the worker")})

      for {x, found} <- [{[1, 2], "{2}"}, {Tensor.new([[1, 2, 3]]), "{1, 3}"}, {1, "{}"}] do
        assert {:error, error} = Data.encode(model, %{"x" => x})

        assert Exception.message(error) ==
                 "the shape is not the declared one (node x); expected {nil, 2}; found #{found}"
      end
    end

    @tag :nx
    test "a shape refuses Nx tensors of another, vectorized axes counted" do
      model = Model.build(fn -> Language.data(:x, shape: {3, 2}) end)
      x = apply(Nx, :tensor, [[[1, 2], [3, 4], [5, 6]]])
      assert {:ok, _data} = Data.encode(model, %{"x" => x})
      assert {:ok, _data} = Data.encode(model, %{"x" => apply(Nx, :vectorize, [x, :rows])})

      assert {:error, %InvalidData{found: "{2, 3}"}} =
               Data.encode(model, %{"x" => apply(Nx, :transpose, [x])})
    end

    defp sha(value) do
      {:ok, blob} = Blob.cast(value)
      blob.sha
    end
  end

  test "a missing slot is written as a map has it" do
    model = Model.build(fn -> Language.data("the n") end)
    assert {:error, %InvalidData{hint: ~s(give it as data: %{"the n" => ...})}} = Data.encode(model, %{})
  end

  test "a value that is no tensor is an error of its slot, with the place", %{model: model} do
    assert {:error, %InvalidData{node: "y", path: "[1]"}} =
             Data.encode(model, %{"y" => [1, :b], "sigma" => 1})
  end
end
