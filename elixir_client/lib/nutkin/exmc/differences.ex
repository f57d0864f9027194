defmodule Nutkin.Exmc.Differences do
  @moduledoc false
  # Where eXMC 0.3 computes something else than a model says, and Nutkin does not: one warning for each kind of difference
  # that a model meets, with the nodes.

  alias Nutkin.Exmc.{Distributions, Graph}

  @doc "The warnings that a model gives rise to."
  @spec warnings(Graph.t()) :: [String.t()]
  def warnings(%Graph{} = graph) do
    for {ids, text} <- [
          {observed(graph, Exmc.Dist.Bernoulli, &no_transform?/1),
           "eXMC takes the logit of observed zeros and ones, so that its log density is minus infinity; " <>
             "here it is that of the observed values"},
          {observed(graph, Exmc.Dist.Weibull, &(&1.meta[:censored] != nil)),
           "eXMC ignores the censoring of a Weibull variable, and takes the values for exact ones; here they are censored"},
          {mixtures(graph),
           "eXMC adds the densities of all elements before it takes the logarithm; here each element has a mixture of its own"},
          {for(%{module: Exmc.Dist.TruncatedNormal, transform: nil, id: id} <- graph.free, do: id),
           "eXMC lets a free TruncatedNormal leave its limits; here it stays between them"},
          {graph.left_out,
           "no observation uses this det, and it adds nothing to the log density, nor to the trace"}
        ],
        ids != [],
        do: "#{Enum.join(ids, ", ")}: #{text}"
  end

  defp observed(graph, module, condition),
    do: for(%{variable: %{module: ^module}} = obs <- graph.observations, condition.(obs), do: obs.id)

  defp no_transform?(%{variable: %{transform: transform}}), do: transform in [nil, :logit]

  # Of numbers: a mixture of vectors has one density for each anyway.
  defp mixtures(graph) do
    for(
      %{module: Exmc.Dist.Mixture, shape: shape} = variable <- graph.free,
      several?(shape, variable),
      do: variable.id
    ) ++
      for %{variable: %{module: Exmc.Dist.Mixture} = variable, value: value, id: id} <- graph.observations,
          several?(shape(value), variable),
          do: id
  end

  defp several?(shape, %{module: module, params: params}),
    do: shape not in [nil, {}] and Distributions.event_rank(module, params) == 0

  defp shape(value), do: Nutkin.Exmc.Value.shape(value, %{shapes: %{}, data: nil})
end
