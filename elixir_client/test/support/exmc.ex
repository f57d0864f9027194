defmodule Exmc.Builder do
  @moduledoc """
  Makes the terms of models as eXMC's module of this name does, for the examples of `docs/exmc.md`: eXMC is no dependency.
  """

  alias Nutkin.Test.ExmcTerms

  def new_ir, do: ExmcTerms.ir([])
  def data(ir, tensor), do: %{ir | data: tensor}
  def rv(ir, id, dist, params, opts \\ []), do: put(ir, ExmcTerms.rv(id, dist, params, opts))
  def obs(ir, id, target, value, opts \\ []), do: put(ir, ExmcTerms.obs(id, target, value, opts))

  @doc false
  def put(ir, node), do: %{ir | nodes: Map.put(ir.nodes, node.id, node)}
end

defmodule Exmc.Dist.Custom do
  @moduledoc """
  Distributions by their log density, as eXMC's module of this name makes them.
  """

  alias Nutkin.Test.ExmcTerms

  def new(logpdf, opts \\ []), do: ExmcTerms.custom_dist(logpdf, opts)

  def rv(ir, id, dist, params, opts \\ []),
    do: Exmc.Builder.put(ir, ExmcTerms.rv(id, __MODULE__, Map.put(params, :__dist__, dist), opts))
end
