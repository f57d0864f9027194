"""Complex numbers: their parts, and discrete Fourier transforms. Most other operations take them as they are."""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
from jax import Array, lax

from nutkin.model import special_functions
from nutkin.model.plan import Operands, Plan, Planner, broadcast_shapes, resolve_axis
from nutkin.model.types import complex_of, real_of

REAL_ONLY = frozenset(
    (
        *("max", "min", "remainder", "quotient", "atan2", "less", "less_equal", "greater", "greater_equal", "clip"),
        *("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "left_shift", "right_shift", "population_count"),
        *(
            "count_leading_zeros",
            "floor",
            "ceil",
            "round",
            "cbrt",
            "erf",
            "erfc",
            "erf_inv",
            "reduce_max",
            "reduce_min",
        ),
        *("argmax", "argmin", "sort", "argsort", "top_k", "median", "quantile", "window_max", "window_min"),
        *("cumulative_max", "cumulative_min", "logsumexp", "variance", "standard_deviation", "complex"),
        *special_functions.UNARY,
        *special_functions.BINARY,
        *special_functions.TERNARY,
    )
)
"""Operations that need an order, or are defined for real numbers only."""


def _part(function: Callable[[Array], Array]) -> Planner:
    """A real number of each complex one; real ones are complex numbers too."""

    def plan(operands: Operands) -> Plan:
        spec, precision = operands.first, operands.precision
        whole = complex_of(spec.type, precision=precision)
        return Plan(spec.shape, real_of(whole, precision=precision), (whole,), function)

    return plan


def _conjugate(operands: Operands) -> Plan:
    spec = operands.first
    whole = complex_of(spec.type, precision=operands.precision)
    return Plan(spec.shape, whole, (whole,), jnp.conjugate)


def complex(operands: Operands) -> Plan:
    """The numbers of these real and imaginary parts."""
    part = real_of(operands.floating(), precision=operands.precision)
    part = part if part in ("f32", "f64") else "f32"
    whole = complex_of(part, precision=operands.precision)

    def run(*parts: Array) -> Array:
        return lax.complex(*jnp.broadcast_arrays(*parts))

    return Plan(broadcast_shapes(operands.shapes), whole, (part, part), run)


def _fourier(function: Callable[..., Array]) -> Planner:
    """Along an axis, cut off or filled up with zeros to a length, which stays by default."""

    def plan(operands: Operands) -> Plan:
        spec = operands.first
        axis = resolve_axis(operands.options.get("axis", -1), len(spec.shape), "axis")
        length = operands.options.get("length", spec.shape[axis])
        whole = complex_of(spec.type, precision=operands.precision)
        shape = (*spec.shape[:axis], length, *spec.shape[axis + 1 :])
        return Plan(shape, whole, (whole,), lambda x: function(x, n=length, axis=axis).astype(x.dtype))

    return plan


fft, ifft = _fourier(jnp.fft.fft), _fourier(jnp.fft.ifft)

UNARY: dict[str, Planner] = {
    "real": _part(lax.real),
    "imag": _part(lax.imag),
    "phase": _part(jnp.angle),
    "conjugate": _conjugate,
}

absolute = _part(jnp.abs)
