"""Random values of what a model predicts, given one draw of its parameters, or none."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from nutkin.errors import InvalidModel
from nutkin.model.density import OutputValue
from nutkin.model.evaluator import Evaluator, Inputs
from nutkin.model.plan import SEVERAL, cast
from nutkin.model.program import Program
from nutkin.model.steps import DrawnParameter, Observation, Output, Predicted, Step, Variable
from nutkin.model.transforms import TRANSFORMS

_SORTED = (TRANSFORMS["ordered"], TRANSFORMS["positive_ordered"])


class Predictive(Evaluator):
    """Evaluates the program of a predictive model for the nodes that are wanted.

    `drawn`: the names of the parameters that are given, by their steps. Errors: InvalidModel for a parameter without
    random values.
    """

    def __init__(self, program: Program, wanted: Sequence[int]) -> None:
        self.wanted = tuple(wanted)
        if not self.wanted:
            raise InvalidModel(
                "there is nothing to predict", expected="an observation or a deterministic value", found="none"
            )
        self._nodes = program.needed_by(wanted)
        super().__init__(program, self._nodes)
        for index in self._nodes:
            if isinstance(program.steps[index], Variable):
                _check_random(program, index)

    @property
    def drawn(self) -> dict[int, str]:
        steps = ((index, self.program.steps[index]) for index in self._nodes)
        return {index: step.name for index, step in steps if isinstance(step, DrawnParameter)}

    @property
    def outputs(self) -> tuple[OutputValue, ...]:
        """What a draw gives, in the order of the model."""
        steps = (self.program.steps[index] for index in self.wanted)
        return tuple(OutputValue(step.name, step.spec.shape, step.spec.type) for step in steps)

    @property
    def observed(self) -> tuple[str, ...]:
        steps = (self.program.steps[index] for index in self.wanted)
        return tuple(step.name for step in steps if isinstance(step, Predicted | Observation))

    @property
    def elements(self) -> int:
        """Of the largest value that is computed for a draw, and of all that it gives."""
        of_draw = set(self._nodes) - set(self.given)
        largest = max(_elements(self.program.steps[index]) for index in of_draw)
        return max(largest, sum(math.prod(output.shape) for output in self.outputs))

    def draw(self, key: Array, drawn: Mapping[int, Array], inputs: Inputs) -> dict[str, Array]:
        """The values of one draw, by name. What is random of a node depends on the key and its place in the model."""
        values: dict[int, Any] = {}
        for index in self._nodes:
            step = self.program.steps[index]
            match step:
                case DrawnParameter():
                    values[index] = cast(drawn[index], step.spec.type)
                case Variable() | Predicted():
                    values[index] = self._random(jax.random.fold_in(key, index), step, values)
                case Observation():
                    values[index] = self.observation_elements(step, values)
                case Output():
                    values[index] = jnp.asarray(values[step.value])
                case _:
                    values[index] = self.evaluate(index, values, inputs)
        return {self.program.steps[index].name: values[index] for index in self.wanted}

    def _random(self, key: Array, step: Variable | Predicted, values: Mapping[int, Any]) -> Array:
        x = step.family.draw(key, self.floats(step.args, values), step.spec.shape)
        if isinstance(step, Variable) and step.transform in _SORTED:
            x = jnp.sort(x, axis=-1)
        return cast(x, step.spec.type)


def _elements(step: Step) -> int:
    return sum(spec.size for spec in (step.plan.elements if step.spec.type == SEVERAL else (step.spec,)))


def _check_random(program: Program, index: int) -> None:
    step = program.steps[index]

    def wrong(message: str, **fields: str) -> InvalidModel:
        return InvalidModel(f"{step.name}: {message}", node=step.name, index=index, **fields)

    if step.family.draw is None:
        raise wrong(
            "there are no random draws of its distribution",
            expected="a proper distribution that can be drawn",
            found=str(program.model.nodes[index].dist),
            hint="give draws of it, or sample it",
        )
    # Of values alike, the sorted ones are those given that they are in order.
    is_alike = all(program.steps[arg].spec.shape[-1:] in ((), (1,)) for arg in step.args)
    if step.transform in _SORTED and not is_alike:
        raise wrong(
            "there are no random draws of an ordered variable whose elements have unequal distributions",
            expected="parameters that are the same for all elements",
            hint="give draws of it, or sample it",
        )
