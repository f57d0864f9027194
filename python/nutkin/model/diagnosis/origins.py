"""From a value that is NaN or infinite back to the node at which that begins.

Among the operands that are wrong too, it goes on with one that is NaN where the value is NaN, at the same place: so
what an infinity does no harm to, such as log(0) on the side that a `select` did not take, is not blamed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nutkin.model.density import Density
from nutkin.model.diagnosis.bodies import LOOPS, Unrolled, unroll
from nutkin.model.diagnosis.scope import TERM, VALUE, Culprit, Scope, faults, has_nan, is_wrong, meets, role
from nutkin.model.distributions import Family
from nutkin.model.ir import Argument, Element, While, references
from nutkin.model.steps import Application, Observation, Term, Variable
from nutkin.model.supports import Support


@dataclass(frozen=True)
class _Operand:
    """`role` says what it is for the node. `outside`: its finite elements that are not in the support."""

    index: int
    role: str
    value: np.ndarray
    outside: np.ndarray
    support: Support | None = None


def origin(scope: Scope, index: int, output: int | None = None) -> Culprit:
    """Of a node that is wrong, or one of its several values."""
    while True:
        node = scope.nodes[index]
        if isinstance(node, Element):
            index, output = node.of, node.index
            continue
        if isinstance(node, LOOPS):
            found = _origin_within(scope, index, output)
        else:
            value = scope.value(index, output)
            found = _blame(scope, index, VALUE, value, _operands(scope, index))
        if isinstance(found, Culprit):
            return found
        index, output = found, None


def origin_of_term(density: Density, scope: Scope, index: int, coordinates: np.ndarray | None, term: float) -> Culprit:
    """Of a term of the log density that is wrong."""
    step = scope.steps[index]
    if isinstance(step, Term):
        value = scope.value(step.value)
        return origin(scope, step.value) if is_wrong(value) else Culprit(scope, index, TERM, np.asarray(term))
    if isinstance(step, Variable) and is_wrong(scope.value(index)):
        return origin(scope, index)
    with np.errstate(all="ignore"):
        elements = np.asarray(density.elements(index, coordinates, scope.values))
    if not is_wrong(elements):  # the log-Jacobian, or the sum
        elements = np.asarray(term)
    found = _blame(scope, index, TERM, elements, _term_operands(scope, index))
    return found if isinstance(found, Culprit) else origin(scope, found)


def _blame(scope: Scope, index: int, what: str, value: np.ndarray, operands: Sequence[_Operand]) -> Culprit | int:
    """The operand that is to blame, or the node itself."""
    wrong = faults(value)
    suspects = sorted(
        (operand for operand in operands if is_wrong(operand.value)),
        key=lambda operand: (has_nan(operand.value) != has_nan(value), not meets(faults(operand.value), wrong)),
    )
    if suspects and has_nan(value) and has_nan(suspects[0].value):
        return suspects[0].index
    outside = sorted(
        (operand for operand in operands if operand.outside.any()),
        key=lambda operand: not meets(operand.outside, wrong),
    )
    if outside:
        first = outside[0]
        expected = f"{first.role} to be {first.support.description}"
        return Culprit(scope, index, what, value, expected=expected, hint=first.support.hint)
    return suspects[0].index if suspects else Culprit(scope, index, what, value)


def _operands(scope: Scope, index: int) -> list[_Operand]:
    step = scope.steps[index]
    if isinstance(step, Variable):
        return [_operand(scope, parent, "", None) for parent in step.parents]
    if not isinstance(step, Application):
        return []
    supports = step.plan.supports
    return [
        _operand(scope, arg, role(path), supports.get(place))
        for place, (path, arg) in enumerate(references(scope.nodes[index]).items())
    ]


def _term_operands(scope: Scope, index: int) -> list[_Operand]:
    """The parameters of the distribution, and what is observed."""
    step = scope.steps[index]
    family: Family = step.family
    operands = [
        _operand(scope, arg, role(f"args.{name}"), family.parameters[name].support)
        for name, arg in zip(family.parameters, step.args, strict=True)
    ]
    if isinstance(step, Observation):
        bounds = tuple(scope.value(bound) for bound in step.bounds)
        operands.append(_operand(scope, step.value, role("value"), family.support, bounds, step.mask))
        if step.weight is not None:
            operands.append(_operand(scope, step.weight, role("weight"), None))
    return operands


def _operand(
    scope: Scope,
    index: int,
    role: str,
    support: Support | None,
    bounds: tuple[np.ndarray, ...] = (),
    mask: int | None = None,
) -> _Operand:
    value = scope.value(index)
    if support is None or support.contains is None:
        return _Operand(index, role, value, np.zeros((), bool))
    with np.errstate(all="ignore"):
        is_finite = np.isfinite(value)
        if support.event_rank:
            # A factorization of NaN is an error.
            value = np.where(is_finite, value, 0)
            is_finite = is_finite.all(tuple(range(-support.event_rank, 0)))
        outside = ~np.asarray(support.contains(value, *bounds)) & is_finite
        if mask is not None:
            outside = outside & (scope.value(mask) != 0)
    return _Operand(index, role, scope.value(index), outside, support)


# ---- loops and choices


def _origin_within(scope: Scope, index: int, output: int) -> Culprit | int:
    """In the body of a loop or choice, or the operand of it that is to blame."""
    node, value = scope.nodes[index], scope.value(index, output)
    loop = unroll(scope, index)
    if loop is None or not loop.count:
        return _blame(scope, index, VALUE, value, _operands(scope, index))
    if isinstance(node, While) and not loop.ended:
        expected = f"a loop that ends within max_steps = {node.max_steps} steps"
        hint = "raise max_steps, or see to it that the condition becomes false"
        return Culprit(scope, index, VALUE, value, expected=expected, hint=hint)
    if output < loop.carried:
        step, result = _first_wrong(loop, loop.count, output), output
    else:
        step, result = loop.first_step(faults(value)), output
    while step is not None:
        inner = loop.scope(step)
        found = origin(inner, loop.body.results[result])
        place = inner.nodes[found.index]
        if found.scope is not inner or not isinstance(place, Argument):
            return found
        if place.index >= loop.carried:
            return loop.operand(place.index)
        step, result = _first_wrong(loop, step, place.index), place.index
    return loop.operand(result)


def _first_wrong(loop: Unrolled, step: int, carried: int) -> int | None:
    """What enters `step` is wrong: the step that made it so. None: it was so from the start."""
    is_nan = has_nan(loop.carries[step][carried])
    test = has_nan if is_nan else is_wrong
    while step > 0 and test(loop.carries[step - 1][carried]):
        step -= 1
    return step - 1 if step > 0 else None
