"""The options of operations: by name, what values they take, and how these are called."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from nutkin.model import linear_algebra, ordering, structural, windows
from nutkin.model.types import DTYPES

Kind = tuple[Callable[[Any], bool], str]


MAX_INTEGER = 2**31
"""No tensor has as many elements on one axis: of more XLA, whose numbers have 64 bits, could not work out shapes."""


def _is_integer(value: Any) -> bool:
    return type(value) is int and -MAX_INTEGER <= value <= MAX_INTEGER


def _is_number(value: Any) -> bool:
    return type(value) is int or (isinstance(value, float) and math.isfinite(value))


def _is_integers(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(map(_is_integer, value))


def _is_shape(value: Any) -> bool:
    return _is_integers(value) and all(size >= 1 for size in value)


def _is_boolean(value: Any) -> bool:
    return isinstance(value, bool)


def _is_type(value: Any) -> bool:
    return isinstance(value, str) and value in DTYPES


def _is_order(value: Any) -> bool:
    return value in linear_algebra.ORDERS if isinstance(value, str) else _is_number(value)


def _rows(length: int) -> Callable[[Any], bool]:
    """Lists of so many integers, in a list."""
    return lambda value: (
        isinstance(value, list | tuple) and all(_is_integers(item) and len(item) == length for item in value)
    )


def _is_padding(value: Any) -> bool:
    return value in windows.PADDINGS if isinstance(value, str) else _rows(2)(value)


def _is_padding_config(value: Any) -> bool:
    return _rows(3)(value) and all(interior >= 0 for _low, _high, interior in value)


def _one_of(names: tuple[str, ...]) -> Kind:
    return lambda value: isinstance(value, str) and value in names, "one of " + ", ".join(names)


_INTEGER = (_is_integer, "an integer of at most 2^31")
_INTEGERS = (_is_integers, "a list of integers of at most 2^31")
_SIZE = (lambda value: _is_integer(value) and value >= 1, "an integer from 1 to 2^31")
_PER_AXIS = (lambda value: _is_integer(value) or _is_integers(value), "an integer, or a list of one for each axis")
_SIZES = (_is_shape, "a list of sizes from 1 to 2^31")
_BOOLEAN = (_is_boolean, "a boolean")
_NUMBER = (_is_number, "a number")

OPTIONS: dict[str, Kind] = {
    **dict.fromkeys(("axes", "starts", "lengths", *structural.DOT_OPTIONS), _INTEGERS),
    **dict.fromkeys(("input_permutation", "kernel_permutation", "output_permutation"), _INTEGERS),
    **dict.fromkeys(("axis", "power", "offset", "k", "order", "ddof"), _INTEGER),
    **dict.fromkeys(("strides", "window_dilations", "input_dilation", "kernel_dilation"), _PER_AXIS),
    **dict.fromkeys(("shape", "window", "repetitions"), _SIZES),
    **dict.fromkeys(("feature_group_size", "batch_group_size", "length"), _SIZE),
    **dict.fromkeys(("keep_axes", "keep_axis", "reverse", "lower", "left_side", "equal_nan"), _BOOLEAN),
    **dict.fromkeys(("rtol", "atol", "q"), _NUMBER),
    "transform_a": _one_of(linear_algebra.TRANSFORMS_OF_A),
    "direction": _one_of(ordering.DIRECTIONS),
    "tie_break": _one_of(ordering.TIES),
    "padding": (_is_padding, "valid, same, or a list of pairs [low, high]"),
    "padding_config": (_is_padding_config, "a list of [low, high, interior], the last of at least 0"),
    "ord": (_is_order, "a number, or one of " + ", ".join(linear_algebra.ORDERS)),
    "type": (_is_type, "one of " + ", ".join(DTYPES)),
}
