"""Sums whose additions do not wait for each other.

XLA:CPU adds the elements of a reduction in their order, four cycles each, since floating-point addition is not
associative. Partial sums in lanes are as exact, and vector instructions make them.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

_LANES = 8
_SHORT = 4 * _LANES
_ROWS = 16  # of lanes that are added in one expression


def lane_sum(x: jax.Array) -> jax.Array:
    """The sum of a vector (n,): a scalar, always added up in the same order."""
    length = len(x)
    if length < _SHORT:
        return jnp.sum(x)
    lanes = _LANES * max(1, length // (_LANES * _ROWS))
    whole = length - length % lanes
    sums = x[:lanes]
    for first in range(lanes, whole, lanes):
        sums = sums + x[first : first + lanes]
    # Without the barrier the lanes would be fused with the sum over them, element by element.
    total = lane_sum(lax.optimization_barrier(sums))
    return total if whole == length else total + lane_sum(x[whole:])
