defmodule Nutkin.ModelTest do
  use ExUnit.Case, async: true

  import Nutkin.Model

  alias Nutkin.Error.InvalidModel
  alias Nutkin.Model

  doctest Nutkin.Model

  import Nutkin.Model.Language, only: [data: 1, observe: 3, factor: 2, deterministic: 2, normal: 2]

  test "the eight schools" do
    schools =
      model do
        y = data(:y)
        sigma = data(:sigma)
        mu <~ normal(0, 5)
        tau <~ half_cauchy(5)
        theta <~ normal(mu, tau, shape: {8}, centered: false)
        observe(:obs, normal(theta, sigma), y)
      end

    assert Model.to_ir(schools) == %{
             "version" => 1,
             "nodes" => [
               %{"kind" => "data", "name" => "y"},
               %{"kind" => "data", "name" => "sigma"},
               %{"kind" => "constant", "value" => 0},
               %{"kind" => "constant", "value" => 5},
               %{"kind" => "rv", "name" => "mu", "dist" => "normal", "args" => %{"mu" => 2, "sigma" => 3}},
               %{"kind" => "rv", "name" => "tau", "dist" => "half_cauchy", "args" => %{"sigma" => 3}},
               %{
                 "kind" => "rv",
                 "name" => "theta",
                 "dist" => "normal",
                 "args" => %{"mu" => 4, "sigma" => 5},
                 "shape" => [8],
                 "centered" => false
               },
               %{
                 "kind" => "observe",
                 "name" => "obs",
                 "dist" => "normal",
                 "args" => %{"mu" => 6, "sigma" => 1},
                 "value" => 0
               }
             ]
           }

    assert Model.slots(schools) == ["y", "sigma"]
    assert schools.blobs == %{}
  end

  test "the block sees what is around it, and leaves it as it was" do
    counts = [1, 2, 3]
    scale = 2 * 3

    poisson =
      model do
        counts = tensor(counts)
        rate <~ gamma(scale / 2, 1)
        observe(:counts, poisson(rate), counts)
      end

    assert counts == [1, 2, 3]
    assert %{"value" => 3.0} = Enum.at(poisson.nodes, 1)
    assert max(1, 2) + abs(-3) == 5
    assert rem(7, 4) >= div(6, 2)
  end

  test "loops make variables under names of their own" do
    hierarchy =
      model do
        mu <~ normal(0, 1)

        groups =
          for i <- 1..3 do
            g <~ normal(mu, 1, name: "g_#{i}")
          end

        deterministic(:total, Enum.reduce(groups, &+/2))
      end

    assert for(%{"kind" => "rv", "name" => name} <- hierarchy.nodes, do: name) == ["mu", "g_1", "g_2", "g_3"]

    assert_raise InvalidModel, ~r/g is already the name of a free variable.*name: "g_\#{i}"/, fn ->
      model do
        for _ <- 1..2, do: g <~ normal(0, 1)
      end
    end
  end

  test "a name that is taken is told with what has it, and what to do" do
    for {statements, message} <- [
          {fn -> [data(:y), data(:y)] end,
           "y is already the name of a data slot; declare the slot once, and use the variable that it is bound to"},
          {fn -> observe(:y, normal(0, 1), data(:y)) end,
           "y is already the name of a data slot; give the observation a name of its own, such as :y_obs"},
          {fn -> observe("the y", normal(0, 1), data("the y")) end,
           ~s(the y is already the name of a data slot; give the observation a name of its own, such as "the y_obs")},
          {fn -> for _ <- 1..2, do: observe(:y, normal(0, 1), 1) end,
           ~S(y is already the name of an observation; give each observation a name of its own, such as "y_#{i}" in a loop)},
          {fn -> [factor(:y, 1), deterministic(:y, 1)] end,
           "y is already the name of a factor; give the deterministic value a name of its own"}
        ] do
      error = assert_raise InvalidModel, fn -> Model.build(statements) end
      assert {Exception.message(error), error.node} == {message, message |> String.split(" is ") |> hd()}
    end
  end

  test "equal constants are one node, equal tensors one blob" do
    y = Nutkin.Tensor.new([1.0, 2.0])
    # Made at run time: the compiler takes the two literals for one.
    zeros = for bits <- [0, 2 ** 63], <<zero::float>> = <<bits::64>>, do: zero

    twice =
      model do
        mu <~ normal(0, 1)
        nu <~ normal(0, 1.0)
        observe(:a, normal(mu, 1), y)
        observe(:b, normal(nu, 1), [1.0, 2.0])
        deterministic(:zeros, zeros |> Enum.map(&tensor/1) |> stack())
      end

    constants = for %{"kind" => "constant"} = node <- twice.nodes, do: node["value"] || node["blob"]
    assert [0, 1, 1.0, {:bin, sha}, zero, minus_zero] = constants
    assert {<<zero::float>>, <<minus_zero::float>>} == {<<0::64>>, <<2 ** 63::64>>}
    assert Map.keys(twice.blobs) == [sha]
    assert sha == :crypto.hash(:sha256, IO.iodata_to_binary(twice.blobs[sha].iodata))
  end

  test "a model inside the block of another is a model of its own" do
    outer =
      model do
        a <~ normal(0, 1)

        inner =
          model do
            b <~ normal(0, 1)
          end

        assert [_, _, %{"name" => "b"}] = inner.nodes
        deterministic(:twice, 2 * a)
      end

    assert [_, _, %{"name" => "a"}, %{"value" => 2}, %{"op" => "multiply"}, %{"name" => "twice"}] =
             outer.nodes
  end

  test "a node works only in its own model" do
    {:ok, leak} = Agent.start_link(fn -> nil end)

    model do
      mu <~ normal(0, 1)
      Agent.update(leak, fn _ -> mu end)
    end

    mu = Agent.get(leak, & &1)

    assert_raise InvalidModel, ~r/sigma of normal belongs to another model.*mu/, fn ->
      model do
        x <~ normal(0, mu)
      end
    end

    assert_raise InvalidModel, ~r/no model is being written/, fn -> Nutkin.Model.Language.exp(mu) end
  end

  test "an exception inside the block leaves nothing behind" do
    assert_raise RuntimeError, "oops", fn ->
      model do
        mu <~ normal(0, 1)
        raise "oops #{inspect(mu)}" |> String.slice(0, 4)
      end
    end

    assert_raise InvalidModel, ~r/no model is being written/, fn -> Nutkin.Model.Language.data(:y) end
  end

  test "prints what can be read again" do
    printed =
      model do
        x = data(:x)
        deterministic(:stacked, stack([x, 1], axis: -1))
        deterministic(:joined, concatenate([x, x]))
        deterministic(:product, dot(x, [1], [0], x, [1], [0]))
        deterministic(:shaped, reshape(x, {2, 3}))
        deterministic(:typed, as_type(x, :f32))
        deterministic(:part, slice(x, [0, 1], [2, 1], strides: [1, 1]))
        deterministic(:wide, broadcast(x, {2, 3}, axes: [1]))
      end

    text = inspect(printed)

    lines = [
      "deterministic(:stacked, stack([x, 1], axis: -1))",
      "deterministic(:joined, concatenate([x, x]))",
      "deterministic(:product, dot(x, [1], [0], x, [1], [0]))",
      "deterministic(:shaped, reshape(x, {2, 3}))",
      "deterministic(:typed, as_type(x, :f32))",
      "deterministic(:part, slice(x, [0, 1], [2, 1], strides: [1, 1]))",
      "deterministic(:wide, broadcast(x, {2, 3}, axes: [1]))"
    ]

    for line <- lines, do: assert(text =~ line)

    {read, _bindings} =
      Code.eval_string("import Nutkin.Model; model do\nx = data(:x)\n#{Enum.join(lines, "\n")}\nend")

    assert read == printed
  end

  test "prints as it was written" do
    printed =
      model do
        x = data(:x, shape: {nil, 2}, type: :f64, grows: :rows)
        n = data("the n", grows: "the rows")
        b <~ normal([0.0, 0.0], 1, transform: :identity)
        eta = dot(x, b)
        observe(:y, bernoulli_logit(eta), n, weight: 2, reduce: :mean)
        deterministic(:p, sigmoid(eta))
        factor(:penalty, -sum(b ** 2, axes: [0]))
      end

    assert inspect(printed) == """
           #Nutkin.Model<
             x = data(:x, grows: :rows, shape: {nil, 2}, type: :f64)
             v1 = data("the n", grows: "the rows")
             b <~ normal(tensor(29 bytes), 1, transform: :identity)
             v5 = dot(x, b)
             observe(:y, bernoulli_logit(v5), v1, weight: 2, reduce: :mean)
             deterministic(:p, sigmoid(v5))
             factor(:penalty, negate(sum(pow(b, 2), axes: [0])))
           >\
           """
  end
end
