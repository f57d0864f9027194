defmodule Nutkin.Exmc.Observation do
  @moduledoc false
  # An observation of eXMC as a statement of the model: `observe` where that means the same, else a factor of the terms,
  # to which weight, mask and reduction are applied in this order.

  alias Nutkin.Error.InvalidModel
  alias Nutkin.Exmc.{Custom, Distributions, Graph, Value}
  alias Nutkin.Model.{Builder, Language}

  @doc "Writes the statements of an observation."
  @spec write(Nutkin.Exmc.Graph.observation(), Value.scope()) :: :ok
  def write(%{meta: %{likelihood: false}}, _scope), do: :ok

  def write(%{id: id, through: through, variable: variable, value: value, slot: slot} = obs, scope) do
    meta = meta!(obs)
    {value, shape} = measured(through, value, slot, id, scope)

    if Distributions.known?(variable.module),
      do: of_family(variable, value, shape, meta, id, scope),
      else: of_function(variable, value, shape, meta, id, scope)
  end

  defp of_family(%{module: module, params: params} = variable, value, shape, meta, id, scope) do
    distribution = Distributions.build(module, params, variable.id, scope)
    {distribution, value, shape} = censored(meta[:censored], distribution, value, shape, id, scope)
    batch = batch(module, params, shape)

    if plain?(module, params, batch, meta, scope) do
      opts = for name <- [:weight, :mask], Map.has_key?(meta, name), do: {name, node(meta, name, id, scope)}
      reduce = if meta[:reduce] == :mean, do: [reduce: :mean], else: []
      Language.observe(id, distribution, value, opts ++ reduce)
    else
      terms(Language.log_prob(distribution, value), meta, id, scope)
    end
  end

  defp of_function(_variable, _value, _shape, %{censored: how}, id, _scope) do
    raise InvalidModel,
      message: "#{id} is censored, and its distribution is a function that gives the density alone",
      node: id,
      expected: "a distribution of eXMC",
      found: "censored: #{inspect(how)}",
      hint: "let the function compute the log probability of the censored values"
  end

  defp of_function(variable, value, shape, meta, id, scope),
    do: variable |> Custom.log_density(value, shape, scope) |> terms(meta, id, scope)

  defp terms(terms, meta, id, scope) do
    terms =
      if Map.has_key?(meta, :weight),
        do: Language.multiply(terms, node(meta, :weight, id, scope)),
        else: terms

    terms =
      if Map.has_key?(meta, :mask), do: Language.select(node(meta, :mask, id, scope), terms, 0), else: terms

    case meta[:reduce] do
      :mean -> Language.factor(id, Language.mean(terms))
      :logsumexp -> Language.factor(id, Language.logsumexp(terms))
      _sum -> Language.factor(id, terms)
    end
  end

  # `observe` broadcasts to the value alone, and its mean leaves out what is masked.
  defp plain?(module, params, batch, meta, scope) do
    parameters =
      if Distributions.event_rank(module, params) == 1,
        do: {},
        else: Distributions.parameter_shape(module, params, scope)

    shapes = [
      parameters | for(name <- [:weight, :mask], meta[name] != nil, do: Value.shape(meta[name], scope))
    ]

    Enum.all?(shapes, &(&1 != :error && Value.fits?(&1, batch))) &&
      (meta[:reduce] in [nil, :sum] || (meta[:reduce] == :mean && meta[:mask] == nil))
  end

  defp batch(module, params, shape) do
    case Distributions.event_rank(module, params) do
      1 when tuple_size(shape) > 0 -> Tuple.delete_at(shape, tuple_size(shape) - 1)
      _rank -> shape
    end
  end

  defp node(meta, name, id, scope), do: Value.node(meta[name], "the #{name}", id, scope)

  # What is there, but for what changes nothing.
  defp meta!(%{id: id, meta: meta}) do
    meta =
      for {name, value} <- meta, value != nil, {name, value} != {:weight, 1.0}, into: %{}, do: {name, value}

    allowed!(meta, :reduce, [:sum, :mean, :logsumexp], id)
    allowed!(meta, :censored, [:right, :left, :interval], id)
    meta
  end

  defp allowed!(meta, name, allowed, id) do
    case meta do
      %{^name => value} when value != nil ->
        if value not in allowed do
          raise InvalidModel,
            message: "#{id} has an unknown value of #{inspect(name)}",
            node: id,
            expected: Enum.map_join(allowed, ", ", &inspect/1),
            found: inspect(value, limit: 5)
        end

      _without ->
        :ok
    end
  end

  defp censored(:right, distribution, value, shape, _id, _scope),
    do: {Language.censored(distribution, upper: value), value, shape}

  defp censored(:left, distribution, value, shape, _id, _scope),
    do: {Language.censored(distribution, lower: value), value, shape}

  defp censored(:interval, distribution, {:ends, lower, upper}, shape, _id, _scope) do
    ends = for one <- [lower, upper], do: Language.broadcast(one, shape)
    {Language.interval_censored(distribution), Language.stack(ends, axis: -1), shape}
  end

  defp censored(nil, distribution, value, shape, _id, _scope) when not is_tuple(value),
    do: {distribution, value, shape}

  defp censored(how, _distribution, value, _shape, id, _scope) do
    raise InvalidModel,
      message: "#{id} has a value that does not go with its censoring",
      node: id,
      expected: "a map of lower and upper for censored: :interval, else a number or a tensor",
      found: "censored: #{inspect(how)} and #{if is_tuple(value), do: "a map", else: "no map"}"
  end

  # The value of the variable, given that of what is observed, and its shape.
  defp measured(nil, value, slot, id, scope), do: value(value, slot, id, scope)

  defp measured({:affine, a, b}, value, slot, id, scope) do
    {y, shape} = value(value, slot, id, scope)
    [slope, offset] = for {one, name} <- [{a, "a"}, {b, "b"}], do: constant(one, name, id, scope)
    shape = Value.broadcast([shape, Value.shape(a, scope), Value.shape(b, scope)])
    if shape == :error, do: raise(unfit(id, "a, b and the observed value"))
    size = Builder.call("abs", [Language.broadcast(slope, shape)], %{})
    Language.factor(Graph.fresh("#{id}_jacobian", scope.ids), Language.negate(Language.log(size)))
    {Language.divide(Language.subtract(y, offset), slope), shape}
  end

  defp measured({:matmul, a}, value, slot, id, scope) do
    {y, shape} = value(value, slot, id, scope)
    matrix = constant(a, "the matrix", id, scope)

    unless match?({_, _}, Value.shape(a, scope)) and shape == {elem(Value.shape(a, scope), 0)} do
      raise unfit(id, "the matrix and the observed value")
    end

    {_sign, log_determinant} = Language.slogdet(matrix)
    Language.factor(Graph.fresh("#{id}_jacobian", scope.ids), Language.negate(log_determinant))
    {Language.solve(matrix, y), shape}
  end

  defp constant(text, name, id, _scope) when is_binary(text) do
    raise InvalidModel,
      message: "#{name} of what #{id} observes refers to #{text}",
      node: id,
      expected: "a number or a tensor",
      hint: "write the likelihood as a Custom distribution, or the model in Nutkin's own language"
  end

  defp constant(value, name, id, scope), do: Value.node(value, name, id, scope)

  defp unfit(id, what) do
    InvalidModel.exception(
      message: "the shapes of #{what} do not fit",
      node: id,
      expected: "shapes that broadcast; a matrix {n, n} with a vector {n}"
    )
  end

  defp value(%{lower: lower, upper: upper}, _slot, id, scope), do: ends(lower, upper, id, scope)
  defp value(%{"lower" => lower, "upper" => upper}, _slot, id, scope), do: ends(lower, upper, id, scope)

  defp value(value, slot, id, scope), do: {Value.observed(value, slot, id, scope), Value.shape(value, scope)}

  defp ends(lower, upper, id, scope) do
    shape = Value.broadcast([Value.shape(lower, scope), Value.shape(upper, scope)])
    if shape == :error, do: raise(unfit(id, "lower and upper"))

    [lower, upper] =
      for {one, what} <- [{lower, "lower"}, {upper, "upper"}], do: Value.node(one, what, id, scope)

    {{:ends, lower, upper}, shape}
  end
end
