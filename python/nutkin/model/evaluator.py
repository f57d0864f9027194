"""What every evaluation of a program needs: the values of its steps, and of the data behind them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

import numpy as np
from jax import Array

from nutkin.model.evaluation import apply, operand
from nutkin.model.observations import observation_elements
from nutkin.model.program import Program
from nutkin.model.steps import GIVEN, Application, Centering, Computed, Input, Number, Observation
from nutkin.model.types import DTYPES
from nutkin.model.values import check_computed_values, check_values, computed_operands

Inputs = Mapping[int, Any]


class Evaluator:
    """Evaluates those steps of a checked program that are `needed`, in order.

    `inputs` maps the index of each step in `given` to its value: an array of exactly the step's shape and type, or what
    a likelihood has prepared.
    """

    def __init__(self, program: Program, needed: Iterable[int]) -> None:
        self.program = program
        self._needed = frozenset(needed)

    @property
    def given(self) -> tuple[int, ...]:
        """The needed steps that are given from outside."""
        return tuple(index for index in sorted(self._needed) if isinstance(self.program.steps[index], GIVEN))

    def inputs_of(self, indices: Iterable[int]) -> tuple[int, ...]:
        """The inputs from which `data_values` works out these nodes."""
        needed = self.program.needed_by(indices, through_computed=True)
        return tuple(index for index in needed if isinstance(self.program.steps[index], Input))

    def data_values(self, indices: Iterable[int], inputs: Inputs) -> dict[int, Array]:
        """The values of nodes that depend on no parameter, from those of the program's inputs."""
        values: dict[int, Array] = {}
        for index in self.program.needed_by(indices, through_computed=True):
            step = self.program.steps[index]
            is_computed = isinstance(step, Computed)
            values[index] = (
                apply(self.program.steps, step.application, values)
                if is_computed
                else self.evaluate(index, values, inputs)
            )
        return {index: values[index] for index in indices}

    def check_values(self, inputs: Mapping[int, np.ndarray]) -> None:
        """Check concrete inputs. Raises InvalidData for NaN, and for values that no parameters make possible."""
        check_values(self.program, inputs)

    @cached_property
    def checked(self) -> tuple[int, ...]:
        """The nodes, computed from inputs, whose values `check_computed_values` needs."""
        return tuple(sorted({node for check in self.program.checks for node in computed_operands(self.program, check)}))

    def check_computed_values(self, values: Mapping[int, np.ndarray]) -> None:
        """As `check_values`, for values computed from the inputs: those of all inputs and of the nodes in `checked`."""
        check_computed_values(self.program, values)

    def evaluate(self, index: int, values: Mapping[int, Array], inputs: Inputs) -> Array:
        """The value of a step that is given, or that follows from those of earlier steps alone."""
        match self.program.steps[index]:
            case Input() | Computed() | Centering():
                return inputs[index]
            case Number(spec):
                return np.asarray(spec.literal, DTYPES[spec.type])
            case Application() as application:
                return apply(self.program.steps, application, values)
            case step:
                raise TypeError(f"{type(step).__name__} has no value of its own")

    def floats(self, indices: Iterable[int], values: Mapping[int, Array]) -> tuple[Array, ...]:
        """The values of steps in the precision of the program."""
        return tuple(operand(self.program.steps, index, self.program.precision, values) for index in indices)

    def observed_value(self, step: Observation, values: Mapping[int, Array]) -> tuple[Array, dict[str, Array | None]]:
        """The value, and weight and mask."""
        (value,) = self.floats((step.value,), values)
        (weight,) = (None,) if step.weight is None else self.floats((step.weight,), values)
        return value, {"weight": weight, "mask": None if step.mask is None else values[step.mask]}

    def observation_elements(self, step: Observation, values: Mapping[int, Array]) -> Array:
        """The log density of an observation, element by element: what its term sums."""
        value, rest = self.observed_value(step, values)
        return observation_elements(step, value, self.floats(step.args, values), **rest)
