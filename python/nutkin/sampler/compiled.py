"""The two programs that sampling a model needs: the loop of a chain, and the outputs of its draws."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from nutkin.compile import EXECUTABLES, Target
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
    seconds: float
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

    Errors: CompileFailed.
    """
    started = time.perf_counter()
    dimension, dtype = target.dimension, DTYPES[target.precision]
    depth = max(max_tree_depth, _COMPILED_DEPTH)
    outputs = (*target.parameters, *target.deterministic)
    row_bytes = sum(bits(o.type) // 8 * int(np.prod(o.shape, dtype=np.int64)) for o in outputs)
    capacity = max(1, min(_MAX_CAPACITY, _BUFFER_BYTES // max(1, row_bytes, dtype.itemsize * dimension)))

    state = initial_state(dimension, 0, 0, np.zeros(dimension), dtype)
    advance_arguments = (
        *pack(state, np),
        np.array(Tuning(), dtype),
        np.zeros(dimension, dtype),
        np.zeros(capacity, np.int32),
        np.int32(0),
        target.arguments,
    )
    advance, advance_cached = EXECUTABLES.get(
        (target.key, "advance", depth, capacity),
        build_advance(target.log_density, dimension, depth, capacity),
        advance_arguments,
    )
    outputs_program, outputs_cached = EXECUTABLES.get(
        (target.key, "outputs", capacity),
        _build_outputs(target),
        (np.zeros((capacity, dimension), dtype), np.int32(0), target.arguments),
    )
    cached = advance_cached and outputs_cached
    return Sampler(target, capacity, cached, time.perf_counter() - started, advance, outputs_program)


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
