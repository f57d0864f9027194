defmodule Nutkin.Test.MismatchedModels do
  @moduledoc """
  Mistakes in models that come out when there are data, told by the client or by the engine.
  """

  import Nutkin.Model

  alias Nutkin.Test.WrongModels

  @doc "The mistakes, with what is told."
  @spec all() :: [WrongModels.mistake()]
  def all, do: data() ++ shapes() ++ structure()

  defp data do
    mean = fn ->
      model do
        mu <~ normal(0, 1)
        observe(:obs, normal(mu, 1), data(:y))
      end
    end

    declared = fn -> model(do: observe(:obs, normal(0, 1), data(:y, shape: {nil, 2}, type: :f64))) end

    ranked = fn ->
      model do
        y = data(:y, grows: :rows)
        mu <~ normal(0, 1)
        observe(:obs, normal(mu, 1), sort(y))
      end
    end

    joined = fn -> model(do: factor(:f, concatenate([data(:x, grows: :rows), [0.0]]))) end
    flat = fn -> model(do: factor(:f, flatten(data(:x, grows: :rows)))) end

    sized = fn ->
      model do
        mu <~ normal(0, 1, shape: {3})
        observe(:obs, normal(mu, 1), data(:y, grows: :rows))
      end
    end

    paired = fn ->
      model do
        b <~ normal(0, 1)
        observe(:obs, normal(b * data(:x, grows: :rows), 1), data(:y, grows: :rows))
      end
    end

    [
      {"joining behind what grows", joined, %{x: [1.0, 2.0]},
       "concatenate(x, tensor): nothing can be joined behind the entries of rows, which grows; expected " <>
         "what grows in the last place, as in concatenate([first, x]); or sums and log densities of each " <>
         "part, added; found {rows}, {1}; leave out `grows` of x, and each length is compiled on its own"},
      {"flattening what grows", flat, %{x: [[1.0, 2.0]]},
       "flatten(x): the axis rows, which grows, cannot become one with another axis; expected the tensor " <>
         "as it is: sums, means and observations take any number of axes, and x[[.., 0]] is a column; " <>
         "found {rows, 2}; leave out `grows` of x, and each length is compiled on its own"},
      {"sorting what grows", ranked, %{y: [1, 2, 3]},
       "sort(y): the entries of rows, which grows, are not kept apart here; expected operations " <>
         "entry by entry, and sums, means, extremes, cumulative ones, or a scan; found {rows}; " <>
         "leave out `grows` of y, and each length is compiled on its own"},
      {"a variable for each row that comes in", sized, %{y: [1, 2, 3]},
       "obs: a fixed size cannot meet rows, which grows; expected sizes that agree for any number of " <>
         "entries; found mu {3}, sigma {}, value {rows}; leave out `grows` of y, and each length is " <>
         "compiled on its own"},
      {"slots of one axis with other lengths", paired, %{x: [1, 2, 3], y: [1, 2]},
       "y: slots that grow along rows have one length; expected 3 along rows, as x has; found 2"},
      {"a slot without data", mean, %{},
       "no value for the data slot y; expected values for y; give it as data: %{y: ...}"},
      {"data for a slot of another name", mean, %{values: [1, 2]},
       "no value for the data slot y; expected values for y; found values for values; give it as " <>
         "data: %{y: ...}"},
      {"data for no slot", mean, %{y: [1, 2], x: [1, 2]},
       "the model has no data slot x; expected values for y; leave it out, as by Map.take(data, [:y])"},
      {"words in the data", mean, %{y: [1, "2"]},
       "not a number (node y, at [1]); expected a number, a list, a range, a Nutkin.Tensor or an " <>
         "Nx.Tensor; found \"2\""},
      {"nil in the data", mean, %{y: [1, nil]},
       "not a number (node y, at [1]); expected a number, a list, a range, a Nutkin.Tensor or an " <>
         "Nx.Tensor; found nil; a missing value can be any number that a mask leaves out"},
      {"rows of the data of unequal lengths", mean, %{y: [[1, 2], [3]]},
       "lists of unequal lengths (node y, at [1]); expected 2 elements, as in [0]; found 1"},
      {"no data", mean, %{y: []}, "an empty list (node y); a tensor has at least one element"},
      {"NaN in the data", mean, %{y: [1.5, :nan]},
       "y: 1 of 2 elements is NaN; expected numbers; found NaN at [1]; replace missing values by " <>
         "any number in the support and leave them out with a mask"},
      {"data of another shape than declared", declared, %{y: [1.0, 2.0]},
       "the shape is not the declared one (node y); expected {nil, 2}; found {2}"},
      {"a tensor of another type than declared", declared, %{y: Nutkin.Tensor.new([[1, 2]])},
       "y: the type is not the declared one; expected f64; found s64"}
    ]
  end

  defp shapes do
    [
      {"a matrix that does not fit its coefficients",
       fn ->
         model do
           beta <~ normal(0, 1, shape: {3})
           observe(:obs, normal(dot(data(:x), beta), 1), data(:y))
         end
       end, %{x: [[1, 2], [3, 4]], y: [1, 2]},
       "dot(x, beta): the contracted axes of dot must have equal sizes: axis 1 of left, axis 0 of " <>
         "right; expected 2; found 3, in shapes {2, 2} and {3}; transpose an operand, or name the " <>
         "axes: dot(left, [axis], right, [axis])"},
      {"vectors of unequal lengths", fn -> model(do: deterministic(:z, data(:x) + data(:y))) end,
       %{x: [1, 2], y: [1, 2, 3]},
       "add(x, y): the shapes do not broadcast; expected axes, aligned at the right, that are " <>
         "equal or 1; found {2} and {3}; reshape an operand so that its axes line up"},
      {"a parameter that does not fit the declared shape",
       fn ->
         model do
           theta <~ normal(data(:mu), 1, shape: {3})
         end
       end, %{mu: [1, 2]},
       "theta: the parameters do not broadcast to the declared shape; expected {3}; found mu {2}, " <>
         "sigma {}; the shape is that of the whole variable, event axes included"},
      {"more values than parameters", fn -> model(do: observe(:obs, normal(data(:mu), 1), data(:y))) end,
       %{mu: [1, 2], y: [1, 2, 3]},
       "obs: the parameters do not broadcast to the observed value; expected parameters that " <>
         "broadcast to {3}; found mu {2}, sigma {}; reshape the parameter that does not fit, or " <>
         "broadcast the value if it is to be repeated"},
      {"a column of means for a vector of values",
       fn -> model(do: observe(:obs, normal(data(:mu), 1), data(:y))) end, %{mu: [[1], [2]], y: [1, 2]},
       "obs: the parameters do not broadcast to the observed value; expected parameters that " <>
         "broadcast to {2}; found mu {2, 1}, sigma {}; reshape the parameter that does not fit, or " <>
         "broadcast the value if it is to be repeated"},
      {"a number where a vector is needed",
       fn ->
         model do
           theta <~ mv_normal(0, [[1, 0], [0, 1]])
         end
       end, %{}, "theta: the parameter mu has too few axes; expected {…, k}; found {}"},
      {"a single concentration",
       fn ->
         model do
           p <~ dirichlet(1)
         end
       end, %{}, "p: the parameter alpha has too few axes; expected {…, k}; found {}"},
      {"a simplex of one part",
       fn ->
         model do
           p <~ dirichlet([1])
         end
       end, %{}, "p: a simplex has at least two parts; expected k of at least 2; found 1"},
      {"a mean and a covariance of two sizes",
       fn ->
         model do
           theta <~ mv_normal([0, 0, 0], [[1, 0], [0, 1]])
         end
       end, %{},
       "theta: the event axes of the parameters differ; expected one size k; found mu {3}, cov " <>
         "{2, 2}"},
      {"a correlation matrix without a shape",
       fn ->
         model do
           l <~ lkj_cholesky(2)
         end
       end, %{}, "l: the size of the axis k is not known; expected a shape {…, k, k}; found no shape"},
      {"a correlation matrix that is a vector",
       fn ->
         model do
           l <~ lkj_cholesky(2, shape: {3})
         end
       end, %{},
       "l: the declared shape does not end in the axes of a value; expected {…, k, k}; found {3}; " <>
         "the shape is that of the whole variable, event axes included"},
      {"an ordered number",
       fn ->
         model do
           c <~ normal(0, 1, transform: :ordered)
         end
       end, %{}, "c: the transform ordered needs a vector; expected a shape {…, k}; found {}"},
      {"weights that do not fit", fn -> model(do: observe(:obs, normal(0, 1), data(:y), weight: [1, 2])) end,
       %{y: [1, 2, 3]}, "obs: the weight does not broadcast to the log density; expected {3}; found {2}"},
      {"a mask that does not fit",
       fn -> model(do: observe(:obs, normal(0, 1), data(:y), mask: [[1], [0]])) end, %{y: [1, 2]},
       "obs: the mask does not broadcast to the log density; expected {2}; found {2, 1}"},
      {"an axis that there is not", fn -> model(do: factor(:f, mean(data(:x), axes: [1]))) end, %{x: [1, 2]},
       "mean(x): axes names an axis that the tensor does not have; expected an axis from -1 to 0; " <>
         "found 1"},
      {"an axis of a number", fn -> model(do: factor(:f, sum(data(:x), axes: [0]))) end, %{x: 1},
       "sum(x): axes names an axis that the tensor does not have; expected no axis, for a scalar; " <>
         "found 0"},
      {"another number of elements", fn -> model(do: factor(:f, reshape(data(:x), {2, 2}))) end,
       %{x: [1, 2, 3]},
       "reshape(x): reshape must keep the number of elements; expected 3 elements, as in {3}; " <>
         "found 4 in {2, 2}"},
      {"joined tensors of several shapes", fn -> model(do: factor(:f, stack([data(:x), 1.0]))) end,
       %{x: [1, 2]},
       "stack(x, 1.0): stack needs equal shapes; expected {2}; found {2}, {}; it joins along a " <>
         "new axis, concatenate along one that there is"},
      {"a number joined to a vector", fn -> model(do: factor(:f, concatenate([0.0, data(:x)]))) end,
       %{x: [1, 2]},
       "concatenate(0.0, x): concatenate joins along an axis, which a number does not have; " <>
         "expected shapes such as {1}; found {}, {2}; reshape(x, {1}) makes a vector of a number, " <>
         "stack joins numbers"},
      {"limits that are vectors", fn -> model(do: factor(:f, clip(data(:x), [0, 0], 1))) end, %{x: [1, 2]},
       "clip(x, tensor, 1): the minimum of clip must be a scalar; expected {}; found {2}; use max " <>
         "and min, which broadcast"},
      {"a choice that does not fit", fn -> model(do: factor(:f, select(data(:x) > 0, [1, 2, 3], 0))) end,
       %{x: [1, 2]},
       "select(greater(x, 0), tensor, 0): the value on true of select must broadcast to the shape " <>
         "of the predicate; expected {2}; found {3}"},
      {"a tensor that cannot be repeated so", fn -> model(do: factor(:f, broadcast(data(:x), {2, 3}))) end,
       %{x: [1, 2]},
       "broadcast(x): the tensor does not broadcast to the shape; expected a tensor whose axes " <>
         "are 1 or those of {2, 3}; found {2}; axes says, for every axis of the tensor, which axis " <>
         "of the result it becomes"},
      {"an axis that is not of size 1", fn -> model(do: factor(:f, squeeze(data(:x), axes: [0]))) end,
       %{x: [1, 2]}, "squeeze(x): squeeze removes axes of size 1; expected such axes of {2}; found [0]"}
    ]
  end

  defp structure do
    [
      {"a discrete variable",
       fn ->
         model do
           n <~ poisson(3)
           observe(:obs, binomial(n, 0.5), 2)
         end
       end, %{},
       "n: a discrete distribution cannot be sampled; expected a continuous distribution; found " <>
         "poisson; observe it, or marginalise it: sum the density over its values and add that as a " <>
         "factor"},
      {"a positive variable on the real line",
       fn ->
         model do
           sigma <~ gamma(2, 1, transform: :identity)
         end
       end, %{},
       "sigma: the transform does not map onto the support of gamma; expected log or softplus or " <>
         "positive_ordered; found identity"},
      {"a real variable by its logarithm",
       fn ->
         model do
           mu <~ normal(0, 1, transform: :log)
         end
       end, %{},
       "mu: the transform does not map onto the support of normal; expected identity or ordered; " <>
         "found log"},
      {"a gamma that is not centred",
       fn ->
         model do
           sigma <~ gamma(2, 1, centered: false)
         end
       end, %{}, "sigma: centered: false needs a location-scale distribution; expected normal, student_t, …"},
      {"an `if` by a vector", fn -> model(do: factor(:f, if(data(:x) > 0, do: 1, else: 0))) end, %{x: [1, 2]},
       "if(greater(x, 0)): what decides between two sides must be a scalar; expected {}; found " <>
         "{2}; select(predicate, on_true, on_false) chooses element by element"},
      {"a loop whose state grows",
       fn ->
         model do
           {nil, last} = scan(data(:y), 0.0, fn y, state -> {nil, stack([state, y])} end)
           factor(:f, last)
         end
       end, %{y: [1, 2]},
       "scan(0.0, y): what scan carries must keep its shape: value 1 does not; expected {}, as at " <>
         "the start; found {2} after a step; start from a value of the shape that the body gives, " <>
         "such as broadcast(0.0, shape)"},
      {"a loop over tensors of unequal sizes",
       fn ->
         model do
           {nil, last} = scan({data(:x), data(:y)}, 0, fn {x, y}, acc -> {nil, acc + x * y} end)
           factor(:f, last)
         end
       end, %{x: [1, 2, 3], y: [1, 2]},
       "scan(0, x, y): what scan runs over must have one first size; expected tensors of equal " <>
         "first sizes, or a length; found {3}, {2}; a range such as 0..9 is a tensor too: it makes " <>
         "so many steps"},
      {"a loop over a number",
       fn ->
         model do
           {nil, last} = scan(data(:n), 0, fn i, acc -> {nil, acc + i} end)
           factor(:f, last)
         end
       end, %{n: 3},
       "scan(0, n): what scan runs over must have one first size; expected tensors of equal first " <>
         "sizes, or a length; found {}; a range such as 0..9 is a tensor too: it makes so many " <>
         "steps"},
      {"a fault inside of a loop",
       fn ->
         model do
           rho <~ normal(0, 1, shape: {2})
           {means, _} = scan(data(:y), [0.0, 0.0, 0.0], fn _y, acc -> {dot(rho, acc), acc} end)
           factor(:f, means)
         end
       end, %{y: [1, 2]},
       "scan(tensor, y, rho): in its body: dot(rho, argument 0): the contracted axes of dot must " <>
         "have equal sizes: axis 0 of left, axis 0 of right; expected 2; found 3, in shapes {2} and " <>
         "{3}; transpose an operand, or name the axes: dot(left, [axis], right, [axis])"},
      {"a condition that is a vector",
       fn -> model(do: factor(:f, while(data(:x), &(&1 > 1), &(&1 / 2), max_steps: 9))) end, %{x: [1.0, 2.0]},
       "while(x): the condition of while must give one scalar; expected {}; found u8 {2}"},
      {"derivatives of another shape",
       fn -> model(do: factor(:f, ode([1.0, 0.0], 0, [1.0], fn _t, y -> -y[0] end))) end, %{},
       "ode(tensor, 0, tensor): the derivatives of an ode must have the shapes of its state; " <>
         "expected {2}; found {}"},
      {"a start of an equation that is a vector",
       fn -> model(do: factor(:f, ode(1.0, data(:start), data(:times), fn _t, y -> -y end))) end,
       %{start: [0, 0], times: [1, 2]},
       "ode(1.0, start, times): the start of an ode must be a scalar; expected {}; found {2}"},
      {"a mixture of counts and numbers",
       fn -> model(do: observe(:obs, mixture([0.5, 0.5], [poisson(1), normal(0, 1)]), [1, 2])) end, %{},
       "obs: the components of a mixture must be alike; expected all discrete or all continuous, " <>
         "with the same event axes; found a whole number of at least 0, a real number"},
      {"zero inflation of what is no count",
       fn -> model(do: observe(:obs, zero_inflated(gamma(1, 1), 0.5), [0, 2])) end, %{},
       "obs: zero_inflated is made of counts; expected such as poisson, neg_binomial or binomial; " <>
         "found a positive number"},
      {"a hurdle before real numbers", fn -> model(do: observe(:obs, hurdle(normal(0, 1), 0.5), [0, 2])) end,
       %{},
       "obs: hurdle is made of counts or of positive numbers; expected such as poisson, " <>
         "neg_binomial, gamma or lognormal; found a real number"},
      {"a truncation without a distribution function",
       fn -> model(do: observe(:obs, truncated(dirichlet([1, 1]), lower: 0), [0.5, 0.5])) end, %{},
       "obs: truncated needs a distribution function (cdf), and there is none of dirichlet; expected a " <>
         "distribution of a number, such as normal, student_t, gamma, weibull or poisson; found dirichlet"},
      {"a truncated mixture",
       fn ->
         model do
           x <~ truncated(mixture([0.5, 0.5], normal([0, 1], 1)), lower: 0)
         end
       end, %{},
       "x: truncated needs a distribution function (cdf), and there is none of mixture(normal); expected a " <>
         "distribution of a number, such as normal, student_t, gamma, weibull or poisson; found " <>
         "mixture(normal); mix distributions that are truncated: mixture(weights, [truncated(…), …])"},
      {"ends of intervals of vectors",
       fn -> model(do: observe(:obs, interval_censored(mv_normal([0], [[1]])), [[0, 1]])) end, %{},
       "obs: interval_censored needs a distribution function (cdf), and there is none of mv_normal; …"},
      {"a variable that may be of two supports",
       fn ->
         model do
           x <~ mixture([0.5, 0.5], [gamma(1, 1), normal(0, 1)])
         end
       end, %{},
       "x: no transform maps onto the values of mixture(gamma, normal), so that it can be " <>
         "observed only; expected a distribution whose values have one, such as components of one " <>
         "support; found a positive number or a real number"}
    ]
  end
end
