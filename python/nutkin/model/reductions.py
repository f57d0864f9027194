"""Operations along axes: sums, means, variances, extremes, `logsumexp`, `all`, `any`, and cumulative ones."""

from __future__ import annotations

import math
from collections.abc import Callable

import jax.numpy as jnp
from jax import Array, lax
from jax.nn import logsumexp

from nutkin.errors import InvalidModel
from nutkin.model.plan import Operands, Plan, Planner, broadcast_shapes, cast, resolve_axis, widened
from nutkin.model.types import bits, kind, to_floating


def aggregate_type(name: str) -> str:
    """The type of a sum or product: small integers widen to 32 bits, 64-bit ones are signed, floats stay."""
    if kind(name) not in ("s", "u"):
        return name
    return "s64" if bits(name) == 64 else f"{kind(name)}32"


def _reduction(function: Callable[..., Array], *, of: Callable[[str, str], tuple[str, str]]) -> Planner:
    """`of` gives, from the operand's type and the precision, the type to compute in and the type of the result."""

    def plan(operands: Operands) -> Plan:
        spec = operands.first
        axes = operands.axes("axes")
        axes = tuple(range(len(spec.shape))) if axes is None else axes
        keep = operands.options.get("keep_axes", False)
        kept = tuple(1 if axis in axes else size for axis, size in enumerate(spec.shape))
        shape = kept if keep else tuple(size for axis, size in enumerate(spec.shape) if axis not in axes)
        computed, result = of(spec.type, operands.precision)
        return Plan(shape, result, (computed,), lambda x: cast(function(x, axis=axes, keepdims=keep), result))

    return plan


def _aggregated(name: str, _precision: str) -> tuple[str, str]:
    return aggregate_type(name), aggregate_type(name)


def _floated(name: str, precision: str) -> tuple[str, str]:
    return to_floating(name, precision=precision), to_floating(name, precision=precision)


def _kept(name: str, _precision: str) -> tuple[str, str]:
    return name, name


def _truth(name: str, _precision: str) -> tuple[str, str]:
    return name, "u8"


def _sum(x: Array, **where: object) -> Array:
    return jnp.sum(x, dtype=x.dtype, **where)


def _product(x: Array, **where: object) -> Array:
    return jnp.prod(x, dtype=x.dtype, **where)


def _cumulative(function: Callable[..., Array]) -> Planner:
    def plan(operands: Operands) -> Plan:
        spec = operands.first
        axis = resolve_axis(operands.options.get("axis", 0), len(spec.shape), "axis")
        reverse = operands.options.get("reverse", False)
        return Plan(spec.shape, spec.type, (spec.type,), lambda x: function(x, axis=axis, reverse=reverse))

    return plan


def _variance(function: Callable[[Array], Array]) -> Planner:
    """A function of the mean squared distance from the mean, with a divisor that is less by `ddof`."""

    def plan(operands: Operands) -> Plan:
        spec, ddof = operands.first, operands.options.get("ddof", 0)
        axes = operands.axes("axes")
        count = math.prod(spec.shape if axes is None else (spec.shape[axis] for axis in axes))
        if not 0 <= ddof < count:
            raise InvalidModel(
                "ddof must be below the number of elements", expected=f"from 0 to {count - 1}", found=str(ddof)
            )

        def variance(x: Array, axis: tuple[int, ...], keepdims: bool) -> Array:
            distances = x - jnp.mean(x, axis=axis, keepdims=True)
            return function(jnp.sum(distances * distances, axis=axis, keepdims=keepdims) / (count - ddof))

        return _reduction(variance, of=_floated)(operands)

    return widened(plan)


def _root(x: Array) -> Array:
    """Its derivative at 0 is 0."""
    return jnp.where(x == 0, 0, jnp.sqrt(jnp.where(x == 0, 1, x)))


def all_close(operands: Operands) -> Plan:
    """1 where |a - b| <= atol + rtol |b| for all elements, else 0."""
    broadcast_shapes(operands.shapes)
    floating, options = operands.floating(), operands.options
    rtol, atol = float(options.get("rtol", 1e-5)), float(options.get("atol", 1e-8))
    nan = options.get("equal_nan", False)
    return Plan((), "u8", (floating,) * 2, lambda a, b: cast(jnp.allclose(a, b, rtol, atol, nan), "u8"))


REDUCTIONS: dict[str, Planner] = {
    "sum": _reduction(_sum, of=_aggregated),
    "product": _reduction(_product, of=_aggregated),
    "mean": _reduction(jnp.mean, of=_floated),
    "reduce_max": _reduction(jnp.max, of=_kept),
    "reduce_min": _reduction(jnp.min, of=_kept),
    "logsumexp": _reduction(logsumexp, of=_floated),
    "all": _reduction(lambda x, **where: jnp.all(x != 0, **where), of=_truth),
    "any": _reduction(lambda x, **where: jnp.any(x != 0, **where), of=_truth),
}

CUMULATIVE: dict[str, Planner] = {
    "cumulative_sum": _cumulative(lax.cumsum),
    "cumulative_product": _cumulative(lax.cumprod),
    "cumulative_max": _cumulative(lax.cummax),
    "cumulative_min": _cumulative(lax.cummin),
}

VARIANCES: dict[str, Planner] = {
    "variance": _variance(lambda x: x),
    "standard_deviation": _variance(_root),
}
