defmodule Nutkin.Model.NodeTest do
  use ExUnit.Case, async: true

  import Nutkin.Model

  alias Nutkin.Error.InvalidModel

  test "an integer drops its axis" do
    assert [slice, squeeze] = indexed(2)
    assert %{"op" => "slice", "args" => [0], "opts" => %{"starts" => [2], "lengths" => [1]}} = slice
    assert %{"op" => "squeeze", "args" => [1], "opts" => %{"axes" => [0]}} = squeeze
    assert [%{"opts" => %{"starts" => [-1], "lengths" => [1]}}, _squeeze] = indexed(-1)
  end

  test "a range keeps its axis" do
    for {range, start, length} <- [
          {0..2, 0, 3},
          {1..1, 1, 1},
          {-3..-2, -3, 2},
          {1..-1, 1, 0},
          {1..-1//1, 1, 0},
          {0..-3, 0, -2},
          {.., 0, 0}
        ] do
      assert [%{"op" => "slice", "opts" => opts}] = indexed(range)
      assert opts == %{"starts" => [start], "lengths" => [length]}
    end

    assert [%{"opts" => %{"starts" => [0], "lengths" => [0], "strides" => [2]}}] = indexed(0..-1//2)
  end

  test "a list is an index for each axis" do
    assert [slice, squeeze] = indexed([.., 1, 0..2, -1])
    assert slice["opts"] == %{"starts" => [0, 1, 0, -1], "lengths" => [0, 1, 3, 1]}
    assert squeeze["opts"] == %{"axes" => [1, 3]}
  end

  test "a node takes entries" do
    built =
      model do
        x = data(:x)
        group = data(:group)
        deterministic(:picked, x[group])
      end

    assert %{"op" => "take", "args" => [0, 1], "opts" => %{}} = Enum.at(built.nodes, 2)
  end

  test "other keys are refused" do
    for key <- [2..0, -1..2, -1..-3, 5..0//-1, :a, 1.5, [0, :a], []] do
      assert_raise InvalidModel, ~r/a node cannot be indexed so; expected an integer, a range/, fn ->
        indexed(key)
      end
    end
  end

  test "a tensor of indices is for take" do
    for key <- [Nutkin.Tensor.new([0, 1]), [0, [1, 2]]] do
      error = assert_raise InvalidModel, fn -> indexed(key) end
      assert error.hint =~ "take(x, indices)"
    end
  end

  test "prints its name" do
    model do
      x = data(:x)
      send(self(), {inspect(x), inspect(x + 1)})
    end

    assert_received {"#Nutkin.Model.Node<x>", "#Nutkin.Model.Node<add(…)>"}
  end

  defp indexed(key) do
    built =
      model do
        x = data(:x)
        x[key]
      end

    tl(built.nodes)
  end

  test "is neither a list nor a text, and says so" do
    for {wrong, hint} <- [
          {&Enum.map(&1, fn x -> x end), "use sum/2"},
          {&Enum.count/1, "the sizes that you have from your data"},
          {&Enum.member?(&1, 1), "any(x == value)"},
          {&Enum.at(&1, 0), "use x[0..2]"},
          {&"#{&1}", "deterministic(name, x)"}
        ] do
      error =
        assert_raise InvalidModel, fn ->
          Nutkin.Model.build(fn -> wrong.(Nutkin.Model.Language.data(:y)) end)
        end

      assert Exception.message(error) =~
               ~r/\Ay is a value that exists only when the model runs, not a (list|text)/

      assert error.hint =~ hint
    end
  end
end
