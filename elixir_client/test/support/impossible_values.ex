defmodule Nutkin.Test.ImpossibleValues do
  @moduledoc """
  Mistakes in the values of data and constants: outside of what a distribution or an operation takes.
  """

  import Nutkin.Model

  alias Nutkin.Model.Language
  alias Nutkin.Test.WrongModels

  @doc "The mistakes, with what is told."
  @spec all() :: [WrongModels.mistake()]
  def all do
    observed = fn distribution -> fn -> Nutkin.Model.build(fn -> observed(distribution) end) end end

    [
      {"a negative count", observed.({:poisson, [2]}), %{y: [1, -1]},
       "the observed value of obs: 1 value is impossible; expected a whole number of at least 0; " <>
         "found -1 at [1]"},
      {"outcomes from 1", observed.({:bernoulli, [0.5]}), %{y: [1, 2, 2]},
       "the observed value of obs: 2 values are impossible; expected 0 or 1; found 2 at [1]"},
      {"categories from 1", observed.({:categorical, [[0.5, 0.5]]}), %{y: [1, 2]},
       "the observed value of obs: 1 value is impossible; expected whole numbers from 0 to 1; " <>
         "found 2 at [1]; categories start at 0"},
      {"grades from 1", observed.({:ordered_logistic, [0, [-1, 1]]}), %{y: [1, 2, 3]},
       "the observed value of obs: 1 value is impossible; expected whole numbers from 0 to 2; " <>
         "found 3 at [2]; categories start at 0"},
      {"more successes than trials", observed.({:binomial, [3, 0.5]}), %{y: [1, 5]},
       "the observed value of obs: 1 value is impossible; expected a whole number from 0 to n; " <>
         "found 5 at [1]"},
      {"counts of another sum", observed.({:multinomial, [5, [0.5, 0.5]]}), %{y: [[2, 3], [2, 2]]},
       "the observed value of obs: 1 value is impossible; expected whole numbers of at least 0 " <>
         "that sum to n along the last axis; found [2, 2] at [1]"},
      {"an infinite value", observed.({:normal, [0, 1]}), %{y: [1.0, :infinity, :neg_infinity]},
       "the observed value of obs: 2 values are impossible; expected a finite number; found infinity " <>
         "at [1]; leave it out with a mask; where only a limit of the value is known, observe the " <>
         "limit under censored"},
      {"the logarithm of 0", fn -> model(do: observe(:obs, normal(0, 1), log(data(:y)))) end, %{y: [1, 0]},
       "the observed value of obs: 1 value is impossible; expected a finite number; found -infinity " <>
         "at [1]; …"},
      {"too few degrees of freedom", observed.({:wishart, [1, [[1, 0], [0, 1]]]}), %{y: [[2, 1], [1, 2]]},
       "obs: the parameter nu is outside its range; expected a number above k - 1, which is 1; found 1"},
      {"an empty interval in the data",
       fn -> model(do: observe(:obs, uniform(data(:low), data(:high)), data(:y))) end,
       %{y: [1, 1], low: [0, 2], high: [1, 1]},
       "the parameter upper of obs: 1 value is impossible; expected a number above lower; found 1 at [1]"},
      {"a scale computed from numbers", observed.({:normal, [0, Nutkin.Tensor.new(-1.0)]}), %{y: [0, 1]},
       "the parameter sigma of obs: 1 value is impossible; expected a positive number; found -1.0"},
      {"a fraction of 0", observed.({:beta, [1, 1]}), %{y: [0.0, 0.5]},
       "the observed value of obs: 1 value is impossible; expected a number in (0, 1); found 0.0 " <>
         "at [0]"},
      {"a time of 0", observed.({:lognormal, [0, 1]}), %{y: [0, 2.5]},
       "the observed value of obs: 1 value is impossible; expected a positive number; found 0.0 " <>
         "at [0]"},
      {"probabilities of another sum", observed.({:categorical, [[0.5, 0.6]]}), %{y: [0, 1]},
       "the parameter p of obs: 1 value is impossible; expected probabilities that sum to 1 along " <>
         "the last axis; found [0.5, 0.6]"},
      {"a probability above 1", observed.({:bernoulli, [1.5]}), %{y: [0, 1]},
       "obs: the parameter p is outside its range; expected a probability, in [0, 1]; found 1.5"},
      {"cutpoints that do not increase", observed.({:ordered_logistic, [0, [1, -1]]}), %{y: [0, 2]},
       "the parameter cutpoints of obs: 1 value is impossible; expected numbers that increase " <>
         "along the last axis; found [1, -1]"},
      {"a negative scale", observed.({:normal, [0, -1]}), %{y: [0, 1]},
       "obs: the parameter sigma is outside its range; expected a positive number; found -1"},
      {"a scale of 0 in the data", fn -> model(do: observe(:obs, normal(0, data(:sigma)), data(:y))) end,
       %{y: [1, 2], sigma: [1, 0]},
       "the parameter sigma of obs: 1 value is impossible; expected a positive number; found 0 at " <>
         "[1]"},
      {"a lower limit above all values", observed.({:uniform, [0, 1]}), %{y: [0.5, 2]},
       "the observed value of obs: 1 value is impossible; expected a number from lower to upper; " <>
         "found 2.0 at [1]"},
      {"an empty interval",
       fn ->
         model do
           x <~ uniform(1, 0)
         end
       end, %{}, "x: the interval is empty; expected lower below upper; found lower 1, upper 0"},
      {"a covariance that is none", observed.({:mv_normal, [[0, 0], [[1, 2], [2, 1]]]}), %{y: [0, 1]},
       "the parameter cov of obs: 1 value is impossible; expected a symmetric positive definite " <>
         "matrix; found [[1, 2], [2, 1]]"},
      {"a covariance that is not symmetric", observed.({:mv_normal, [[0, 0], [[1, 0.5], [0, 1]]]}),
       %{y: [0, 1]},
       "the parameter cov of obs: 1 value is impossible; expected a symmetric positive definite " <>
         "matrix; found [[1.0, 0.5], [0.0, 1.0]]"},
      {"an upper Cholesky factor", observed.({:mv_normal_cholesky, [[0, 0], [[1, 0.5], [0, 1]]]}),
       %{y: [0, 1]},
       "the parameter chol of obs: 1 value is impossible; expected a lower Cholesky factor: zeros " <>
         "above a positive diagonal; found [[1.0, 0.5], [0.0, 1.0]]"},
      {"weights of another sum",
       fn -> model(do: observe(:obs, mixture([0.5, 0.6], normal([0, 1], 1)), data(:y))) end, %{y: [0, 1]},
       "the parameter weights of obs: 1 value is impossible; expected probabilities that sum to 1 " <>
         "along the last axis; found [0.5, 0.6]"},
      {"groups from 1",
       fn ->
         model do
           mu <~ normal(0, 1, shape: {3})
           observe(:obs, normal(mu[data(:group)], 1), data(:y))
         end
       end, %{group: [1, 2, 3], y: [1, 2, 3]},
       "the operand group of take(mu, group): 1 value is impossible; expected indices from 0 to " <>
         "2; found 3 at [2]; indices start at 0"},
      {"groups that are fractions",
       fn -> model(do: observe(:obs, normal(data(:mu)[data(:group)], 1), data(:y))) end,
       %{mu: [1, 2], group: [0.0, 1.0], y: [1, 2]},
       "take(mu, group): the indices of take must be integers; expected an integer type; found " <>
         "f64 {2}; use as_type"},
      {"an index beyond the end", fn -> model(do: factor(:f, data(:x)[2])) end, %{x: [1, 2]},
       "slice(x): index 2 is outside axis 0 of size 2; expected an index from 0 to 1, or from -2 " <>
         "to -1, which count from the end; found 2"},
      {"a range beyond the end", fn -> model(do: factor(:f, data(:x)[0..2])) end, %{x: [1, 2]},
       "slice(x): slice is outside axis 0 of size 2; expected entries from 0 to 1, and a positive " <>
         "stride; found 0..2"},
      {"an index for an axis that there is not", fn -> model(do: factor(:f, data(:x)[[0, 1]])) end,
       %{x: [1, 2]},
       "slice(x): slice names more axes than there are; expected at most 1, those of {2}; found " <>
         "2; a list in brackets has an entry for each axis; take picks the entries at a list of " <>
         "indices"},
      {"fractions divided as integers", fn -> model(do: factor(:f, div(data(:x), 2))) end, %{x: [1.0, 2.0]},
       "quotient(x, 2): quotient divides integers; expected integer types; found f64; divide " <>
         "gives fractions, as_type integers"},
      {"an integer to a negative power", fn -> model(do: factor(:f, data(:x) ** -1)) end, %{x: [1, 2]},
       "pow(x, -1): an integer has no integer power with a negative exponent; expected an " <>
         "exponent of 0 or more; found -1; convert the base with as_type first"},
      {"times that do not increase",
       fn -> model(do: factor(:f, ode(1.0, 0, data(:times), fn _t, y -> -y end))) end, %{times: [1, 3, 2]},
       "the parameter times of ode(1.0, 0, times): 1 value is impossible; expected numbers that " <>
         "increase along the last axis; found [1, 3, 2]"}
    ]
  end

  defp observed({family, args}) do
    Language.observe(:obs, apply(Language, family, args), Language.data(:y))
  end
end
