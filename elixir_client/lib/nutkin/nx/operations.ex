defmodule Nutkin.Nx.Operations do
  @moduledoc false
  # The operations of Nx as those of a model, which have the same names and rules: what differs is how arguments are
  # written, and that Nx has chosen the type of every result.

  import Nutkin.Nx.Expression, only: [is_expression: 1]

  alias Nutkin.Error.InvalidModel
  alias Nutkin.Model.{Builder, Node}
  alias Nutkin.Nx.{Expression, Folds, Translation}

  # Operands have the type of the result.
  @typed ~w(
    add subtract multiply divide remainder quotient atan2 max min bitwise_and bitwise_or bitwise_xor left_shift
    right_shift exp expm1 log log1p sigmoid sin cos tan sinh cosh tanh asin acos atan asinh acosh atanh sqrt rsqrt cbrt
    erf erfc erf_inv negate sign floor ceil round bitwise_not conjugate
  )a

  # Operands keep their own.
  @own ~w(
    equal not_equal less less_equal greater greater_equal logical_and logical_or logical_xor logical_not abs
    population_count count_leading_zeros is_nan is_infinity real imag
  )a

  @reductions ~w(sum product reduce_max reduce_min all any)a
  @windows ~w(window_sum window_product window_max window_min)a

  @doc "The node of a result, or those of several."
  @spec write(atom(), [term()], Expression.t(), Translation.t()) :: Node.t() | [Node.t()]
  def write(op, args, t, env) when op in @typed, do: call(op, typed(args, t, env), %{}, t, env)
  def write(op, args, t, env) when op in @own, do: call(op, nodes(args, env), %{}, t, env)

  # Nx has a lower bound in place of NaN, which in a model is to be seen.
  def write(:clip, args, %{} = t, %{types: :nx} = env) do
    [x, low, high] = typed(args, t, env)
    above = Builder.call("select", [Builder.call("greater", [x, low], %{}), x, low], %{})
    call(:select, [Builder.call("less", [above, high], %{}), above, high], %{}, t, env)
  end

  def write(:clip, args, t, env), do: call(:clip, typed(args, t, env), %{}, t, env)

  # An exponent that is written as an integer is one: x ** 2 is a product.
  def write(:pow, [base, exponent], t, env) do
    exponent =
      case {Expression.op(exponent), Expression.args(exponent)} do
        {:constant, [number]} when is_integer(number) -> number
        _ -> Translation.node(exponent, Expression.type(t), env)
      end

    call(:pow, [Translation.node(base, Expression.type(t), env), exponent], %{}, t, env)
  end

  def write(:select, [predicate, on_true, on_false], t, env) do
    call(:select, [Translation.node(predicate, env) | typed([on_true, on_false], t, env)], %{}, t, env)
  end

  def write(:as_type, [x], t, env), do: as_type(Translation.node(x, env), x, t, env)
  def write(:bitcast, [x], t, env), do: call(:bitcast, nodes([x], env), %{type: Expression.type(t)}, t, env)

  def write(:iota, [axis], t, env) do
    call(:iota, [], given(shape: Expression.flat_shape(t), axis: axis, type: Expression.type(t)), t, env)
  end

  def write(:eye, [], t, env) do
    call(:eye, [], %{shape: Expression.flat_shape(t), type: Expression.type(t)}, t, env)
  end

  def write(op, [x | _], t, env) when op in [:reshape, :squeeze] do
    call(:reshape, nodes([x], env), %{shape: Expression.flat_shape(t)}, t, env)
  end

  def write(:broadcast, [x, shape, axes], t, env) do
    call(:broadcast, nodes([x], env), %{shape: Tuple.to_list(shape), axes: axes}, t, env)
  end

  def write(op, [x, axes], t, env) when op in [:transpose, :reverse] do
    call(op, nodes([x], env), %{axes: axes}, t, env)
  end

  def write(:pad, [x, value, config], t, env) do
    call(:pad, typed([x, value], t, env), %{padding_config: Enum.map(config, &Tuple.to_list/1)}, t, env)
  end

  def write(op, [parts, axis], t, env) when op in [:concatenate, :stack] do
    call(op, typed(parts, t, env), %{axis: axis}, t, env)
  end

  def write(:slice, [x, starts, lengths, strides], t, env) do
    if Enum.all?(starts, &is_integer/1) do
      sizes = Expression.flat_shape(x)

      starts =
        Enum.zip_with([starts, sizes, lengths], fn [start, size, length] ->
          start |> min(size - length) |> max(0)
        end)

      call(:slice, nodes([x], env), %{starts: starts, lengths: lengths, strides: strides}, t, env)
    else
      call(:dynamic_slice, nodes([x | starts], env), %{lengths: lengths, strides: strides}, t, env)
    end
  end

  def write(:put_slice, [x, starts, update], t, env) do
    [x, update] = typed([x, update], t, env)
    call(:put_slice, [x] ++ nodes(starts, env) ++ [update], %{}, t, env)
  end

  def write(:gather, [x, indices, options], t, env) do
    call(:gather, nodes([x, indices], env), %{axes: options[:axes]}, t, env)
  end

  def write(op, [x, indices, updates, options], t, env) when op in [:indexed_add, :indexed_put] do
    [x, updates] = typed([x, updates], t, env)
    call(op, [x, Translation.node(indices, env), updates], %{axes: options[:axes]}, t, env)
  end

  def write(op, [x, indices, axis], t, env) when op in [:take, :take_along_axis] do
    call(op, nodes([x, indices], env), %{axis: axis}, t, env)
  end

  def write(:dot, [a, contract_a, batch_a, b, contract_b, batch_b], t, env) do
    axes = %{contract_a: contract_a, batch_a: batch_a, contract_b: contract_b, batch_b: batch_b}
    call(:dot, typed([a, b], t, env), axes, t, env)
  end

  @conv ~w(strides input_dilation kernel_dilation feature_group_size batch_group_size)a ++
          ~w(input_permutation kernel_permutation output_permutation)a

  def write(:conv, [x, kernel, options], t, env) do
    settings = options |> Keyword.take(@conv) |> Map.new()
    call(:conv, typed([x, kernel], t, env), Map.put(settings, :padding, pairs(options[:padding])), t, env)
  end

  # In the worker sums of 64 bits are signed, as they are in Nx since 0.9.
  def write(op, args, %{type: {:u, 64}} = t, env) when op in [:sum, :product],
    do: op |> write(args, %{t | type: {:s, 64}}, env) |> Translation.as_type("u64")

  def write(op, [x, options], t, env) when op in @reductions do
    settings = given(axes: options[:axes], keep_axes: options[:keep_axes])

    x =
      if op in [:sum, :product],
        do: Translation.node(x, Expression.type(t), env),
        else: Translation.node(x, env)

    call(op, [x], settings, t, env)
  end

  def write(op, [x, options], t, env) when op in [:argmax, :argmin] do
    settings = given(axis: options[:axis], keep_axis: options[:axis] && options[:keep_axis])

    settings =
      Map.merge(settings, %{tie_break: Atom.to_string(options[:tie_break]), type: Expression.type(t)})

    call(op, nodes([x], env), settings, t, env)
  end

  def write(op, [x, options], t, env) when op in [:sort, :argsort] do
    settings = %{axis: options[:axis], direction: Atom.to_string(options[:direction])}
    settings = if op == :argsort, do: Map.put(settings, :type, Expression.type(t)), else: settings

    case {op, Expression.flat_shape(x)} do
      {:sort, []} -> Translation.node(x, env)
      {:argsort, []} -> Translation.as_type(Builder.node(0, "an index"), Expression.type(t))
      _ -> call(op, nodes([x], env), settings, t, env)
    end
  end

  def write(op, [x, window, options], t, env) when op in @windows do
    call(op, typed([x], t, env), Map.put(window(options), :window, Tuple.to_list(window)), t, env)
  end

  def write(:window_scatter_max, args, t, env), do: Folds.window_scatter("argmax", args, t, env)
  def write(:window_scatter_min, args, t, env), do: Folds.window_scatter("argmin", args, t, env)
  def write(:window_reduce, args, t, env), do: Folds.window_reduce(args, t, env)
  def write(:reduce, args, t, env), do: Folds.reduce(args, t, env)
  def write(:map, [x, _options, function], t, env), do: Folds.map(x, function, t, env)

  def write(:triangular_solve, [a, b, options], t, env) do
    settings = Map.new(Keyword.take(options, [:lower, :left_side]))
    settings = Map.put(settings, :transform_a, Atom.to_string(options[:transform_a]))
    call(:triangular_solve, typed([a, b], t, env), settings, t, env)
  end

  def write(op, [x, options], t, env) when op in [:fft, :ifft] do
    call(op, typed([x], t, env), given(axis: options[:axis], length: options[:length]), t, env)
  end

  # Before Nx had blocks for it.
  def write(:lu, [results, x, _options], _t, env) do
    nodes = Builder.call("lu", nodes([x], env), %{}, 3)
    Enum.zip_with(nodes, Expression.leaves(results), &Translation.announced(&1, &2, env))
  end

  def write(op, _args, _t, _env) do
    raise InvalidModel,
      message: "the worker has no operation #{op} of Nx",
      node: Atom.to_string(op),
      hint:
        "write the function with other operations, or compute the value before it and give it as an argument"
  end

  # To floats of a model, integers become floats of its precision.
  defp as_type(node, x, t, env) do
    type = Expression.type(t)

    if env.types == :model and not Translation.converts?("", type, env) and
         Translation.converts?("", Expression.type(x), env) do
      Translation.as_type(node, "f64")
    else
      Translation.as_type(node, type)
    end
  end

  # What Nx has announced is checked by the worker.
  defp call(op, args, settings, t, env) do
    references =
      for {arg, place} <- Enum.with_index(args, 1), do: Builder.reference(arg, "argument #{place} of #{op}")

    fields = %{
      "kind" => "call",
      "op" => Atom.to_string(op),
      "args" => references,
      "opts" => Map.new(settings, fn {name, value} -> {Atom.to_string(name), value} end),
      "shape" => Expression.flat_shape(t)
    }

    Builder.value(if env.types == :nx, do: Map.put(fields, "type", Expression.type(t)), else: fields)
  end

  defp nodes(terms, env) do
    for term <- terms, do: if(is_expression(term), do: Translation.node(term, env), else: term)
  end

  defp typed(terms, t, env), do: Enum.map(terms, &Translation.node(&1, Expression.type(t), env))

  defp window(options) do
    %{
      strides: options[:strides],
      padding: pairs(options[:padding]),
      window_dilations: options[:window_dilations]
    }
  end

  defp pairs(pairs), do: Enum.map(pairs, &Tuple.to_list/1)

  defp given(settings), do: for({name, value} <- settings, value != nil, into: %{}, do: {name, value})
end
