defmodule Nutkin.Test.WrongModels do
  @moduledoc """
  Mistakes in models that come out while they are written.
  """

  import Nutkin.Model

  @typedoc "What is wrong, the function that writes the model, its data, and the message; the beginning of one ends in …."
  @type mistake :: {String.t(), (() -> Nutkin.Model.t()), map(), String.t()}

  @doc "The mistakes, with what is told."
  @spec all() :: [mistake()]
  def all do
    [
      {"an observation under the name of its data",
       fn ->
         model do
           y = data(:y)
           mu <~ normal(0, 1)
           observe(:y, normal(mu, 1), y)
         end
       end, %{},
       "y is already the name of a data slot; give the observation a name of its own, such as " <>
         ":y_obs"},
      {"variables of one name in a loop",
       fn ->
         model do
           for _ <- 1..2, do: b <~ normal(0, 1)
         end
       end, %{},
       "b is already the name of a free variable; in a loop give the distribution a name: name: " <>
         "\"b_\#{i}\""},
      {"a slot that is declared twice", fn -> model(do: observe(:obs, normal(data(:x), 1), data(:x))) end,
       %{},
       "x is already the name of a data slot; declare the slot once, and use the variable that it " <>
         "is bound to"},
      {"a value in place of the list of arguments of a function over Nx",
       fn ->
         model do
           x <~ normal(0, 1)
           factor(:f, nx(&Function.identity/1, x))
         end
       end, %{},
       "nx takes a function over Nx and the list of its arguments; expected nx(fn x -> … end, [x]); found " <>
         "nx(&Function.identity/1, #Nutkin.Model.Node<x>)"},
      {"a name that is none", fn -> model(do: observe(nil, normal(0, 1), 1)) end, %{},
       "not a name, as observe(name, distribution, value) needs; expected an atom or a string; " <>
         "found nil"},
      {"an option that is almost right",
       fn -> model(do: observe(:obs, normal(0, 1), [1, 2], weights: [1, 2])) end, %{},
       "observe obs has no option :weights; expected :weight, :mask, :reduce; did you mean " <>
         ":weight?"},
      {"a setting that does not exist",
       fn -> model(do: observe(:obs, normal(0, 1), [1, 2], reduce: :median)) end, %{},
       "invalid :reduce of observe obs; expected one of :sum, :mean; found :median"},
      {"a constraint of Stan as an option",
       fn ->
         model do
           sigma <~ normal(0, 1, lower: 0)
         end
       end, %{},
       "normal has no parameter or option :lower; expected normal(mu, sigma) or normal(mu: …, " <>
         "sigma: …) or normal(mu: …, tau: …), then the options name:, shape:, transform:, " <>
         "centered:; write truncated(normal(…), lower: x)"},
      {"parameters by other names",
       fn ->
         model do
           mu <~ normal(mean: 0, sd: 1)
         end
       end, %{},
       "normal has no parameter or option :mean; expected normal(mu, sigma) or normal(mu: …, " <>
         "sigma: …) or normal(mu: …, tau: …), then the options name:, shape:, transform:, centered:"},
      {"a parameter that is missing",
       fn ->
         model do
           mu <~ normal(0)
         end
       end, %{},
       "normal has the wrong arguments; expected normal(mu, sigma) or normal(mu: …, sigma: …) or " <>
         "normal(mu: …, tau: …), then the options name:, shape:, transform:, centered:; found " <>
         "normal(0)"},
      {"a named parameter that is missing",
       fn ->
         model do
           mu <~ normal(mu: 0)
         end
       end, %{},
       "normal is missing its parameter sigma; expected normal(mu, sigma) or normal(mu: …, sigma: " <>
         "…) or normal(mu: …, tau: …), then the options name:, shape:, transform:, centered:"},
      {"a shape that is a number",
       fn ->
         model do
           theta <~ normal(0, 1, shape: 8)
         end
       end, %{},
       "invalid :shape of normal; expected a tuple of positive integers, such as {8} or {3, 2}; " <>
         "found 8"},
      {"a transform that does not exist",
       fn ->
         model do
           sigma <~ half_normal(1, transform: :exp)
         end
       end, %{}, "invalid :transform of half_normal; expected one of :identity, :log, …"},
      {"a shape for what is observed", fn -> model(do: observe(:obs, normal(0, 1, shape: {2}), [1, 2])) end,
       %{},
       ":shape does not apply to the observed normal; it is an option of free variables: x <~ " <>
         "normal(...)"},
      {"a distribution as a value",
       fn ->
         model do
           mu <~ normal(0, 1)
           deterministic(:noisy, mu + normal(0, 1))
         end
       end, %{},
       "argument 2 of + is a distribution, not a value; found normal; give it a name first: x <~ " <>
         "normal(...)"},
      {"a distribution as a parameter",
       fn ->
         model do
           mu <~ normal(normal(0, 1), 1)
         end
       end, %{},
       "mu of normal is a distribution, not a value; found normal; give it a name first: x <~ " <>
         "normal(...)"},
      {"a value as a distribution",
       fn ->
         model do
           sigma <~ exp(1)
         end
       end, %{},
       "sigma has no distribution; expected a distribution, such as normal(0, 1); found " <>
         "#Nutkin.Model.Node<exp(…)>; what is computed is bound by =, as in sigma = exp(x)"},
      {"value and distribution in the other order",
       fn -> model(do: observe(:obs, data(:y), normal(0, 1))) end, %{},
       "obs has no distribution; expected a distribution, such as normal(0, 1); found " <>
         "#Nutkin.Model.Node<y>; the distribution comes first: observe(name, distribution, value)"},
      {"nodes in a list, without stack",
       fn ->
         model do
           mu <~ normal(0, 1)
           theta <~ normal([mu, 2 * mu], 1)
         end
       end, %{},
       "mu of normal is not a value: not a number (at [0]); expected a number, a list, a range, a " <>
         "Nutkin.Tensor or an Nx.Tensor; found #Nutkin.Model.Node<mu>; stack([...]) joins nodes"},
      {"a word as a value", fn -> model(do: factor(:f, exp("two"))) end, %{},
       "argument 1 of exp is not a value: not a number; expected a number, a list, a range, a " <>
         "Nutkin.Tensor or an Nx.Tensor; found \"two\""},
      {"rows of unequal lengths", fn -> model(do: factor(:f, sum([[1, 2], [3]]))) end, %{},
       "argument 1 of sum is not a value: lists of unequal lengths (at [1]); expected 2 elements, " <>
         "as in [0]; found 1"},
      {"`and` of nodes", fn -> model(do: factor(:f, data(:x) > 0 and data(:z) > 0)) end, %{},
       "`and` decides while the model is written, when a node has no value yet; in a model it is " <>
         "`logical_and(left, right)`"},
      {"`in` of a node", fn -> model(do: factor(:f, data(:x) in [1, 2])) end, %{},
       "`in` decides while the model is written, when a node has no value yet (node x); in a " <>
         "model it is `logical_and(x >= first, x <= last)`"},
      {"a node as a list", fn -> model(do: Enum.map(data(:x), &(&1 + 1))) end, %{},
       "x is a value that exists only when the model runs, not a list; use sum/2, take/2, x[0..2]"},
      {"a node in a text",
       fn ->
         model do
           k = data(:k)
           theta <~ normal(0, 1, name: "theta_#{k}")
         end
       end, %{}, "k is a value that exists only when the model runs, not a text; use deterministic(name, x)"},
      {"an index that is a fraction", fn -> model(do: factor(:f, data(:x)[0.5])) end, %{},
       "a node cannot be indexed so; expected an integer, a range that goes up (such as 0..2 or " <>
         "1..-1//1), a list with one of these for each axis, or a node; found 0.5; take(x, indices) " <>
         "takes the entries at the indices of a list or tensor"},
      {"a range that goes down", fn -> model(do: factor(:f, data(:x)[3..1//-1])) end, %{},
       "a node cannot be indexed so; expected an integer, a range that goes up (such as 0..2 or " <>
         "1..-1//1), a list with one of these for each axis, or a node; found 3..1//-1; take(x, " <>
         "indices) takes the entries at the indices of a list or tensor"},
      {"a list of indices in brackets", fn -> model(do: factor(:f, data(:x)[[0, [1, 2]]])) end, %{},
       "a node cannot be indexed so; expected an integer, a range that goes up (such as 0..2 or " <>
         "1..-1//1), a list with one of these for each axis, or a node; found [1, 2]; take(x, indices) " <>
         "takes the entries at the indices of a list or tensor"},
      {"a statement in the body of a loop",
       fn -> model(do: scan(data(:y), 0, fn y, acc -> {observe(:obs, normal(0, 1), y), acc} end)) end, %{},
       "obs is an observation inside the body of a loop or of an `if`; expected operations, and " <>
         "log_prob(distribution, x) for a log density; a body only computes values: use them " <>
         "outside of it, as in factor(name, sum(terms))"},
      {"a loop whose function takes each of several entries by itself",
       fn -> model(do: scan({data(:x), data(:y)}, 0, fn _x, _y, acc -> {nil, acc} end)) end, %{},
       "the function of scan must take 2 arguments; expected a function such as fn x, acc -> " <>
         "{y, acc} end; found a function of 3 arguments"},
      {"a condition of two arguments",
       fn -> model(do: while({data(:x), 0}, fn x, _n -> x > 1 end, & &1, max_steps: 9)) end, %{},
       "the condition of while must take 1 argument; expected a function such as fn acc -> " <>
         "acc > 0 end; found a function of 2 arguments"},
      {"a step that is no function", fn -> model(do: while(data(:x), &(&1 > 1), data(:y), max_steps: 9)) end,
       %{},
       "the function of while must take 1 argument; expected a function such as fn acc -> " <>
         "acc / 2 end; found #Nutkin.Model.Node<y>"},
      {"derivatives without the time", fn -> model(do: ode(1.0, 0, data(:times), fn y -> -y end)) end, %{},
       "the function of ode must take 2 arguments; expected a function such as fn t, state -> " <>
         "-state end; found a function of 1 argument"},
      {"a loop whose function gives no pair",
       fn -> model(do: scan(data(:y), 0, fn y, acc -> acc + y end)) end, %{},
       "the function of scan gives no pair; expected {value, acc}, or {nil, acc} where nothing is " <>
         "collected; found #Nutkin.Model.Node<add(…)>"},
      {"a loop that carries something else after a step",
       fn -> model(do: scan(data(:y), {0, 0}, fn y, {a, _b} -> {nil, a + y} end)) end, %{},
       "the function of scan must give values in the form of the start; expected {value, value}; " <>
         "found value"},
      {"a loop without a limit of its steps", fn -> model(do: while(data(:x), &(&1 > 1), &(&1 / 2), [])) end,
       %{},
       "while has no :max_steps; expected while(acc, condition, fun, max_steps: 1000); the " <>
         "gradient needs room for what enters each step; a loop that goes on longer gives NaN"},
      {"an `if` without an else", fn -> model(do: factor(:f, if(data(:x) > 0, do: 1))) end, %{},
       "an `if` that a node decides has no value on false; expected a value on both sides; found " <>
         "nil; give it an `else`, as in if(x > 0, do: x, else: 0)"},
      {"sides of an `if` of two forms", fn -> model(do: if(data(:x) > 0, do: {1, 2}, else: 1)) end, %{},
       "both sides of an `if` that a node decides must give values of one form; expected {value, " <>
         "value}; found value"},
      {"a truncation without a limit", fn -> model(do: observe(:obs, truncated(normal(0, 1), min: 0), 1)) end,
       %{},
       "truncated has no limit; expected truncated(distribution, lower: x), with upper: y, or " <>
         "both"},
      {"a mixture of numbers", fn -> model(do: observe(:obs, mixture([0.5, 0.5], [0, 1]), 1)) end, %{},
       "mixture is made of distributions; expected a distribution, such as normal(0, 1); found 0"},
      {"a shape inside of a mixture",
       fn ->
         model do
           x <~ mixture([0.5, 0.5], normal([0, 1], 1, shape: {2}))
         end
       end, %{},
       ":shape does not apply to the normal inside of mixture; it is an option of the mixture " <>
         "itself: mixture(…, shape: …)"},
      {"a joined value that is no list", fn -> model(do: factor(:f, concatenate(data(:x)))) end, %{},
       "the argument of concatenate is no list of values; expected a list, such as [x, y]; found " <>
         "#Nutkin.Model.Node<x>"},
      {"axes under the name of one", fn -> model(do: factor(:f, sum(data(:x), axis: 0))) end, %{},
       "sum has no option :axis; expected :axes, :keep_axes; did you mean :axes?"},
      {"a type that does not exist", fn -> model(do: factor(:f, as_type(data(:x), :float))) end, %{},
       "invalid :type of as_type; expected a type, such as {:f, 64} or :f64; found :float"},
      {"a node of another model",
       fn ->
         model do
           send(self(), data(:x))
         end

         model do
           receive do: (x -> factor(:f, x))
         end
       end, %{},
       "the value of f belongs to another model (node x); a node can be used only inside the " <>
         "block in which it was made, and not outside of its loop or `if`"}
    ]
  end
end
