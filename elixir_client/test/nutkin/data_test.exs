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

  test "a value that is no tensor is an error of its slot, with the place", %{model: model} do
    assert {:error, %InvalidData{node: "y", path: "[1]"}} =
             Data.encode(model, %{"y" => [1, :b], "sigma" => 1})
  end
end
