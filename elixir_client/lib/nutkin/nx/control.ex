defmodule Nutkin.Nx.Control do
  @moduledoc false
  # The choices, loops and functions in a traced function, as bodies of nodes.

  alias Nutkin.Model.{Bodies, Builder, Node}
  alias Nutkin.Nx.{Counted, Expression, Sharing, Translation}

  @compile {:no_warn_undefined, [Nx.Shared, Nx.Defn.Expr]}

  @doc "Of some branches the first whose predicate is not 0, or the last one."
  @spec cond(Expression.t(), Translation.t()) :: [Translation.value()]
  def cond(t, env) do
    [clauses, last] = Expression.args(t)
    {predicates, bodies} = Enum.unzip(clauses)
    predicates = Enum.map(predicates, &Translation.node(&1, env))
    bodies = bodies ++ [last]
    # What several branches need, or this function elsewhere, is there before any of them.
    for body <- bodies,
        outer <- Sharing.outside(body, env.path, env.paths),
        do: Translation.values(outer, env)

    shapes = for leaf <- Expression.leaves(last), do: Expression.flat_shape(leaf)
    Enum.zip(choose(predicates, Enum.with_index(bodies), Expression.id(t), env), shapes)
  end

  # As many predicates as there are branches, but for the last. By halves, so that many are not nested deeply.
  defp choose([], [{body, place}], id, env) do
    for {node, _shape} <- Translation.values(body, %{env | path: env.path ++ [{id, place}]}), do: node
  end

  defp choose(predicates, bodies, id, env) do
    half = div(length(bodies), 2)
    {first, rest} = Enum.split(bodies, half)
    {any, others} = Enum.split(predicates, half)
    {left, seen, count} = branch(fn -> choose(Enum.drop(any, -1), first, id, env) end)
    {right, captures, ^count} = branch(fn -> choose(others, rest, id, env) end)
    all = Enum.uniq(seen ++ captures)
    predicate = Enum.reduce(any, &Builder.call("logical_or", [&1, &2], %{}))

    Builder.several(
      %{
        "kind" => "cond",
        "predicate" => Builder.reference(predicate, "the predicate"),
        "captures" => all,
        "on_true" => Bodies.with_captures(left, 0, seen, all),
        "on_false" => Bodies.with_captures(right, 0, captures, all)
      },
      count
    )
  end

  defp branch(fun) do
    Builder.body(0, "a branch", fn [] ->
      results = fun.()
      {results, length(results)}
    end)
  end

  @doc "A loop: with a number of steps that is known, one over so many, which can be differentiated without a bound."
  @spec while([term()], Translation.t()) :: [Translation.value()]
  def while([initial, argument, condition, body] = args, env) do
    arguments = Expression.leaves(argument)
    shapes = Enum.map(arguments, &Expression.flat_shape/1)

    init =
      for {t, argument} <- Enum.zip(Expression.leaves(initial), arguments),
          do: Translation.node(t, Expression.type(argument), env)

    nodes =
      case Counted.steps(args) do
        0 -> init
        nil -> while(init, condition, body, arguments, env)
        steps -> counted(init, steps, body, arguments, env)
      end

    Enum.zip(nodes, shapes)
  end

  defp counted(init, steps, body, arguments, env) do
    scan(init, [], fn carried, [] -> {carried(body, carried, arguments, env), []} end, %{"length" => steps})
  end

  defp while(init, condition, body, arguments, env) do
    count = length(init)

    {condition, seen, nil} =
      Builder.body(count, "the condition of while", fn nodes ->
        inner = Translation.function(env, condition, parameters(nodes, arguments))
        {[Translation.node(condition, inner)], nil}
      end)

    {body, captures, nil} =
      Builder.body(count, "the body of while", &{carried(body, &1, arguments, env), nil})

    all = Enum.uniq(seen ++ captures)

    fields = %{
      "kind" => "while",
      "init" => references(init),
      "captures" => all,
      "condition" => Bodies.with_captures(condition, count, seen, all),
      "body" => Bodies.with_captures(body, count, captures, all)
    }

    Builder.several(if(env.max_steps, do: Map.put(fields, "max_steps", env.max_steps), else: fields), count)
  end

  # What a loop carries keeps its type.
  defp carried(body, nodes, arguments, env) do
    inner = Translation.function(env, body, parameters(nodes, arguments))

    for {t, argument} <- Enum.zip(Expression.leaves(body), arguments),
        do: Translation.node(t, Expression.type(argument), inner)
  end

  defp parameters(nodes, arguments), do: Enum.zip(nodes, Enum.map(arguments, &Expression.flat_shape/1))

  @doc "The last of what is carried over the rows of `xs`, and what is collected: the function gives both of each step."
  @spec scan([Node.t()], [Node.t()], ([Node.t()], [Node.t()] -> {[Node.t()], [Node.t()]}), map()) :: [
          Node.t()
        ]
  def scan(init, xs, fun, fields \\ %{}) do
    count = length(init)

    {body, captures, number} =
      Builder.body(count + length(xs), "the body of a function", fn nodes ->
        {carried, row} = Enum.split(nodes, count)
        {next, collected} = fun.(carried, row)
        {next ++ collected, length(next) + length(collected)}
      end)

    %{
      "kind" => "scan",
      "init" => references(init),
      "xs" => references(xs),
      "captures" => captures,
      "body" => body
    }
    |> Map.merge(fields)
    |> Builder.several(number)
  end

  @doc "What a function gives for scalars, in the type of the result."
  @spec apply(Expression.t(), [Node.t()], Expression.t(), Translation.t()) :: Node.t()
  def apply(function, scalars, t, env) do
    [_parameters, result, _name] = Expression.args(function)
    inner = Translation.function(env, result, Enum.map(scalars, &{&1, []}))
    Translation.node(result, Expression.type(t), inner)
  end

  @doc """
  A value whose gradient is what another function makes of the incoming one: `g` and the gradients by the inputs, which
  are traced here unless the graph brings them.
  """
  @spec custom_gradient(Expression.t(), {[Expression.t()], fun()}, map() | nil, Translation.t()) ::
          Translation.value()
  def custom_gradient(inner, {inputs, fun}, traced, env) do
    %{g: g, grads: gradients} = traced || trace(inner, fun)
    [{value, shape}] = Translation.values(inner, env)
    given = [g | inputs]

    {body, captures, nil} =
      Builder.body(length(given), "a gradient", fn nodes ->
        known =
          Map.new(Enum.zip(given, nodes), fn {t, node} ->
            {Expression.id(t), [{node, Expression.flat_shape(t)}]}
          end)

        inner = %{Translation.function(env, gradients, env.parameters) | known: known}

        typed =
          for {t, input} <- Enum.zip(gradients, inputs),
              do: Translation.node(t, Expression.type(input), inner)

        {typed, nil}
      end)

    node =
      Builder.value(%{
        "kind" => "custom_gradient",
        "value" => Builder.reference(value, "a value"),
        "inputs" => for(input <- inputs, do: Builder.reference(Translation.node(input, env), "an input")),
        "captures" => captures,
        "body" => body
      })

    {node, shape}
  end

  # As Nx does it: with its tracing backend, and a parameter for the incoming gradient.
  defp trace(inner, fun) do
    backend = Process.put(Nx.Shared.backend_pdict_key(), {Nx.Defn.Expr, []})
    compiler = Process.put(Nx.Defn.Compiler, Nx.Defn.Debug)

    try do
      g = inner |> devectorized() |> Nx.Defn.Expr.parameter(inner.data.context, 0)
      %{g: g, grads: fun.(g)}
    after
      restore(Nx.Shared.backend_pdict_key(), backend)
      restore(Nx.Defn.Compiler, compiler)
    end
  end

  # The gradients of Nx know no vectorized axes.
  defp devectorized(t) do
    sizes = Expression.flat_shape(t)
    %{t | shape: List.to_tuple(sizes), names: Enum.map(sizes, fn _ -> nil end), vectorized_axes: []}
  end

  defp restore(key, nil), do: Process.delete(key)
  defp restore(key, value), do: Process.put(key, value)

  defp references(nodes), do: Enum.map(nodes, &Builder.reference(&1, "the start of while"))
end
