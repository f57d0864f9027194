"""A model with the shapes of its data: what is done at each of its nodes, and what the data must be."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from nutkin.model.ir import (
    Model,
    label,
)
from nutkin.model.steps import (
    Application,
    Computed,
    Input,
    Joined,
    Likelihood,
    Number,
    Observation,
    Output,
    Step,
    Term,
    Variable,
)
from nutkin.model.supports import Support

Precision = Literal["f64", "f32"]


@dataclass(frozen=True)
class ValueCheck:
    """A check of concrete values: those of the node `index`, but for masked ones, must lie in the support.

    It depends on no parameter, as do its bounds and its mask: they are inputs, numbers, or computed from these."""

    node: int
    label: str
    index: int
    support: Support
    bounds: tuple[int, ...]
    mask: int | None


@dataclass(frozen=True)
class Rewrite:
    """The name of a rewrite, and of the node to which it was applied."""

    name: str
    node: str


@dataclass(frozen=True)
class Program:
    """One step for every node of the model, and the checks that the values of the data must pass.

    Rewrites replace steps, and may add some of their own behind those of the model's nodes.
    """

    model: Model
    precision: Precision
    steps: tuple[Step, ...]
    checks: tuple[ValueCheck, ...]
    rewrites: tuple[Rewrite, ...] = ()

    @cached_property
    def inputs(self) -> dict[int, Input]:
        """The tensors given from outside, by node index, of exactly this shape and type."""
        return {index: step for index, step in enumerate(self.steps) if isinstance(step, Input)}

    @property
    def terms(self) -> tuple[int, ...]:
        """The nodes that add to the log density."""

        def adds(step: Step) -> bool:
            return step.is_counted if isinstance(step, Variable) else isinstance(step, terms)

        terms = Joined | Observation | Likelihood | Term
        return tuple(index for index, step in enumerate(self.steps) if adds(step))

    @property
    def outputs(self) -> tuple[int, ...]:
        """The nodes that are sent with the draws."""
        return tuple(index for index, step in enumerate(self.steps) if isinstance(step, Variable | Output))

    @cached_property
    def parameter_free(self) -> frozenset[int]:
        """The nodes whose values depend on no parameter."""
        free: set[int] = set()
        for index, step in enumerate(self.steps):
            if isinstance(step, Input | Number | Computed) or (
                isinstance(step, Application) and free.issuperset(step.args)
            ):
                free.add(index)
        return frozenset(free)

    def needed_by(
        self, roots: Iterable[int], *, plus: Iterable[int] = (), through_computed: bool = False
    ) -> tuple[int, ...]:
        """The roots, all that they depend on, and the nodes `plus`, each after what it depends on.

        `plus`: nodes whose values are known, so that what they depend on is not needed for them.
        `through_computed`: also what those values depend on that are computed once for a data set.
        """
        known = frozenset(plus)
        pending, needed = sorted(roots, reverse=True), {}
        while pending:
            index = pending.pop()
            if index in needed:
                continue
            step = self.steps[index]
            is_opened = through_computed and isinstance(step, Computed)
            references = step.application.args if is_opened else () if index in known else step.references
            missing = [reference for reference in references if reference not in needed]
            if missing:
                pending.extend((index, *sorted(missing, reverse=True)))
            else:
                needed[index] = None
        return (*needed, *sorted(known - needed.keys()))

    def label(self, index: int) -> str:
        """What is said of a step: the name or the operation of its node, also of one that is not written so."""
        if index < len(self.model.nodes):
            return label(self.model.nodes[index])
        step = self.steps[index]
        node = step.application.node if isinstance(step, Computed) else getattr(step, "node", None)
        return label(node) if node is not None else getattr(step, "name", "constant")

    def rewritten(self, steps: Mapping[int, Step], *applied: Rewrite) -> Program:
        """With these steps in place of those of the same index, or behind the last."""
        changed = {**dict(enumerate(self.steps)), **steps}
        return replace(
            self,
            steps=tuple(changed[index] for index in range(len(changed))),
            rewrites=(*self.rewrites, *applied),
        )
