"""Loops that stay native: a counted loop, segment sums, cumulative sums; differentiable in reverse mode.

JAX's own gradient of `x[index]` is a scatter, and its `cumsum` a windowed reduction of quadratic cost; both are
replaced by sequential loops over the elements.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

import jax
import jax.numpy as jnp
from jax import Array, lax

_UNROLLED = 8
_BLOCK = 512  # elements of a cumulative sum that are summed by doubling

Carry = TypeVar("Carry")


def repeat(count: Array | int, body: Callable[[Array, Carry], Carry], carry: Carry, start: Array | int = 0) -> Carry:
    """body(i, carry) for i = start … count - 1; i is uint32, which needs no test for negative indices."""
    stop = jnp.asarray(count, jnp.uint32)
    first = (jnp.asarray(start, jnp.uint32), carry)
    return lax.while_loop(lambda s: s[0] < stop, lambda s: (s[0] + jnp.uint32(1), body(*s)), first)[1]


def row(array: Array, index: Array) -> Array:
    """array[index] along axis 0, for an index of a `repeat`."""
    return lax.dynamic_index_in_dim(array, index, 0, keepdims=False)


@jax.custom_vjp
def take(x: Array, index: Array) -> Array:
    """x[index] along axis 0. x (J, …), index of integers of any shape, all within 0 … J - 1 (not checked)."""
    return jnp.asarray(x).at[index].get(mode="promise_in_bounds")


def _take_forward(x, index):
    return take(x, index), (jnp.zeros_like(x), index)


def _take_backward(saved, cotangent):
    zeros, index = saved
    return add_at(zeros, cotangent.reshape(-1, *zeros.shape[1:]), index.reshape(-1)), None


take.defvjp(_take_forward, _take_backward)


def add_at(total: Array, values: Array, index: Array) -> Array:
    """total (J, …) plus values (n, …) at index (n,): what `total.at[index].add(values)` is, without a scatter."""

    def add(total: Array, at: Array, value: Array) -> Array:
        old = lax.dynamic_slice_in_dim(total, at, 1)
        return lax.dynamic_update_slice_in_dim(total, old + value, at, 0)

    def step(i, total):
        start = i * jnp.uint32(_UNROLLED)
        at = lax.dynamic_slice_in_dim(index, start, _UNROLLED)
        part = lax.dynamic_slice_in_dim(values, start, _UNROLLED)
        for u in range(_UNROLLED):
            total = add(total, at[u], part[u])
        return total

    steps = index.size // _UNROLLED
    if steps:
        total = repeat(steps, step, total)
    for u in range(steps * _UNROLLED, index.size):
        total = add(total, index[u], values[u])
    return total


@partial(jax.custom_vjp, nondiff_argnums=(1,))
def cumulative_sum(x: Array, reverse: bool = False) -> Array:
    """Sums of x (n,) up to and including each element, from the end if `reverse`."""
    if x.size <= _BLOCK:
        return _doubling_sums(x, reverse)
    size, blocks = _BLOCK, -(-x.size // _BLOCK)
    padded = jnp.pad(x, (0, blocks * size - x.size))

    def step(i, carry):
        total, sums = carry
        start = (jnp.uint32(blocks - 1) - i if reverse else i) * jnp.uint32(size)
        block = total + _doubling_sums(lax.dynamic_slice(padded, (start,), (size,)), reverse)
        return block[0 if reverse else -1], lax.dynamic_update_slice(sums, block, (start,))

    return repeat(blocks, step, (jnp.zeros((), x.dtype), jnp.zeros_like(padded)))[1][: x.size]


def _doubling_sums(x: Array, reverse: bool) -> Array:
    """Hillis and Steele 1986 (https://doi.org/10.1145/7902.7903): each pass adds the array, shifted by 1, 2, 4, …"""
    zero = jnp.zeros((), x.dtype)
    shift = 1
    while shift < x.size:
        shifted = x[shift:] if reverse else x[:-shift]
        # Without a barrier XLA would fuse the passes, and compute each again for every reader.
        x = lax.optimization_barrier(x + lax.pad(shifted, zero, [(0, shift, 0) if reverse else (shift, 0, 0)]))
        shift *= 2
    return x


def _cumulative_sum_forward(x, reverse):
    return cumulative_sum(x, reverse), None


def _cumulative_sum_backward(reverse, _, cotangent):
    return (cumulative_sum(cotangent, not reverse),)


cumulative_sum.defvjp(_cumulative_sum_forward, _cumulative_sum_backward)
