"""The random starts of a chain: what its program tries one after the other, and the host can work out again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from nutkin.sampler.counter_rng import threefry_once, uniform_fine

MAX_STARTS = 100  # random initial points that are tried before the chain gives up

_TAG_ITERATION = 1

Words = Callable[[int, jax.Array], tuple[jax.Array, jax.Array]]


def words_of(key: tuple[jax.Array, jax.Array], tick: jax.Array) -> Words:
    """(tag, j) -> the random words of a transition, or of a try."""
    return lambda tag, j: threefry_once(key, (tick, jnp.uint32(tag << 24) + j.astype(jnp.uint32)))


def uniforms_of(words: Words, dimension: int) -> jax.Array:
    """Those of a transition: `dimension`, and one more if that is odd."""
    pairs = 2 * ((dimension + 1) // 2)
    return uniform_fine(*words(_TAG_ITERATION, lax.iota(jnp.uint32, pairs)))


def start_shift(uniforms: jax.Array, tick: jax.Array, spread: jax.Array) -> jax.Array:
    """How far the try with this number lies from the centre, (d,): every other one comes closer, where a far start is
    not finite. `uniforms`, `spread`: (d,)."""
    closer = 1.0 / jnp.left_shift(jnp.int32(1), (tick >> 3).astype(jnp.int32) & 15).astype(jnp.float64)
    radius = jnp.where((tick & 1) == 1, closer, 1.0)
    return spread * (radius * (2.0 * uniforms - 1.0)).astype(spread.dtype)


def start_tried(key: tuple[Any, Any], tick: int, centre: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """The position (d,) of the try with this number."""
    words = words_of(tuple(jnp.uint32(int(word)) for word in key), jnp.uint32(tick))
    shift = start_shift(uniforms_of(words, len(centre))[: len(centre)], jnp.uint32(tick), jnp.asarray(spread))
    return centre + np.asarray(shift)
