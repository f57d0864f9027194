"""Why a model has no finite log density, gradient or outputs at a point.

The model is run as it is written, operation by operation, so that each value is there to be looked at.
Only what makes the log density or its gradient wrong is blamed: not an infinity that does no harm.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from nutkin.model.density import Density
from nutkin.model.diagnosis.gradients import origin_of_gradient
from nutkin.model.diagnosis.origins import origin, origin_of_term
from nutkin.model.diagnosis.report import Cause, describe, number, show_point
from nutkin.model.diagnosis.scope import Scope, is_wrong
from nutkin.model.steps import Output
from nutkin.model.types import DTYPES


@dataclass(frozen=True)
class Diagnosis:
    """`value`: the log density; `gradient` (d,): at the unconstrained `position` (d,); `point`: the parameters there,
    constrained, by name. `cause`: None where all is finite, and where nothing by itself is to blame."""

    value: np.ndarray
    gradient: np.ndarray
    position: np.ndarray
    point: Mapping[str, np.ndarray]
    cause: Cause | None

    @property
    def finite(self) -> bool:
        """Whether log density, gradient and outputs are."""
        return self.cause is None and bool(np.isfinite(self.value) and np.isfinite(self.gradient).all())

    @property
    def headline(self) -> str:
        """In one line, what is wrong."""
        if self.cause is not None:
            return self.cause.headline
        if self.finite:
            return f"the log density, {number(self.value)}, and its gradient are finite"
        if not np.isfinite(self.value):
            return f"the log density is {number(self.value)}, though each of its terms is finite"
        return "the gradient is not finite, though it is through each node by itself"

    @property
    def at(self) -> str:
        return f"at {show_point(self.point)}" if self.point else "in a model without parameters"

    def __str__(self) -> str:
        lines = [self.headline]
        if self.cause is not None:
            lines += [f"  {reading}" for reading in self.cause.inputs]
            lines += [f"  expected {self.cause.expected}"] if self.cause.expected else []
        lines.append(self.at)
        lines += [self.cause.hint] if self.cause is not None and self.cause.hint else []
        return "\n".join(lines)


def diagnose(density: Density, position: np.ndarray, inputs: Mapping[int, np.ndarray]) -> Diagnosis:
    """Of a program that is not rewritten, at an unconstrained position (d,), with the arrays of all its inputs."""
    with np.errstate(all="ignore"):
        placed = jnp.asarray(position, DTYPES[density.program.precision])
        arrays = {index: jnp.asarray(array) for index, array in inputs.items()}
        return _Run(density, placed, arrays).diagnosis()


class _Run:
    def __init__(self, density: Density, position: Array, inputs: Mapping[int, Array]) -> None:
        self._density, self._position, self._inputs = density, position, inputs
        self._coordinates = density.coordinates(position)
        self._nodes = density.program.model.nodes
        self._values: dict[int, Any] = {}
        self._terms: dict[int, Array] = {}
        for index in density.nodes:
            self._step(index)

    def _step(self, index: int) -> None:
        value, term = self._density.step(index, self._coordinates.get(index), self._values, self._inputs)
        if value is not None:
            self._values[index] = value
        if term is not None:
            self._terms[index] = term

    def diagnosis(self) -> Diagnosis:
        function = jax.value_and_grad(self._density.log_density)
        value, gradient = map(np.asarray, function(self._position, self._inputs))
        point = {self._nodes[index].name: np.asarray(self._values[index]) for index in self._coordinates}
        return Diagnosis(value, gradient, np.asarray(self._position), point, self._cause(value, gradient))

    def _cause(self, value: np.ndarray, gradient: np.ndarray) -> Cause | None:
        scope = self._scope()
        for index, term in self._terms.items():
            if is_wrong(term):
                own = self._coordinates.get(index)
                culprit = origin_of_term(self._density, scope, index, own, term)
                return describe(culprit, self._nodes, index)
        if is_wrong(value):
            return None
        if is_wrong(gradient):
            culprit = origin_of_gradient(self._density, scope, self._coordinates, self._inputs)
            return culprit and describe(culprit, self._nodes, None)
        return self._cause_in_outputs()

    def _cause_in_outputs(self) -> Cause | None:
        program = self._density.program
        for index in program.needed_by(program.outputs):
            if index not in self._values and not isinstance(program.steps[index], Output):
                self._step(index)
        for index in program.outputs:
            step = program.steps[index]
            if isinstance(step, Output) and is_wrong(self._scope().value(step.value)):
                return describe(origin(self._scope(), step.value), self._nodes, index)
        return None

    def _scope(self) -> Scope:
        program = self._density.program
        live = frozenset(range(len(program.steps))) - program.parameter_free
        return Scope(self._nodes, program.steps, self._values, live, program.precision)
