defmodule Nutkin.Model.OperatorsTest do
  use ExUnit.Case, async: true

  import Nutkin.Model

  alias Nutkin.Error.InvalidModel
  alias Nutkin.Model.Operators
  alias Nutkin.Tensor

  @decisions [if: 2, unless: 2, &&: 2, ||: 2, !: 1, and: 2, or: 2, not: 1, ===: 2, !==: 2, in: 2]

  # The expression in the language, about a node of the model that is being written.
  defmacrop model_of(_x, do: expression) do
    quote do
      use Nutkin.Model.Language
      unquote(expression)
    end
  end

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

    assert length(named) == length(Operators.kernel_names() -- @decisions)
    for {name, value} <- named, do: assert(%{"kind" => "call", "op" => ^name} = Enum.at(built.nodes, value))
  end

  test "refuse to decide on a node, and say what a model has instead" do
    for {decide, name, instead} <- [
          {fn x -> model_of(x, do: unless(x > 0, do: 1)) end, "unless",
           "select(predicate, on_true, on_false)"},
          {fn x -> model_of(x, do: x > 0 && x < 1) end, "&&", "logical_and(left, right)"},
          {fn x -> model_of(x, do: x > 0 and x < 1) end, "and", "logical_and(left, right)"},
          {fn x -> model_of(x, do: x > 0 || x < 1) end, "||", "logical_or(left, right)"},
          {fn x -> model_of(x, do: x > 0 or x < 1) end, "or", "logical_or(left, right)"},
          {fn x -> model_of(x, do: !x) end, "!", "logical_not(x)"},
          {fn x -> model_of(x, do: not x) end, "not", "logical_not(x)"},
          {fn x -> model_of(x, do: x === 1) end, "===", "left == right"},
          {fn x -> model_of(x, do: 1 !== x) end, "!==", "left != right"},
          {fn x -> model_of(x, do: x in [0, 1]) end, "in", "logical_and(x >= first, x <= last)"},
          {fn x -> model_of(x, do: x not in 0..1) end, "in", "logical_and(x >= first, x <= last)"},
          {fn x -> model_of(x, do: 1 in x) end, "in", "logical_and(x >= first, x <= last)"},
          {fn x -> model_of(x, do: 1 in [x, 2]) end, "in", "logical_and(x >= first, x <= last)"},
          {fn x -> model_of(x, do: [1, [x]] === [1, [2]]) end, "===", "left == right"}
        ] do
      error =
        assert_raise InvalidModel, fn ->
          Nutkin.Model.build(fn -> decide.(Nutkin.Model.Language.data(:x)) end)
        end

      assert error.message == "`#{name}` decides while the model is written, when a node has no value yet"
      assert error.hint == "in a model it is `#{instead}`"
    end
  end

  test "decide on all else as Kernel does, also for what is a node in the end" do
    model do
      x = data(:x)
      absent = Process.get(:absent)

      kind = fn
        n when is_integer(n) and n in 1..3 and not (n === 2) -> :odd
        _ -> :other
      end

      send(
        self(),
        {:decided, if(absent, do: 1, else: 2), if(1 < 2, do: 3), unless(absent, do: 4), !absent, not false}
      )

      send(self(), {:members, 1 in [1, 2], 3 not in 1..2, 1 === 1.0, 1 !== 1.0, Enum.map(1..3, kind)})

      send(
        self(),
        {:nodes, absent || x, true && x, false or x, true and x, absent && x, true || raise("not reached")}
      )

      send(self(), {:node, x})
    end

    assert_received {:decided, 2, 3, 4, true, true}
    assert_received {:members, true, true, false, true, [:odd, :other, :odd]}
    assert_received {:nodes, x, x, x, x, nil, true}
    assert_received {:node, ^x}
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
