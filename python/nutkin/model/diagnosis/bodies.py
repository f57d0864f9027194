"""Loops and choices step by step, in Python: what entered each step of a body, and the values of its nodes in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from msgspec.structs import replace

from nutkin.model.applications import BodyFunction, plan_body
from nutkin.model.diagnosis.scope import Scope
from nutkin.model.evaluation import operand
from nutkin.model.ir import Argument, Body, Cond, Ode, Scan, While, expression
from nutkin.model.plan import cast
from nutkin.model.steps import Application
from nutkin.model.types import NAMES, Spec

LOOPS = (Scan, While, Cond, Ode)
MOST_STEPS = 100_000  # of a loop whose every step is kept, to look into it

Values = tuple[Array, ...]


@dataclass(frozen=True)
class Unrolled:
    """A loop. A choice, and the start of a differential equation, are loops of one step that carry nothing.

    The arguments of the body are the values carried, those of the step (`rows`), and `known` ones. `carries`: what
    entered each step, and what left the last. `offset`: by how much the place of an operand differs from that of the
    argument that it becomes. `rows_backwards`: the first step is that of the last row.
    """

    around: Scope
    index: int
    body: BodyFunction
    carries: Sequence[Values]
    rows: Values
    known: Values
    label: str = "step {} of {}"
    offset: int = 0
    ended: bool = True
    rows_backwards: bool = False

    @property
    def count(self) -> int:
        return len(self.carries) - 1

    @property
    def carried(self) -> int:
        return len(self.carries[0])

    @property
    def collects_rows(self) -> bool:
        """Whether what it gives beside the carried values has a row for each step."""
        return isinstance(self.around.nodes[self.index], Scan)

    def row(self, step: int) -> int:
        """The row that a step works on, and writes."""
        return self.count - 1 - step if self.rows_backwards else step

    def arguments(self, step: int) -> Values:
        return (*self.carries[step], *(x[self.row(step)] for x in self.rows), *self.known)

    def first_step(self, wrong: np.ndarray) -> int:
        """The first step whose row of a collected value is wrong."""
        if not self.collects_rows:
            return 0
        rows = np.flatnonzero(wrong.reshape(len(wrong), -1).any(1))
        return min(map(self.row, rows.tolist()))

    def operand(self, argument: int) -> int:
        """The node around the loop that is, or at the start was, this argument of the body."""
        return self.around.steps[self.index].args[argument + self.offset]

    def argument(self, place: int, step: int) -> str:
        """What an argument of the body is called."""
        if place < self.carried:
            return f"carried[{place}]"
        given = expression(self.around.nodes, self.operand(place), depth=1)
        return f"{given}[{self.row(step)}]" if place < self.carried + len(self.rows) else given

    def scope(self, step: int) -> Scope:
        """The nodes of the body in a step."""
        around, index = self.around, self.index
        live = _live(self.body, lambda argument: argument < self.carried or self.operand(argument) in around.live)
        label = self.label.format(self.row(step), expression(around.nodes, index))
        outer = index if around.outer is None else around.outer
        values = self.body.values(*self.arguments(step))
        nodes = [
            replace(node, name=node.name or self.argument(node.index, step)) if isinstance(node, Argument) else node
            for node in self.body.nodes
        ]
        return Scope(nodes, self.body.steps, values, live, around.precision, (*around.within, label), outer)


def unroll(scope: Scope, index: int) -> Unrolled | None:
    """A loop or choice from the values that it was given. None for an equation whose derivative at the start is
    finite: its steps are the solver's; and for a loop of more than MOST_STEPS."""
    node, step = scope.nodes[index], scope.steps[index]
    typed = zip(step.args, step.plan.casts, strict=True)
    operands = tuple(jnp.asarray(operand(scope.steps, arg, name, scope.values)) for arg, name in typed)
    match node:
        case Scan():
            return _unroll_scan(scope, index, node, step, operands)
        case While():
            return _unroll_while(scope, index, node, step, operands)
        case Cond():
            predicate, *known = operands
            chosen, name = (node.on_true, "true") if predicate != 0 else (node.on_false, "false")
            body = _planned(chosen, known, scope.precision)
            label = f"the side of {{1}} for {name}"
            return Unrolled(scope, index, body, ((), ()), (), tuple(known), label, offset=1)
        case Ode():
            count = len(node.init)
            # The time comes first in the body, and behind the state in the operands.
            arguments = (operands[count], *operands[:count], *operands[count + 2 :])
            body = _planned(node.body, arguments, scope.precision)
            if all(bool(jnp.isfinite(x).all()) for x in body(*arguments)):
                return None
            label = "the derivative of {1} at the start"
            return _Equation(scope, index, body, ((), ()), (), arguments, label)


class _Equation(Unrolled):
    def operand(self, argument: int) -> int:
        count = len(self.around.nodes[self.index].init)
        args = self.around.steps[self.index].args
        return args[count if argument == 0 else argument - 1 if argument <= count else argument + 1]

    def argument(self, place: int, step: int) -> str:
        count = len(self.around.nodes[self.index].init)
        return "t" if place == 0 else f"state[{place - 1}]" if place <= count else super().argument(place, step)


def _unroll_scan(scope: Scope, index: int, node: Scan, step: Application, operands: Values) -> Unrolled | None:
    count, behind = len(node.init), len(node.init) + len(node.xs)
    init, rows, known = operands[:count], operands[count:behind], operands[behind:]
    length = len(rows[0]) if rows else node.length
    if length > MOST_STEPS:
        return None
    body = _planned(node.body, (*init, *(x[0] for x in rows), *known), scope.precision)
    advance = jax.jit(lambda carry, row: _typed(body(*carry, *row, *known), step.plan.elements[:count]))
    carries = [init]
    for number in range(length):
        at = length - 1 - number if node.reverse else number
        carries.append(advance(carries[-1], tuple(x[at] for x in rows)))
    return Unrolled(scope, index, body, carries, rows, known, rows_backwards=node.reverse)


def _unroll_while(scope: Scope, index: int, node: While, step: Application, operands: Values) -> Unrolled | None:
    count = len(node.init)
    init, known = operands[:count], operands[count:]
    body = _planned(node.body, operands, scope.precision)
    condition = _planned(node.condition, operands, scope.precision)
    holds = jax.jit(lambda carry: condition(*carry, *known)[0] != 0)
    advance = jax.jit(lambda carry: _typed(body(*carry, *known), step.plan.elements))
    carries, most = [init], MOST_STEPS if node.max_steps is None else node.max_steps
    while (goes_on := bool(holds(carries[-1]))) and len(carries) <= min(most, MOST_STEPS):
        carries.append(advance(carries[-1]))
    if len(carries) > MOST_STEPS:
        return None
    return Unrolled(scope, index, body, carries, (), known, ended=not goes_on)


def _planned(body: Body, arguments: Sequence[Array], precision: str) -> BodyFunction:
    return plan_body(body, [Spec(x.shape, NAMES[np.dtype(x.dtype)]) for x in arguments], precision)


def _typed(values: Sequence[Any], specs: Sequence[Spec]) -> Values:
    return tuple(jnp.asarray(cast(value, spec.type)) for value, spec in zip(values, specs, strict=False))


def _live(body: BodyFunction, is_live: Callable[[int], bool]) -> frozenset[int]:
    live: set[int] = set()
    for index, (node, step) in enumerate(zip(body.nodes, body.steps, strict=True)):
        if is_live(node.index) if isinstance(node, Argument) else not live.isdisjoint(step.references):
            live.add(index)
    return frozenset(live)
