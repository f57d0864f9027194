"""The program that sampling a model needs, compiled once for a model and the shapes of its data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from nutkin.compile import EXECUTABLES, Target
from nutkin.errors import InvalidModel
from nutkin.model.types import DTYPES
from nutkin.sampler.kernel import STATISTICS, build_advance
from nutkin.sampler.options import DENSE, DIAGONAL
from nutkin.sampler.output_blocks import OutputBlocks
from nutkin.sampler.state import packed_size

_BUFFER_BYTES = 2 * 2**20
_MAX_CAPACITY = 2048
# Chains have threads of their own. XLA would share out the filling of large buffers, and go on in another thread.
COMPILER_OPTIONS = {"xla_disable_hlo_passes": "cpu-parallel-task-assigner"}
_SLOTS = 4
_LARGEST_SHARED = 1000  # coordinates of a model whose chains may share a call: they travel with each
_COMPILED_DEPTH = 10  # one program for every depth cap up to this


@dataclass
class Pace:
    """Seconds that an iteration took in the first call of a chain, the last time that a program was run."""

    seconds: float = math.inf


_PACES: WeakKeyDictionary[Any, Pace] = WeakKeyDictionary()


@dataclass(frozen=True)
class Sampler:
    """A model ready to be sampled. `blocks`: where its outputs are; `slots`: the most chains of one call; `capacity`:
    its most iterations, those of all chains; `pace`: of its program; `cached`: nothing was compiled."""

    target: Target
    blocks: OutputBlocks
    slots: int
    capacity: int
    pace: Pace
    cached: bool
    _advance: Any

    def advance(
        self, packed: np.ndarray, factors: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray, Mapping[str, np.ndarray]]:
        """Chains (slots, 22 + 4 d) go on as their `Control`s say; see `nutkin.sampler.kernel`.

        -> (packed, rows (capacity, 2 d + 7), blocks of outputs (capacity, size) by type)."""
        packed, rows, blocks = self._advance(packed, factors, self.target.arguments)
        return np.array(packed), np.asarray(rows), {name: np.asarray(block) for name, block in blocks.items()}


def compile_sampler(target: Target, *, max_tree_depth: int = 10, mass_matrix: str = DIAGONAL) -> Sampler:
    """Compile the program for this model, the shapes of its data and this form of the metric, unless it is at hand.

    Errors: InvalidModel for a model without free parameters, CompileFailed.
    """
    if target.dimension == 0:
        hint = "give it a variable with a distribution: `mu <~ normal(0, 1)`"
        raise InvalidModel("the model has no free parameter, so there is nothing to sample", hint=hint)
    dense = mass_matrix == DENSE
    key, blocks, depth, capacity = _plan(target, max_tree_depth, dense)
    is_prepared = target.has_arguments()
    dimension, dtype = target.dimension, DTYPES[target.precision]
    slots = 1 if dense or dimension > _LARGEST_SHARED else min(_SLOTS, capacity)
    factors = np.zeros((2, dimension, dimension), dtype) if dense else None
    advance, cached = EXECUTABLES.get(
        key,
        build_advance(target.log_density, target.outputs, blocks, dimension, dtype, depth, capacity, dense=dense),
        (np.zeros((slots, packed_size(dimension))), factors, target.arguments),
        options=COMPILER_OPTIONS,
    )
    return Sampler(target, blocks, slots, capacity, _PACES.setdefault(advance, Pace()), is_prepared and cached, advance)


def has_programs(target: Target, *, max_tree_depth: int = 10, mass_matrix: str = DIAGONAL) -> bool:
    """Whether `compile_sampler` would compile nothing."""
    return target.has_arguments() and _plan(target, max_tree_depth, mass_matrix == DENSE)[0] in EXECUTABLES


def _plan(target: Target, max_tree_depth: int, dense: bool) -> tuple[tuple, OutputBlocks, int, int]:
    """-> (key of the program, where its outputs are, the depth that it is compiled for, its capacity)."""
    shapes = {output.name: output.shape for output in target.deterministic}
    blocks = OutputBlocks((*target.parameters, *target.density.deterministic), shapes)
    row_bytes = max(blocks.nbytes, 8 * (2 * target.dimension + len(STATISTICS)))
    capacity = max(1, min(_MAX_CAPACITY, _BUFFER_BYTES // row_bytes))
    depth = max(max_tree_depth, _COMPILED_DEPTH)
    return (target.key, "advance", depth, capacity, dense), blocks, depth, capacity
