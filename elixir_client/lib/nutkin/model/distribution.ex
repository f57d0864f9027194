defmodule Nutkin.Model.Distribution do
  @moduledoc """
  The distributions of models, in one table: `Nutkin.Model.Language` has a function for each.

  | Distribution | Values |
  |---|---|
  """

  alias Nutkin.Error.{InvalidModel, Suggestion}
  alias Nutkin.Model.{Builder, Option, Parameterization}

  @table [
    {:normal, [:mu, :sigma], "real", nil},
    {:student_t, [:nu, :mu, :sigma], "real", "`nu` is the number of degrees of freedom."},
    {:cauchy, [:mu, :sigma], "real", nil},
    {:laplace, [:mu, :sigma], "real", nil},
    {:soft_laplace, [:mu, :sigma], "real",
     "The hyperbolic secant: a Laplace distribution with a smooth peak."},
    {:asymmetric_laplace, [:mu, :sigma, :kappa], "real",
     "The rate is kappa / sigma above `mu`, 1 / (kappa sigma) below."},
    {:skew_double_exponential, [:mu, :sigma, :tau], "real",
     "The rate is 2 tau / sigma above `mu`, 2 (1 - tau) / sigma below: `mu` is the quantile `tau` of the values."},
    {:logistic, [:mu, :sigma], "real", nil},
    {:gumbel, [:mu, :beta], "real", "The distribution of the largest of many; `beta` is the scale."},
    {:skew_normal, [:xi, :omega, :alpha], "real",
     "Location, scale and shape: `alpha` of 0 is normal(xi, omega)."},
    {:exp_mod_normal, [:mu, :sigma, :lambda], "real", "normal(mu, sigma) plus exponential(lambda)."},
    {:von_mises, [:mu, :kappa], "between -pi and pi", "An angle around `mu` with the concentration `kappa`."},
    {:flat, [], "real", "Improper: every value is as likely as any other."},
    {:half_normal, [:sigma], "positive", nil},
    {:half_cauchy, [:sigma], "positive", nil},
    {:half_student_t, [:nu, :sigma], "positive", nil},
    {:half_flat, [], "positive", "Improper: every positive value is as likely as any other."},
    {:lognormal, [:mu, :sigma], "positive", "The logarithm of the value is normal(mu, sigma)."},
    {:exponential, [:rate], "positive", "The mean is 1 / rate."},
    {:gamma, [:alpha, :beta], "positive", "`beta` is a rate: the mean is alpha / beta."},
    {:chi_square, [:nu], "positive", nil},
    {:inverse_gamma, [:alpha, :beta], "positive", "`beta` is a scale: the mean is beta / (alpha - 1)."},
    {:inv_chi_square, [:nu], "positive", "1 / value is chi_square(nu)."},
    {:scaled_inv_chi_square, [:nu, :sigma], "positive", "nu sigma² / value is chi_square(nu)."},
    {:rayleigh, [:sigma], "positive", nil},
    {:weibull, [:alpha, :sigma], "positive", "`alpha` is the shape, `sigma` the scale."},
    {:frechet, [:alpha, :sigma], "positive",
     "`alpha` is the shape, `sigma` the scale: 1 / value is weibull(alpha, 1 / sigma)."},
    {:wald, [:mu, :lambda], "positive", "The inverse Gaussian: the mean is `mu`, the variance mu³ / lambda."},
    {:loglogistic, [:alpha, :beta], "positive",
     "`alpha` is the scale, which is the median, `beta` the shape."},
    {:gompertz, [:alpha, :beta], "positive", "The hazard at x is alpha beta exp(beta x)."},
    {:pareto, [:y_min, :alpha], "at least y_min", nil},
    {:pareto_type_2, [:mu, :lambda, :alpha], "at least mu",
     "The Lomax distribution, from `mu`; `lambda` is the scale."},
    {:levy, [:mu, :sigma], "above mu", nil},
    {:beta, [:alpha, :beta], "between 0 and 1", nil},
    {:beta_proportion, [:mu, :kappa], "between 0 and 1", "beta(mu kappa, (1 - mu) kappa): the mean is `mu`."},
    {:logit_normal, [:mu, :sigma], "between 0 and 1", "The log odds of the value are normal(mu, sigma)."},
    {:kumaraswamy, [:alpha, :beta], "between 0 and 1", nil},
    {:uniform, [:lower, :upper], "between lower and upper", nil},
    {:log_uniform, [:lower, :upper], "between lower and upper", "The logarithm of the value is uniform."},
    {:triangular, [:lower, :c, :upper], "between lower and upper", "`c` is the mode."},
    {:bernoulli, [:p], "0 or 1", nil},
    {:bernoulli_logit, [:logits], "0 or 1", "The probability is sigmoid(logits)."},
    {:binomial, [:n, :p], "0 to n", nil},
    {:binomial_logit, [:n, :logits], "0 to n", "The probability is sigmoid(logits)."},
    {:beta_binomial, [:n, :alpha, :beta], "0 to n", "binomial(n, p) with p of beta(alpha, beta)."},
    {:poisson, [:mu], "0, 1, …", nil},
    {:poisson_log, [:eta], "0, 1, …", "The mean is exp(eta)."},
    {:neg_binomial, [:mu, :alpha], "0, 1, …", "The variance is mu + mu² / alpha."},
    {:neg_binomial_log, [:eta, :alpha], "0, 1, …", "neg_binomial(exp(eta), alpha)."},
    {:beta_neg_binomial, [:r, :alpha, :beta], "0, 1, …",
     "Failures before `r` successes, whose probability is beta(alpha, beta)."},
    {:geometric, [:p], "1, 2, …", "Trials up to the first success."},
    {:discrete_uniform, [:lower, :upper], "lower to upper", nil},
    {:hypergeometric, [:population, :k, :n], "0 to n",
     "Successes in `n` draws from a population in which there are `k`."},
    {:categorical, [:p], "0 to k - 1", "`p` has the shape {…, k}; its rows sum to 1."},
    {:categorical_logit, [:logits], "0 to k - 1",
     "`logits` has the shape {…, k}: the probabilities are their softmax."},
    {:ordered_logistic, [:eta, :cutpoints], "0 to k - 1",
     "`cutpoints` {…, k - 1} increase: P(value <= i) = sigmoid(cutpoints[i] - eta)."},
    {:ordered_probit, [:eta, :cutpoints], "0 to k - 1",
     "As ordered_logistic, by the normal distribution function."},
    {:multinomial, [:n, :p], "counts that sum to n", "`p` has the shape {…, k}; its rows sum to 1."},
    {:multinomial_logit, [:n, :logits], "counts that sum to n",
     "`logits` has the shape {…, k}: the probabilities are their softmax."},
    {:dirichlet_multinomial, [:n, :alpha], "counts that sum to n",
     "multinomial(n, p) with p of dirichlet(alpha)."},
    {:dirichlet, [:alpha], "a simplex", "`alpha` has the shape {…, k}."},
    {:mv_normal, [:mu, :cov], "real", "`mu` has the shape {…, k}, the covariance `cov` {…, k, k}."},
    {:mv_normal_cholesky, [:mu, :chol], "real",
     "`mu` has the shape {…, k}, `chol`, the lower Cholesky factor of the covariance, {…, k, k}."},
    {:mv_normal_precision, [:mu, :tau], "real",
     "`mu` has the shape {…, k}, `tau`, the inverse of the covariance, {…, k, k}."},
    {:mv_normal_low_rank, [:mu, :factor, :diag], "real",
     "The covariance is factor factorᵀ + diag; the shapes are {…, k}, {…, k, r} and {…, k}."},
    {:mv_student_t, [:nu, :mu, :cov], "real", "`mu` has the shape {…, k}, the scale matrix `cov` {…, k, k}."},
    {:mv_student_t_cholesky, [:nu, :mu, :chol], "real",
     "As mv_student_t, by the lower Cholesky factor of the scale matrix."},
    {:zero_sum_normal, [:sigma], "numbers that sum to 0",
     "normal(0, sigma), given that the sum is 0. `shape: {…, k}` is required for a free variable."},
    {:uniform_on_sphere, [], "vectors of length 1",
     "Every direction is as likely as any other. `shape: {…, k}` is required for a free variable."},
    {:lkj_corr, [:eta], "correlation matrices",
     "The density is proportional to det(value)^(eta - 1). `shape: {…, k, k}` is required for a free variable."},
    {:lkj_cholesky, [:eta], "Cholesky factors of correlation matrices",
     "The lower factor of lkj_corr(eta). `shape: {…, k, k}` is required for a free variable."},
    {:wishart, [:nu, :scale], "covariance matrices",
     "The mean is nu scale; `scale` has the shape {…, k, k}."},
    {:inv_wishart, [:nu, :scale], "covariance matrices", "The inverse of the value is wishart(nu, scale⁻¹)."},
    {:matrix_normal, [:mu, :row_chol, :col_chol], "real",
     "The lower Cholesky factors of the covariances among rows and among columns; the shapes are {…, r, c}, {…, r, r} and {…, c, c}."},
    {:gaussian_random_walk, [:sigma], "real",
     "Steps are normal(0, sigma), the first one from 0. `shape: {…, steps}` is required for a free variable."},
    {:ar, [:rho, :sigma], "real",
     "Each value is the sum of rho[i] times the value i + 1 steps before, plus normal(0, sigma); what lies before the first is 0. `rho` has the shape {…, p}. `shape: {…, steps}` is required for a free variable."},
    {:car, [:mu, :adjacency, :alpha, :tau], "real",
     "A field on the nodes of a graph: mv_normal_precision(mu, tau (D - alpha adjacency)) with D the degrees; the shapes are {…, k}, {…, k, k}, {…} and {…}."},
    {:icar, [:adjacency, :sigma], "real",
     "The intrinsic field: differences between neighbours are normal(0, sigma), and the sum is normal(0, 0.001 k sigma). `adjacency` has the shape {…, k, k}. The density lacks its constant."},
    {:icar_edges, [:edges, :sigma], "real",
     "As icar, by the pairs of neighbours: `edges` has the shape {…, m, 2}, and each pair once, of indices from 0. `shape: {…, k}` is required for a free variable."}
  ]

  for {name, parameters, support, _note} <- @table do
    @moduledoc @moduledoc <> "| `#{name}(#{Enum.join(parameters, ", ")})` | #{support} |\n"
  end

  @moduledoc @moduledoc <>
               """

               A distribution whose values are counts can be observed, not sampled. The options of a free variable are
               described at `Nutkin.Model.Language.<~/2`.
               """

  # Besides :name, which is the statement's.
  @options [
    shape: :shape,
    transform:
      {:one_of,
       [
         :identity,
         :log,
         :softplus,
         :lower,
         :logit,
         :interval,
         :angle,
         :ordered,
         :positive_ordered,
         :upper,
         :fraction,
         :stick_breaking,
         :zero_sum
       ] ++
         [:unit_vector, :correlation_cholesky, :correlation, :covariance]},
    centered: {:boolean_or, [:auto]}
  ]

  @enforce_keys [:family, :args, :opts]
  defstruct [:family, :args, :opts]

  @typedoc "The name of a family, or a combination of families as it travels."
  @type family :: String.t() | %{String.t() => term()}

  @type t :: %__MODULE__{family: family(), args: [{atom() | String.t(), term()}], opts: keyword()}

  # By name only: other parameters that a distribution has in the field, and what they are.
  @alternatives [
    normal: {[:mu, :tau], "tau = 1 / sigma²"},
    half_normal: {[:tau], "tau = 1 / sigma²"},
    lognormal: {[:mu, :tau], "tau = 1 / sigma²"},
    student_t: {[:nu, :mu, :tau], "tau = 1 / sigma²"},
    exponential: {[:scale], "scale = 1 / rate, the mean"},
    gamma: {[:alpha, :scale], "scale = 1 / beta"},
    gamma: {[:mu, :sigma], "mean and standard deviation"},
    inverse_gamma: {[:mu, :sigma], "mean and standard deviation"},
    beta: {[:mu, :kappa], "mean, and alpha + beta"},
    beta: {[:mu, :sigma], "mean and standard deviation"},
    bernoulli: {[:logits], "p = sigmoid(logits)"},
    binomial: {[:n, :logits], "p = sigmoid(logits)"},
    poisson: {[:eta], "mu = exp(eta)"},
    neg_binomial: {[:eta, :alpha], "mu = exp(eta)"},
    neg_binomial: {[:alpha, :beta], "mu = alpha / beta"},
    neg_binomial: {[:n, :p], "failures before n successes, each of probability p"},
    categorical: {[:logits], "p = softmax(logits)"},
    multinomial: {[:n, :logits], "p = softmax(logits)"},
    mv_normal: {[:mu, :chol], "the lower Cholesky factor of cov"},
    mv_normal: {[:mu, :tau], "tau = cov⁻¹"},
    mv_student_t: {[:nu, :mu, :chol], "the lower Cholesky factor of cov"},
    icar: {[:edges, :sigma], "the pairs of neighbours, each once"}
  ]

  @moduledoc @moduledoc <>
               """

               ## Other parameters

               By name, distributions take these too:

               | Call | |
               |---|---|
               """

  for {name, {parameters, remark}} <- @alternatives do
    @moduledoc @moduledoc <> "| `#{name}(#{Enum.map_join(parameters, ", ", &"#{&1}: …")})` | #{remark} |\n"
  end

  @doc """
  The table: name, parameters in order, values, and a remark or nil.
  """
  @spec table() :: [{atom(), [atom()], String.t(), String.t() | nil}]
  def table, do: @table

  @doc """
  The other parameters that a distribution takes by name, with a remark.

      iex> Nutkin.Model.Distribution.alternatives(:normal)
      [{[:mu, :tau], "tau = 1 / sigma²"}]
  """
  @spec alternatives(atom()) :: [{[atom()], String.t()}]
  def alternatives(name), do: Keyword.get_values(@alternatives, name)

  @doc false
  # The arguments of a call: the parameters in order and perhaps options, or all of them by name.
  @spec new(atom(), [atom()], [term()]) :: t()
  def new(family, parameters, [named]) when is_list(named) and named != [] do
    if Keyword.keyword?(named),
      do: by_name(family, parameters, named),
      else: in_order(family, parameters, [named], [])
  end

  def new(family, parameters, args) do
    case Enum.split(args, length(parameters)) do
      {args, []} -> in_order(family, parameters, args, [])
      {args, [opts]} -> in_order(family, parameters, args, opts)
    end
  end

  defp by_name(family, parameters, named) do
    {opts, args} = Keyword.split(named, [:name | Keyword.keys(@options)])

    if Enum.any?(alternatives(family), fn {names, _remark} ->
         Enum.sort(names) == Enum.sort(Keyword.keys(args))
       end) do
      {family, args} = Parameterization.convert(family, Map.new(args))
      %__MODULE__{family: Atom.to_string(family), args: args, opts: opts}
    else
      in_table(family, parameters, named)
    end
  end

  defp in_table(family, parameters, named) do
    {args, opts} = Keyword.split(named, parameters)
    opts = options!(family, parameters, opts)

    case {parameters -- Keyword.keys(args), Keyword.keys(args) -- parameters} do
      {[], []} ->
        %__MODULE__{family: Atom.to_string(family), args: args, opts: opts}

      {[missing | _], _} ->
        raise wrong(family, parameters, "is missing its parameter #{missing}")

      {[], [twice | _]} ->
        raise wrong(family, parameters, "has its parameter #{twice} twice")
    end
  end

  defp in_order(family, parameters, args, opts) do
    named? = Enum.any?(args, &(&1 != [] and Keyword.keyword?(&1)))

    if named? or length(args) != length(parameters) or not Keyword.keyword?(opts) do
      found = "#{family}(#{Enum.map_join(args ++ List.wrap(opts), ", ", &inspect(&1, limit: 5))})"
      raise wrong(family, parameters, "has the wrong arguments", found)
    end

    args = Enum.zip(parameters, args)
    %__MODULE__{family: Atom.to_string(family), args: args, opts: options!(family, parameters, opts)}
  end

  defp options!(family, parameters, opts) do
    names = [:name | Keyword.keys(@options)]

    case Enum.find(Keyword.keys(opts), &(&1 not in names)) do
      nil ->
        opts

      name ->
        error = wrong(family, parameters, "has no parameter or option #{inspect(name)}")
        raise %{error | hint: limit(family, name) || Suggestion.closest(name, parameters ++ names)}
    end
  end

  # The constraints of other languages.
  defp limit(family, name) when name in [:lower, :upper], do: "write truncated(#{family}(…), #{name}: x)"
  defp limit(_family, _name), do: nil

  defp wrong(family, parameters, fault, found \\ nil) do
    InvalidModel.exception(
      message: "#{family} #{fault}",
      expected:
        "#{family}(#{Enum.join(parameters, ", ")}) or #{named_forms(family, parameters)}, " <>
          "then the options name:, #{Enum.map_join(@options, ", ", fn {name, _kind} -> "#{name}:" end)}",
      found: found
    )
  end

  defp named_forms(family, parameters) do
    others = for {names, _remark} <- alternatives(family), do: names

    Enum.map_join([parameters | others], " or ", fn names ->
      "#{family}(#{Enum.map_join(names, ", ", &"#{&1}: …")})"
    end)
  end

  @doc false
  # The options of a free variable, but for its name.
  @spec option_names() :: [atom()]
  def option_names, do: Keyword.keys(@options)

  @doc false
  # What errors call a family.
  @spec label(family()) :: String.t()
  def label(%{"name" => name}), do: name
  def label(name), do: name

  @doc false
  # The fields of a free variable.
  @spec free(t()) :: map()
  def free(%__MODULE__{opts: opts} = distribution) do
    opts = opts |> Keyword.delete(:name) |> Option.to_wire!(@options, label(distribution.family))
    Map.merge(fields(distribution), Map.put(opts, "kind", "rv"))
  end

  @doc false
  # The fields of an observed variable, which has the shape and the scale of its value.
  @spec observed(t()) :: map()
  def observed(%__MODULE__{opts: []} = distribution), do: Map.put(fields(distribution), "kind", "observe")

  def observed(%__MODULE__{family: family, opts: [{name, _value} | _]}) do
    raise InvalidModel,
      message: "#{inspect(name)} does not apply to the observed #{label(family)}",
      hint: "it is an option of free variables: x <~ #{label(family)}(...)"
  end

  defp fields(%__MODULE__{family: family, args: args}) do
    args =
      for {name, value} <- args,
          into: %{},
          do: {"#{name}", Builder.reference(value, "#{name} of #{label(family)}")}

    %{"dist" => family, "args" => args}
  end

  defimpl Inspect do
    def inspect(distribution, _opts),
      do: "#Nutkin.Model.Distribution<#{Nutkin.Model.Distribution.label(distribution.family)}>"
  end
end
