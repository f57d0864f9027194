"""Control flow: loops over an axis, loops while a condition holds, and choices between two bodies.

A body is a function of its arguments alone, see `bodies.py`. What a loop carries keeps its shape; its type is the one
to which the first value and what the body gives merge.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import jax
import jax.numpy as jnp
from jax import Array, lax

from nutkin.errors import InvalidModel
from nutkin.model.bounded_while import bounded_while, zero_cotangent
from nutkin.model.ir import Body, Cond, CustomGradient, Scan, While
from nutkin.model.plan import Plan, broadcast_shapes, cast
from nutkin.model.types import Spec, merge, show_shape

Function = Callable[..., tuple[Array, ...]]
PlanBody = Callable[[Body, Sequence[Spec]], tuple[tuple[Spec, ...], Function]]
"""From a body and the specs of its arguments to those of its results, and the function."""


def plan_scan(node: Scan, specs: Sequence[Spec], plan_body: PlanBody, precision: str) -> Plan:
    """-> the carried values after the last step, then the collected ones, with the steps as their first axis."""
    init, xs, captures = _split(specs, len(node.init), len(node.xs))
    length = _length(node, xs)
    entries = tuple(Spec(spec.shape[1:], spec.type) for spec in xs)
    carried, results, body = _settle("scan", node.body, init, (*entries, *captures), plan_body, precision)
    count = len(carried)
    collected = tuple(Spec((length, *spec.shape), spec.type) for spec in results[count:])

    def run(*operands: Array) -> tuple[Array, ...]:
        first, rows, known = _split(operands, count, len(xs))

        def step(carry: tuple[Array, ...], row: tuple[Array, ...]) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
            given = body(*carry, *row, *known)
            return _typed(given[:count], carried), _typed(given[count:], results[count:])

        last, gathered = lax.scan(step, first, rows, length=length, reverse=node.reverse)
        return (*last, *gathered)

    return Plan.several((*carried, *collected), _types(carried, xs, captures), run)


def plan_while(node: While, specs: Sequence[Spec], plan_body: PlanBody, precision: str) -> Plan:
    """-> the carried values after the last step; floats are NaN if the condition still holds after `max_steps`."""
    init, captures = specs[: len(node.init)], specs[len(node.init) :]
    carried, _, body = _settle("while", node.body, init, captures, plan_body, precision)
    answers, condition = plan_body(node.condition, (*carried, *captures))
    if len(answers) != 1 or answers[0].shape != ():
        found = f"{len(answers)} values" if len(answers) != 1 else str(answers[0])
        raise InvalidModel("the condition of while must give one scalar", expected="{}", found=found)
    count = len(carried)

    def run(*operands: Array) -> tuple[Array, ...]:
        def goes_on(carry: tuple[Array, ...], known: tuple[Array, ...]) -> Array:
            return condition(*carry, *known)[0] != 0

        def step(carry: tuple[Array, ...], known: tuple[Array, ...]) -> tuple[Array, ...]:
            return _typed(body(*carry, *known), carried)

        init, known = operands[:count], operands[count:]
        if node.max_steps is None:
            return lax.while_loop(lambda carry: goes_on(carry, known), lambda carry: step(carry, known), init)
        return bounded_while(goes_on, step, init, known, node.max_steps)

    return Plan.several(carried, _types(carried, captures), run)


def plan_cond(node: Cond, specs: Sequence[Spec], plan_body: PlanBody, precision: str) -> Plan:
    """-> the values of the body that is chosen, which alone is run."""
    predicate, *captures = specs
    if predicate.shape != ():
        raise InvalidModel(
            "what decides between two sides must be a scalar",
            expected="{}",
            found=show_shape(predicate.shape),
            hint="select(predicate, on_true, on_false) chooses element by element",
        )
    on_true, function = plan_body(node.on_true, captures)
    on_false, other = plan_body(node.on_false, captures)
    if len(on_true) != len(on_false):
        raise InvalidModel(
            "both sides of a choice must give as many values",
            expected=f"{len(on_true)} values, as on true",
            found=str(len(on_false)),
        )
    specs = tuple(
        Spec(broadcast_shapes((left.shape, right.shape)), merge((left, right), precision=precision))
        for left, right in zip(on_true, on_false, strict=True)
    )

    def side(function: Function) -> Function:
        def run(*known: Array) -> tuple[Array, ...]:
            typed = _typed(function(*known), specs)
            return tuple(jnp.broadcast_to(value, spec.shape) for value, spec in zip(typed, specs, strict=True))

        return run

    def run(predicate: Array, *known: Array) -> tuple[Array, ...]:
        return lax.cond(predicate != 0, side(function), side(other), *known)

    return Plan.several(specs, _types((predicate,), captures), run)


def plan_custom_gradient(node: CustomGradient, specs: Sequence[Spec], plan_body: PlanBody, precision: str) -> Plan:
    """-> the value; the gradients that the body gives have the shapes of the inputs."""
    value, inputs, captures = _split(specs, 1, len(node.inputs))
    given, body = plan_body(node.body, (*value, *inputs, *captures))
    if [spec.shape for spec in given] != [spec.shape for spec in inputs]:
        raise InvalidModel(
            "the gradients must have the shapes of the inputs",
            expected=", ".join(show_shape(spec.shape) for spec in inputs),
            found=", ".join(show_shape(spec.shape) for spec in given),
        )

    @jax.custom_vjp
    def run(value: Array, *rest: Array) -> Array:
        return value

    def forwards(value: Array, *rest: Array) -> tuple[Array, tuple[Array, ...]]:
        return value, rest

    def backwards(rest: tuple[Array, ...], gradient: Array) -> tuple[Array, ...]:
        inner = _typed(body(gradient, *rest), inputs)
        others = (zero_cotangent(x) for x in rest[len(inputs) :])
        return (jnp.zeros_like(gradient), *inner, *others)

    run.defvjp(forwards, backwards)
    (spec,) = value
    return Plan(spec.shape, spec.type, _types(value, inputs, captures), run)


def _length(node: Scan, xs: Sequence[Spec]) -> int:
    sizes = {spec.shape[0] if spec.shape else None for spec in xs} | ({node.length} if node.length else set())
    if len(sizes) != 1 or None in sizes:
        raise InvalidModel(
            "scan must know its number of steps" if not sizes else "what scan runs over must have one first size",
            expected="tensors of equal first sizes, or a length",
            found=", ".join(show_shape(spec.shape) for spec in xs) + (f", length {node.length}" if node.length else ""),
            hint="a range such as 0..9 is a tensor too: it makes so many steps",
        )
    return sizes.pop()


def _settle(
    name: str, body: Body, init: Sequence[Spec], rest: Sequence[Spec], plan_body: PlanBody, precision: str
) -> tuple[tuple[Spec, ...], tuple[Spec, ...], Function]:
    """Finds the types of what is carried. -> specs of the carried values, specs of all results, the function."""
    if len(body.results) < len(init) or (name == "while" and len(body.results) > len(init)):
        raise InvalidModel(
            f"the body of {name} must give what it carries",
            expected=f"{len(init)} values",
            found=str(len(body.results)),
        )
    carried = tuple(replace(spec, literal=None) for spec in init)
    while True:  # types only grow, and there are few
        results, function = plan_body(body, (*carried, *rest))
        for place, (before, after) in enumerate(zip(carried, results, strict=False)):
            if before.shape != after.shape:
                raise InvalidModel(
                    f"what {name} carries must keep its shape: value {place + 1} does not",
                    expected=f"{show_shape(before.shape)}, as at the start",
                    found=f"{show_shape(after.shape)} after a step",
                    hint="start from a value of the shape that the body gives, such as broadcast(0.0, shape)",
                )
        types = (merge((first, after), precision=precision) for first, after in zip(init, results, strict=False))
        grown = tuple(replace(spec, type=name) for spec, name in zip(carried, types, strict=True))
        if grown == carried:
            return carried, results, function
        carried = grown


def _typed(values: Sequence[Array], specs: Sequence[Spec]) -> tuple[Array, ...]:
    return tuple(jnp.asarray(cast(value, spec.type)) for value, spec in zip(values, specs, strict=True))


def _types(*groups: Sequence[Spec]) -> tuple[str, ...]:
    return tuple(spec.type for group in groups for spec in group)


def _split(items: Sequence, first: int, second: int) -> tuple[tuple, tuple, tuple]:
    return tuple(items[:first]), tuple(items[first : first + second]), tuple(items[first + second :])
