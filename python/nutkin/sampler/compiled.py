"""The two programs that sampling a model needs: the loop of a chain, and the outputs of its draws."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from nutkin.compile import EXECUTABLES, Target
from nutkin.errors import InvalidModel
from nutkin.model.types import DTYPES, bits
from nutkin.sampler.adaptation import Tuning
from nutkin.sampler.kernel import build_advance, initial_state, pack

_BUFFER_BYTES = 2 * 2**20
_MAX_CAPACITY = 1024
_COMPILED_DEPTH = 10  # one program for every depth cap up to this


@dataclass(frozen=True)
class Sampler:
    """A model ready to be sampled. `capacity`: the most iterations of one call; `cached`: nothing was compiled."""

    target: Target
    capacity: int
    cached: bool
    _advance: Any
    _outputs: Any

    def advance(
        self, floats: jax.Array, words: jax.Array, tuning: np.ndarray, spread: np.ndarray, entries: np.ndarray, n: int
    ) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
        """`n` iterations of one chain; see `nutkin.sampler.kernel`. `entries` (capacity,) int32."""
        return self._advance(floats, words, tuning, spread, entries, np.int32(n), self.target.arguments)

    def outputs(self, draws: jax.Array | np.ndarray, n: int) -> Mapping[str, np.ndarray]:
        """Constrained parameters and deterministic values of the first `n` rows of `draws` (capacity, d):
        arrays (n, ...) by name, read-only."""
        found = self._outputs(draws, np.int32(n), self.target.arguments)
        return {name: np.asarray(array)[:n] for name, array in found.items()}


def compile_sampler(target: Target, *, max_tree_depth: int = 10) -> Sampler:
    """Compile both programs for this model and the shapes of its data, unless they are at hand.

    Errors: InvalidModel for a model without free parameters, CompileFailed.
    """
    if target.dimension == 0:
        hint = "give it a variable with a distribution: `mu <~ normal(0, 1)`"
        raise InvalidModel("the model has no free parameter, so there is nothing to sample", hint=hint)
    advance_key, outputs_key, capacity = _keys(target, max_tree_depth)
    dimension, dtype = target.dimension, DTYPES[target.precision]
    advance, advance_cached = EXECUTABLES.get(
        advance_key,
        build_advance(target.log_density, dimension, _depth(max_tree_depth), capacity),
        (
            *pack(initial_state(dimension, 0, 0, np.zeros(dimension), dtype), np),
            np.array(Tuning(), dtype),
            np.zeros(dimension, dtype),
            np.zeros(capacity, np.int32),
            np.int32(0),
            target.arguments,
        ),
    )
    outputs, outputs_cached = EXECUTABLES.get(
        outputs_key,
        _build_outputs(target),
        (np.zeros((capacity, dimension), dtype), np.int32(0), target.arguments),
    )
    return Sampler(target, capacity, advance_cached and outputs_cached, advance, outputs)


def has_programs(target: Target, *, max_tree_depth: int = 10) -> bool:
    """Whether `compile_sampler` would compile nothing."""
    advance_key, outputs_key, _ = _keys(target, max_tree_depth)
    return advance_key in EXECUTABLES and outputs_key in EXECUTABLES


def _keys(target: Target, max_tree_depth: int) -> tuple[tuple, tuple, int]:
    """-> (key of the chain's loop, key of the outputs, capacity of both)."""
    outputs = (*target.parameters, *target.deterministic)
    outputs_bytes = sum(bits(o.type) // 8 * math.prod(o.shape) for o in outputs)
    row_bytes = max(1, outputs_bytes, DTYPES[target.precision].itemsize * target.dimension)
    capacity = max(1, min(_MAX_CAPACITY, _BUFFER_BYTES // row_bytes))
    return (target.key, "advance", _depth(max_tree_depth), capacity), (target.key, "outputs", capacity), capacity


def _depth(max_tree_depth: int) -> int:
    return max(max_tree_depth, _COMPILED_DEPTH)


def _build_outputs(target: Target):
    """-> outputs(draws (capacity, d), n, arguments): row by row, so that no value depends on its place in the chunk."""

    def outputs(draws, n, arguments):
        shapes = jax.eval_shape(target.outputs, draws[0], arguments)
        empty = {name: jnp.zeros((draws.shape[0], *s.shape), s.dtype) for name, s in shapes.items()}

        def body(i, buffers):
            values = target.outputs(lax.dynamic_index_in_dim(draws, i, 0, keepdims=False), arguments)
            return {name: lax.dynamic_update_index_in_dim(buffers[name], values[name], i, 0) for name in buffers}

        return lax.fori_loop(0, n, body, empty)

    return outputs
