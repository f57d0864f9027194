"""The operations of the model language: one table, and the checks of name, number of operands and options."""

from __future__ import annotations

import difflib
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nutkin.errors import InvalidModel
from nutkin.model import (
    complex_numbers,
    diagonals,
    elementwise,
    indexing,
    linear_algebra,
    ordering,
    reductions,
    structural,
    windows,
)
from nutkin.model.options import OPTIONS
from nutkin.model.plan import Operands, Plan, Planner
from nutkin.model.types import Spec, is_complex


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
    **{name: Operation(planner, 1) for name, planner in complex_numbers.UNARY.items()},
    "complex": Operation(complex_numbers.complex, 2),
    "fft": Operation(complex_numbers.fft, 1, ("axis", "length")),
    "ifft": Operation(complex_numbers.ifft, 1, ("axis", "length")),
    "stop_gradient": Operation(elementwise.stop_gradient, 1),
    "as_type": Operation(elementwise.as_type, 1, required=("type",)),
    "bitcast": Operation(elementwise.bitcast, 1, required=("type",)),
    "select": Operation(elementwise.select, 3),
    "clip": Operation(elementwise.clip, 3),
    **{name: Operation(planner, 1, ("axes", "keep_axes")) for name, planner in reductions.REDUCTIONS.items()},
    **{name: Operation(planner, 1, ("axes", "keep_axes", "ddof")) for name, planner in reductions.VARIANCES.items()},
    "all_close": Operation(reductions.all_close, 2, ("rtol", "atol", "equal_nan")),
    **{name: Operation(planner, 1, ("axis", "reverse")) for name, planner in reductions.CUMULATIVE.items()},
    **{name: Operation(planner, 1, ordering.EXTREME_OPTIONS) for name, planner in ordering.EXTREMES.items()},
    "sort": Operation(ordering.sort, 1, ("axis", "direction")),
    "argsort": Operation(ordering.argsort, 1, ("axis", "direction", "type")),
    "top_k": Operation(ordering.top_k, 1, ("k",)),
    "median": Operation(ordering.median, 1, ("axis", "keep_axis")),
    "quantile": Operation(ordering.quantile, 1, ("axis", "keep_axis"), required=("q",)),
    **{
        name: Operation(planner, 1, windows.WINDOW_OPTIONS, required=("window",))
        for name, planner in windows.WINDOWS.items()
    },
    "conv": Operation(windows.conv, 2, windows.CONV_OPTIONS),
    "dot": Operation(structural.dot, 2, structural.DOT_OPTIONS),
    "take": Operation(indexing.take, 2, ("axis",)),
    "take_along_axis": Operation(indexing.take_along_axis, 2, ("axis",)),
    "gather": Operation(indexing.gather, 2, ("axes",)),
    "indexed_add": Operation(indexing.indexed_add, 3, ("axes",)),
    "indexed_put": Operation(indexing.indexed_put, 3, ("axes",)),
    "slice": Operation(indexing.slice, 1, ("strides",), required=("starts", "lengths")),
    "dynamic_slice": Operation(indexing.dynamic_slice, None, ("strides",), required=("lengths",)),
    "put_slice": Operation(indexing.put_slice, None),
    "reshape": Operation(structural.reshape, 1, required=("shape",)),
    "broadcast": Operation(structural.broadcast, 1, ("axes",), required=("shape",)),
    "squeeze": Operation(structural.squeeze, 1, ("axes",)),
    "transpose": Operation(structural.transpose, 1, ("axes",)),
    "concatenate": Operation(structural.concatenate, None, ("axis",)),
    "stack": Operation(structural.stack, None, ("axis",)),
    "iota": Operation(structural.iota, 0, ("axis", "type"), required=("shape",)),
    "reverse": Operation(structural.reverse, 1, ("axes",)),
    "pad": Operation(structural.pad, 2, required=("padding_config",)),
    "tile": Operation(structural.tile, 1, required=("repetitions",)),
    "flatten": Operation(structural.flatten, 1, ("axes",)),
    "new_axis": Operation(structural.new_axis, 1, required=("axis",)),
    "outer": Operation(structural.outer, 2),
    "diff": Operation(structural.diff, 1, ("order", "axis")),
    "eye": Operation(diagonals.eye, 0, ("type",), required=("shape",)),
    "trace": Operation(diagonals.trace, 1),
    "take_diagonal": Operation(diagonals.take_diagonal, 1, ("offset",)),
    "make_diagonal": Operation(diagonals.make_diagonal, 1, ("offset",)),
    "put_diagonal": Operation(diagonals.put_diagonal, 2, ("offset",)),
    **{name: Operation(planner, 1, ("k",)) for name, planner in diagonals.TRIANGLES.items()},
    **{name: Operation(planner, 1) for name, planner in linear_algebra.UNARY.items()},
    **{name: Operation(planner, 2) for name, planner in linear_algebra.BINARY.items()},
    "triangular_solve": Operation(linear_algebra.triangular_solve, 2, ("lower", "left_side", "transform_a")),
    "matrix_power": Operation(linear_algebra.matrix_power, 1, required=("power",)),
    "norm": Operation(linear_algebra.norm, 1, ("ord", "axes", "keep_axes")),
}


_FUNCTION = "write a scan, whose body is a function"
WITHOUT: dict[str, str] = {
    **dict.fromkeys(("reduce", "window_reduce", "map"), _FUNCTION),
    **dict.fromkeys(("fft2", "ifft2"), "apply fft along one axis, then along the other"),
    **dict.fromkeys(("rfft", "irfft"), "fft and ifft take real numbers too"),
}
"""Operations of Nx that models do not have, and why, or what there is instead."""


def plan_call(name: str, specs: tuple[Spec, ...], options: Mapping[str, Any], *, precision: str) -> Plan:
    """What the operation does with operands of these shapes and types. Raises InvalidModel if it cannot."""
    operation = OPERATIONS.get(name)
    if name in WITHOUT:
        raise InvalidModel(f"there is no {name}", found=name, hint=WITHOUT[name])
    if operation is None:
        raise InvalidModel("there is no such operation", found=name, hint=close_matches(name, OPERATIONS))
    if len(specs) != operation.arity if operation.arity is not None else not specs:
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
        is_valid, expected = OPTIONS[option]
        # nil is how a client writes an option that it leaves at its default.
        if not is_valid(value) and not (value is None and option in operation.optional):
            raise InvalidModel(f"the option {option} is wrong", expected=expected, found=reprlib.repr(value))
    for option in operation.required:
        if option not in options:
            raise InvalidModel(f"the option {option} is missing", expected=OPTIONS[option][1], found="nothing")
    if name in complex_numbers.REAL_ONLY and any(is_complex(spec.type) for spec in specs):
        raise InvalidModel(
            f"{name} has no meaning for complex numbers",
            expected="real numbers",
            found=" and ".join(spec.type for spec in specs if is_complex(spec.type)),
            hint="real, imag, abs and phase give real numbers",
        )
    given = {option: value for option, value in options.items() if value is not None}
    return operation.planner(Operands(specs, given, precision))


def close_matches(name: str, known: Mapping[str, Any]) -> str:
    """A hint that lists the known names most like this one, or all of them."""
    matches = difflib.get_close_matches(name, known, n=3)
    return f"did you mean {' or '.join(matches)}?" if matches else f"known are {', '.join(known)}"
