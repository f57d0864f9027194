"""From a model of the wire and its arrays to a Density, as the tests use it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np

from nutkin.model import Density, Spec, check, read
from nutkin.model.ir import Data
from nutkin.model.types import DTYPES, NAMES


def specs(arrays: Mapping[Any, np.ndarray]) -> dict[Any, Spec]:
    return {key: Spec(array.shape, NAMES[array.dtype]) for key, array in arrays.items()}


def bind(
    tree: dict[str, Any],
    data: Mapping[str, np.ndarray] | None = None,
    blobs: Mapping[bytes, np.ndarray] | None = None,
    *,
    precision: str = "f64",
) -> tuple[Density, dict[int, np.ndarray]]:
    """-> (density, its inputs by node index, in the types that the program expects)."""
    data, blobs = data or {}, blobs or {}
    program = check(read(tree), specs(data), specs(blobs), precision=precision)
    inputs = {}
    for index, step in program.inputs.items():
        node = program.model.nodes[index]
        array = data[node.name] if isinstance(node, Data) else blobs[node.blob]
        inputs[index] = np.asarray(array, DTYPES[step.spec.type])
    return Density(program), inputs


def finite_differences(function: Callable[[np.ndarray], float], at: np.ndarray) -> np.ndarray:
    """The gradient by central differences of fourth order, good to about 1e-9 relative."""
    gradient = np.empty_like(at)
    for i in range(at.size):
        h = 1e-3 * max(1.0, abs(at[i]))
        step = np.zeros_like(at)
        step[i] = h
        near, far = (float(function(at + k * step)) - float(function(at - k * step)) for k in (1, 2))
        gradient[i] = (8 * near - far) / (12 * h)
    return gradient


def terms(density: Density, position: np.ndarray, inputs: Mapping[int, np.ndarray]) -> dict[str, jax.Array]:
    """Compiled in one piece: faster than one operation after the other, each compiled."""
    return jax.jit(lambda q: density.terms(q, inputs))(position)


def outputs(density: Density, position: np.ndarray, inputs: Mapping[int, np.ndarray]) -> dict[str, jax.Array]:
    return jax.jit(lambda q: density.outputs(q, inputs))(position)


def log_density_and_gradient(density: Density, inputs: Mapping[int, np.ndarray]) -> Callable:
    """Compiled: position -> (value, gradient)."""
    return jax.jit(jax.value_and_grad(lambda position: density.log_density(position, inputs)))
