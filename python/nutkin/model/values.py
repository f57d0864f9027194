"""Checks of the values of the data, on the host, before a run: NaN, and values outside a distribution's support.

Tensors are read in pieces, so that the checks need little memory besides them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping

import numpy as np

from nutkin.errors import InvalidData
from nutkin.model.ir import label
from nutkin.model.program import Program, ValueCheck
from nutkin.model.steps import Input, Number
from nutkin.model.types import is_float

_PIECE = 1 << 16


def check_values(program: Program, inputs: Mapping[int, np.ndarray]) -> None:
    """Raises InvalidData with the slot or node, how many elements are wrong, and the first of them."""
    for index, step in program.inputs.items():
        if is_float(step.spec.type):
            _check_nan(step, index, inputs[index])
    for check in program.checks:
        if not computed_operands(program, check):
            _check_support(program, check, inputs)


def check_computed_values(program: Program, values: Mapping[int, np.ndarray]) -> None:
    """The same for the checks that need values computed from the inputs: `values` holds these, and all inputs."""
    for check in program.checks:
        if computed_operands(program, check):
            _check_support(program, check, values)


def computed_operands(program: Program, check: ValueCheck) -> tuple[int, ...]:
    """The nodes of a check that are neither inputs nor numbers."""
    mask = () if check.mask is None else (check.mask,)
    nodes = (check.index, *check.bounds, *mask)
    return tuple(index for index in nodes if not isinstance(program.steps[index], Input | Number))


def _check_nan(step: Input, index: int, array: np.ndarray) -> None:
    count, first = _count((array,), np.isnan)
    if count:
        raise InvalidData(
            f"{step.name}: {count} of {array.size} elements {'is' if count == 1 else 'are'} NaN",
            node=step.name,
            index=index,
            expected="numbers",
            found=f"NaN{show_place(first, array.shape)}",
            hint="replace missing values by any number in the support and leave them out with a mask",
        )


def _check_support(program: Program, check: ValueCheck, values: Mapping[int, np.ndarray]) -> None:
    def concrete(index: int) -> np.ndarray:
        step = program.steps[index]
        return np.asarray(step.spec.literal) if isinstance(step, Number) else values[index]

    array, bounds = concrete(check.index), tuple(concrete(bound) for bound in check.bounds)
    mask = () if check.mask is None else (concrete(check.mask),)
    contains = check.support.contains

    def is_wrong(x: np.ndarray, *rest: np.ndarray) -> np.ndarray:
        with np.errstate(invalid="ignore"):  # of infinities
            wrong = ~contains(x, *rest[: len(bounds)])
        return wrong & (rest[-1] != 0) if mask else wrong

    event_rank = check.support.event_rank
    others = (*bounds, *mask)
    shape = np.broadcast_shapes(array.shape[: array.ndim - event_rank], *(other.shape for other in others))
    if event_rank:
        count, first = _count_events(array, others, shape, event_rank, is_wrong)
    else:
        count, first = _count((array, *others), is_wrong)
    if count:
        found = np.broadcast_to(array, shape + array.shape[array.ndim - event_rank :])
        raise InvalidData(
            f"{check.label}: {'1 value is' if count == 1 else f'{count} values are'} impossible",
            node=label(program.model.nodes[check.node]),
            index=check.node,
            expected=check.support.description,
            found=f"{show_value(found[np.unravel_index(first, shape)])}{show_place(first, shape)}",
            hint=check.support.hint,
        )


def show_value(value: np.ndarray) -> str:
    """In one line, as lists are written, and of a large vector or matrix its corners."""
    if value.ndim == 0:
        return _show_number(value[()])
    text = np.array2string(value, threshold=16, edgeitems=2, separator=", ", formatter={"all": _show_number})
    return " ".join(text.split())


def _show_number(number: np.generic) -> str:
    if np.isnan(number):
        return "NaN"
    return str(number).replace("inf", "infinity")


def _count(arrays: tuple[np.ndarray, ...], is_wrong: Callable[..., np.ndarray]) -> tuple[int, int]:
    """How many elements are wrong, of arrays broadcast against each other, and the row-major position of the first."""
    pieces = np.nditer(
        arrays, flags=["external_loop", "buffered", "zerosize_ok"], op_flags=[["readonly"]] * len(arrays),
        order="C", buffersize=_PIECE,
    )  # fmt: skip
    return _tally(is_wrong(*(piece if isinstance(piece, tuple) else (piece,))) for piece in pieces)


def _count_events(
    array: np.ndarray,
    others: tuple[np.ndarray, ...],
    shape: tuple[int, ...],
    event_rank: int,
    is_wrong: Callable[..., np.ndarray],
) -> tuple[int, int]:
    """The same for vectors and matrices, each with one element of the others."""
    event = array.shape[array.ndim - event_rank :]
    events = np.broadcast_to(array, shape + event).reshape(-1, *event)
    columns = tuple(np.broadcast_to(other, shape).reshape(-1) for other in others)
    step = max(1, _PIECE // math.prod(event))
    places = range(0, len(events), step)
    return _tally(is_wrong(events[at : at + step], *(c[at : at + step] for c in columns)) for at in places)


def _tally(pieces: Iterator[np.ndarray]) -> tuple[int, int]:
    count, first, seen = 0, -1, 0
    for wrong in pieces:
        here = int(np.count_nonzero(wrong))
        if here and not count:
            first = seen + int(np.argmax(wrong))
        count += here
        seen += wrong.size
    return count, first


def show_place(position: int, shape: tuple[int, ...]) -> str:
    """` at [2, 0]` for a row-major position; nothing for the one element of a scalar."""
    return f" at {[int(axis) for axis in np.unravel_index(position, shape)]}" if shape else ""
