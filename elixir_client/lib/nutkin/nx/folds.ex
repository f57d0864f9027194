defmodule Nutkin.Nx.Folds do
  @moduledoc false
  # Functions of Nx that are applied element by element, in order: `reduce`, `window_reduce`, `map`; and
  # `window_scatter_max` and `window_scatter_min`, which look at the elements of each window.

  alias Nutkin.Model.{Builder, Node}
  alias Nutkin.Nx.{Control, Expression, Translation}
  alias Nutkin.Tensor

  @doc "The function of each element."
  @spec map(Expression.t(), Expression.t(), Expression.t(), Translation.t()) :: Node.t()
  def map(x, function, t, env) do
    x
    |> Translation.node(env)
    |> reshape([size(x)])
    |> apply_each(function, t, env)
    |> reshape(Expression.flat_shape(t))
  end

  defp apply_each(rows, function, t, env) do
    [collected] = Control.scan([], [rows], fn [], [row] -> {[], [Control.apply(function, [row], t, env)]} end)
    collected
  end

  @doc "What the function makes of the elements of some axes, one after the other, and of what came of those before."
  @spec reduce([term()], Expression.t(), Translation.t()) :: Node.t()
  def reduce([x, init, options, function], t, env) do
    shape = Expression.flat_shape(x)
    axes = options[:axes] || axes(shape)
    kept = axes(shape) -- axes
    count = product(for axis <- axes, do: Enum.at(shape, axis))

    x
    |> Translation.node(Expression.type(t), env)
    |> call("transpose", %{"axes" => kept ++ Enum.sort(axes)})
    |> reshape([div(product(shape), count), count])
    |> fold(Translation.node(init, Expression.type(t), env), function, t, env)
  end

  @doc "The same for the elements of each window."
  @spec window_reduce([term()], Expression.t(), Translation.t()) :: Node.t()
  def window_reduce([x, init, window, options, function], t, env) do
    init = Translation.node(init, Expression.type(t), env)
    {padded, sizes} = pad(x, init, options[:padding], t, env)
    places = places(sizes, window, options[:strides], options[:window_dilations])
    padded |> reshape([product(sizes)]) |> take(places) |> fold(init, function, t, env)
  end

  @doc "The sources added up at the places of the extremes of their windows, the last of equal ones."
  @spec window_scatter(String.t(), [term()], Expression.t(), Translation.t()) :: Node.t()
  def window_scatter(argument, [x, source, init, window, options], t, env) do
    type = Expression.type(t)
    init = Translation.node(init, type, env)
    {padded, sizes} = pad(x, init, options[:padding], t, env)
    places = places(sizes, window, options[:strides], List.duplicate(1, length(sizes)))
    number = length(places)

    extreme =
      padded
      |> reshape([product(sizes)])
      |> take(places)
      |> call(argument, %{"axis" => 1, "tie_break" => "high", "keep_axis" => true})

    targets = Builder.call("take_along_axis", [Tensor.new(places), extreme], %{"axis" => 1})
    zeros = 0.0 |> Translation.as_type(type) |> call("broadcast", %{"shape" => [product(sizes)]})
    sources = source |> Translation.node(type, env) |> reshape([number])
    lows = Enum.map(options[:padding], &elem(&1, 0))

    sums =
      Builder.call("indexed_add", [zeros, targets, sources], %{})
      |> reshape(sizes)
      |> call("slice", %{"starts" => lows, "lengths" => Expression.flat_shape(t)})

    Builder.call("add", [sums, init], %{})
  end

  # Rows {n, m} to what comes of each, in the shape of the result.
  defp fold(rows, init, function, t, env) do
    [collected] =
      Control.scan([], [rows], fn [], [row] ->
        [last] =
          Control.scan([init], [row], fn [acc], [x] -> {[Control.apply(function, [x, acc], t, env)], []} end)

        {[], [last]}
      end)

    reshape(collected, Expression.flat_shape(t))
  end

  defp pad(x, value, padding, t, env) do
    sizes = Enum.zip_with(Expression.flat_shape(x), padding, fn size, {low, high} -> low + size + high end)
    config = for {low, high} <- padding, do: [low, high, 0]
    node = Translation.node(x, Expression.type(t), env)
    {Builder.call("pad", [node, value], %{"padding_config" => config}), sizes}
  end

  # For each window, the row-major places of its elements.
  defp places(sizes, window, strides, dilations) do
    window = Tuple.to_list(window)

    counts =
      Enum.zip_with([sizes, window, strides, dilations], fn [size, length, stride, dilation] ->
        div(size - (length - 1) * dilation - 1, stride) + 1
      end)

    for start <- positions(counts) do
      for offset <- positions(window) do
        Enum.zip_with([start, strides, offset, dilations], fn [s, stride, o, dilation] ->
          s * stride + o * dilation
        end)
        |> Enum.zip(sizes)
        |> Enum.reduce(0, fn {index, size}, place -> place * size + index end)
      end
    end
  end

  defp positions([]), do: [[]]

  defp positions([count | rest]),
    do: for(index <- 0..(count - 1)//1, tail <- positions(rest), do: [index | tail])

  defp take(flat, places), do: Builder.call("take", [flat, Tensor.new(places)], %{"axis" => 0})
  defp call(node, op, options), do: Builder.call(op, [node], options)
  defp reshape(node, shape), do: call(node, "reshape", %{"shape" => shape})
  defp axes(shape), do: Enum.to_list(0..(length(shape) - 1)//1)
  defp size(x), do: product(Expression.flat_shape(x))
  defp product(sizes), do: Enum.reduce(sizes, 1, &*/2)
end
