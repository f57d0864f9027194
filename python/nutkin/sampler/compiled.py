"""The program that sampling a model needs, compiled once for a model and the shapes of its data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from nutkin.compile import EXECUTABLES, Target
from nutkin.errors import InvalidModel
from nutkin.model.types import DTYPES, bits
from nutkin.sampler.adaptation import Tuning
from nutkin.sampler.kernel import STATISTICS, Control, build_advance, initial_state, pack
from nutkin.sampler.options import DENSE, DIAGONAL

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

    def advance(
        self, floats: np.ndarray, words: np.ndarray, factors: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, Mapping[str, jax.Array]]:
        """One chain, packed, goes on as its `Control` says; see `nutkin.sampler.kernel`.

        -> (floats, words, rows (capacity, 2 d + 7), outputs by name (capacity, ...))."""
        floats, words, rows, outputs = self._advance(floats, words, factors, self.target.arguments)
        return np.array(floats), np.array(words), np.asarray(rows), outputs


def compile_sampler(target: Target, *, max_tree_depth: int = 10, mass_matrix: str = DIAGONAL) -> Sampler:
    """Compile the program for this model, the shapes of its data and this form of the metric, unless it is at hand.

    Errors: InvalidModel for a model without free parameters, CompileFailed.
    """
    if target.dimension == 0:
        hint = "give it a variable with a distribution: `mu <~ normal(0, 1)`"
        raise InvalidModel("the model has no free parameter, so there is nothing to sample", hint=hint)
    dense = mass_matrix == DENSE
    key, depth, capacity = _key(target, max_tree_depth, dense)
    is_prepared = target.has_arguments()
    dimension, dtype = target.dimension, DTYPES[target.precision]
    state = initial_state(dimension, 0, 0, np.zeros(dimension), dtype)
    factors = np.zeros((2, dimension, dimension), dtype) if dense else None
    advance, cached = EXECUTABLES.get(
        key,
        build_advance(target.log_density, target.outputs, dimension, depth, capacity, dense=dense),
        (*pack(state, Tuning(), np.zeros(dimension, dtype), Control(), np), factors, target.arguments),
    )
    return Sampler(target, capacity, is_prepared and cached, advance)


def has_programs(target: Target, *, max_tree_depth: int = 10, mass_matrix: str = DIAGONAL) -> bool:
    """Whether `compile_sampler` would compile nothing."""
    return target.has_arguments() and _key(target, max_tree_depth, mass_matrix == DENSE)[0] in EXECUTABLES


def _key(target: Target, max_tree_depth: int, dense: bool) -> tuple[tuple, int, int]:
    """-> (key of the program, the depth that it is compiled for, its capacity)."""
    outputs = (*target.parameters, *target.deterministic)
    outputs_bytes = sum(bits(o.type) // 8 * math.prod(o.shape) for o in outputs)
    row_bytes = max(outputs_bytes, 8 * (2 * target.dimension + len(STATISTICS)))
    capacity = max(1, min(_MAX_CAPACITY, _BUFFER_BYTES // row_bytes))
    depth = max(max_tree_depth, _COMPILED_DEPTH)
    return (target.key, "advance", depth, capacity, dense), depth, capacity
