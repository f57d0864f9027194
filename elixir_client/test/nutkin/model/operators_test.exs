defmodule Nutkin.Model.OperatorsTest do
  use ExUnit.Case, async: true

  import Nutkin.Model

  alias Nutkin.Model.Operators
  alias Nutkin.Tensor

  test "make operations of nodes, numbers and tensors" do
    built =
      model do
        x <~ normal(0, 1)

        for {name, value} <- [
              add: x + 1,
              subtract: 1 - x,
              multiply: x * [1, 2],
              divide: Tensor.new([1, 2]) / x,
              pow: x ** 2,
              negate: -x,
              equal: x == 1,
              not_equal: x != 1,
              less: x < 1,
              less_equal: x <= 1,
              greater: x > 1,
              greater_equal: x >= 1,
              max: max(x, 0),
              min: x |> min(0),
              remainder: rem(x, 2),
              quotient: div(x, 2),
              abs: abs(x),
              floor: floor(x),
              ceil: ceil(x),
              round: round(x)
            ] do
          deterministic(name, value)
        end
      end

    named =
      for %{"kind" => "deterministic", "name" => name, "value" => value} <- built.nodes, do: {name, value}

    assert length(named) == length(Operators.kernel_names())
    for {name, value} <- named, do: assert(%{"kind" => "call", "op" => ^name} = Enum.at(built.nodes, value))
  end

  test "keep the order of their operands" do
    built =
      model do
        x <~ normal(0, 1)
        3 - x
        x - 3
      end

    assert [%{"args" => [3, 2]}, %{"args" => [2, 3]}] = Enum.filter(built.nodes, &(&1["op"] == "subtract"))
  end

  test "are Kernel's for plain numbers, in guards and in patterns" do
    built =
      model do
        send(self(), {:sums, 1 + 2 * 3 - 4 / 2, -5, 2 ** 3, rem(-7, 4), div(-7, 4), abs(-1), round(2.5)})
        send(self(), {:orders, 1 < 2, 1 >= 2, 1 == 1.0, :a != :b, max(1, 2), min("a", "b")})

        kind = fn
          -1 -> :minus_one
          n when n > 1 and rem(n, 2) == 0 -> :even
          n when n + 1 >= 1 -> :other
        end

        send(self(), {:kinds, Enum.map([-1, 4, 3], kind)})

        send(
          self(),
          {:captured, Enum.reduce([1, 2, 3], &+/2), Enum.map([1, 2], &(&1 * 2)), Enum.max_by([1, -3], &abs/1)}
        )
      end

    assert built.nodes == []
    assert_received {:sums, 5.0, -5, 8, -3, -1, 1, 3}
    assert_received {:orders, true, false, true, true, 2, "a"}
    assert_received {:kinds, [:minus_one, :even, :other]}
    assert_received {:captured, 6, [2, 4], -3}
  end

  @tag :nx
  test "take Nx tensors, which become constants" do
    y = apply(Nx, :tensor, [[1.0, 2.0], [type: :f64]])

    built =
      model do
        mu <~ normal(0, 1)
        factor(:f, sum(y * mu) + (y - 1)[0])
        observe(:y, normal(mu, 1), y)
      end

    assert [%Nutkin.Blob{encoding: :nx}] = Map.values(built.blobs)

    assert ["multiply", "sum", "subtract", "slice", "squeeze", "add"] ==
             for(%{"op" => op} <- built.nodes, do: op)
  end

  test "without a node among them, raise as Kernel's do" do
    assert_raise ArithmeticError, fn ->
      model do
        [1, 2] + Enum.random([:a])
      end
    end
  end
end
