"""Draws from a part of a distribution, by inverting its distribution function.

The quantile is found by bisection in the order of the floating numbers, so for every family that has a distribution
function, to the last bit that this function tells apart.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from nutkin.model.distributions.family import Cumulative
from nutkin.model.distributions.standard_draws import unit
from nutkin.model.native.elementary import log, log1p

_KEYS = {np.dtype(np.float32): np.int32, np.dtype(np.float64): np.int64}


def draw_between(
    key: Array,
    cumulative: Cumulative,
    parameters: Sequence[Array],
    first: Array,
    last: Array,
    shape: tuple[int, ...],
) -> Array:
    """Random values given that first < X <= last; the ends may be infinite."""
    u = unit(key, shape, first.dtype)
    below, above = cumulative.tails(first, *parameters)
    up_to, beyond = cumulative.tails(last, *parameters)
    below, above = jnp.where(first == -np.inf, -np.inf, below), jnp.where(first == -np.inf, 0, above)
    up_to, beyond = jnp.where(last == np.inf, 0, up_to), jnp.where(last == np.inf, -np.inf, beyond)
    # The tail in which both ends are has the digits.
    is_right = below > -math.log(2)
    left = jnp.logaddexp(below + log1p(-u), up_to + log(u))
    right = jnp.logaddexp(beyond + log1p(-u), above + log(u))

    def is_reached(x: Array) -> Array:
        log_cdf, log_sf = cumulative.tails(x, *parameters)
        return jnp.where(is_right, log_sf <= right, log_cdf >= left)

    largest = jnp.finfo(first.dtype).max
    low, high = (jnp.broadcast_to(jnp.clip(end, -largest, largest), shape) for end in (first, last))
    return _least(is_reached, low, high)


def _least(is_reached: Callable[[Array], Array], low: Array, high: Array) -> Array:
    """The least x in (low, high] at which it is reached, as it is from there on; high, if nowhere below."""
    bits = jnp.finfo(low.dtype).bits

    def halve(_: int, ends: tuple[Array, Array]) -> tuple[Array, Array]:
        a, b = ends
        middle = (a & b) + ((a ^ b) >> 1)  # rounded down, without overflow
        is_below = is_reached(_number(middle, low.dtype))
        return jnp.where(is_below, a, middle), jnp.where(is_below, middle, b)

    return _number(lax.fori_loop(0, bits, halve, (_order(low), _order(high)))[1], low.dtype)


def _order(x: Array) -> Array:
    """Integers in the order of the floats."""
    bits = lax.bitcast_convert_type(x, _KEYS[x.dtype])
    return _turned(bits)


def _number(order: Array, dtype: np.dtype) -> Array:
    return lax.bitcast_convert_type(_turned(order), dtype)


def _turned(bits: Array) -> Array:
    return jnp.where(bits < 0, bits ^ jnp.iinfo(bits.dtype).max, bits)
