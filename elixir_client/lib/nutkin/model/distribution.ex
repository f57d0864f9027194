defmodule Nutkin.Model.Distribution do
  @moduledoc """
  The distributions of models, in one table: `Nutkin.Model.Language` has a function for each.

  | Distribution | Values |
  |---|---|
  """

  alias Nutkin.Error.{InvalidModel, Suggestion}
  alias Nutkin.Model.{Builder, Option}

  @table [
    {:normal, [:mu, :sigma], "real", nil},
    {:half_normal, [:sigma], "positive", nil},
    {:lognormal, [:mu, :sigma], "positive", "The logarithm of the value is normal(mu, sigma)."},
    {:student_t, [:nu, :mu, :sigma], "real", "`nu` is the number of degrees of freedom."},
    {:cauchy, [:mu, :sigma], "real", nil},
    {:half_cauchy, [:sigma], "positive", nil},
    {:exponential, [:rate], "positive", "The mean is 1 / rate."},
    {:gamma, [:alpha, :beta], "positive", "`beta` is a rate: the mean is alpha / beta."},
    {:inverse_gamma, [:alpha, :beta], "positive", "`beta` is a scale: the mean is beta / (alpha - 1)."},
    {:beta, [:alpha, :beta], "between 0 and 1", nil},
    {:uniform, [:lower, :upper], "between lower and upper", nil},
    {:laplace, [:mu, :sigma], "real", nil},
    {:logistic, [:mu, :sigma], "real", nil},
    {:weibull, [:alpha, :sigma], "positive", "`alpha` is the shape, `sigma` the scale."},
    {:bernoulli, [:p], "0 or 1", nil},
    {:bernoulli_logit, [:logits], "0 or 1", "The probability is sigmoid(logits)."},
    {:binomial, [:n, :p], "0 to n", nil},
    {:binomial_logit, [:n, :logits], "0 to n", "The probability is sigmoid(logits)."},
    {:poisson, [:mu], "0, 1, …", nil},
    {:poisson_log, [:eta], "0, 1, …", "The mean is exp(eta)."},
    {:neg_binomial, [:mu, :alpha], "0, 1, …", "The variance is mu + mu² / alpha."},
    {:dirichlet, [:alpha], "a simplex", "`alpha` has the shape {…, k}."},
    {:mv_normal, [:mu, :cov], "real", "`mu` has the shape {…, k}, the covariance `cov` {…, k, k}."},
    {:mv_normal_cholesky, [:mu, :chol], "real",
     "`mu` has the shape {…, k}, `chol`, the lower Cholesky factor of the covariance, {…, k, k}."},
    {:gaussian_random_walk, [:sigma], "real",
     "Steps are normal(0, sigma), the first one from 0. `shape: {…, steps}` is required for a free variable."}
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
    transform: {:one_of, [:identity, :log, :softplus, :logit, :interval, :stick_breaking]},
    centered: :boolean
  ]

  @enforce_keys [:family, :args, :opts]
  defstruct [:family, :args, :opts]

  @type t :: %__MODULE__{family: String.t(), args: keyword(), opts: keyword()}

  @doc """
  The table: name, parameters in order, values, and a remark or nil.
  """
  @spec table() :: [{atom(), [atom()], String.t(), String.t() | nil}]
  def table, do: @table

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
        raise %{error | hint: Suggestion.closest(name, parameters ++ names)}
    end
  end

  defp wrong(family, parameters, fault, found \\ nil) do
    InvalidModel.exception(
      message: "#{family} #{fault}",
      expected:
        "#{family}(#{Enum.join(parameters, ", ")}) or #{family}(#{Enum.map_join(parameters, ", ", &"#{&1}: …")}), " <>
          "then the options name:, #{Enum.map_join(@options, ", ", fn {name, _kind} -> "#{name}:" end)}",
      found: found
    )
  end

  @doc false
  # The fields of a free variable.
  @spec free(t()) :: map()
  def free(%__MODULE__{opts: opts} = distribution) do
    opts = opts |> Keyword.delete(:name) |> Option.to_wire!(@options, distribution.family)
    Map.merge(fields(distribution), Map.put(opts, "kind", "rv"))
  end

  @doc false
  # The fields of an observed variable, which has the shape and the scale of its value.
  @spec observed(t()) :: map()
  def observed(%__MODULE__{opts: []} = distribution), do: Map.put(fields(distribution), "kind", "observe")

  def observed(%__MODULE__{family: family, opts: [{name, _value} | _]}) do
    raise InvalidModel,
      message: "#{inspect(name)} does not apply to the observed #{family}",
      hint: "it is an option of free variables: x <~ #{family}(...)"
  end

  defp fields(%__MODULE__{family: family, args: args}) do
    args =
      for {name, value} <- args, into: %{}, do: {"#{name}", Builder.reference(value, "#{name} of #{family}")}

    %{"dist" => family, "args" => args}
  end

  defimpl Inspect do
    def inspect(distribution, _opts), do: "#Nutkin.Model.Distribution<#{distribution.family}>"
  end
end
