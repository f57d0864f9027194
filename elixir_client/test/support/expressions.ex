defmodule Nutkin.Test.Expressions do
  @moduledoc false
  # Expressions as Nx traces them, written by hand: scalars of the type f64, unless said otherwise.

  @doc "An expression of an operation."
  def expression(op, args, opts \\ []) do
    %{
      __struct__: Nx.Tensor,
      data: %{__struct__: Nx.Defn.Expr, id: make_ref(), op: op, args: args, context: :root},
      type: Keyword.get(opts, :type, {:f, 64}),
      shape: Keyword.get(opts, :shape, {}),
      names: [],
      vectorized_axes: []
    }
  end

  def parameter(place), do: expression(:parameter, [place])
  def number(number, type \\ {:f, 64}), do: expression(:constant, [number], type: type)
  def add(a, b), do: expression(:add, [a, b])
  def greater(a, b), do: expression(:greater, [a, b], type: {:u, 8})
  def choice(predicate, on_true, on_false), do: expression(:cond, [[{predicate, on_true}], on_false])

  @doc "A loop over integers, of which the first is counted."
  def loop(start, relation, limit, step) do
    {i, x} = {expression(:parameter, [0], type: {:s, 32}), expression(:parameter, [1])}
    next = {step.(i), add(x, x)}
    condition = expression(relation, [i, number(limit, {:s, 32})], type: {:u, 8})
    arguments = [{number(start, {:s, 32}), parameter(0)}, {i, x}, condition, next]
    expression(:while, arguments, type: {:tuple, 2})
  end
end
