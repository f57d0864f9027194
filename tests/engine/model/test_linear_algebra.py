"""Linear algebra: values against NumPy and SciPy, for batches too; gradients; the matrices of data that are refused."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from scipy import linalg

from engine.builder import Builder
from engine.model.densities import bind
from engine.model.operation_runs import check_gradient, check_value, run
from nutkin.errors import InvalidData, InvalidModel
from nutkin.model.operations import plan_call
from nutkin.model.types import Spec

# The matrix and the results of Nx 0.13.1 for it: the Cholesky factor is that of the covariance below.
MATRIX = np.array([[-0.2496636683526084, 0.29206476867326403, -0.4454242373114079],
                   [0.654891747941008, -0.45420955882441355, 0.6699727761808173],
                   [2.4161880221773266, -0.11519454742697001, -2.002452312400537]])  # fmt: skip
COVARIANCE = MATRIX @ MATRIX.T + np.eye(3)
NX_CHOLESKY = np.array([[1.160188143181914, 0.0, 0.0],
                        [-0.512488773639631, 1.349595607048821, 0.0],
                        [0.2198455152186402, 0.3006410832921196, 3.2744972887732757]])  # fmt: skip
NX_DETERMINANT = 0.15422306690401227
NX_POWER = np.array([[3.0009327326533137, -0.3082887225758701, -2.1375214294783045],
                     [-4.760847069565989, 0.4158306545485344, 3.578892453682952],
                     [8.92648712020961, -2.3894237364103317, -2.600041868856043]])  # fmt: skip
NX_EIGENVALUES = np.array([10.87664952066334, 2.41278509582321, 1.001704562473818])
NX_SINGULAR = np.array([3.142713719170637, 1.1886063670632145, 0.0412863473053464])

BATCH = np.stack([COVARIANCE, np.eye(3) + 0.25, np.diag([1.0, 2.0, 4.0])])
WIDE = np.random.default_rng(1).normal(size=(2, 3, 5))
TALL = WIDE.swapaxes(1, 2).copy()
RIGHT = np.random.default_rng(2).normal(size=(3, 3, 2))
VECTOR = np.array([1.0, -2.0, 0.5])
LOWER = np.linalg.cholesky(BATCH)
INTEGERS = np.array([[2, 1], [1, 3]], np.int32)

VALUES = [
    ("cholesky", (COVARIANCE,), {}, linalg.cholesky(COVARIANCE, lower=True)),
    ("cholesky", (INTEGERS,), {}, linalg.cholesky(INTEGERS, lower=True)),
    ("determinant", (BATCH,), {}, np.linalg.det(BATCH)),
    ("determinant", (INTEGERS,), {}, np.array(5.0)),
    ("invert", (BATCH,), {}, np.linalg.inv(BATCH)),
    ("slogdet", (np.stack([MATRIX, -MATRIX]),), {}, tuple(np.linalg.slogdet(np.stack([MATRIX, -MATRIX])))),
    ("lu", (MATRIX,), {}, linalg.lu(MATRIX)),
    ("lu", (BATCH,), {}, linalg.lu(BATCH)),
    ("qr", (TALL,), {}, tuple(np.linalg.qr(TALL))),
    ("eigh", (BATCH[1:] + np.triu(np.ones((3, 3))) + np.tril(np.ones((3, 3))),), {},
     tuple(np.linalg.eigh(BATCH[1:] + np.ones((3, 3)) + np.eye(3)))),
    ("svd", (WIDE,), {}, tuple(np.linalg.svd(WIDE, full_matrices=False))),
    ("solve", (BATCH, RIGHT), {}, np.linalg.solve(BATCH, RIGHT)),
    ("solve", (BATCH, RIGHT[..., 0].copy()), {}, np.linalg.solve(BATCH, RIGHT)[..., 0]),
    ("solve", (INTEGERS, np.array([1, 0])), {}, np.array([0.6, -0.2])),
    ("kron", (MATRIX, INTEGERS), {}, np.kron(MATRIX, INTEGERS)),
    ("kron", (BATCH, INTEGERS[:, :1].copy()), {}, np.stack([np.kron(x, INTEGERS[:, :1]) for x in BATCH])),
    ("triangular_solve", (BATCH, RIGHT), {}, np.linalg.solve(np.tril(BATCH), RIGHT)),
    ("triangular_solve", (MATRIX, VECTOR), {"lower": False}, np.linalg.solve(np.triu(MATRIX), VECTOR)),
    ("triangular_solve", (MATRIX, VECTOR), {"transform_a": "transpose"}, np.linalg.solve(np.tril(MATRIX).T, VECTOR)),
    ("triangular_solve", (MATRIX, VECTOR), {"transform_a": "conjugate"}, np.linalg.solve(np.tril(MATRIX), VECTOR)),
    (
        "triangular_solve",
        (MATRIX + 1j * MATRIX.T, VECTOR + 0j),
        {"transform_a": "conjugate"},
        np.linalg.solve(np.tril(MATRIX - 1j * MATRIX.T), VECTOR),
    ),
    ("triangular_solve", (MATRIX, VECTOR), {"left_side": False}, np.linalg.solve(np.tril(MATRIX).T, VECTOR)),
    ("triangular_solve", (MATRIX, WIDE[0].T.copy()), {"left_side": False},
     np.linalg.solve(np.tril(MATRIX).T, WIDE[0]).T),
    ("matrix_power", (BATCH,), {"power": 5}, np.linalg.matrix_power(BATCH, 5)),
    ("matrix_power", (INTEGERS,), {"power": 3}, np.linalg.matrix_power(INTEGERS, 3)),
    ("matrix_power", (INTEGERS,), {"power": 0}, np.eye(2, dtype=np.int32)),
    ("matrix_power", (INTEGERS,), {"power": -2}, np.linalg.matrix_power(INTEGERS.astype(float), -2)),
    ("norm", (MATRIX,), {}, np.linalg.norm(MATRIX)),
    ("norm", (BATCH,), {}, np.linalg.norm(BATCH.ravel())),
    ("norm", (BATCH,), {"axes": [-1], "keep_axes": True}, np.linalg.norm(BATCH, axis=-1, keepdims=True)),
    ("norm", (VECTOR,), {"ord": 3}, np.linalg.norm(VECTOR, 3)),
    ("norm", (VECTOR,), {"ord": "inf"}, np.array(2.0)),
    ("norm", (BATCH,), {"axes": [1, 2], "ord": 1}, np.linalg.norm(BATCH, 1, (1, 2))),
    ("norm", (BATCH,), {"axes": [1, 2], "ord": "neg_inf"}, np.linalg.norm(BATCH, -np.inf, (1, 2))),
    ("norm", (BATCH,), {"axes": [1, 2], "ord": "nuclear"}, np.linalg.norm(BATCH, "nuc", (1, 2))),
    ("norm", (MATRIX,), {"ord": 2}, np.linalg.norm(MATRIX, 2)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "operands", "options", "expected"), VALUES)
def test_values(name: str, operands: tuple, options: dict[str, Any], expected: Any) -> None:
    expected = tuple(map(np.asarray, expected)) if isinstance(expected, tuple) else np.asarray(expected)
    check_value(name, operands, options, expected, rtol=1e-11)


def test_values_are_those_of_nx() -> None:
    def value(name: str, **options: Any) -> Any:
        return run(name, COVARIANCE if name in ("cholesky", "eigh") else MATRIX, **options)[0]

    np.testing.assert_allclose(value("cholesky"), NX_CHOLESKY, rtol=1e-8)
    np.testing.assert_allclose(value("determinant"), NX_DETERMINANT, rtol=1e-8)
    np.testing.assert_allclose(value("matrix_power", power=3), NX_POWER, rtol=1e-8)
    np.testing.assert_allclose(value("eigh")[0][::-1], NX_EIGENVALUES, rtol=1e-6)
    np.testing.assert_allclose(value("svd")[1], NX_SINGULAR, rtol=1e-6)


def test_factors_of_a_wide_matrix() -> None:
    (q, r), _ = run("qr", WIDE)
    np.testing.assert_allclose(q @ r, WIDE, rtol=1e-12)
    np.testing.assert_allclose(q.swapaxes(1, 2) @ q, np.broadcast_to(np.eye(3), (2, 3, 3)), atol=1e-14)
    np.testing.assert_array_equal(np.tril(r[..., :3], -1), 0)


GRADIENTS = [
    ("cholesky", (BATCH,), {}),
    ("determinant", (np.stack([MATRIX, COVARIANCE]),), {}),
    ("determinant", (np.ones((3, 3)),), {}),
    ("invert", (BATCH,), {}),
    ("slogdet", (np.stack([MATRIX, -MATRIX]),), {}),
    ("lu", (BATCH,), {}),
    ("qr", (TALL,), {}),
    ("qr", (WIDE,), {}),
    ("eigh", (BATCH[::2].copy(),), {}),
    ("svd", (WIDE,), {}),
    ("svd", (TALL,), {}),
    ("solve", (BATCH, RIGHT), {}),
    ("solve", (MATRIX, VECTOR), {}),
    ("kron", (MATRIX, BATCH), {}),
    ("triangular_solve", (LOWER, RIGHT), {}),
    ("triangular_solve", (MATRIX, VECTOR), {"lower": False, "transform_a": "transpose"}),
    ("triangular_solve", (MATRIX, VECTOR), {"left_side": False}),
    ("matrix_power", (BATCH,), {"power": 5}),
    ("matrix_power", (BATCH,), {"power": -2}),
    ("norm", (MATRIX,), {}),
    ("norm", (MATRIX,), {"axes": [0], "ord": 3}),
    ("norm", (MATRIX,), {"ord": "nuclear"}),
]


@pytest.mark.parametrize(("name", "operands", "options"), GRADIENTS)
def test_gradients(name: str, operands: tuple, options: dict[str, Any]) -> None:
    check_gradient(name, operands, options)


def test_the_norm_of_nothing_has_a_gradient() -> None:
    planned = plan_call("norm", (Spec((3,), "f64"),), {}, precision="f64")
    np.testing.assert_array_equal(jax.grad(planned.run)(np.zeros(3)), np.zeros(3))


F3, F23, F33, B33 = Spec((3,), "f64"), Spec((2, 3), "f64"), Spec((3, 3), "f64"), Spec((4, 3, 3), "f64")

REFUSED = [
    ("cholesky", (F23,), {}, "cholesky needs a square matrix; expected a shape {…, n, n}; found {2, 3}"),
    ("determinant", (F3,), {}, "square matrix"),
    ("qr", (F3,), {}, "qr needs a matrix"),
    ("kron", (F33, F3), {}, "kron needs a matrix"),
    ("kron", (B33, Spec((3, 2, 2), "f64")), {}, "{4} and {3}"),
    ("solve", (F33, Spec((4,), "f64")), {}, "matrix {3, 3}; expected {3} or {3, ?}; found {4}"),
    ("solve", (B33, F33), {}, "expected {4, 3} or {4, 3, ?}; found {3, 3}"),
    ("triangular_solve", (F33, F23), {}, "{3} or {3, ?}"),
    ("triangular_solve", (F33, Spec((3, 2), "f64")), {"left_side": False}, "{3} or {?, 3}"),
    ("triangular_solve", (F33, F3), {"transform_a": "adjoint"}, "none, transpose, conjugate"),
    ("matrix_power", (F33,), {}, "power is missing"),
    ("matrix_power", (F23,), {"power": 2}, "square matrix"),
    ("norm", (F33,), {"ord": 3}, "of the order 3 over 2 axes"),
    ("norm", (F3,), {"ord": "nuclear"}, "of the order nuclear over 1 axes"),
    ("norm", (F3,), {"ord": "two"}, "a number, or one of inf"),
    ("norm", (B33,), {"ord": 1}, "over 3 axes"),
]


@pytest.mark.parametrize(("name", "specs", "options", "words"), REFUSED)
def test_refused(name: str, specs: tuple[Spec, ...], options: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidModel) as caught:
        plan_call(name, specs, options, precision="f64")
    assert words in str(caught.value)


IMPOSSIBLE = np.array([[1.0, 2.0], [2.0, 1.0]])
SINGULAR = np.array([[1.0, 2.0], [2.0, 4.0]])


@pytest.mark.parametrize(
    ("name", "matrix", "others", "options", "expected"),
    [
        ("cholesky", IMPOSSIBLE, (), {}, "a symmetric positive definite matrix"),
        (
            "cholesky",
            np.stack([np.eye(2), SINGULAR]).astype(np.float16),
            (),
            {},
            "a symmetric positive definite matrix",
        ),
        ("invert", SINGULAR, (), {}, "an invertible matrix"),
        ("invert", SINGULAR.astype(np.int64), (), {}, "an invertible matrix"),
        ("matrix_power", SINGULAR, (), {"power": -1}, "an invertible matrix"),
        ("solve", SINGULAR, (np.ones(2),), {}, "an invertible matrix"),
        ("triangular_solve", np.array([[1.0, 0.0], [1.0, 0.0]]), (np.ones(2),), {}, "zeros on its diagonal"),
        ("eigh", np.array([[1.0, 2.0], [0.0, 1.0]]), (), {}, "a symmetric matrix"),
    ],
)
def test_matrices_of_data_that_have_no_result(name, matrix, others, options, expected) -> None:
    b = Builder()
    b.call(name, b.data("m"), *others, **options)
    density, inputs = bind(b.tree(), {"m": matrix}, b.tensors)
    with pytest.raises(InvalidData) as caught:
        density.check_values(inputs)
    error = caught.value
    assert error.node == name
    assert error.message.startswith(f"the operand m of {name}(m")
    assert expected in error.expected


def test_a_matrix_of_parameters_is_not_checked() -> None:
    b = Builder()
    x = b.rv("x", "normal", {"mu": 0.0, "sigma": 1.0})
    b.deterministic("l", b.call("cholesky", b.call("multiply", x, IMPOSSIBLE)))
    density, inputs = bind(b.tree(), {}, b.tensors)
    density.check_values(inputs)
