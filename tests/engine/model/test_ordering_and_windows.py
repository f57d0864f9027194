"""Operations by order, and on windows: values against NumPy and SciPy, NaN and ties, gradients, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view
from scipy import signal

from engine.model.operation_runs import check_gradient, check_value
from nutkin.errors import InvalidModel
from nutkin.model.operations import plan_call
from nutkin.model.types import Spec

X = np.array([[-2.5, -0.5, 0.5], [1.5, 2.5, 0.0]])
TIES = np.array([3, 1, 3, 2, 1], np.int32)
NAN = np.array([1.0, np.nan, -np.inf, 0.5])
CUBE = np.random.default_rng(0).normal(size=(2, 3, 4))
IMAGES = np.random.default_rng(1).normal(size=(2, 3, 5, 4))
KERNEL = np.random.default_rng(2).normal(size=(2, 3, 2, 3))
BYTES = np.array([0, 1, 200, 255], np.uint8)


def windows(x: np.ndarray, *sizes: int) -> np.ndarray:
    return sliding_window_view(x, sizes).reshape(*(n - k + 1 for n, k in zip(x.shape, sizes, strict=True)), -1)


def correlated(x: np.ndarray, kernel: np.ndarray) -> np.ndarray:
    """Every image with every kernel, summed over the channels."""
    pairs = [[signal.correlate(image, k, "valid")[0] for k in kernel] for image in x]
    return np.array(pairs)


PADDED = np.pad(X, ((0, 1), (0, 1)))

VALUES = [
    ("sort", (X,), {}, np.sort(X, 0)),
    ("sort", (X,), {"axis": -1, "direction": "desc"}, -np.sort(-X, 1)),
    ("sort", (NAN,), {}, np.array([-np.inf, 0.5, 1.0, np.nan])),
    ("sort", (NAN,), {"direction": "desc"}, np.array([np.nan, 1.0, 0.5, -np.inf])),
    ("argsort", (TIES,), {}, np.array([1, 4, 3, 0, 2], np.int32)),
    ("argsort", (TIES,), {"direction": "desc", "type": "s64"}, np.array([0, 2, 3, 1, 4])),
    ("argmax", (TIES,), {}, np.array(0, np.int32)),
    ("argmax", (TIES,), {"tie_break": "high", "keep_axis": True}, np.array([2], np.int32)),
    ("argmax", (X,), {"axis": 1}, np.array([2, 1], np.int32)),
    ("argmax", (X,), {}, np.array(4, np.int32)),
    ("argmin", (TIES,), {"tie_break": "high", "type": "u8"}, np.array(4, np.uint8)),
    ("argmin", (X,), {"axis": -2, "keep_axis": True}, np.array([[0, 0, 1]], np.int32)),
    ("top_k", (X,), {"k": 2}, (np.array([[0.5, -0.5], [2.5, 1.5]]), np.array([[2, 1], [1, 0]], np.int32))),
    ("top_k", (TIES,), {}, (np.array([3], np.int32), np.array([0], np.int32))),
    ("median", (X,), {}, np.array(0.25)),
    ("median", (X,), {"axis": 1}, np.array([-0.5, 1.5])),
    ("median", (TIES,), {"keep_axis": True, "axis": 0}, np.array([2], np.int32)),
    ("median", (TIES[:4].copy(),), {}, np.array(2.5)),
    ("quantile", (X,), {"q": 0.3, "axis": 1}, np.quantile(X, 0.3, 1)),
    ("quantile", (TIES,), {"q": 1, "keep_axis": True}, np.array([3.0])),
    ("cumulative_max", (X,), {"axis": 1}, np.maximum.accumulate(X, 1)),
    ("cumulative_min", (X,), {"axis": 1, "reverse": True}, np.minimum.accumulate(X[:, ::-1], 1)[:, ::-1]),
    ("variance", (CUBE,), {}, np.var(CUBE)),
    ("variance", (CUBE,), {"axes": [0, 2], "ddof": 1, "keep_axes": True}, np.var(CUBE, (0, 2), ddof=1, keepdims=True)),
    ("variance", (BYTES,), {}, np.var(BYTES)),
    ("standard_deviation", (CUBE,), {"axes": [1]}, np.std(CUBE, 1)),
    ("all_close", (X, X + 1e-9), {}, np.array(1, np.uint8)),
    ("all_close", (X, X + 1e-3), {}, np.array(0, np.uint8)),
    ("all_close", (X, X + 1e-3), {"rtol": 0, "atol": 0.01}, np.array(1, np.uint8)),
    ("all_close", (NAN, NAN), {"equal_nan": True}, np.array(1, np.uint8)),
    ("window_sum", (CUBE,), {"window": [1, 2, 3]}, windows(CUBE, 1, 2, 3).sum(-1)),
    ("window_sum", (BYTES,), {"window": [2]}, np.array([1, 201, 199], np.uint8)),
    ("window_sum", (X,), {"window": [2, 2], "padding": "same"}, windows(PADDED, 2, 2).sum(-1)),
    ("window_sum", (X,), {"window": [1, 2], "padding": [[0, 0], [2, -1]]}, np.array([[0, -2.5, -3], [0, 1.5, 4]])),
    ("window_max", (CUBE,), {"window": [1, 2, 2], "strides": [1, 1, 2]}, windows(CUBE, 1, 2, 2).max(-1)[:, :, ::2]),
    ("window_max", (TIES,), {"window": [2], "padding": "same"}, np.array([3, 3, 3, 2, 1], np.int32)),
    ("window_min", (CUBE,), {"window": [2, 1, 2], "window_dilations": [1, 1, 3]},
     CUBE[:, :, [0, 3]].min((0, 2))[None, :, None]),
    ("window_min", (X,), {"window": [1, 3], "padding": "same", "strides": 2},
     np.array([[-2.5, -0.5]])),
    ("window_product", (CUBE,), {"window": [2, 2, 1]}, windows(CUBE, 2, 2, 1).prod(-1)),
    ("window_product", (X,), {"window": [1, 2], "padding": "same", "window_dilations": [1, 2]},
     np.array([[-0.5, -1.25, -0.5], [2.5, 0.0, 2.5]])),
    ("window_mean", (X,), {"window": [1, 2]}, windows(X, 1, 2).mean(-1)),
    ("window_mean", (TIES,), {"window": [3], "padding": "same"}, np.array([4, 7, 6, 6, 3]) / 3),
    ("conv", (IMAGES, KERNEL), {}, correlated(IMAGES, KERNEL)),
    ("conv", (IMAGES, KERNEL), {"strides": [2, 1]}, correlated(IMAGES, KERNEL)[:, :, ::2]),
    ("conv", (IMAGES, KERNEL), {"padding": "same"},
     correlated(np.pad(IMAGES, ((0, 0), (0, 0), (0, 1), (1, 1))), KERNEL)),
    ("conv", (np.moveaxis(IMAGES, 1, 3).copy(), np.transpose(KERNEL, (2, 3, 1, 0)).copy()),
     {"input_permutation": [0, 3, 1, 2], "kernel_permutation": [3, 2, 0, 1], "output_permutation": [0, 3, 1, 2]},
     np.moveaxis(correlated(IMAGES, KERNEL), 1, 3)),
    ("conv", (np.array([[[1, 2, 3, 4]]]), np.array([[[1, 10]]])), {"kernel_dilation": 2},
     np.array([[[31.0, 42.0]]])),
    ("conv", (np.array([[[1, 2, 3]]]), np.array([[[1, 10]]])), {"input_dilation": [2]},
     np.array([[[1.0, 20.0, 2.0, 30.0]]])),
]  # fmt: skip


@pytest.mark.parametrize(("name", "operands", "options", "expected"), VALUES)
def test_values(name: str, operands: tuple, options: dict[str, Any], expected: Any) -> None:
    expected = expected if isinstance(expected, tuple) else np.asarray(expected)
    check_value(name, operands, options, expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("name", "operands", "options"),
    [
        ("sort", (X,), {"axis": 1}),
        ("top_k", (X,), {"k": 2}),
        ("median", (X,), {}),
        ("median", (X,), {"axis": 1}),
        ("quantile", (X,), {"q": 0.3}),
        ("cumulative_max", (X,), {"axis": 1}),
        ("variance", (CUBE,), {"axes": [1], "ddof": 1}),
        ("standard_deviation", (CUBE,), {}),
        ("window_sum", (CUBE,), {"window": [1, 2, 2], "padding": "same", "strides": [1, 2, 1]}),
        ("window_max", (CUBE,), {"window": [2, 2, 2], "padding": "same"}),
        ("window_min", (CUBE,), {"window": [1, 2, 3]}),
        ("window_mean", (CUBE,), {"window": [2, 2, 2]}),
        ("window_product", (CUBE,), {"window": [2, 2, 1], "padding": "same", "window_dilations": [1, 2, 1]}),
        ("conv", (IMAGES, KERNEL), {"strides": [2, 1], "padding": "same"}),
    ],
)
def test_gradients(name: str, operands: tuple, options: dict[str, Any]) -> None:
    check_gradient(name, operands, options)


F3, F23, I4 = Spec((3,), "f64"), Spec((2, 3), "f64"), Spec((1, 2, 3, 3), "f64")

REFUSED = [
    ("sort", (F3,), {"axis": 1}, "from -1 to 0"),
    ("sort", (F3,), {"direction": "up"}, "one of asc, desc"),
    ("argmax", (F3,), {"tie_break": "first"}, "one of low, high"),
    ("top_k", (F23,), {"k": 4}, "k from 1 to 3"),
    ("quantile", (F3,), {"q": 1.5}, "a number from 0 to 1"),
    ("quantile", (F3,), {}, "q is missing"),
    ("variance", (F23,), {"ddof": 3, "axes": [1]}, "expected from 0 to 2; found 3"),
    ("all_close", (F3, Spec((2,), "f64")), {}, "do not broadcast"),
    ("window_sum", (F23,), {"window": [2]}, "2 sizes, for {2, 3}"),
    ("window_sum", (F23,), {"window": [3, 1]}, "at most {2, 3}, padding included; found {3, 1}"),
    ("window_sum", (F23,), {"window": [1, 1], "strides": [0, 1]}, "a positive integer for each axis"),
    ("window_sum", (F23,), {"window": [1, 1], "padding": [[1, 1]]}, "2 pairs"),
    ("window_sum", (F23,), {"window": [1, 1], "padding": "full"}, "valid, same"),
    ("conv", (F23, F23), {}, "{n, c, …} and {o, c, …}"),
    ("conv", (I4, Spec((1, 3, 2, 2), "f64")), {}, "channels of x and of the kernel"),
    ("conv", (I4, Spec((1, 2, 4, 1), "f64")), {}, "larger than the tensor"),
    ("conv", (I4, I4), {"input_permutation": [0, 1, 2]}, "the numbers from 0 to 3"),
    ("fft2", (F3,), {}, "there is no fft2"),
    ("window_reduce", (F3,), {}, "there is no window_reduce"),
]


@pytest.mark.parametrize(("name", "specs", "options", "words"), REFUSED)
def test_refused(name: str, specs: tuple[Spec, ...], options: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidModel) as caught:
        plan_call(name, specs, options, precision="f64")
    assert words in str(caught.value)
    assert caught.value.found is not None
