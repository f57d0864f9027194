"""Operations along axes: sums, means, extremes, `logsumexp`, `all`, `any`, and cumulative sums and products."""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
from jax import Array, lax
from jax.nn import logsumexp

from nutkin.model.plan import Operands, Plan, Planner, cast, resolve_axis
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
}
