"""Operations by the order of elements: `sort`, `argsort`, `argmax`, `argmin`, `top_k`, `median`, `quantile`.

NaN counts as the largest number.
"""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
from jax import Array, lax

from nutkin.errors import InvalidModel
from nutkin.model.plan import Operands, Plan, Planner, cast, resolve_axis, widened
from nutkin.model.types import Spec, bits, is_integer, narrow, show_shape

DIRECTIONS = ("asc", "desc")
TIES = ("low", "high")
EXTREME_OPTIONS = ("axis", "tie_break", "keep_axis", "type")


def sort(operands: Operands) -> Plan:
    """The elements along an axis in order."""
    spec, axis, descending = _sorted(operands)

    def run(x: Array) -> Array:
        return cast(jnp.sort(x, axis=axis, descending=descending), spec.type)

    return Plan(spec.shape, spec.type, (_comparable(spec.type),), run)


def argsort(operands: Operands) -> Plan:
    """The places of the elements in order; equal ones stay in theirs."""
    spec, axis, descending = _sorted(operands)
    wanted = narrow(operands.options.get("type", "s32"), precision=operands.precision)

    def run(x: Array) -> Array:
        return cast(jnp.argsort(x, axis=axis, descending=descending, stable=True), wanted)

    return Plan(spec.shape, wanted, (_comparable(spec.type),), run)


def _sorted(operands: Operands) -> tuple[Spec, int, bool]:
    spec = operands.first
    axis = resolve_axis(operands.options.get("axis", 0), len(spec.shape), "axis")
    return spec, axis, operands.options.get("direction", "asc") == "desc"


def _comparable(name: str) -> str:
    """The type in which to compare: there is no order of types of less than a byte."""
    return name if bits(name) >= 8 or not is_integer(name) else "s8"


def _extreme(function: Callable[..., Array]) -> Planner:
    """The place of the extreme, along an axis or in all elements; of several the first, or the last."""

    def plan(operands: Operands) -> Plan:
        spec, options = operands.first, operands.options
        axis, wanted = options.get("axis"), narrow(options.get("type", "s32"), precision=operands.precision)
        is_last = options.get("tie_break", "low") == "high"
        shape = _reduced(operands, axis)

        def run(x: Array) -> Array:
            along = 0 if axis is None else axis
            x = x.reshape(-1) if axis is None else x
            places = function(jnp.flip(x, along) if is_last else x, axis=along)
            return jnp.reshape(cast(x.shape[along] - 1 - places if is_last else places, wanted), shape)

        return Plan(shape, wanted, (_comparable(spec.type),), run)

    return plan


def _reduced(operands: Operands, axis: int | None) -> tuple[int, ...]:
    """The shape without the axis, or without any; of size 1 instead if they are kept."""
    shape, keep = operands.first.shape, operands.options.get("keep_axis", False)
    if axis is None:
        return (1,) * len(shape) if keep else ()
    axis = resolve_axis(axis, len(shape), "axis")
    return (*shape[:axis], *((1,) if keep else ()), *shape[axis + 1 :])


def top_k(operands: Operands) -> Plan:
    """-> the k largest elements along the last axis, descending, and their places."""
    spec, k = operands.first, operands.options.get("k", 1)
    if not spec.shape or not 1 <= k <= spec.shape[-1]:
        raise InvalidModel(
            "top_k needs at least k elements along the last axis",
            expected=f"k from 1 to {spec.shape[-1]}" if spec.shape else "a shape {…, n}",
            found=f"k {k}, shape {show_shape(spec.shape)}",
        )
    shape = (*spec.shape[:-1], k)

    def run(x: Array) -> tuple[Array, Array]:
        values, places = lax.top_k(x, k)
        return cast(values, spec.type), cast(places, "s32")

    return Plan.several((Spec(shape, spec.type), Spec(shape, "s32")), (_comparable(spec.type),), run)


def median(operands: Operands) -> Plan:
    """The middle element, or the mean of the two, along an axis or of all elements."""
    spec, axis = operands.first, operands.options.get("axis")
    shape = _reduced(operands, axis)
    count = spec.size if axis is None else spec.shape[axis]
    if count % 2:
        return Plan(shape, spec.type, (_comparable(spec.type),), lambda x: cast(_middle(x, axis, shape), spec.type))
    floating = operands.floating()
    return Plan(shape, floating, (floating,), lambda x: _middle(x, axis, shape))


def _middle(x: Array, axis: int | None, shape: tuple[int, ...]) -> Array:
    """Along the axis, or of all."""
    along = 0 if axis is None else axis
    ordered = jnp.sort(x.reshape(-1) if axis is None else x, axis=along)
    half, is_odd = divmod(ordered.shape[along], 2)
    upper = lax.index_in_dim(ordered, half, along, keepdims=False)
    lower = upper if is_odd else lax.index_in_dim(ordered, half - 1, along, keepdims=False)
    return jnp.reshape(upper if is_odd else 0.5 * lower + 0.5 * upper, shape)


@widened
def quantile(operands: Operands) -> Plan:
    """The value below which the share q of the elements is, between two neighbours by linear interpolation."""
    axis, q, floating = operands.options.get("axis"), operands.options["q"], operands.floating()
    shape = _reduced(operands, axis)
    if not 0 <= q <= 1:
        raise InvalidModel("q of quantile is a share", expected="a number from 0 to 1", found=str(q))

    def run(x: Array) -> Array:
        return jnp.reshape(jnp.quantile(x, jnp.asarray(q, x.dtype), axis=axis), shape)

    return Plan(shape, floating, (floating,), run)


EXTREMES: dict[str, Planner] = {"argmax": _extreme(jnp.argmax), "argmin": _extreme(jnp.argmin)}
