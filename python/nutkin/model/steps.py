"""What a program does at each of its nodes: one step for every node of the model, some of them put there by a rewrite.

A step names the steps that it needs by their indices, in `references`. What is given from outside, or was computed
once for a data set, needs none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from jax import Array

from nutkin.model.distributions import Family
from nutkin.model.ir import Call, Combination, Node
from nutkin.model.plan import Plan
from nutkin.model.transforms import Transform
from nutkin.model.types import Spec


@dataclass(frozen=True)
class Input:
    """A tensor given from outside: a data slot, or a constant held as a blob. `spec` has the model's precision."""

    name: str
    spec: Spec
    references: ClassVar[tuple[int, ...]] = ()


@dataclass(frozen=True)
class Number:
    """A number written in the model."""

    spec: Spec
    references: ClassVar[tuple[int, ...]] = ()


@dataclass(frozen=True)
class Application:
    """The application of an operation to earlier steps. `node`: where it is written, or as it would be."""

    plan: Plan
    args: tuple[int, ...]
    node: Node | None = None

    @property
    def op(self) -> str | None:
        """The name of the operation; None for a loop and the like."""
        return self.node.op if isinstance(self.node, Call) else None

    @property
    def spec(self) -> Spec:
        return self.plan.spec

    @property
    def references(self) -> tuple[int, ...]:
        return self.args


@dataclass(frozen=True)
class Computed:
    """An application to values that depend on no parameter, done once for each data set: its value is given."""

    application: Application
    references: ClassVar[tuple[int, ...]] = ()

    @property
    def spec(self) -> Spec:
        return self.application.spec


@dataclass(frozen=True)
class Variable:
    """A free parameter. `args` are in the family's order; `transform` is None for the identity.

    `centering`: the step that says how far the coordinates are from the standardised variable towards the value;
    `of`: the step, and the place along its first axis, where a rewrite has put the value; `is_counted`: its log density
    is not in another step.
    """

    name: str
    family: Family
    args: tuple[int, ...]
    spec: Spec
    transform: Transform | None
    bounds: tuple[int, ...]
    centered: bool
    centering: int | None = None
    of: tuple[int, int] | None = None
    is_counted: bool = True

    @property
    def unconstrained_shape(self) -> tuple[int, ...]:
        return self.transform.unconstrained_shape(self.spec.shape) if self.transform else self.spec.shape

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """The shape of its log density."""
        return self.spec.shape[: len(self.spec.shape) - self.family.event_rank]

    @property
    def parents(self) -> tuple[int, ...]:
        """The steps on which the way between its coordinates and its value depends."""
        return self.bounds if self.centered else (*self.args, *self._centering)

    @property
    def _centering(self) -> tuple[int, ...]:
        return () if self.centering is None else (self.centering,)

    @property
    def references(self) -> tuple[int, ...]:
        value = () if self.of is None else self.of[:1]
        return (*self.args, *self._centering, *value) if self.is_counted else value


@dataclass(frozen=True)
class Centering:
    """For each element of a parameter the weight w, from 0 to 1, by which its coordinates are centered.

    They are w location + scale^w z, where the parameter is location + scale z: z itself for w = 0, the parameter for
    w = 1 (Papaspiliopoulos, Roberts and Skold 2003, Gorinova, Moore and Hoffman 2020, https://arxiv.org/abs/1906.03028).
    """

    name: str
    spec: Spec
    references: ClassVar[tuple[int, ...]] = ()


@dataclass(frozen=True)
class Joined:
    """The values of variables of one kind, stacked along a first axis: those of their coordinates by the transform.

    Its term is the log-Jacobian. The log density of the values is that of an observation of them, put there by the
    same rewrite.
    """

    name: str
    members: tuple[int, ...]
    spec: Spec
    transform: Transform | None
    bounds: tuple[int, ...]

    def constrain(self, coordinates: Array, *bounds: Array) -> Array:
        return coordinates if self.transform is None else self.transform.constrain(coordinates, *bounds)

    @property
    def references(self) -> tuple[int, ...]:
        return self.bounds


@dataclass(frozen=True)
class Observation:
    """An observed value. `spec` is that of its log density. `is_checked`: the support needs no test at run time.

    The log density is the sum of its `parts` (see `nutkin.model.distributions.family`) and of the step `constant`, in
    which a rewrite has put those that depend on no parameter.
    """

    name: str
    family: Family
    args: tuple[int, ...]
    spec: Spec
    value: int
    bounds: tuple[int, ...]
    weight: int | None
    mask: int | None
    mean: bool
    is_checked: bool
    dist: str | Combination
    parts: tuple[str, ...] = ("kernel", "normalizer", "carrier")
    constant: int | None = None

    @property
    def observed(self) -> tuple[int, ...]:
        """The value, the weight and the mask."""
        return tuple(index for index in (self.value, self.weight, self.mask) if index is not None)

    @property
    def references(self) -> tuple[int, ...]:
        parts = (*self.args, *self.observed) if self.parts else ()
        return parts if self.constant is None else (*parts, self.constant)


@dataclass(frozen=True)
class DrawnParameter:
    """A parameter whose value is given: one draw of it after the other."""

    name: str
    spec: Spec
    references: ClassVar[tuple[int, ...]] = ()


@dataclass(frozen=True)
class Predicted:
    """Random values of the distribution of an observation. `args` are in the family's order."""

    name: str
    family: Family
    args: tuple[int, ...]
    spec: Spec

    @property
    def references(self) -> tuple[int, ...]:
        return self.args


@dataclass(frozen=True)
class Covered:
    """An observation or a factor whose part of the log density another step has."""

    name: str
    spec: Spec
    references: ClassVar[tuple[int, ...]] = ()


@dataclass(frozen=True)
class Likelihood:
    """The log density of an observation in the form that a rewrite has found for it.

    `data` depend on no parameter: `prepare` takes their values, as numpy arrays, once for each data set, and gives a
    pytree of arrays whose shapes follow from theirs. `term` takes these and the values of `args`, floats of the
    program's precision, and gives the log density, a scalar that JAX can trace.
    """

    name: str
    spec: Spec
    data: tuple[int, ...]
    args: tuple[int, ...]
    prepare: Callable[..., Any]
    term: Callable[..., Array]

    @property
    def references(self) -> tuple[int, ...]:
        return self.args


@dataclass(frozen=True)
class Term:
    """A value whose sum is added to the log density."""

    name: str
    value: int
    spec: Spec

    @property
    def references(self) -> tuple[int, ...]:
        return (self.value,)


@dataclass(frozen=True)
class Output:
    """A named value that is sent with the draws."""

    name: str
    value: int
    spec: Spec

    @property
    def references(self) -> tuple[int, ...]:
        return (self.value,)


Step = (
    Input
    | Number
    | Application
    | Computed
    | Variable
    | Centering
    | Joined
    | Observation
    | DrawnParameter
    | Predicted
    | Covered
    | Likelihood
    | Term
    | Output
)

GIVEN = (Input, Computed, Likelihood, Centering)
"""The steps that need a value at evaluation: an array, or what a likelihood has prepared."""
