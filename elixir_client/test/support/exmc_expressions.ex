defmodule Nutkin.Test.ExmcExpressions do
  @moduledoc """
  Graphs as Nx traces them, written by hand: log densities of eXMC's custom distributions for a BEAM without Nx.
  """

  @doc "The parameter at a place."
  def parameter(place, shape \\ {}), do: expression(:parameter, [place], shape)

  def constant(number), do: expression(:constant, [number / 1], {})

  def add(left, right), do: binary(:add, left, right)
  def subtract(left, right), do: binary(:subtract, left, right)
  def multiply(left, right), do: binary(:multiply, left, right)
  def divide(left, right), do: binary(:divide, left, right)

  def exp(x), do: expression(:exp, [x], x.shape)
  def log(x), do: expression(:log, [x], x.shape)
  def log1p(x), do: expression(:log1p, [x], x.shape)
  def abs(x), do: expression(:abs, [x], x.shape)
  def max(left, right), do: binary(:max, left, right)
  def sum(x), do: expression(:sum, [x, [axes: nil, keep_axes: false]], {})

  @doc "The product of a matrix and a vector."
  def dot(a, b), do: expression(:dot, [a, [1], [], b, [0], []], {elem(a.shape, 0)})

  @doc "Columns of a matrix."
  def columns(x, start, count) do
    rows = elem(x.shape, 0)
    expression(:slice, [x, [0, start], [rows, count], [1, 1]], {rows, count})
  end

  @doc "One column, as a vector."
  def column(x, place) do
    column = columns(x, place, 1)
    expression(:reshape, [column], {elem(x.shape, 0)})
  end

  defp binary(op, left, right) do
    left = if is_number(left), do: constant(left), else: left
    right = if is_number(right), do: constant(right), else: right
    shape = if left.shape == {}, do: right.shape, else: left.shape
    expression(op, [left, right], shape)
  end

  defp expression(op, args, shape) do
    data = %{__struct__: Nx.Defn.Expr, id: make_ref(), op: op, args: args, context: nil}
    names = List.duplicate(nil, tuple_size(shape))
    %{__struct__: Nx.Tensor, data: data, type: {:f, 64}, shape: shape, names: names, vectorized_axes: []}
  end
end
