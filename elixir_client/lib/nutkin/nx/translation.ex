defmodule Nutkin.Nx.Translation do
  @moduledoc false
  # The graph of a function that Nx has traced, written down as nodes of the model that is being written.
  #
  # Each expression becomes a node once, within its function: parameters are known by their position in the function
  # that is being read, not by an id, since the bodies of loops and blocks count theirs from 0. `types` says what is made
  # of Nx's types: `:nx` keeps them all, `:model` leaves floats in the precision of the model, as its own operations do.

  import Nutkin.Nx.Expression, only: [is_expression: 1]

  alias Nutkin.Error.InvalidModel
  alias Nutkin.Model.{Builder, Node}
  alias Nutkin.Nx.{Blocks, Captured, Control, Expression, Operations, Sharing}
  alias Nutkin.Tensor

  @enforce_keys [:types, :parameters, :scope, :paths]
  defstruct [:types, :parameters, :scope, :paths, :max_steps, path: [], known: %{}]

  @typedoc "The function that is being read, and where in it."
  @type t :: %__MODULE__{
          types: :nx | :model,
          parameters: [value()],
          scope: reference(),
          paths: %{term() => Sharing.path()},
          path: Sharing.path(),
          max_steps: pos_integer() | nil,
          known: %{term() => [value()]}
        }

  @typedoc "A node, and the shape of its value."
  @type value :: {Node.t(), [pos_integer()]}

  @doc """
  Writes the results of a function, in the order of `Nutkin.Nx.Expression.leaves/1`, given the nodes of its parameters.

  Options: `:types`, and `:max_steps` of loops whose number of steps is not known, nil for no bound.
  """
  @spec write(term(), [value()], keyword()) :: [value()]
  def write(results, parameters, opts) do
    env = %__MODULE__{
      types: opts[:types],
      max_steps: opts[:max_steps],
      parameters: [],
      scope: nil,
      paths: %{}
    }

    values(results, function(env, results, parameters))
  end

  @doc "The reading of another function, of these results and parameters."
  @spec function(t(), term(), [value()]) :: t()
  def function(env, results, parameters) do
    %{env | scope: make_ref(), parameters: parameters, paths: Sharing.paths(results), path: [], known: %{}}
  end

  @doc "The values of all expressions in a container."
  @spec values(term(), t()) :: [value()]
  def values(container, env) do
    for t <- Expression.leaves(container), value <- shaped(several(t, env), t), do: value
  end

  @doc "The node of an expression, in its flat shape."
  @spec node(Expression.t(), t()) :: Node.t()
  def node(t, env) do
    [{node, _shape}] = shaped(several(t, env), t)
    node
  end

  @doc "The node of an expression, converted to the type of a result where the types of Nx matter."
  @spec node(Expression.t(), String.t(), t()) :: Node.t()
  def node(t, type, env) do
    node = node(t, env)
    if converts?(Expression.type(t), type, env), do: as_type(node, type), else: node
  end

  @spec as_type(Node.t() | Tensor.source(), String.t()) :: Node.t()
  def as_type(node, type), do: Builder.call("as_type", [node], %{"type" => type})

  @doc "A node whose type may be another one in the worker, in the type that Nx announces, where the types of Nx matter."
  @spec announced(Node.t(), Expression.t(), t()) :: Node.t()
  def announced(node, t, env) do
    type = Expression.type(t)
    if converts?("", type, env), do: as_type(node, type), else: node
  end

  @doc "Whether a value of one type has to be converted to another one."
  @spec converts?(String.t(), String.t(), t()) :: boolean()
  def converts?(type, type, _env), do: false
  def converts?(_from, _to, %{types: :nx}), do: true
  def converts?(_from, to, %{types: :model}), do: integer?(to)

  defp integer?(type), do: String.first(type) in ["u", "s"]

  # Another use of the same expression may be of another shape.
  defp shaped([{node, shape}], t) do
    case Expression.flat_shape(t) do
      ^shape -> [{node, shape}]
      wanted -> [{Builder.call("reshape", [node], %{"shape" => wanted}), wanted}]
    end
  end

  defp shaped(values, _t), do: values

  defp several(t, env) do
    id = Expression.id(t)

    case {Expression.op(t), env.known} do
      {:parameter, %{^id => values}} -> values
      {:parameter, _known} -> [Enum.fetch!(env.parameters, hd(Expression.args(t)))]
      {:constant, _known} -> [{constant(t, env), Expression.flat_shape(t)}]
      {_op, %{^id => values}} -> values
      {op, _known} -> Builder.once({env.scope, id}, fn -> write(op, Expression.args(t), t, env) end)
    end
  end

  defp write(:tensor, [tensor], t, _env), do: [{Captured.node(tensor), Expression.flat_shape(t)}]
  defp write(:elem, [several, place], _t, env), do: [several |> several(env) |> Enum.fetch!(place)]
  defp write(:cond, _args, t, env), do: Control.cond(t, env)
  defp write(:while, args, _t, env), do: Control.while(args, env)
  defp write(:metadata, [inner, metadata], t, env), do: metadata(inner, metadata, t, env)
  defp write(op, [inner | _], _t, env) when op in [:io_call, :hook], do: values(inner, env)
  defp write(:attach_token, [_token, inner], _t, env), do: values(inner, env)

  defp write(:block, [%name{} = struct, inputs, default, _callback], t, env) do
    options = Map.from_struct(struct)
    block(Blocks.name(name), Enum.filter(inputs, &is_expression/1), options, default, t, env)
  end

  defp write(:optional, [call, default, _callback], t, env) do
    {inputs, options} = Enum.split_with(Expression.args(call), &is_expression/1)
    options = options |> List.flatten() |> Map.new()
    block(Blocks.name(Expression.op(call)), inputs, options, default, t, env)
  end

  defp write(:runtime_call, _args, _t, _env) do
    raise InvalidModel,
      message: "the function calls back into Elixir (Nx.runtime_call), which the worker cannot do",
      node: "runtime_call",
      expected: "operations of Nx alone",
      hint: "compute the value before, and give it to the function as an argument"
  end

  defp write(op, args, t, env) do
    case Operations.write(op, args, t, env) do
      nodes when is_list(nodes) -> for node <- nodes, do: {node, nil}
      node -> [{node, Expression.flat_shape(t)}]
    end
  end

  defp block(name, inputs, options, default, t, env) do
    case Blocks.write(name, inputs, options, t, env) do
      nil ->
        values(default, function(env, default, Enum.flat_map(inputs, &values(&1, env))))

      nodes ->
        for {node, leaf} <- Enum.zip(nodes, Expression.leaves(default)),
            do: {announced(node, leaf, env), Expression.flat_shape(leaf)}
    end
  end

  defp metadata(inner, %{stop_grad: true}, _t, env) do
    for {node, shape} <- values(inner, env), do: {Builder.call("stop_gradient", [node], %{}), shape}
  end

  # A function that is computed by itself has no gradient but the one in its graph.
  defp metadata(inner, %{custom_grad: custom} = metadata, t, %{types: :model} = env) do
    if Expression.type(t) == :several,
      do: values(inner, env),
      else: [Control.custom_gradient(inner, custom, metadata[:vjp], env)]
  end

  defp metadata(inner, _metadata, _t, env), do: values(inner, env)

  # A number of the model's own is exact, and takes the type of what it meets.
  defp constant(t, env) do
    [number] = Expression.args(t)
    type = Expression.type(t)

    scalar =
      case number do
        # As data of a model it would be a missing value.
        :nan -> as_type(Builder.call("divide", [0.0, 0.0], %{}), type)
        infinity when is_atom(infinity) -> as_type(Tensor.new(infinity, type: :f64), type)
        %{re: _, im: _} -> Captured.complex(number, type)
        number -> if env.types == :model and not integer?(type), do: number, else: as_type(number, type)
      end

    case Expression.flat_shape(t) do
      [] -> Builder.node(scalar, "a number")
      shape -> Builder.call("broadcast", [scalar], %{"shape" => shape})
    end
  end
end
