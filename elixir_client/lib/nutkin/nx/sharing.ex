defmodule Nutkin.Nx.Sharing do
  @moduledoc false
  # Where the expressions of a function are computed: in the innermost branch that all their uses are in. What one branch
  # alone needs is computed only where that branch is taken; what several need, once for all of them.

  alias Nutkin.Nx.Expression

  @typedoc "The branches around a place, the outermost first."
  @type path :: [Expression.branch()]

  @doc "The path of each expression that the results need, by its id."
  @spec paths(term()) :: %{term() => path()}
  def paths(results) do
    leaves = Expression.leaves(results)
    {_seen, users_first} = Enum.reduce(leaves, {MapSet.new(), []}, &collect/2)
    paths = Map.new(leaves, &{Expression.id(&1), []})

    Enum.reduce(users_first, paths, fn t, paths ->
      path = Map.fetch!(paths, Expression.id(t))

      for {operand, branch} <- Expression.operands(t), reduce: paths do
        paths ->
          used_at = if branch, do: path ++ [branch], else: path
          Map.update(paths, Expression.id(operand), used_at, &common(&1, used_at))
      end
    end)
  end

  @doc "The expressions that a body needs and that are to be computed at this path, outside of it."
  @spec outside(term(), path(), %{term() => path()}) :: [Expression.t()]
  def outside(body, path, paths) do
    {_seen, found} = Enum.reduce(Expression.leaves(body), {MapSet.new(), []}, &search(&1, &2, path, paths))
    Enum.reverse(found)
  end

  defp search(t, {seen, found}, path, paths) do
    id = Expression.id(t)

    cond do
      MapSet.member?(seen, id) ->
        {seen, found}

      length(Map.fetch!(paths, id)) <= length(path) ->
        {MapSet.put(seen, id), [t | found]}

      true ->
        for {operand, _branch} <- Expression.operands(t), reduce: {MapSet.put(seen, id), found} do
          state -> search(operand, state, path, paths)
        end
    end
  end

  # Depth first: an expression is put in front of those that it needs.
  defp collect(t, {seen, done}) do
    id = Expression.id(t)

    if MapSet.member?(seen, id) do
      {seen, done}
    else
      operands = Expression.operands(t)

      {seen, done} =
        Enum.reduce(operands, {MapSet.put(seen, id), done}, fn {operand, _branch}, state ->
          collect(operand, state)
        end)

      {seen, [t | done]}
    end
  end

  defp common([same | left], [same | right]), do: [same | common(left, right)]
  defp common(_left, _right), do: []
end
