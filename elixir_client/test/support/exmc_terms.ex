defmodule Nutkin.Test.ExmcTerms do
  @moduledoc """
  Models of eXMC as terms, without eXMC: what its Builder makes. Tensors are those of Nx on its BinaryBackend, without Nx.
  """

  alias Nutkin.Tensor

  @doc "A model of these nodes."
  def ir(nodes, opts \\ []) do
    nodes = Map.new(nodes, &{&1.id, &1})
    Map.merge(%{__struct__: Exmc.IR, nodes: nodes, outputs: [], ncp_info: %{}, data: nil}, Map.new(opts))
  end

  @doc "As `Exmc.Builder.rv(ir, id, dist, params, opts)`, the distribution as a module or by the last part of its name."
  def rv(id, dist, params, opts \\ []) do
    module = if match?("Elixir." <> _, "#{dist}"), do: dist, else: Module.concat(Exmc.Dist, dist)

    op =
      case opts[:transform] do
        nil -> {:rv, module, params}
        transform -> {:rv, module, params, transform}
      end

    node(id, op, opts[:shape])
  end

  @doc "As `Exmc.Dist.Custom.rv(ir, id, dist, params, opts)`."
  def custom(id, logpdf, params, opts \\ []) do
    {dist, opts} = Keyword.split(opts, [:support])
    rv(id, :Custom, Map.put(params, :__dist__, custom_dist(logpdf, dist)), opts)
  end

  @doc "As `Exmc.Dist.Custom.new(logpdf, opts)`."
  def custom_dist(logpdf, opts \\ []) do
    support = Keyword.get(opts, :support, :real)
    transform = %{positive: :log, unit_interval: :logit}[support]

    %{
      __struct__: Exmc.Dist.Custom,
      logpdf_fn: logpdf,
      support: support,
      transform: transform,
      sample_fn: nil
    }
  end

  @doc "As `Exmc.Builder.obs(ir, id, target, value, opts)`."
  def obs(id, target, value, opts \\ []) do
    reduced = if match?(%{shape: shape} when shape != {}, value), do: %{reduce: :sum}, else: %{}
    node(id, {:obs, target, value, Map.merge(reduced, Map.new(opts))})
  end

  @doc "As `Exmc.Builder.det(ir, id, fun, args)`."
  def det(id, fun, args), do: node(id, {:det, fun, args})

  @doc "A node of any op."
  def node(id, op, shape \\ nil),
    do: %{__struct__: Exmc.Node, id: id, op: op, deps: [], shape: shape, dtype: nil}

  @doc "What `Nx.tensor(value, type: type)` is."
  def nx(value, type \\ {:f, 64}) do
    %Tensor{data: data, shape: shape} = Tensor.new(value, type: type)
    backend = %{__struct__: Nx.BinaryBackend, state: data}
    names = List.duplicate(nil, tuple_size(shape))
    %{__struct__: Nx.Tensor, data: backend, type: type, shape: shape, names: names, vectorized_axes: []}
  end
end
