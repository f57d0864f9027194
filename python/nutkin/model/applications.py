"""What the nodes of a model compute of other nodes, and what bodies, which are such nodes themselves, compute."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from jax import Array

from nutkin.errors import InvalidModel, LimitExceeded
from nutkin.model.control import Function, plan_cond, plan_custom_gradient, plan_scan, plan_while
from nutkin.model.distributions.log_probability import plan_log_probability
from nutkin.model.evaluation import apply, operand
from nutkin.model.ir import (
    Argument,
    Body,
    Call,
    Cond,
    Constant,
    CustomGradient,
    Element,
    LogProbability,
    Node,
    Ode,
    Scan,
    While,
    expression,
    label,
    references,
)
from nutkin.model.ode import plan_ode
from nutkin.model.operations import plan_call
from nutkin.model.plan import SEVERAL, Plan
from nutkin.model.steps import Application, Input, Number, Step
from nutkin.model.types import Spec, literal_spec, show_shape

Applied = Call | Element | LogProbability | Scan | While | Cond | Ode | CustomGradient
"""The nodes that compute a value of earlier ones."""


MAX_ELEMENTS = 2**31  # of any tensor of a model: 16 GiB in f64
MAX_RANK = 64  # numpy allows no more
MAX_EFFORT = 2**20


class Effort:
    """What it may cost to plan the bodies of one model, in nodes and references.

    A loop plans its body until the types of what it carries settle, and the loops in it each time anew: that can take
    a number of steps that is exponential in how deep they are nested.
    """

    def __init__(self) -> None:
        self._left = MAX_EFFORT

    def spend(self, amount: int) -> None:
        """Raises LimitExceeded where it is more than there is left."""
        self._left -= amount
        if self._left < 0:
            raise LimitExceeded(
                "the types of what the loops of the model carry do not settle in time",
                expected=f"at most {MAX_EFFORT} nodes and references of bodies, counted each time that one is tried",
                hint="start loops from values of the type that their bodies give, such as 0.0 instead of 0",
            )


def plan_node(
    node: Applied, nodes: Sequence[Node], steps: Sequence[Step], precision: str, effort: Effort
) -> Application:
    """What a node computes of the steps of the nodes before it. Raises InvalidModel, LimitExceeded."""
    args = tuple(references(node).values())
    specs = tuple(steps[reference].spec for reference in args)
    if isinstance(node, Element):
        return Application(_plan_element(node, nodes, steps), args, node)

    def function_of(body: Body, arguments: Sequence[Spec]) -> tuple[tuple[Spec, ...], Function]:
        function = plan_body(body, arguments, precision, effort)
        return function.specs, function

    match node:
        case Call():
            plan = plan_call(node.op, specs, node.opts, precision=precision)
        case LogProbability():
            plan = plan_log_probability(node, specs, precision)
        case Scan():
            plan = plan_scan(node, specs, function_of, precision)
        case While():
            plan = plan_while(node, specs, function_of, precision)
        case Cond():
            plan = plan_cond(node, specs, function_of, precision)
        case CustomGradient():
            plan = plan_custom_gradient(node, specs, function_of, precision)
        case Ode():
            plan = plan_ode(node, specs, function_of, precision)
    return Application(plan, args, node)


def _plan_element(node: Element, nodes: Sequence[Node], steps: Sequence[Step]) -> Plan:
    step = steps[node.of]
    elements = step.plan.elements if isinstance(step, Application) else ()
    if not elements:
        raise InvalidModel(
            f"{expression(nodes, node.of)} gives one value, not several",
            expected="an operation with several results, or a loop",
            found=str(step.spec),
        )
    if node.index >= len(elements):
        raise InvalidModel(
            f"{expression(nodes, node.of)} has no value {node.index}",
            expected=f"an index below {len(elements)}",
            found=str(node.index),
        )
    spec = elements[node.index]
    return Plan(spec.shape, spec.type, (SEVERAL,), lambda values: values[node.index])


@dataclass(frozen=True)
class BodyFunction:
    """A body, with a step for each of its nodes: the function from its arguments to its results, of these specs."""

    nodes: tuple[Node | Argument, ...]
    steps: tuple[Step, ...]
    results: tuple[int, ...]
    specs: tuple[Spec, ...]

    def __call__(self, *arguments: Array) -> tuple[Array, ...]:
        values = self.values(*arguments)
        typed = zip(self.results, self.specs, strict=True)
        return tuple(operand(self.steps, reference, spec.type, values) for reference, spec in typed)

    def values(self, *arguments: Array) -> dict[int, Any]:
        """The values of its nodes, but for its numbers."""
        known: dict[int, Any] = {}
        for index, (node, step) in enumerate(zip(self.nodes, self.steps, strict=True)):
            if isinstance(step, Application):
                known[index] = apply(self.steps, step, known)
            elif isinstance(node, Argument):
                known[index] = arguments[node.index]
        return known


def plan_body(body: Body, arguments: Sequence[Spec], precision: str, effort: Effort | None = None) -> BodyFunction:
    """What a body does with arguments of these specs. Raises InvalidModel, LimitExceeded."""
    effort = effort or Effort()
    effort.spend(len(arguments) + len(body.results))
    steps: list[Step] = []
    for index, node in enumerate(body.nodes):
        effort.spend(1 + len(references(node)))
        try:
            step = _body_step(node, body, steps, arguments, precision, effort)
            check_size(step)
            steps.append(step)
        except InvalidModel as error:
            error.message = f"in its body: {expression(body.nodes, index)}: {error.message}"
            raise
    check_single(body.results, body.nodes, steps)
    specs = tuple(steps[reference].spec for reference in body.results)
    return BodyFunction(body.nodes, tuple(steps), body.results, specs)


def _body_step(
    node: Node | Argument,
    body: Body,
    steps: Sequence[Step],
    arguments: Sequence[Spec],
    precision: str,
    effort: Effort,
) -> Step:
    match node:
        case Argument():
            if node.index >= len(arguments):
                raise InvalidModel(
                    "the body has no such argument",
                    expected=f"an index below {len(arguments)}",
                    found=str(node.index),
                )
            return Input(label(node), replace(arguments[node.index], literal=None))
        case Constant():
            return Number(literal_spec(node.value, precision=precision))
        case _:
            if not isinstance(node, Element):
                check_single(references(node).values(), body.nodes, steps)
            return plan_node(node, body.nodes, steps, precision, effort)


def check_size(step: Step) -> None:
    """Check that its values are no larger than tensors can be. Raises InvalidModel."""
    for spec in step.plan.elements if step.spec.type == SEVERAL else (step.spec,):
        if len(spec.shape) > MAX_RANK:
            raise InvalidModel(
                "the tensor has too many axes", expected=f"at most {MAX_RANK}", found=str(len(spec.shape))
            )
        if spec.size > MAX_ELEMENTS:
            expected = f"at most {MAX_ELEMENTS} elements"
            raise InvalidModel("the tensor is too large", expected=expected, found=show_shape(spec.shape))


def check_single(indices: Iterable[int], nodes: Sequence[Node], steps: Sequence[Step]) -> None:
    """Check that each of these nodes gives one value. Raises InvalidModel."""
    for index in indices:
        if steps[index].spec.type == SEVERAL:
            raise InvalidModel(
                f"{expression(nodes, index)} gives several values",
                expected="one of them",
                found="all of them",
                hint="an elem node takes one of them",
            )
