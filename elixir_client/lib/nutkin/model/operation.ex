defmodule Nutkin.Model.Operation do
  @moduledoc false
  # The operations of models, in one table. Those that Kernel has too are macros of `Nutkin.Model.Operators`, the others
  # functions of `Nutkin.Model.Language`, but for `dot` and the operations that join lists of nodes, written out there.

  @axes [axes: :axes, keep_axes: :boolean]
  @cumulative [axis: :axis, reverse: :boolean]

  # Name, arguments that are values, arguments that are settings, options, what it gives.
  @table [
    {:add, [:left, :right], [], [], "`left + right`."},
    {:subtract, [:left, :right], [], [], "`left - right`."},
    {:multiply, [:left, :right], [], [], "`left * right`, element by element."},
    {:divide, [:left, :right], [], [], "`left / right`."},
    {:pow, [:base, :exponent], [], [], "`base ** exponent`."},
    {:remainder, [:left, :right], [], [], "The remainder of the division, with the sign of `left`."},
    {:quotient, [:left, :right], [], [], "The quotient of integers, rounded towards 0."},
    {:max, [:left, :right], [], [], "The larger of two elements."},
    {:min, [:left, :right], [], [], "The smaller of two elements."},
    {:atan2, [:y, :x], [], [], "The angle of the point (x, y)."},
    {:equal, [:left, :right], [], [], "1 where `left == right`, else 0."},
    {:not_equal, [:left, :right], [], [], "1 where `left != right`, else 0."},
    {:less, [:left, :right], [], [], "1 where `left < right`, else 0."},
    {:less_equal, [:left, :right], [], [], "1 where `left <= right`, else 0."},
    {:greater, [:left, :right], [], [], "1 where `left > right`, else 0."},
    {:greater_equal, [:left, :right], [], [], "1 where `left >= right`, else 0."},
    {:logical_and, [:left, :right], [], [], "1 where both are not 0, else 0."},
    {:logical_or, [:left, :right], [], [], "1 where one or both are not 0, else 0."},
    {:logical_xor, [:left, :right], [], [], "1 where exactly one is not 0, else 0."},
    {:negate, [:x], [], [], "`-x`."},
    {:abs, [:x], [], [], "The absolute value."},
    {:sign, [:x], [], [], "-1, 0 or 1."},
    {:exp, [:x], [], [], "The exponential."},
    {:expm1, [:x], [], [], "`exp(x) - 1`, exact near 0."},
    {:log, [:x], [], [], "The natural logarithm."},
    {:log1p, [:x], [], [], "`log(1 + x)`, exact near 0."},
    {:sqrt, [:x], [], [], "The square root."},
    {:rsqrt, [:x], [], [], "`1 / sqrt(x)`."},
    {:cbrt, [:x], [], [], "The cube root."},
    {:sigmoid, [:x], [], [], "`1 / (1 + exp(-x))`."},
    {:sin, [:x], [], [], "The sine."},
    {:cos, [:x], [], [], "The cosine."},
    {:tan, [:x], [], [], "The tangent."},
    {:sinh, [:x], [], [], "The hyperbolic sine."},
    {:cosh, [:x], [], [], "The hyperbolic cosine."},
    {:tanh, [:x], [], [], "The hyperbolic tangent."},
    {:asin, [:x], [], [], "The inverse sine."},
    {:acos, [:x], [], [], "The inverse cosine."},
    {:atan, [:x], [], [], "The inverse tangent."},
    {:asinh, [:x], [], [], "The inverse hyperbolic sine."},
    {:acosh, [:x], [], [], "The inverse hyperbolic cosine."},
    {:atanh, [:x], [], [], "The inverse hyperbolic tangent."},
    {:erf, [:x], [], [], "The error function."},
    {:erfc, [:x], [], [], "`1 - erf(x)`, exact for large x."},
    {:erf_inv, [:x], [], [], "The inverse of the error function."},
    {:floor, [:x], [], [], "The largest integer that is not above."},
    {:ceil, [:x], [], [], "The smallest integer that is not below."},
    {:round, [:x], [], [], "The nearest integer, halves away from 0."},
    {:logical_not, [:x], [], [], "1 where x is 0, else 0."},
    {:is_nan, [:x], [], [], "1 where x is NaN, else 0."},
    {:is_infinity, [:x], [], [], "1 where x is infinite, else 0."},
    {:as_type, [:x], [type: :type], [], "The elements as another type, such as `{:f, 64}` or `:s32`."},
    {:select, [:predicate, :on_true, :on_false], [], [],
     "`on_true` where the predicate is not 0, else `on_false`."},
    {:clip, [:x, :min, :max], [], [], "The elements kept between two scalars."},
    {:sum, [:x], [], @axes, "The sum, over all axes or those named."},
    {:product, [:x], [], @axes, "The product, over all axes or those named."},
    {:mean, [:x], [], @axes, "The mean, over all axes or those named."},
    {:reduce_max, [:x], [], @axes, "The largest element, over all axes or those named."},
    {:reduce_min, [:x], [], @axes, "The smallest element, over all axes or those named."},
    {:logsumexp, [:x], [], @axes, "`log(sum(exp(x)))` without overflow, over all axes or those named."},
    {:all, [:x], [], @axes, "1 where all elements are not 0, else 0, over all axes or those named."},
    {:any, [:x], [], @axes, "1 where any element is not 0, else 0, over all axes or those named."},
    {:cumulative_sum, [:x], [], @cumulative, "Running sums along an axis."},
    {:cumulative_product, [:x], [], @cumulative, "Running products along an axis."},
    {:take, [:x, :indices], [], [axis: :axis],
     "The entries at integer indices, from 0 on, along an axis, 0 by default. They must lie in it; those that depend on a " <>
       "parameter are moved into it."},
    {:slice, [:x], [starts: :positions, lengths: :sizes], [strides: :sizes],
     "A part of a tensor; starts, lengths and strides are lists. See `Nutkin.Model.Node` for `x[0..2]`."},
    {:reshape, [:x], [shape: :shape], [], "The same elements in another shape."},
    {:broadcast, [:x], [shape: :shape], [axes: :axes],
     "The tensor repeated to a shape, in which its axes are the last ones, or `:axes`."},
    {:squeeze, [:x], [], [axes: :axes], "Without its axes of size 1, all or those named."},
    {:transpose, [:x], [], [axes: :axes], "The axes in another order, reversed by default."}
  ]

  @type entry :: {
          name :: atom(),
          values :: [atom()],
          settings :: [{atom(), Nutkin.Model.Option.kind()}],
          options :: [{atom(), Nutkin.Model.Option.kind()}],
          doc :: String.t()
        }

  @spec table() :: [entry()]
  def table, do: @table
end
