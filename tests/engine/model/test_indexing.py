"""Operations that pick or replace entries: values, gradients, errors, and places outside their axes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine.builder import Builder
from engine.model.densities import bind, outputs
from engine.model.operation_runs import check_gradient, check_value
from nutkin.errors import InvalidData, InvalidModel
from nutkin.model.operations import plan_call
from nutkin.model.types import Spec, literal_spec

X = np.array([[-2.5, -0.5, 0.5], [1.5, 2.5, 0.0]])
CUBE = np.arange(24.0).reshape(2, 3, 4) - 11
PAIRS = np.array([[1, 2], [0, 0], [1, 2]])
BYTES = np.array([0, 1, 200, 255], np.uint8)


def added(x: np.ndarray, places: tuple, updates: Any) -> np.ndarray:
    x = x.copy()
    np.add.at(x, places, updates)
    return x


def put(x: np.ndarray, places: Any, updates: Any) -> np.ndarray:
    x = x.copy()
    x[places] = updates
    return x


VALUES = [
    ("take", (X, np.array([2, 0, 9, -4])), {"axis": 1}, X[:, [2, 0, 2, 0]]),
    ("take", (X, np.array([[1], [0]])), {}, X[[[1], [0]]]),
    ("take", (X, 1), {}, X[1]),
    ("take", (X, 2), {"axis": -1}, X[:, 2]),
    ("take", (X, np.array(1)), {"axis": 1}, X[:, 1]),
    ("take_along_axis", (X, np.array([[2, 0, 9, -4], [1, 1, 0, 0]])), {"axis": 1},
     np.take_along_axis(X, np.array([[2, 0, 2, 0], [1, 1, 0, 0]]), 1)),
    ("take_along_axis", (X, np.array([[1, 0]])), {}, np.array([[1.5, -0.5]])),
    ("gather", (X, PAIRS), {}, X[PAIRS[:, 0], PAIRS[:, 1]]),
    ("gather", (X, np.array([[9, -1]])), {}, np.array([1.5])),
    ("gather", (CUBE, np.array([[[1], [0]]])), {}, CUBE[[[1, 0]]]),
    ("gather", (CUBE, PAIRS), {"axes": [0, 2]}, CUBE[PAIRS[:, 0], :, PAIRS[:, 1]]),
    ("gather", (CUBE, np.array([1, 3])), {"axes": [1, -1]}, CUBE[:, 1, 3]),
    ("indexed_add", (X, PAIRS, np.array([1.0, 2.0, 3.0])), {}, added(X, (PAIRS[:, 0], PAIRS[:, 1]), [1.0, 2.0, 3.0])),
    ("indexed_add", (X, np.array([[2], [0]]), X.T[:2].copy()), {"axes": [1]},
     added(X.T, ([2, 0],), X.T[:2]).T),
    ("indexed_add", (BYTES, np.array([[3]], np.uint8), np.array([2])), {}, np.array([0, 1, 200, 257])),
    ("indexed_put", (X, PAIRS[:2].copy(), np.array([7.0, 8.0])), {}, put(X, ([1, 0], [2, 0]), [7.0, 8.0])),
    ("indexed_put", (X, np.array([[5]]), np.zeros((1, 3))), {}, put(X, 1, 0.0)),
    ("slice", (CUBE,), {"starts": [1, 0, 1], "lengths": [1, 3, 3], "strides": [1, 2, 2]}, CUBE[1:2, 0:3:2, 1:4:2]),
    ("slice", (X,), {"starts": [1], "lengths": [1]}, X[1:2]),
    ("slice", (X,), {"starts": [0, -2], "lengths": [0, 2]}, X[:, -2:]),
    ("slice", (X,), {"starts": [0, 0], "lengths": [0, -1], "strides": [1, 2]}, X[:, 0:-1:2]),
    ("slice", (CUBE,), {"starts": [0, 0, 0], "lengths": [2, 3, 4], "strides": 2}, CUBE[::2, ::2, ::2]),
    ("dynamic_slice", (CUBE, np.array(1), 0, np.uint8(1)), {"lengths": [1, 3, 3], "strides": [1, 2, 2]},
     CUBE[1:2, ::2, 1:4:2]),
    ("dynamic_slice", (X, np.array(-5), np.array(9)), {"lengths": [1, 2]}, X[:1, 1:]),
    ("dynamic_slice", (X, 1), {"lengths": [1]}, X[1:]),
    ("put_slice", (X, np.array(1), np.array(9), np.array([[7.0]])), {}, put(X, (1, 2), 7.0)),
    ("put_slice", (BYTES, 1, np.array([7, 300])), {}, np.array([0, 7, 300, 255])),
    ("put_slice", (X, 1, np.zeros((1, 3))), {}, put(X, 1, 0.0)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "operands", "options", "expected"), VALUES)
def test_values(name: str, operands: tuple, options: dict[str, Any], expected: np.ndarray) -> None:
    check_value(name, operands, options, expected)


@pytest.mark.parametrize(
    ("name", "operands", "options"),
    [
        ("take", (X, np.array([[1], [0]])), {}),
        ("take_along_axis", (X, np.array([[2, 0], [1, 1]])), {"axis": 1}),
        ("gather", (CUBE, PAIRS), {"axes": [0, 2]}),
        ("indexed_add", (X, PAIRS, np.array([1.0, 2.0, 3.0])), {}),
        ("indexed_put", (X, PAIRS[:2].copy(), np.array([1.0, 2.0])), {}),
        ("dynamic_slice", (X, 1, np.array(1)), {"lengths": [1, 2]}),
        ("put_slice", (X, 1, np.array(1), np.array([[1.0, 2.0]])), {}),
    ],
)
def test_gradients(name: str, operands: tuple, options: dict[str, Any]) -> None:
    check_gradient(name, operands, options)


F3, F23, S3, S32 = Spec((3,), "f64"), Spec((2, 3), "f64"), Spec((3,), "s64"), Spec((3, 2), "s64")
ONE, HALF = (literal_spec(value, precision="f64") for value in (1, 0.5))

REFUSED = [
    ("take", (F3, F3), {}, "the indices of take must be integers"),
    ("take_along_axis", (F23, F23), {}, "the indices of take_along_axis must be integers"),
    ("take_along_axis", (F23, Spec((2, 4), "s64")), {}, "expected {?, 3}; found {2, 4}"),
    ("take_along_axis", (F23, S3), {"axis": 1}, "expected {2, ?}; found {3}"),
    ("gather", (F23, Spec((4, 3), "s64")), {}, "{…, k}, k from 1 to 2"),
    ("gather", (F23, S32), {"axes": [0]}, "here 1; found {3, 2} for the axes [0]"),
    ("gather", (F23, S32), {"axes": [1, 0]}, "axes ascend"),
    ("gather", (F23, ONE), {}, "{} for the axes []"),
    ("indexed_add", (F23, S32, F23), {}, "expected {3}; found {2, 3}"),
    ("indexed_put", (F23, Spec((4, 1), "s64"), F3), {"axes": [1]}, "expected {4, 2}; found {3}"),
    ("dynamic_slice", (F23, ONE), {"lengths": [1, 1]}, "1 starts, [1, 1]"),
    ("dynamic_slice", (F23, ONE), {"lengths": [3]}, "longer than axis 0 of size 2"),
    ("dynamic_slice", (F23, HALF), {"lengths": [1]}, "the starts of dynamic_slice must be integers"),
    ("dynamic_slice", (F23, S3), {"lengths": [1]}, "must be scalars"),
    ("dynamic_slice", (F3,), {}, "lengths is missing"),
    ("put_slice", (F23, ONE, F3), {}, "of as many axes as x"),
    ("put_slice", (F23, ONE, ONE, Spec((3, 1), "f64")), {}, "expected sizes of at most {2, 3}; found {3, 1}"),
    ("put_slice", (F3, ONE, ONE, F3), {}, "at most 1 starts"),
    ("slice", (F3,), {"starts": [0]}, "lengths is missing"),
    ("slice", (F23,), {"starts": [0, 0, 0], "lengths": [1, 1, 1]}, "at most 2"),
    ("slice", (F23,), {"starts": [0], "lengths": [1, 1]}, "same length"),
    ("slice", (F3,), {"starts": [3], "lengths": [1]}, "index 3 is outside axis 0 of size 3"),
    ("slice", (F3,), {"starts": [-4], "lengths": [1]}, "outside axis 0"),
    ("slice", (F3,), {"starts": [0], "lengths": [4]}, "outside axis 0 of size 3; expected entries from 0 to 2"),
    ("slice", (F3,), {"starts": [0], "lengths": [-3]}, "outside axis 0"),
    ("slice", (F3,), {"starts": [0], "lengths": [3], "strides": [0]}, "positive stride"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "specs", "options", "words"), REFUSED)
def test_refused(name: str, specs: tuple[Spec, ...], options: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidModel) as caught:
        plan_call(name, specs, options, precision="f64")
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("name", "places", "rest", "options", "expected", "found"),
    [
        ("take_along_axis", np.array([[0, 1, 2]]), (), {}, "indices from 0 to 1", "2 at [0, 2]"),
        (
            "gather",
            np.array([[0, 0], [1, 3]]),
            (),
            {},
            "indices from 0 to 1 and 2 along the last axis",
            "[1, 3] at [1]",
        ),
        ("gather", np.array([-1, 0], np.int8), (), {}, "indices from 0 to 1 and 2 along the last axis", "[-1, 0]"),
        ("indexed_add", np.array([[3]]), (np.zeros((1, 2)),), {"axes": [1]},
         "indices from 0 to 2 along the last axis", "[3] at [0]"),
        ("indexed_put", np.array([[2]]), (np.zeros((1, 3)),), {},
         "indices from 0 to 1 along the last axis", "[2] at [0]"),
        ("dynamic_slice", np.array(1), (), {"lengths": [2]}, "indices from 0 to 0", "1"),
        ("put_slice", np.array(-1), (np.zeros((1, 3)),), {}, "indices from 0 to 1", "-1"),
    ],
)  # fmt: skip
def test_places_of_data_outside_their_axes(name, places, rest, options, expected, found) -> None:
    b = Builder()
    b.call(name, X, b.data("i"), *rest, **options)
    density, inputs = bind(b.tree(), {"i": places}, b.tensors)
    with pytest.raises(InvalidData) as caught:
        density.check_values(inputs)
    error = caught.value
    assert (error.node, error.expected, error.found, error.hint) == (name, expected, found, "indices start at 0")
    assert error.message.startswith(f"the operand i of {name}(")


def test_a_start_that_is_a_number_outside_its_axis() -> None:
    b = Builder()
    b.call("dynamic_slice", X, 2, lengths=[1])
    with pytest.raises(InvalidModel, match="the operand 2 is outside its range"):
        bind(b.tree(), {}, b.tensors)


def test_places_of_parameters_are_moved_into_their_axes() -> None:
    b = Builder()
    shift = b.call("as_type", b.rv("shift", "normal", {"mu": 0, "sigma": 1}), type="s64")
    b.deterministic("gathered", b.call("gather", X, b.call("add", PAIRS, shift)))
    b.deterministic("sliced", b.call("dynamic_slice", X, shift, shift, lengths=[1, 2]))
    density, inputs = bind(b.tree(), {}, b.tensors)
    density.check_values(inputs)
    for position, row in ((99.0, 1), (-99.0, 0)):
        values = outputs(density, np.array([position]), inputs)
        np.testing.assert_array_equal(values["gathered"], np.repeat(X[row, 2 * row], 3))
        np.testing.assert_array_equal(values["sliced"], X[row : row + 1, row : row + 2])
