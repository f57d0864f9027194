"""The operations of the model language: one table, and the checks of name, number of operands and options."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from nutkin.errors import InvalidModel
from nutkin.model import elementwise, linear_algebra, reductions, structural
from nutkin.model.plan import Operands, Plan, Planner
from nutkin.model.types import DTYPES, Spec, kind


@dataclass(frozen=True)
class Operation:
    """`planner` works out shape, types and function. `arity` is None for one or more operands."""

    planner: Planner
    arity: int | None
    optional: tuple[str, ...] = ()
    required: tuple[str, ...] = ()


OPERATIONS: dict[str, Operation] = {
    **{name: Operation(planner, 2) for name, planner in elementwise.BINARY.items()},
    **{name: Operation(planner, 1) for name, planner in elementwise.UNARY.items()},
    **{name: Operation(planner, 3) for name, planner in elementwise.TERNARY.items()},
    "as_type": Operation(elementwise.as_type, 1, required=("type",)),
    "bitcast": Operation(elementwise.bitcast, 1, required=("type",)),
    "select": Operation(elementwise.select, 3),
    "clip": Operation(elementwise.clip, 3),
    **{name: Operation(planner, 1, ("axes", "keep_axes")) for name, planner in reductions.REDUCTIONS.items()},
    **{name: Operation(planner, 1, ("axis", "reverse")) for name, planner in reductions.CUMULATIVE.items()},
    "dot": Operation(structural.dot, 2, structural.DOT_OPTIONS),
    "take": Operation(structural.take, 2, ("axis",)),
    "slice": Operation(structural.slice, 1, ("strides",), required=("starts", "lengths")),
    "reshape": Operation(structural.reshape, 1, required=("shape",)),
    "broadcast": Operation(structural.broadcast, 1, ("axes",), required=("shape",)),
    "squeeze": Operation(structural.squeeze, 1, ("axes",)),
    "transpose": Operation(structural.transpose, 1, ("axes",)),
    "concatenate": Operation(structural.concatenate, None, ("axis",)),
    "stack": Operation(structural.stack, None, ("axis",)),
    **{name: Operation(planner, 1) for name, planner in linear_algebra.UNARY.items()},
    **{name: Operation(planner, 2) for name, planner in linear_algebra.BINARY.items()},
    "triangular_solve": Operation(linear_algebra.triangular_solve, 2, ("lower", "left_side", "transform_a")),
    "matrix_power": Operation(linear_algebra.matrix_power, 1, required=("power",)),
    "norm": Operation(linear_algebra.norm, 1, ("ord", "axes", "keep_axes")),
}


def _is_integer(value: Any) -> bool:
    return type(value) is int


def _is_integers(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(type(item) is int for item in value)


def _is_shape(value: Any) -> bool:
    return _is_integers(value) and all(size >= 1 for size in value)


def _is_boolean(value: Any) -> bool:
    return isinstance(value, bool)


def _is_real_type(value: Any) -> bool:
    return isinstance(value, str) and value in DTYPES and kind(value) != "c"


def _is_order(value: Any) -> bool:
    return value in linear_algebra.ORDERS if isinstance(value, str) else type(value) in (int, float)


def _one_of(names: tuple[str, ...]) -> tuple[Callable[[Any], bool], str]:
    return lambda value: isinstance(value, str) and value in names, "one of " + ", ".join(names)


_INTEGER = (_is_integer, "an integer")
_INTEGERS = (_is_integers, "a list of integers")
_BOOLEAN = (_is_boolean, "a boolean")

_OPTION_KINDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "axes": _INTEGERS,
    "axis": _INTEGER,
    "keep_axes": _BOOLEAN,
    "reverse": _BOOLEAN,
    **dict.fromkeys(structural.DOT_OPTIONS, _INTEGERS),
    "starts": _INTEGERS,
    "lengths": _INTEGERS,
    "strides": _INTEGERS,
    "shape": (_is_shape, "a list of sizes of at least 1"),
    "lower": _BOOLEAN,
    "left_side": _BOOLEAN,
    "transform_a": _one_of(linear_algebra.TRANSFORMS_OF_A),
    "power": _INTEGER,
    "ord": (_is_order, "a number, or one of " + ", ".join(linear_algebra.ORDERS)),
    "type": (_is_real_type, "one of " + ", ".join(name for name in DTYPES if kind(name) != "c")),
}


def plan_call(name: str, specs: tuple[Spec, ...], options: Mapping[str, Any], *, precision: str) -> Plan:
    """What the operation does with operands of these shapes and types. Raises InvalidModel if it cannot."""
    operation = OPERATIONS.get(name)
    if operation is None:
        raise InvalidModel("there is no such operation", found=name, hint=close_matches(name, OPERATIONS))
    if (operation.arity is not None and len(specs) != operation.arity) or not specs:
        raise InvalidModel(
            "wrong number of operands",
            expected="one or more" if operation.arity is None else str(operation.arity),
            found=str(len(specs)),
        )
    allowed = operation.required + operation.optional
    for option, value in options.items():
        if option not in allowed:
            raise InvalidModel(
                "there is no such option",
                expected="one of " + ", ".join(allowed) if allowed else "no options",
                found=str(option),
            )
        is_valid, expected = _OPTION_KINDS[option]
        # nil is how a client writes an option that it leaves at its default.
        if not is_valid(value) and not (value is None and option in operation.optional):
            raise InvalidModel(f"the option {option} is wrong", expected=expected, found=repr(value))
    for option in operation.required:
        if option not in options:
            raise InvalidModel(f"the option {option} is missing", expected=_OPTION_KINDS[option][1], found="nothing")
    given = {option: value for option, value in options.items() if value is not None}
    return operation.planner(Operands(specs, given, precision))


def close_matches(name: str, known: Mapping[str, Any]) -> str:
    """A hint that lists the known names most like this one, or all of them."""
    matches = difflib.get_close_matches(name, known, n=3)
    return f"did you mean {' or '.join(matches)}?" if matches else f"known are {', '.join(known)}"
