"""A culprit in words and numbers: what an error, a message of the wire, and a reader are told of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from nutkin.model.diagnosis.hints import hint
from nutkin.model.diagnosis.scope import GRADIENT, TERM, Culprit, Scope, faults, role
from nutkin.model.ir import Node, expression, label, references
from nutkin.model.steps import Number
from nutkin.model.types import NAMES, show_shape

_SHOWN_ELEMENTS, _SHOWN_PARAMETERS = 6, 8


@dataclass(frozen=True)
class Reading:
    """What went into a node: `role` says as what.

    `element` is the one at `place`, both None where none belongs to the one that is wrong; `least` and `greatest`
    are those of the finite elements, None if there is none; `nonfinite` counts the others.
    """

    node: str
    role: str
    type: str
    shape: tuple[int, ...]
    place: tuple[int, ...] | None
    element: np.ndarray | None
    least: np.ndarray | None
    greatest: np.ndarray | None
    nonfinite: int

    def __str__(self) -> str:
        name = self.node if self.role.startswith("operand ") else f"{self.role}: {self.node}"
        if not self.shape:
            return f"{name} = {number(self.element)}"
        at = f", {number(self.element)} at {list(self.place)}" if self.element is not None else ""
        count = f", {self.nonfinite} of {np.prod(self.shape)} not finite" if self.nonfinite else ""
        ends = f", from {number(self.least)} to {number(self.greatest)}" if self.least is not None else ""
        return f"{name} = {self.type} {show_shape(self.shape)}{at}{ends}{count}"


@dataclass(frozen=True)
class Cause:
    """The first node that is NaN or infinite, as errors write it. `index` and `name` are those of the model's node that
    it is, or is inside of; `kind` is its own.

    `what` of it is wrong: value, log_density or gradient, the last `by` an operand. `element`: the one at `place`.
    `affects`: the node of the model that is wrong because of it.
    """

    node: str
    name: str
    index: int
    kind: str
    what: str
    within: tuple[str, ...]
    place: tuple[int, ...]
    element: np.ndarray
    inputs: tuple[Reading, ...]
    affects: str | None
    expected: str | None
    hint: str | None
    by: str | None

    @property
    def found(self) -> str:
        """`NaN at [3]`."""
        return number(self.element) + (f" at {list(self.place)}" if self.place else "")

    @property
    def headline(self) -> str:
        subject = {
            TERM: f"the log density of {self.node}",
            GRADIENT: f"the gradient of the log density by {self.by}, through {self.node},",
        }.get(self.what, self.node)
        inside = "".join(f", in {place}" for place in reversed(self.within))
        affects = f", and with it {self.affects}" if self.affects else ""
        return f"{subject} is {self.found}{inside}{affects}"


def describe(culprit: Culprit, nodes: tuple[Node, ...], affects: int | None) -> Cause:
    """`affects`: the observation, parameter or other named node of the model that is wrong because of it."""
    scope, index = culprit.scope, culprit.index
    node = scope.nodes[index]
    outer = index if scope.outer is None else scope.outer
    wrong = faults(culprit.wrong)
    place = tuple(map(int, np.unravel_index(int(np.argmax(wrong)), wrong.shape)))
    at = (place, wrong.shape) if culprit.what != GRADIENT else None
    named = None if affects in (None, outer) else nodes[affects].name
    return Cause(
        node=expression(scope.nodes, index),
        name=label(nodes[outer]),
        index=outer,
        kind=node.__struct_config__.tag,
        what=culprit.what,
        within=scope.within,
        place=place,
        element=culprit.wrong[place],
        inputs=_inputs(scope, index, at, (culprit.by, place)),
        affects=named,
        expected=culprit.expected,
        hint=hint(culprit, node),
        by=_by(culprit),
    )


def _by(culprit: Culprit) -> str | None:
    if culprit.what != GRADIENT:
        return None
    return "its unconstrained coordinates" if culprit.by is None else expression(culprit.scope.nodes, culprit.by)


def _inputs(
    scope: Scope,
    index: int,
    at: tuple[tuple[int, ...], tuple[int, ...]] | None,
    by: tuple[int | None, tuple[int, ...]],
) -> tuple[Reading, ...]:
    """Of all operands but numbers. `at`: place and shape of the wrong result; `by`: or of an operand."""
    roles: dict[int, str] = {}
    for path, operand in references(scope.nodes[index]).items():
        if not isinstance(scope.steps[operand], Number):
            roles.setdefault(operand, role(path))
    readings = []
    for operand, meaning in roles.items():
        value = scope.value(operand)
        place = by[1] if at is None and operand == by[0] else None if at is None else _aligned(value.shape, *at)
        readings.append(_read(expression(scope.nodes, operand), meaning, value, place))
    return tuple(readings)


def _aligned(shape: tuple[int, ...], place: tuple[int, ...], of: tuple[int, ...]) -> tuple[int, ...] | None:
    """The place of an operand that belongs to a place of a result, if the two broadcast."""
    rank = len(shape)
    if rank > len(of) or any(size not in (1, whole) for size, whole in zip(shape, of[len(of) - rank :], strict=True)):
        return None
    return tuple(0 if size == 1 else at for size, at in zip(shape, place[len(place) - rank :], strict=True))


def _read(node: str, role: str, value: np.ndarray, place: tuple[int, ...] | None) -> Reading:
    type_name = NAMES[value.dtype]
    if value.dtype.kind not in "iub" and value.dtype not in (np.float32, np.float64):
        value = value.astype(np.float64)  # numpy has no minimum of the small types
    place = place if value.shape else ()
    finite = value[np.isfinite(value)]
    ends = (finite.min(), finite.max()) if finite.size else (None, None)
    element = None if place is None else value[place]
    return Reading(node, role, type_name, value.shape, place, element, *ends, value.size - finite.size)


def number(value: np.ndarray | float) -> str:
    """As a reader writes it: six digits of a float, NaN, inf, -inf."""
    value = np.asarray(value)[()]
    if np.asarray(value).dtype.kind in "iub":
        return str(int(value))
    return "NaN" if np.isnan(value) else f"{float(value):.6g}"


def show_point(point: Mapping[str, np.ndarray]) -> str:
    """`mu = 0.3, beta = [1, 2, …]`, of the first parameters and elements."""
    shown = [f"{name} = {_show(value)}" for name, value in list(point.items())[:_SHOWN_PARAMETERS]]
    return ", ".join(shown + ["…"] * (len(point) > _SHOWN_PARAMETERS))


def _show(value: np.ndarray) -> str:
    if not value.shape:
        return number(value)
    elements = [number(x) for x in value.ravel()[:_SHOWN_ELEMENTS]]
    more = ["…"] * (value.size > _SHOWN_ELEMENTS)
    shape = f" {show_shape(value.shape)}" if value.ndim > 1 else ""
    return f"[{', '.join(elements + more)}]{shape}"
