defmodule Nutkin.Exmc.Translation do
  @moduledoc false
  # A model of eXMC, written down as a model of Nutkin: free variables, then observations.

  alias Nutkin.Error.InvalidModel
  alias Nutkin.Exmc.{Custom, Distributions, Graph, Observation, Value}
  alias Nutkin.Model
  alias Nutkin.Model.Language

  @doc """
  The model and its data, which are the observed values that have axes, and the data of the whole model. `ncp` says how a
  normal variable is sampled whose parameters are variables: `true` not centered, where eXMC does so, `false` centered, `:auto`
  as a pilot run finds better.
  """
  @spec model(Graph.t(), boolean() | :auto) :: {Model.t(), %{String.t() => term()}}
  def model(%Graph{} = graph, ncp) do
    model = write(graph, ncp)
    values = [{Value.obs_data(), graph.data} | for(obs <- graph.observations, do: {obs.slot, obs.value})]
    slots = Model.slots(model)
    {model, for({slot, value} <- values, slot in slots, into: %{}, do: {slot, Value.data(value)})}
  end

  defp write(%Graph{free: free, observations: observations, data: data, ids: ids}, ncp) do
    Model.build(fn ->
      scope = %{nodes: %{}, shapes: %{}, data: data, ids: ids}
      scope = Enum.reduce(free, scope, &named(&1.id, fn -> free(&1, &2, ncp) end))
      for obs <- observations, do: named(obs.id, fn -> Observation.write(obs, scope) end)
    end)
  end

  # Whatever is wrong with a node, the error says which.
  defp named(id, write) do
    write.()
  rescue
    error in InvalidModel -> reraise %{error | node: error.node || id}, __STACKTRACE__
  end

  defp free(%{id: id} = variable, scope, ncp) do
    shape = Distributions.shape!(variable, scope)

    node =
      if Distributions.known?(variable.module),
        do: family(variable, shape, scope, ncp),
        else: custom(variable, shape, scope)

    %{scope | nodes: Map.put(scope.nodes, id, node), shapes: Map.put(scope.shapes, id, shape)}
  end

  defp custom(%{id: id} = variable, shape, scope) do
    transform = variable.transform || Custom.transform(variable)
    node = Language.__free__(id, Custom.flat(transform, shape, id))
    add(id, Custom.log_density(variable, node, shape, scope), scope)
    node
  end

  defp family(%{id: id, module: module, params: params, transform: transform} = variable, shape, scope, ncp) do
    values = Distributions.values(module, params)
    if values == :count, do: raise(discrete(id, module))
    how = how(values, transform)

    case {how, fits?(module, params, shape, values, scope)} do
      {{:own, opts}, true} ->
        opts = shaped(variable, shape, values, scope) ++ opts ++ centering(variable, ncp)
        Language.__free__(id, Distributions.build(module, params, id, scope, opts))

      {{:own, _opts}, false} ->
        restricted(variable, transform || by_values!(values, id, shape), shape, scope)

      {:restricted, _fits?} ->
        restricted(variable, transform, shape, scope)
    end
  end

  # A shape that the parameters have anyway is not written down.
  defp shaped(_variable, shape, :vector, _scope), do: [shape: shape]

  defp shaped(%{module: module, params: params}, shape, _values, scope),
    do: if(Distributions.parameter_shape(module, params, scope) == shape, do: [], else: [shape: shape])

  # The density as eXMC adds it up: over all that its parameters broadcast to, and, where a transform says so, over other
  # values than the distribution has.
  defp restricted(%{id: id, module: module, params: params}, transform, shape, scope) do
    node = Language.__free__(id, Custom.flat(transform, shape, id))
    add(id, module |> Distributions.build(params, id, scope) |> Language.log_prob(node), scope)
    node
  end

  defp add(id, terms, scope), do: Language.factor(Graph.fresh("#{id}_log_density", scope.ids), terms)

  # Whether a transform leads to the values of a distribution, and what is to be said about it.
  defp how(_values, nil), do: {:own, []}
  defp how(:positive, :log), do: {:own, transform: :log}
  defp how(:positive, :softplus), do: {:own, transform: :softplus}
  defp how(:unit, :logit), do: {:own, []}
  defp how(:vector, :stick_breaking), do: {:own, []}
  defp how(_values, _transform), do: :restricted

  defp by_values!(:real, _id, _shape), do: nil
  defp by_values!(:positive, _id, _shape), do: :log
  defp by_values!(:unit, _id, _shape), do: :logit

  defp by_values!(_values, id, shape) do
    raise InvalidModel,
      message: "the parameters of #{id} do not broadcast to its shape",
      node: id,
      expected: "parameters that broadcast to #{inspect(shape)}",
      hint: "give Builder.rv the option shape:"
  end

  defp fits?(_module, _params, _shape, :vector, _scope), do: true

  defp fits?(module, params, shape, _values, scope) do
    case Distributions.parameter_shape(module, params, scope) do
      :error -> false
      parameters -> Value.fits?(parameters, shape)
    end
  end

  # eXMC's condition; a pilot run may also decide where only the scale is a variable.
  defp centering(%{module: Exmc.Dist.Normal, transform: nil, params: params}, ncp) do
    [mu, sigma] = for name <- [:mu, :sigma], do: params[name] || params["#{name}"]

    case {ncp, is_binary(mu), is_binary(sigma)} do
      {true, true, true} -> [centered: false]
      {:auto, _mu, true} -> [centered: :auto]
      _other -> []
    end
  end

  defp centering(_variable, _ncp), do: []

  defp discrete(id, module) do
    InvalidModel.exception(
      message: "#{id} is a free variable of #{inspect(module)}, whose values are counts",
      node: id,
      expected: "an observed variable, or a continuous distribution",
      hint: "sum over its values in a Custom likelihood"
    )
  end
end
