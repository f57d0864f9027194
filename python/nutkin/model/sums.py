"""The sum of a log density over its batch, from parts that need not have the shape of the batch.

A part that is smaller is multiplied by how often it counts, not repeated: what a scalar gives is computed once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import jax.numpy as jnp
from jax import Array


def batch_sum(
    parts: Sequence[Array], shape: tuple[int, ...], *, weight: Array | None = None, unmasked: Array | None = None
) -> Array:
    """The sum of all parts, each broadcast to `shape`, over the elements of that shape: a scalar.

    `weight` multiplies each element, and elements where `unmasked` is false count nothing, whatever they are. Both
    broadcast to the shape.
    """
    if unmasked is not None:
        weight = jnp.where(unmasked, 1 if weight is None else weight, jnp.zeros((), parts[0].dtype))
    by_shape: dict[tuple[int, ...], Array] = {}
    for part in parts:  # parts of one shape are summed in one loop
        by_shape[part.shape] = by_shape[part.shape] + part if part.shape in by_shape else part
    return sum(_sum(part, shape, weight, is_masked=unmasked is not None) for part in by_shape.values())


def _sum(part: Array, shape: tuple[int, ...], weight: Array | None, *, is_masked: bool) -> Array:
    if weight is None:
        return jnp.sum(part) * (math.prod(shape) // part.size)
    weight = _reduced(weight, part.shape, shape)
    # Not the product alone: infinity times 0 is NaN.
    return jnp.sum(jnp.where(weight == 0, 0, part * weight) if is_masked else part * weight)


def _reduced(weight: Array, kept: tuple[int, ...], shape: tuple[int, ...]) -> Array:
    """The weights, broadcast to `shape`, summed over the axes along which a part of shape `kept` does not vary."""
    rank = len(shape)
    kept = (1,) * (rank - len(kept)) + kept
    weight = weight.reshape((1,) * (rank - weight.ndim) + weight.shape)
    summed = tuple(axis for axis in range(rank) if kept[axis] == 1 and weight.shape[axis] > 1)
    repeats = math.prod(size for axis, size in enumerate(shape) if kept[axis] == 1 and weight.shape[axis] == 1)
    return (jnp.sum(weight, axis=summed, keepdims=True) if summed else weight) * repeats
