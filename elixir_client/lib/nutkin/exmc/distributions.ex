defmodule Nutkin.Exmc.Distributions do
  @moduledoc false
  # The distributions of eXMC as those of Nutkin. Of each parameter the name in the code of eXMC comes first, then those
  # that its documents and other languages have.

  alias Nutkin.Error.{InvalidModel, Suggestion}
  alias Nutkin.Exmc.Value
  alias Nutkin.Model.{Distribution, Language}

  @location [:loc, :mu]
  @scale [:scale, :gamma, :beta, :sigma]

  # Name, family, values, parameters.
  @table [
    {:Normal, :normal, :real, mu: [:mu, :loc], sigma: [:sigma, :scale]},
    {:HalfNormal, :half_normal, :positive, sigma: [:sigma, :scale]},
    {:Exponential, :exponential, :positive, rate: [:lambda, :rate]},
    {:Gamma, :gamma, :positive, alpha: [:alpha], beta: [:beta, :rate]},
    {:Beta, :beta, :unit, alpha: [:alpha], beta: [:beta]},
    {:Uniform01, :uniform, :unit, []},
    {:Uniform, :uniform, :interval, lower: [:lower], upper: [:upper]},
    {:StudentT, :student_t, :real, nu: [:df, :nu], mu: @location, sigma: [:scale, :sigma]},
    {:Cauchy, :cauchy, :real, mu: @location, sigma: @scale},
    {:HalfCauchy, :half_cauchy, :positive, sigma: @scale},
    {:Lognormal, :lognormal, :positive, mu: [:mu], sigma: [:sigma]},
    {:Laplace, :laplace, :real, mu: [:mu, :loc], sigma: [:b, :scale]},
    {:Weibull, :weibull, :positive, alpha: [:k], sigma: [:lambda, :scale]},
    {:TruncatedNormal, :truncated, :interval, mu: [:mu], sigma: [:sigma], lower: [:lower], upper: [:upper]},
    {:Bernoulli, :bernoulli, :count, p: [:p, :probs]},
    {:Poisson, :poisson, :count, mu: [:mu, :rate, :lambda]},
    {:MvNormal, :mv_normal, :vector, mu: [:mu], cov: [:cov]},
    {:GaussianRandomWalk, :gaussian_random_walk, :vector, sigma: [:sigma]},
    {:Dirichlet, :dirichlet, :vector, alpha: [:alpha]},
    {:Mixture, :mixture, :mixture, components: [:components], params: [:params], weights: [:weights]}
  ]

  @modules for {name, family, values, parameters} <- @table,
               into: %{},
               do: {Module.concat(Exmc.Dist, name), {name, family, values, parameters}}

  @doc "The table: name, family here, values, parameters with all their names."
  @spec table() :: [{atom(), atom(), atom(), keyword([atom()])}]
  def table, do: @table

  @doc "Whether a module is one of eXMC's own distributions with a family here."
  @spec known?(module()) :: boolean()
  def known?(module), do: is_map_key(@modules, module)

  @doc """
  What the values are: `:real`, `:positive`, `:unit` (between 0 and 1), `:interval`, `:count`, `:vector`; of a mixture what
  they are of its first component.
  """
  @spec values(module(), map()) :: atom()
  def values(module, params) do
    case @modules do
      %{^module => {_name, _family, :mixture, _parameters}} -> mixture_values(params)
      %{^module => {_name, _family, values, _parameters}} -> values
      _other -> :real
    end
  end

  defp mixture_values(params) do
    case params[:components] || params["components"] do
      [first | _] -> values(first, %{})
      _other -> :real
    end
  end

  @doc "The number of axes of one value."
  @spec event_rank(module(), map()) :: 0 | 1
  def event_rank(module, params), do: if(values(module, params) == :vector, do: 1, else: 0)

  @doc "The distribution of a variable, with options of a free one."
  @spec build(module(), map(), String.t(), Value.scope(), keyword()) :: Distribution.t()
  def build(module, params, id, scope, opts \\ []) do
    {name, family, _values, names} = Map.fetch!(@modules, module)
    build(family, name, names, params, id, scope, opts)
  end

  defp build(:uniform, _name, [], _params, _id, _scope, opts),
    do: Language.uniform([lower: 0, upper: 1] ++ opts)

  defp build(:bernoulli, name, names, params, id, scope, opts) do
    case fetch(params, [:logits]) do
      {:ok, logits} -> Language.bernoulli_logit([logits: Value.node(logits, "logits", id, scope)] ++ opts)
      :error -> named(:bernoulli, name, names, params, id, scope, opts)
    end
  end

  defp build(:truncated, name, names, params, id, scope, opts) do
    {limits, normal} = name |> arguments(names, params, id, scope) |> Keyword.split([:lower, :upper])
    Language.truncated(Language.normal(normal), limits ++ opts)
  end

  defp build(:mixture, name, names, params, id, scope, opts) do
    [components, component_params, weights] =
      for {_ours, [key]} <- names, do: fetch!(params, [key], name, names, id)

    unless is_list(components) and is_list(component_params) and
             length(components) == length(component_params) and components != [] do
      raise InvalidModel,
        message: "the components of #{id} and their params do not fit",
        node: id,
        expected: "two lists of one length",
        found: "#{inspect(components, limit: 5)} and #{inspect(component_params, limit: 5)}"
    end

    components =
      for {component, params} <- Enum.zip(components, component_params) do
        unless known?(component), do: raise(not_a_component(component, id))
        build(component, params, id, scope)
      end

    Language.mixture(weights(weights, id, scope), components, opts)
  end

  defp build(family, name, names, params, id, scope, opts),
    do: named(family, name, names, params, id, scope, opts)

  defp named(family, name, names, params, id, scope, opts),
    do: apply(Language, family, [arguments(name, names, params, id, scope) ++ opts])

  # eXMC takes them as they are: constants that do not sum to 1 only move its log density.
  defp weights(weights, id, scope) do
    node = Value.node(weights, "the weights", id, scope)
    if is_binary(weights), do: node, else: Language.divide(node, Language.sum(node))
  end

  defp not_a_component(component, id) do
    InvalidModel.exception(
      message: "#{inspect(component)} in the mixture #{id} is no distribution of eXMC",
      node: id,
      expected: "one of #{Enum.map_join(@table, ", ", &elem(&1, 0))}",
      found: inspect(component),
      hint: "write the mixture as one Custom distribution"
    )
  end

  defp arguments(name, names, params, id, scope) do
    for {ours, keys} <- names do
      {ours, Value.node(fetch!(params, keys, name, names, id), "#{hd(keys)}", id, scope)}
    end
  end

  @doc "The shape to which the parameters of a distribution of numbers broadcast, or `:error`."
  @spec parameter_shape(module(), map(), Value.scope()) :: tuple() | :error
  def parameter_shape(module, params, scope) do
    shapes =
      case @modules do
        %{^module => {_name, _family, :mixture, _names}} ->
          components = List.wrap(params[:components] || params["components"])
          component_params = List.wrap(params[:params] || params["params"])

          for {component, params} <- Enum.zip(components, component_params),
              do: parameter_shape(component, params, scope)

        %{^module => {_name, _family, _values, names}} ->
          names = [{:logits, [:logits]} | names]
          for {_ours, keys} <- names, {:ok, value} <- [fetch(params, keys)], do: Value.shape(value, scope)

        _other ->
          []
      end

    if :error in shapes, do: :error, else: Value.broadcast(shapes)
  end

  @doc "The shape of a free variable: what the node says, or, of a vector, what its parameters say."
  @spec shape!(map(), Value.scope()) :: tuple()
  def shape!(%{shape: shape}, _scope) when is_tuple(shape), do: shape

  def shape!(%{id: id, module: module, params: params}, scope) do
    case {values(module, params), module} do
      {:vector, Exmc.Dist.GaussianRandomWalk} ->
        raise InvalidModel,
          message: "#{id} is a random walk without a shape",
          node: id,
          expected: "its number of steps",
          hint: "give Builder.rv the option shape: {100}"

      {:vector, _module} ->
        {name, _family, _values, [{_ours, keys} | _] = names} = Map.fetch!(@modules, module)
        params |> fetch!(keys, name, names, id) |> Value.shape(scope)

      _number ->
        {}
    end
  end

  defp fetch!(params, keys, name, names, id) do
    with :error <- fetch(params, keys) do
      [key | aliases] = keys

      raise InvalidModel,
        message: "#{id} has no parameter #{key}",
        node: id,
        expected: "#{name} with #{Enum.map_join(names, ", ", fn {_ours, [key | _]} -> key end)}",
        found: params |> Map.keys() |> Enum.map_join(", ", &to_string/1),
        hint: if(aliases != [], do: "#{Enum.join(aliases, ", ")} would do as well")
    else
      {:ok, value} -> value
    end
  end

  # Keys may be text.
  defp fetch(params, keys) do
    Enum.find_value(keys, :error, fn key ->
      with :error <- Map.fetch(params, key), :error <- Map.fetch(params, "#{key}"), do: nil
    end)
  end

  @doc "What is said of a module that is no distribution."
  @spec unknown(module(), String.t()) :: Exception.t()
  def unknown(module, id) do
    names = for {name, _family, _values, _parameters} <- @table, do: name
    last = module |> inspect() |> String.split(".") |> List.last()

    InvalidModel.exception(
      message: "#{id} has a distribution that is not known",
      node: id,
      expected: "one of #{Enum.join(names, ", ")}, Custom, or a loaded module with logpdf/2",
      found: inspect(module),
      hint: Suggestion.closest(last, names)
    )
  end
end
