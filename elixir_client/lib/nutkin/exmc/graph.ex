defmodule Nutkin.Exmc.Graph do
  @moduledoc false
  # A model of eXMC as its nodes say it: free variables in an order in which each comes after those that it refers to,
  # observations with what they observe, and what has no part in the log density. Structs are known by their names and
  # fields: eXMC need not be there.

  alias Nutkin.Error.InvalidModel

  @obs_data "__obs_data"
  @meta [:likelihood, :weight, :mask, :reduce, :censored]

  @enforce_keys [:free, :observations, :left_out, :data]
  defstruct [:free, :observations, :left_out, :data, ids: []]

  @type variable :: %{
          id: String.t(),
          module: module(),
          params: map(),
          transform: atom(),
          shape: tuple() | nil
        }

  @typedoc """
  `through` is how the observed value comes from that of the variable, `slot` a name for the value that is no id of another
  statement.
  """
  @type observation :: %{
          id: String.t(),
          variable: variable(),
          value: term(),
          slot: String.t(),
          through: nil | {:affine, term(), term()} | {:matmul, term()},
          meta: %{optional(atom()) => term()}
        }

  @type t :: %__MODULE__{
          free: [variable()],
          observations: [observation()],
          left_out: [String.t()],
          data: term(),
          ids: [String.t()]
        }

  @doc "Reads an `Exmc.IR`. Raises `Nutkin.Error.InvalidModel`, with the id of the node."
  @spec read!(term()) :: t()
  def read!(%{__struct__: Exmc.IR, nodes: %{} = nodes} = ir) do
    ncp = Map.get(ir, :ncp_info) || %{}
    read = for {id, node} <- Enum.sort(nodes), into: %{}, do: {id, read_node(id, node, ncp)}

    observations =
      for({_id, {:obs, obs}} <- Enum.sort(read), do: observation(obs, read)) |> slots(Map.keys(nodes))

    observed = MapSet.new(observations, & &1.variable.id)
    deps = for {_id, {:obs, %{target: target}}} <- read, do: target

    %__MODULE__{
      free: order(read, observed),
      observations: observations,
      left_out: for({id, {:det, _fun, _args}} <- Enum.sort(read), id not in deps, do: id),
      data: Map.get(ir, :data),
      ids: Map.keys(nodes)
    }
  end

  def read!(other) do
    raise InvalidModel,
      message: "not a model of eXMC",
      expected: "an %Exmc.IR{}, as Exmc.Builder makes it",
      found: inspect(other, limit: 5, printable_limit: 100)
  end

  @doc "The ids to which parameters refer: at the top, and in those of a mixture's components."
  @spec references(variable()) :: [String.t()]
  def references(%{module: module, params: params}) do
    components = if module == Exmc.Dist.Mixture, do: params[:params] || params["params"]
    components = for component <- List.wrap(components), is_map(component), do: component

    for map <- [params | components],
        {_name, value} <- map,
        is_binary(value) and value != @obs_data,
        uniq: true,
        do: value
  end

  defp read_node(id, %{op: {:rv, module, params}} = node, ncp) when is_atom(module) and is_map(params),
    do: {:rv, variable(id, module, Map.merge(params, Map.get(ncp, id, %{})), nil, node)}

  defp read_node(id, %{op: {:rv, module, params, transform}} = node, _ncp)
       when is_atom(module) and is_map(params) and is_atom(transform),
       do: {:rv, variable(id, module, params, transform, node)}

  defp read_node(id, %{op: {:obs, target, value}}, _ncp), do: obs(id, target, value, nil, %{})
  defp read_node(id, %{op: {:obs, target, value, meta}}, _ncp), do: obs(id, target, value, nil, meta)
  defp read_node(id, %{op: {:meas_obs, target, value, how}}, _ncp), do: obs(id, target, value, how, %{})
  defp read_node(id, %{op: {:meas_obs, target, value, how, meta}}, _), do: obs(id, target, value, how, meta)
  defp read_node(_id, %{op: {:det, fun, args}}, _ncp) when is_list(args), do: {:det, fun, args}

  defp read_node(id, node, _ncp) do
    raise InvalidModel,
      message: "the node #{show(id)} is none of eXMC",
      node: if(is_binary(id), do: id),
      expected: "an %Exmc.Node{} whose op is {:rv, …}, {:obs, …}, {:meas_obs, …} or {:det, …}",
      found: show(if is_map(node), do: Map.get(node, :op, node), else: node)
  end

  defp variable(id, module, params, transform, node),
    do: %{id: id, module: module, params: params, transform: transform, shape: Map.get(node, :shape)}

  # As eXMC, unknown entries of the metadata are left alone.
  defp obs(id, target, value, how, meta) do
    {:obs, %{id: id, target: target, value: value, through: how, meta: meta |> Map.new() |> Map.take(@meta)}}
  end

  # An observed variable is no statement of its own: the name is that of its values, where there are no others.
  defp slots(observations, ids) do
    times = Enum.frequencies_by(observations, & &1.variable.id)

    for %{id: id, variable: %{id: target}} = obs <- observations do
      Map.put(obs, :slot, if(times[target] == 1, do: target, else: fresh("#{id}_value", ids)))
    end
  end

  @doc "A name for a statement that eXMC has no node for, given the ids in use."
  @spec fresh(String.t(), [String.t()]) :: String.t()
  def fresh(name, ids), do: if(name in ids, do: fresh(name <> "_", ids), else: name)

  defp observation(%{target: target} = obs, read) do
    case {read, obs.through} do
      {%{^target => {:rv, variable}}, through} ->
        through = if through, do: through!(through, obs.id, target)
        obs |> Map.delete(:target) |> Map.merge(%{variable: variable, through: through})

      {%{^target => {:det, fun, args}}, nil} ->
        {through, source} = measurable!(fun, args, obs.id, target)
        observation(%{obs | target: source, through: through}, read)

      {_read, _through} ->
        raise unknown(obs.id, target, "observes", read)
    end
  end

  defp measurable!(:affine, [a, b, source], _id, _det) when is_binary(source), do: {{:affine, a, b}, source}
  defp measurable!(:matmul, [a, source], _id, _det) when is_binary(source), do: {{:matmul, a}, source}
  defp measurable!(fun, _args, id, det), do: raise(not_measurable(id, det, fun))

  defp through!({:affine, a, b}, _id, _target), do: {:affine, a, b}
  defp through!({:matmul, a}, _id, _target), do: {:matmul, a}
  defp through!(other, id, target), do: raise(not_measurable(id, target, other))

  # eXMC adds nothing to the log density for it, and does not say so.
  defp not_measurable(id, det, fun) do
    InvalidModel.exception(
      message: "#{id} observes #{det}, which has no density",
      node: id,
      expected: "a random variable, or a det of :affine, [a, b, id], or of :matmul, [a, id]",
      found: show(fun),
      hint: "write the likelihood as a Custom distribution, or the model in Nutkin's own language"
    )
  end

  defp unknown(id, target, verb, read) do
    InvalidModel.exception(
      message: "#{id} #{verb} #{show(target)}, which is no random variable of the model",
      node: id,
      expected: "one of #{read |> ids_of(:rv) |> Enum.join(", ")}",
      found: show(target),
      hint: if(match?(%{^target => {:det, _, _}}, read), do: "eXMC computes no det: it can only be observed")
    )
  end

  defp ids_of(read, kind), do: for({id, node} <- Enum.sort(read), elem(node, 0) == kind, do: id)

  # Depth first, so that parents come before what refers to them, and ids of one rank in their order.
  defp order(read, observed) do
    for {id, {:rv, variable}} <- Enum.sort(read),
        id in observed,
        do: check_references!(variable, read, observed)

    {_seen, ordered} =
      Enum.reduce(ids_of(read, :rv), {%{}, []}, fn id, state ->
        if id in observed, do: state, else: visit(id, read, observed, state, [])
      end)

    Enum.reverse(ordered)
  end

  defp visit(id, read, observed, {seen, ordered}, path) do
    cond do
      id in path ->
        cycle = Enum.reverse([id | Enum.take_while(path, &(&1 != id))] ++ [id])

        raise InvalidModel,
          message: "random variables refer to each other: #{Enum.join(cycle, ", ")}",
          node: id

      is_map_key(seen, id) ->
        {seen, ordered}

      true ->
        {:rv, variable} = Map.fetch!(read, id)
        parents = check_references!(variable, read, observed)

        {seen, ordered} = Enum.reduce(parents, {seen, ordered}, &visit(&1, read, observed, &2, [id | path]))

        {Map.put(seen, id, true), [variable | ordered]}
    end
  end

  defp check_references!(%{id: id} = variable, read, observed) do
    for target <- references(variable) do
      case read do
        %{^target => {:rv, _variable}} ->
          if target in observed do
            raise InvalidModel,
              message: "#{id} refers to #{target}, which is observed",
              node: id,
              expected: "a free random variable",
              hint: "give the observed value itself as the parameter"
          end

          target

        _other ->
          raise unknown(id, target, "refers to", read)
      end
    end
  end

  defp show(term), do: inspect(term, limit: 5, printable_limit: 100)
end
