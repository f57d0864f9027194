defmodule Nutkin.Model.ControlTest do
  use ExUnit.Case, async: true

  import Nutkin.Model
  import Nutkin.Test.TemporaryFolder

  alias Nutkin.Error.InvalidModel
  alias Nutkin.Test.Engine

  setup :temporary_folder

  @tag :python
  test "loops and choices compute what they say, with what they capture at any depth", %{folder: dir} do
    offset = 10

    built =
      model do
        rows = tensor([1.0, 2.0, 3.0])
        scale = tensor(2.0)

        {pairs, last} =
          scan({rows, 0..2}, %{sum: 0, product: 1}, fn {x, i}, acc ->
            {{acc.sum, x * i}, %{sum: acc.sum + x * scale + offset, product: acc.product * x}}
          end)

        {sums, products} = pairs
        deterministic(:sums, sums)
        deterministic(:products, products)
        deterministic(:sum, last.sum)
        deterministic(:product, last.product)

        {nil, backwards} = scan(rows, 0.0, fn x, acc -> {nil, acc * 10 + x} end, reverse: true)
        deterministic(:backwards, backwards)

        {power, steps} =
          while(
            {1.0, 0},
            fn {power, _} -> power < offset * scale end,
            fn {power, n} -> {power * scale, n + 1} end,
            max_steps: 20
          )

        deterministic(:power, power)
        deterministic(:steps, steps)

        # A loop in a choice in a loop, which captures from each level and a tensor from none.
        {nested, nil_acc} =
          scan(rows, 0, fn x, acc ->
            y =
              if x > 1.5 do
                limit = x * scale
                while(x, &(&1 < limit), &(&1 + sum([0.25, 0.5]) + acc * 0), max_steps: 50)
              else
                -x
              end

            {y, acc}
          end)

        deterministic(:nested, nested)
        deterministic(:acc, nil_acc)
        {high, low} = if x = rows[0] > 5, do: {x, 1.0}, else: {x, [2.0, 3.0]}
        deterministic(:high, high)
        deterministic(:low, low)
        deterministic(:log_prob, log_prob(normal(0, 1), [0.0, 1.0]))

        orbit =
          ode(%{x: 1.0, v: 0.0}, 0, [1.0, 2.0], fn _t, s -> %{x: s.v, v: -scale * scale * s.x} end,
            rtol: 1.0e-9,
            atol: 1.0e-9
          )

        deterministic(:x, orbit.x)
        deterministic(:v, orbit.v)
      end

    assert %{"values" => values} = Engine.run(built, dir)
    assert values["sums"] == [0.0, 12.0, 26.0]
    assert values["products"] == [0.0, 2.0, 6.0]
    assert values["sum"] == 42.0
    assert values["product"] == 6.0
    assert values["backwards"] == 321.0
    assert {values["power"], values["steps"]} == {32.0, 5}
    assert values["nested"] == [-1.0, 4.25, 6.0]
    assert values["acc"] == 0
    assert {values["high"], values["low"]} == {0, [2.0, 3.0]}

    for {x, v, t} <- Enum.zip([values["x"], values["v"], [1, 2]]) do
      assert_in_delta x, :math.cos(2 * t), 1.0e-6
      assert_in_delta v, -2 * :math.sin(2 * t), 1.0e-6
    end

    assert_in_delta Enum.at(values["log_prob"], 1), -0.5 * :math.log(2 * :math.pi()) - 0.5, 1.0e-12
  end

  test "are printed as they are written" do
    built =
      model do
        y = data(:y)
        a <~ normal(0, 1)

        {means, {last, _}} =
          scan(y, {0.0, a}, fn y, {mean, level} ->
            next = if mean > 0, do: mean * a, else: level
            {mean, {next + y, level}}
          end)

        root = while(last, &(&1 > 1), &sqrt(&1), max_steps: 30)
        heat = ode(root, 0, [1, 2], fn t, y -> -a * y * t end, method: :kvaerno5)
        deterministic(:heat, heat)
        observe(:obs, normal(means, exp(root)), y)
        factor(:f, sum(log_prob(normal(0, 1), y)))
      end

    assert inspect(built) == """
           #Nutkin.Model<
             y = data(:y)
             a <~ normal(0, 1)
             {v8, {v6, v7}} = scan(y, {0.0, a}, fn a2, {a0, a1} ->
               u7 = if greater(a0, 0) do
                 multiply(a0, a)
               else
                 a1
               end
               {a0, {add(u7, a2), a1}}
             end)
             v10 = while(v6, fn a0 ->
               greater(a0, 1)
             end, fn a0 ->
               sqrt(a0)
             end, max_steps: 30)
             v13 = ode(v10, 0, tensor(29 bytes), fn a0, a1 ->
               multiply(multiply(negate(a), a1), a0)
             end, method: :kvaerno5)
             deterministic(:heat, v13)
             observe(:obs, normal(v8, exp(v10)), y)
             factor(:f, sum(log_prob(normal(0, 1), y)))
           >\
           """
  end

  test "say what is wrong with them" do
    for {message, write} <- [
          {"x is a free variable inside the body of a loop",
           fn -> model(do: scan([1, 2], 0, fn _, acc -> {normal_in_a_body(), acc} end)) end},
          {"the function of scan must give values in the form of the start",
           fn -> model(do: scan([1, 2], {0, 1}, fn _, {a, _} -> {nil, a} end)) end},
          {"the function of scan gives no pair",
           fn -> model(do: scan([1, 2], 0, fn x, acc -> x + acc end)) end},
          {"belongs to another model", &a_node_that_leaves_its_body/0},
          {"while has no :max_steps", fn -> model(do: while(1.0, &(&1 > 0), &(&1 - 1), [])) end},
          {"invalid :max_steps of while",
           fn -> model(do: while(1.0, &(&1 > 0), &(&1 - 1), max_steps: 0)) end},
          {"must give values of one form", fn -> model(do: if(data(:x) > 0, do: {1, 2}, else: 1)) end},
          {"an `if` that a node decides has no value on false", fn -> model(do: if(data(:x) > 0, do: 1)) end},
          {"scan has no option :length",
           fn -> model(do: scan([1, 2], 0, fn x, acc -> {x, acc} end, length: 2)) end}
        ] do
      assert_raise InvalidModel, ~r/#{message}/, write
    end
  end

  defp a_node_that_leaves_its_body do
    model do
      scan([1, 2], 0, fn x, acc -> {send(self(), x), acc} end)
      receive do: (x -> factor(:f, x))
    end
  end

  defp normal_in_a_body do
    use Nutkin.Model.Language
    x <~ normal(0, 1)
    x
  end
end
