"""Host-backed constants: the tensors of a model in host memory, and which of them are part of the compiled program.

Every tensor arrives as a read-only numpy array that was copied to host memory once. Small constants of the model are
inlined into the program, so that XLA folds them. Data slots, and constants above INLINE_BYTES, become arguments of the
executable: their values are no part of it.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from nutkin.model import Program
from nutkin.model.ir import Data
from nutkin.model.steps import Centering
from nutkin.model.types import DTYPES

INLINE_BYTES = 1024


def gather(
    program: Program, data: Mapping[str, np.ndarray], tensors: Mapping[bytes, np.ndarray]
) -> dict[int, np.ndarray]:
    """The host array of every input of a program, in the type that the program expects, and 0 for every centering.
    Nothing is copied that fits."""
    arrays = {
        index: np.zeros(step.spec.shape, DTYPES[step.spec.type])
        for index, step in enumerate(program.steps)
        if isinstance(step, Centering)
    }
    for index, step in program.inputs.items():
        node = program.model.nodes[index]
        array = data[node.name] if isinstance(node, Data) else tensors[node.blob]
        arrays[index] = np.asarray(array, DTYPES[step.spec.type])
    return arrays


def inlined(program: Program, arrays: Mapping[int, np.ndarray]) -> dict[int, np.ndarray]:
    """The arrays that are part of the program."""
    return {
        index: array
        for index, array in arrays.items()
        if index in program.inputs and not isinstance(program.model.nodes[index], Data) and array.nbytes <= INLINE_BYTES
    }
