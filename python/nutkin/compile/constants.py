"""Host-backed constants: where each tensor of a model goes.

Every tensor arrives as a read-only numpy array that was copied to host memory once. Small constants of the model are
inlined into the program, so that XLA folds them. Data slots, and constants above INLINE_BYTES, become arguments of the
executable: their values are no part of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import jax
import numpy as np

from nutkin.model import Program
from nutkin.model.ir import Data
from nutkin.model.types import DTYPES

INLINE_BYTES = 1024


@dataclass(frozen=True)
class Constants:
    """Arrays by the index of their node: `inlined` in the program, `arguments` (on the device) beside it."""

    inlined: Mapping[int, np.ndarray]
    arguments: Mapping[int, jax.Array]

    @property
    def all(self) -> dict[int, np.ndarray | jax.Array]:
        return {**self.inlined, **self.arguments}


def gather(
    program: Program, data: Mapping[str, np.ndarray], tensors: Mapping[bytes, np.ndarray]
) -> dict[int, np.ndarray]:
    """The host array of every input of a program, in the type that the program expects. Nothing is copied that fits."""
    arrays = {}
    for index, step in program.inputs.items():
        node = program.model.nodes[index]
        array = data[node.name] if isinstance(node, Data) else tensors[node.blob]
        arrays[index] = np.asarray(array, DTYPES[step.spec.type])
    return arrays


def place(program: Program, arrays: Mapping[int, np.ndarray]) -> Constants:
    """Inline the small constants, put the rest on the device. A CPU shares an aligned array instead of copying it."""
    inlined, arguments = {}, {}
    for index, array in arrays.items():
        if not isinstance(program.model.nodes[index], Data) and array.nbytes <= INLINE_BYTES:
            inlined[index] = array
        else:
            arguments[index] = jax.device_put(array)
    return Constants(inlined, arguments)
