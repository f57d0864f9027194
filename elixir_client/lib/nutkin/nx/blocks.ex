defmodule Nutkin.Nx.Blocks do
  @moduledoc false
  # The functions that Nx traces with a name, and an implementation beside it: those that the worker has operations for.
  # The implementations of Nx are loops, which cannot be differentiated, and are less exact.

  alias Nutkin.Model.{Builder, Node}
  alias Nutkin.Nx.{Expression, Translation}

  @doc "The name of a function by its struct in Nx.Block, or by its operation before there were these."
  @spec name(module() | atom()) :: String.t()
  def name(name), do: name |> Atom.to_string() |> String.split(".") |> List.last() |> Macro.underscore()

  @doc "The nodes of its results, or nil where its implementation is to be used."
  @spec write(String.t(), [Expression.t()], map(), Expression.t(), Translation.t()) :: [Node.t()] | nil
  def write("logical_not", [x], _options, _t, env), do: one("logical_not", [x], %{}, env)
  def write("all_close", [a, b], options, _t, env), do: one("all_close", [a, b], options(options), env)

  def write("cumulative_" <> kind, [x], options, _t, env) when kind in ~w(sum product min max),
    do: one("cumulative_#{kind}", [x], options(options), env)

  def write("take", [x, indices], options, _t, env), do: one("take", [x, indices], options(options), env)

  def write("take_along_axis", [x, indices], options, _t, env),
    do: one("take_along_axis", [x, indices], options(options), env)

  def write("top_k", [x], %{k: k}, _t, env),
    do: Builder.call("top_k", [Translation.node(x, env)], %{"k" => k}, 2)

  def write("phase", [x], _options, _t, env), do: one("phase", [x], %{}, env)

  # Nx reads the lower triangle alone.
  def write("cholesky", [x], _options, t, %{types: :nx} = env) do
    lower = Builder.call("tril", [Translation.node(x, Expression.type(t), env)], %{})
    rank = length(Expression.flat_shape(x))
    axes = Enum.to_list(0..(rank - 3)//1) ++ [rank - 1, rank - 2]
    upper = Builder.call("transpose", [Builder.call("tril", [lower], %{"k" => -1})], %{"axes" => axes})
    [Builder.call("cholesky", [Builder.call("add", [lower, upper], %{})], %{})]
  end

  def write(name, inputs, _options, t, env) when name in ~w(cholesky solve determinant),
    do: typed(name, inputs, t, env)

  def write("lu", [x], _options, _t, env), do: several("lu", x, 3, env)

  # Their signs and their order are conventions, and Nx stops them early: in a model their gradient counts, by themselves
  # the values of Nx.
  def write("qr", [x], %{mode: :reduced}, _t, %{types: :model} = env), do: several("qr", x, 2, env)

  def write("svd", [x], options, _t, %{types: :model} = env) do
    [rows, columns] = x |> Expression.flat_shape() |> Enum.take(-2)
    if rows == columns or options[:full_matrices?] == false, do: several("svd", x, 3, env)
  end

  def write("eigh", [x], _options, _t, %{types: :model} = env) do
    for part <- several("eigh", x, 2, env), do: Builder.call("reverse", [part], %{"axes" => [-1]})
  end

  def write(_other, _inputs, _options, _t, _env), do: nil

  defp several(op, x, count, env), do: Builder.call(op, [Translation.node(x, env)], %{}, count)

  defp one(op, inputs, options, env) do
    [Builder.call(op, Enum.map(inputs, &Translation.node(&1, env)), options)]
  end

  defp typed(op, inputs, t, env) do
    [Builder.call(op, Enum.map(inputs, &Translation.node(&1, Expression.type(t), env)), %{})]
  end

  defp options(options) do
    for {name, value} <- options, name in [:axis, :reverse, :rtol, :atol, :equal_nan], into: %{} do
      {Atom.to_string(name), value}
    end
  end
end
