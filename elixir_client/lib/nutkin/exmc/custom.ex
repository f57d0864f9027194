defmodule Nutkin.Exmc.Custom do
  @moduledoc false
  # Log densities that are functions over Nx: Exmc.Dist.Custom, and modules with the behaviour of Exmc.Dist. Nx traces
  # them when the model is run; a graph that is traced already, of the arguments [x, params], does as well.
  #
  # Tensors and references of the parameters become arguments of the function; everything else, numbers too, is handed to
  # it as it is, since it may decide by it while it is traced.

  import Nutkin.Nx.Expression, only: [is_expression: 1]

  alias Nutkin.Error.InvalidModel
  alias Nutkin.Exmc.{Distributions, Value}
  alias Nutkin.Model.{Container, Language, Node, Traced}
  alias Nutkin.Nx.Translation
  alias Nutkin.Tensor

  @max_steps 1000
  @module Exmc.Dist.Custom

  @doc "The log density at a value, which has a shape: a node of any shape, whose elements are the terms."
  @spec log_density(map(), Node.t(), tuple(), Value.scope()) :: Node.t()
  def log_density(%{id: id} = variable, x, shape, scope) do
    params = params(variable)

    case function!(variable) do
      fun when is_function(fun, 2) -> traced(fun, x, params, id, scope)
      graph when is_expression(graph) -> written(graph, x, shape, params, id, scope)
      other -> raise not_a_function(other, id)
    end
  end

  @doc "The transform that the distribution has by default."
  @spec transform(map()) :: atom()
  def transform(%{module: @module} = variable) do
    dist = dist!(variable)
    Map.get(dist, :transform) || by_support(Map.get(dist, :support))
  end

  def transform(%{module: module, params: params}) do
    if exported?(module, :transform, 1),
      do: module.transform(params),
      else: if(exported?(module, :support, 1), do: by_support(module.support(params)))
  end

  defp by_support(:positive), do: :log
  defp by_support(:unit_interval), do: :logit
  defp by_support(_real), do: nil

  defp params(%{module: @module, params: params}), do: Map.drop(params, [:__dist__, "__dist__"])
  defp params(%{params: params}), do: params

  defp function!(%{module: @module} = variable), do: Map.get(dist!(variable), :logpdf_fn)

  defp function!(%{id: id, module: module}) do
    unless exported?(module, :logpdf, 2), do: raise(Distributions.unknown(module, id))
    &module.logpdf/2
  end

  defp dist!(%{id: id, params: params}) do
    case params[:__dist__] || params["__dist__"] do
      %{} = dist ->
        dist

      other ->
        raise InvalidModel,
          message: "the Custom distribution of #{id} is missing",
          node: id,
          expected: "what Exmc.Dist.Custom.new makes, under the parameter :__dist__",
          found: inspect(other, limit: 5),
          hint: "Exmc.Dist.Custom.rv(ir, id, dist, params) puts it there"
    end
  end

  defp exported?(module, function, arity),
    do: Code.ensure_loaded?(module) and function_exported?(module, function, arity)

  defp not_a_function(other, id) do
    InvalidModel.exception(
      message: "the log density of #{id} is no function of a value and of parameters",
      node: id,
      expected: "Exmc.Dist.Custom.new(fn x, params -> … end)",
      found: inspect(other, limit: 5)
    )
  end

  defp traced(fun, x, params, id, scope) do
    top = Map.new(params, fn {key, value} -> {key, reference(value)} end)
    {form, values} = take_out(top, [])
    nodes = for value <- Enum.reverse(values), do: Value.node(value, "a parameter", id, scope)

    {fun, arguments} =
      if nodes == [],
        do: {fn x -> fun.(x, form) end, [x]},
        else: {fn x, values -> fun.(x, put_back(form, values)) end, [x, List.to_tuple(nodes)]}

    [node] = Traced.write(fun, arguments, id, 1, @max_steps)
    node
  end

  defp reference(text) when is_binary(text), do: {:"$reference", text}
  defp reference(value), do: value

  # The term with the place of each value in its stead, and the values so far, latest first.
  defp take_out({:"$reference", text}, values), do: {{:"$value", length(values)}, [text | values]}

  defp take_out(%{__struct__: struct} = tensor, values) when struct in [Nx.Tensor, Tensor],
    do: {{:"$value", length(values)}, [tensor | values]}

  defp take_out(list, values) when is_list(list) do
    if List.improper?(list), do: {list, values}, else: Enum.map_reduce(list, values, &take_out/2)
  end

  defp take_out(tuple, values) when is_tuple(tuple) do
    {items, values} = tuple |> Tuple.to_list() |> Enum.map_reduce(values, &take_out/2)
    {List.to_tuple(items), values}
  end

  defp take_out(map, values) when is_map(map) and not is_struct(map) do
    {pairs, values} =
      Enum.map_reduce(Enum.sort(map), values, fn {key, value}, values ->
        {form, values} = take_out(value, values)
        {{key, form}, values}
      end)

    {Map.new(pairs), values}
  end

  defp take_out(other, values), do: {other, values}

  defp put_back({:"$value", place}, values), do: elem(values, place)
  defp put_back([head | tail], values), do: [put_back(head, values) | put_back(tail, values)]

  defp put_back(tuple, values) when is_tuple(tuple),
    do: tuple |> Tuple.to_list() |> put_back(values) |> List.to_tuple()

  defp put_back(map, values) when is_map(map) and not is_struct(map),
    do: Map.new(map, fn {key, form} -> {key, put_back(form, values)} end)

  defp put_back(other, _values), do: other

  defp written(graph, x, shape, params, id, scope) do
    {values, _form} = Container.flatten(params)

    parameters =
      for value <- values do
        {Value.node(value, "a parameter", id, scope), value |> Value.shape(scope) |> Tuple.to_list()}
      end

    case Translation.write(graph, [{x, Tuple.to_list(shape)} | parameters],
           types: :model,
           max_steps: @max_steps
         ) do
      [{node, _shape}] ->
        node

      several ->
        raise InvalidModel, message: "the log density of #{id} is #{length(several)} tensors", node: id
    end
  end

  @doc "A free variable of the transform alone, to which the log density is to be added."
  @spec flat(atom(), tuple(), String.t()) :: Nutkin.Model.Distribution.t()
  def flat(nil, shape, _id), do: Language.flat(shaped(shape))
  def flat(:log, shape, _id), do: Language.half_flat(shaped(shape))
  def flat(:softplus, shape, _id), do: Language.half_flat(shaped(shape) ++ [transform: :softplus])
  def flat(:logit, shape, _id), do: Language.uniform(0, 1, shaped(shape))

  def flat(other, _shape, id) do
    raise InvalidModel,
      message: "#{id} has a transform that is not known",
      node: id,
      expected: "nil, :log, :softplus or :logit",
      found: inspect(other)
  end

  defp shaped({}), do: []
  defp shaped(shape), do: [shape: shape]
end
