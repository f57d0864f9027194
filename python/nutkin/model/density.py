"""The log density of a program over one flat vector of unconstrained coordinates, and the ways between the two.

Everything here can be traced by JAX: it is the caller who compiles, and who decides which inputs are arguments.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from nutkin.errors import InvalidOption
from nutkin.model.coordinates import Coordinates, Layout
from nutkin.model.evaluator import Evaluator, Inputs
from nutkin.model.ir import Observe
from nutkin.model.observations import observation_sum
from nutkin.model.operations import close_matches
from nutkin.model.plan import cast
from nutkin.model.program import Program
from nutkin.model.steps import (
    Centering,
    Joined,
    Likelihood,
    Observation,
    Output,
    Term,
    Variable,
)
from nutkin.model.sums import batch_sum
from nutkin.model.types import DTYPES, show_shape
from nutkin.model.values import show_place


@dataclass(frozen=True)
class Parameter:
    """A free parameter: its constrained shape and type, and where its `size` coordinates are in the flat vector."""

    name: str
    shape: tuple[int, ...]
    type: str
    size: int
    offset: int


@dataclass(frozen=True)
class OutputValue:
    """A deterministic value that is sent with the draws."""

    name: str
    shape: tuple[int, ...]
    type: str


class Density(Evaluator):
    """The log density and the outputs of a checked program.

    `position` is a vector of `dimension` floats of the program's precision: the unconstrained coordinates of the
    parameters in the order of their nodes, each row-major. `nodes`: those that the log density needs, in order.
    """

    def __init__(self, program: Program) -> None:
        steps = program.steps
        self._variables = {index: step for index, step in enumerate(steps) if isinstance(step, Variable)}
        self._layout = Layout(self._variables)
        self.nodes = program.needed_by(program.terms)
        self._output_nodes = program.needed_by(program.outputs)
        super().__init__(program, (*self.nodes, *self._output_nodes))

    @property
    def dimension(self) -> int:
        return self._layout.dimension

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        return tuple(
            Parameter(
                variable.name,
                variable.spec.shape,
                variable.spec.type,
                self._layout.size(index),
                self._layout.offsets[index],
            )
            for index, variable in self._variables.items()
        )

    @property
    def deterministic(self) -> tuple[OutputValue, ...]:
        outputs = (step for step in self.program.steps if isinstance(step, Output))
        return tuple(OutputValue(output.name, output.spec.shape, output.spec.type) for output in outputs)

    @property
    def centerings(self) -> dict[str, int]:
        """By the name of each parameter whose centering is given, the step that holds it."""
        steps = enumerate(self.program.steps)
        return {step.name: index for index, step in steps if isinstance(step, Centering)}

    @property
    def observed(self) -> tuple[str, ...]:
        return tuple(node.name for node in self.program.model.nodes if isinstance(node, Observe))

    def log_density(self, position: Array, inputs: Inputs) -> Array:
        """The log density at a position, log-Jacobians included: a scalar of the program's precision."""
        return sum(self._terms(position, inputs).values(), start=jnp.zeros((), self._dtype))

    def terms(self, position: Array, inputs: Inputs) -> dict[str, Array]:
        """What every rv, observe and factor node adds to the log density, by name."""
        return {self.program.label(index): term for index, term in self._terms(position, inputs).items()}

    def _terms(self, position: Array, inputs: Inputs) -> dict[int, Array]:
        coordinates = self.coordinates(position)
        values: dict[int, Array] = {}
        terms: dict[int, Array] = {}
        for index in self.nodes:
            step = self.program.steps[index]
            own = coordinates.stacked(step.members) if isinstance(step, Joined) else coordinates.get(index)
            value, term = self.step(index, own, values, inputs)
            if value is not None:
                values[index] = value
            if term is not None:
                terms[index] = term
        return terms

    def step(
        self, index: int, coordinates: Array | None, values: Mapping[int, Any], inputs: Inputs
    ) -> tuple[Any, Array | None]:
        """The value of a node, and what it adds to the log density, from the values of those before it.

        What it has not is None; `coordinates` are those of a parameter, or of the parameters that a step joins.
        """
        match self.program.steps[index]:
            case Variable() as variable:
                value = self._value(variable, coordinates, values)
                term = self._variable_term(variable, coordinates, value, values) if variable.is_counted else None
                return value, term
            case Joined(transform=transform) as joined:
                bounds = self.floats(joined.bounds, values)
                term = None if transform is None else transform.log_jacobian(coordinates, *bounds)
                return joined.constrain(coordinates, *bounds), term
            case Observation() as observation:
                return None, self._observation_term(observation, values, inputs)
            case Likelihood() as likelihood:
                return None, likelihood.term(inputs[index], *self.floats(likelihood.args, values))
            case Term() as term:
                return None, jnp.sum(cast(values[term.value], self.program.precision))
            case _:
                return self.evaluate(index, values, inputs), None

    def elements(self, index: int, coordinates: Array | None, values: Mapping[int, Any]) -> Array:
        """The log density of a parameter, its log-Jacobian left out, or of an observation: what its term sums."""
        step = self.program.steps[index]
        if isinstance(step, Observation):
            return self.observation_elements(step, values)
        value, parameters = values[index], self.floats(step.args, values)
        if not step.centered:
            value = self._standardised(step, coordinates, values)
            parameters = step.family.standard_parameters(parameters)
        return jnp.broadcast_to(step.family.log_density(value, parameters), step.batch_shape)

    def outputs(self, position: Array, inputs: Inputs) -> dict[str, Array]:
        """The constrained parameters and the deterministic values at a position, by name."""
        coordinates = self.coordinates(position)
        values: dict[int, Array] = {}
        outputs: dict[str, Array] = {}
        for index in self._output_nodes:
            step = self.program.steps[index]
            if isinstance(step, Variable):
                own = coordinates[index] if step.of is None else None
                values[index] = outputs[step.name] = self._value(step, own, values)
            elif isinstance(step, Joined):
                bounds = self.floats(step.bounds, values)
                values[index] = step.constrain(coordinates.stacked(step.members), *bounds)
            elif isinstance(step, Output):
                outputs[step.name] = jnp.asarray(values[step.value])
            else:
                values[index] = self.evaluate(index, values, inputs)
        return outputs

    def unconstrain(
        self, values: Mapping[str, np.ndarray], inputs: Mapping[int, np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Coordinates of constrained values of some or all parameters.

        Returns the position (0 where nothing is given) and a mask of the coordinates that are given, both of
        `dimension`. Raises InvalidOption for an unknown name, a wrong shape, a value outside the support, or a
        parameter whose coordinates depend on another one that is not given.
        """
        named = {variable.name: index for index, variable in self._variables.items()}
        for name in values:
            if name not in named:
                raise InvalidOption(
                    f"the model has no parameter {name}",
                    expected=", ".join(named) or "no parameters",
                    found=name,
                    hint=close_matches(name, named) if named else None,
                )
        given = {index: np.asarray(values[name], self._dtype) for name, index in named.items() if name in values}
        position, mask = np.zeros(self.dimension, self._dtype), np.zeros(self.dimension, bool)
        known: dict[int, Array] = {}
        parents = [parent for index in given for parent in self._variables[index].parents]
        for index in self.program.needed_by(parents, plus=given):
            step = self.program.steps[index]
            if not isinstance(step, Variable | Joined):
                known[index] = self.evaluate(index, known, inputs)
                continue
            missing = [m for m in (step.members if isinstance(step, Joined) else (index,)) if m not in given]
            if missing:
                step, index = self.program.steps[missing[0]], missing[0]
                raise InvalidOption(
                    f"the parameter {step.name} is needed to place the values given",
                    node=step.name,
                    index=index,
                    expected=f"a value for {step.name}",
                    found=", ".join(values),
                    hint="parameters with centered: false, and those between bounds, depend on their parents",
                )
            if isinstance(step, Joined):
                known[index] = self._joined(step, given, known)
                continue
            coordinates = self._unconstrain(index, given[index], known)
            known[index] = jnp.asarray(given[index])
            offset = self._layout.offsets[index]
            place = slice(offset, offset + coordinates.size)
            position[place], mask[place] = coordinates.ravel(), True
        return position, mask

    @property
    def _dtype(self) -> np.dtype:
        return DTYPES[self.program.precision]

    def coordinates(self, position: Array) -> Coordinates:
        return self._layout.split(position)

    def _value(self, variable: Variable, coordinates: Array | None, values: Mapping[int, Array]) -> Array:
        if variable.of is not None:
            step, place = variable.of
            return values[step][place]
        return self._constrain(variable, coordinates, values)

    def _constrain(self, variable: Variable, coordinates: Array, values: Mapping[int, Array]) -> Array:
        if not variable.centered:
            location, scale = self._location_scale(variable, values)
            return location + scale * self._standardised(variable, coordinates, values)
        if variable.transform is None:
            return coordinates
        return variable.transform.constrain(coordinates, *self.floats(variable.bounds, values))

    def _variable_term(
        self, variable: Variable, coordinates: Array, value: Array, values: Mapping[int, Array]
    ) -> Array:
        family, parameters = variable.family, self.floats(variable.args, values)
        if not variable.centered:
            # The density of z: that of x times the Jacobian sigma.
            z = self._standardised(variable, coordinates, values)
            parts = family.parts(z, family.standard_parameters(parameters)).signed()
            if variable.centering is not None:  # and of the coordinates, which are sigma^w z and a shift
                _, scale = self._location_scale(variable, values)
                parts = (*parts, -values[variable.centering] * jnp.log(scale))
            return batch_sum(parts, variable.batch_shape)
        term = batch_sum(family.parts(value, parameters).signed(), variable.batch_shape)
        if variable.transform is None:
            return term
        return term + variable.transform.log_jacobian(coordinates, *self.floats(variable.bounds, values))

    def _observation_term(self, step: Observation, values: Mapping[int, Array], inputs: Inputs) -> Array:
        if not step.parts:
            return inputs[step.constant]
        value, rest = self.observed_value(step, values)
        total = observation_sum(step, value, self.floats(step.args, values), **rest)
        return total if step.constant is None else total + inputs[step.constant]

    def _joined(self, step: Joined, given: Mapping[int, np.ndarray], known: Mapping[int, Array]) -> Array:
        """The values of the step, from those of its members."""
        if all(self._variables[member].centered for member in step.members):
            return jnp.stack([given[member] for member in step.members])
        return jnp.stack([self._unconstrain(member, given[member], known) for member in step.members])

    def _standardised(self, variable: Variable, coordinates: Array, values: Mapping[int, Array]) -> Array:
        """z of location + scale z."""
        if variable.centering is None:
            return coordinates
        (location, scale), weight = self._location_scale(variable, values), values[variable.centering]
        return (coordinates - weight * location) * jnp.exp(-weight * jnp.log(scale))

    def _location_scale(self, variable: Variable, values: Mapping[int, Array]) -> tuple[Array, Array]:
        named = dict(zip(variable.family.parameters, variable.args, strict=True))
        return self.floats((named[name] for name in variable.family.location_scale), values)

    def _unconstrain(self, index: int, value: np.ndarray, known: Mapping[int, Array]) -> np.ndarray:
        variable = self._variables[index]

        def wrong(expected: str, found: str) -> InvalidOption:
            message = f"the value of the parameter {variable.name} is impossible"
            return InvalidOption(message, node=variable.name, index=index, expected=expected, found=found)

        if value.shape != variable.spec.shape:
            raise wrong(f"shape {show_shape(variable.spec.shape)}", f"shape {show_shape(value.shape)}")
        if not np.isfinite(value).all():
            raise wrong("finite numbers", str(value[~np.isfinite(value)].flat[0]))
        if not variable.centered:
            location, scale = self._location_scale(variable, known)
            z = (value - location) / scale
            weight = None if variable.centering is None else known[variable.centering]
            return np.asarray(z if weight is None else weight * location + scale**weight * z)
        if variable.transform is None:
            return value
        bounds = self.floats(variable.bounds, known)
        for support, limits in ((variable.family.support, map(np.asarray, bounds)), (variable.transform.within, ())):
            if support.contains is None:
                continue
            is_inside = np.asarray(support.contains(value, *limits))
            if not is_inside.all():
                first = int(np.argmin(is_inside))
                found = value[np.unravel_index(first, is_inside.shape)]
                raise wrong(support.description, f"{found}{show_place(first, is_inside.shape)}")
        coordinates = np.asarray(variable.transform.unconstrain(jnp.asarray(value), *bounds))
        if not np.isfinite(coordinates).all():
            raise wrong(f"{variable.family.support.description}, not at its boundary", "a value at the boundary")
        return coordinates
