"""A model bound to its tensors: what a sampler samples."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import msgspec
import numpy as np

from nutkin.compile.constants import Constants, gather, place
from nutkin.compile.executables import EXECUTABLES
from nutkin.model import Density, Model, OutputValue, Parameter, Program, Spec, check
from nutkin.model.ir import Constant
from nutkin.model.types import DTYPES, NAMES


@dataclass(frozen=True)
class Target:
    """The log density of one model on one set of data, over a flat vector of `dimension` unconstrained coordinates.

    `key` names the program: all that can change the compiled code, and none of the values in `arguments`.
    """

    density: Density
    constants: Constants
    key: str

    @property
    def precision(self) -> str:
        return self.density.program.precision

    @property
    def dimension(self) -> int:
        return self.density.dimension

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        return self.density.parameters

    @cached_property
    def deterministic(self) -> tuple[OutputValue, ...]:
        return self.density.deterministic

    @cached_property
    def observed(self) -> tuple[str, ...]:
        return self.density.observed

    @property
    def arguments(self) -> Mapping[int, jax.Array]:
        return self.constants.arguments

    def log_density(self, position: jax.Array, arguments: Mapping[int, Any]) -> jax.Array:
        """Scalar, to be traced; `arguments` stands for `self.arguments`."""
        return self.density.log_density(position, {**self.constants.inlined, **arguments})

    def outputs(self, position: jax.Array, arguments: Mapping[int, Any]) -> dict[str, jax.Array]:
        """Constrained parameters and deterministic values at one position, to be traced."""
        return self.density.outputs(position, {**self.constants.inlined, **arguments})

    def value_and_gradient(self, position: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The log density (scalar array) and its gradient (d,) at an unconstrained position (d,)."""
        value, gradient = self._run("value_and_gradient", jax.value_and_grad(self.log_density), position)
        return np.asarray(value), np.asarray(gradient)

    def has_gradient_program(self) -> bool:
        """Whether `value_and_gradient` would compile nothing."""
        return (self.key, "value_and_gradient") in EXECUTABLES

    def terms(self, position: np.ndarray) -> dict[str, float]:
        """What each rv, observe and factor node contributes to the log density at a position."""

        def terms(q, arguments):
            return self.density.terms(q, {**self.constants.inlined, **arguments})

        return {name: float(value) for name, value in self._run("terms", terms, position).items()}

    def unconstrain(self, values: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """-> (position (d,), which coordinates `values` gave (d,)). Errors: InvalidOption."""
        return self.density.unconstrain(values, self.constants.all)

    def _run(self, name: str, function: Any, position: np.ndarray) -> Any:
        position = np.asarray(position, DTYPES[self.precision])
        program, _ = EXECUTABLES.get((self.key, name), function, (position, self.arguments))
        return program(position, self.arguments)


def bind(
    model: Model,
    data: Mapping[str, np.ndarray],
    tensors: Mapping[bytes, np.ndarray],
    *,
    precision: str = "f64",
) -> Target:
    """Check a model against its tensors and put them in place. Nothing is compiled yet.

    `data`: arrays by slot; `tensors`: arrays of the model's constants by address. Errors: InvalidModel, InvalidData.
    """
    program = check(model, _specs(data), _specs(tensors), precision=precision)
    arrays = gather(program, data, tensors)
    density = Density(program)
    density.check_values(arrays)
    constants = place(program, arrays)
    return Target(density, constants, _key(program, constants))


def _specs(arrays: Mapping[Any, np.ndarray]) -> dict[Any, Spec]:
    return {name: Spec(array.shape, NAMES[array.dtype]) for name, array in arrays.items()}


def _key(program: Program, constants: Constants) -> str:
    """Models share their programs if their nodes, the types of their inputs and their inlined constants agree."""
    nodes = [
        msgspec.structs.replace(node, blob=bytes(32)) if isinstance(node, Constant) and node.blob else node
        for node in program.model.nodes
    ]
    inputs = [(index, step.spec.shape, step.spec.type) for index, step in program.inputs.items()]
    inlined = [(index, array.tobytes()) for index, array in constants.inlined.items()]
    digest = hashlib.sha256(msgspec.msgpack.encode((program.precision, nodes, inputs, inlined)))
    return digest.hexdigest()
