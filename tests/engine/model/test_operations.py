"""Every operation: its values against NumPy written out, and its inferred shape and type against the result's."""

from __future__ import annotations

from typing import Any

import jax
import ml_dtypes
import numpy as np
import pytest
from scipy import special

from engine.model import test_indexing as indexing
from engine.model import test_linear_algebra as linear_algebra
from engine.model import test_ordering_and_windows as ordering_and_windows
from engine.model import test_special_functions as special_functions
from engine.model.operation_runs import check_value, run
from nutkin.errors import InvalidModel
from nutkin.model.operations import OPERATIONS, plan_call
from nutkin.model.plan import cast
from nutkin.model.types import DTYPES, NAMES, Spec, is_integer, literal_spec

X = np.array([[-2.5, -0.5, 0.5], [1.5, 2.5, 0.0]])
Y = np.array([[2.0], [-3.0]])
UNIT = np.array([-0.9, -0.3, 0.0, 0.2, 0.7])
POSITIVE = np.array([0.1, 1.0, 2.5, 40.0])
INTS = np.array([-7, -1, 0, 3, 8])
DIVISORS = np.array([2, -3, 5, -2, 3])
BYTES = np.array([0, 1, 200, 255], np.uint8)
COMPLEX = X + 1j * np.flip(X)
CUBE = np.arange(24.0).reshape(2, 3, 4) - 11


def round_half_away(x: np.ndarray) -> np.ndarray:
    return np.sign(x) * np.floor(np.abs(x) + 0.5)


def truncated(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.trunc(a / b).astype(np.int64)


# operation, operands, options, expected
VALUES = [
    ("add", (X, Y), {}, X + Y),
    ("add", (BYTES, 255), {}, BYTES + np.uint8(255)),
    ("add", (BYTES, 300), {}, BYTES.astype(np.uint16) + np.uint16(300)),
    ("subtract", (X, 0.1), {}, X - 0.1),
    ("subtract", (BYTES, BYTES[::-1].copy()), {}, BYTES - BYTES[::-1]),
    ("multiply", (X, Y), {}, X * Y),
    ("multiply", (np.float32(X), 0.1), {}, np.float32(X) * np.float32(0.1)),
    ("divide", (X, Y), {}, X / Y),
    ("divide", (INTS, 2), {}, INTS / 2),
    ("divide", (X, 0), {}, np.array([[-np.inf, -np.inf, np.inf], [np.inf, np.inf, np.nan]])),
    ("pow", (X, 2), {}, X * X),
    ("pow", (X, -1), {}, np.array([[-0.4, -2, 2], [1 / 1.5, 0.4, np.inf]])),
    ("pow", (POSITIVE, 0.5), {}, np.sqrt(POSITIVE)),
    ("pow", (2, X), {}, np.exp2(X)),
    ("pow", (INTS, 3), {}, INTS * INTS * INTS),
    ("pow", (X, np.array(0)), {}, np.ones_like(X)),
    ("remainder", (INTS, DIVISORS), {}, INTS - DIVISORS * truncated(INTS, DIVISORS)),
    ("remainder", (X, Y), {}, np.fmod(X, Y)),
    ("quotient", (INTS, DIVISORS), {}, truncated(INTS, DIVISORS)),
    ("quotient", (INTS, 2), {}, np.array([-3, 0, 0, 1, 4])),
    ("max", (X, Y), {}, np.where(X > Y, X, Y)),
    ("min", (X, Y), {}, np.where(X < Y, X, Y)),
    ("max", (np.array([np.nan, 1.0]), 0), {}, np.array([np.nan, 1.0])),
    ("atan2", (X, Y), {}, np.arctan2(X, Y)),
    ("equal", (X, 0.5), {}, np.uint8([[0, 0, 1], [0, 0, 0]])),
    ("not_equal", (X, 0.5), {}, np.uint8([[1, 1, 0], [1, 1, 1]])),
    ("less", (INTS, 0), {}, np.uint8([1, 1, 0, 0, 0])),
    ("less", (BYTES, -1), {}, np.uint8([0, 0, 0, 0])),
    ("less_equal", (INTS, 0.5), {}, np.uint8([1, 1, 1, 0, 0])),
    ("greater", (X, Y), {}, np.uint8([[0, 0, 0], [1, 1, 1]])),
    ("greater_equal", (np.array([np.nan, 1.0]), 1), {}, np.uint8([0, 1])),
    ("logical_and", (X, INTS[:3]), {}, np.uint8([[1, 1, 0], [1, 1, 0]])),
    ("logical_or", (X, 0), {}, np.uint8([[1, 1, 1], [1, 1, 0]])),
    ("logical_xor", (X, 1), {}, np.uint8([[0, 0, 0], [0, 0, 1]])),
    ("negate", (X,), {}, 0 - X),
    ("negate", (BYTES,), {}, np.uint8([0, 255, 56, 1])),
    ("abs", (INTS,), {}, np.array([7, 1, 0, 3, 8])),
    ("abs", (BYTES,), {}, BYTES),
    ("sign", (X,), {}, np.array([[-1.0, -1, 1], [1, 1, 0]])),
    ("exp", (X,), {}, np.exp(X)),
    ("exp", (INTS,), {}, np.exp(INTS.astype(float))),
    ("expm1", (X * 1e-10,), {}, np.expm1(X * 1e-10)),
    ("log", (POSITIVE,), {}, np.log(POSITIVE)),
    ("log", (np.array([0.0, -1.0]),), {}, np.array([-np.inf, np.nan])),
    ("log1p", (X.clip(-0.5) * 1e-10,), {}, np.log1p(X.clip(-0.5) * 1e-10)),
    ("sqrt", (POSITIVE,), {}, POSITIVE**0.5),
    ("rsqrt", (POSITIVE,), {}, POSITIVE**-0.5),
    ("cbrt", (X,), {}, np.cbrt(X)),
    ("sigmoid", (X * 100,), {}, special.expit(X * 100)),
    ("sin", (X,), {}, np.sin(X)),
    ("cos", (X,), {}, np.cos(X)),
    ("tan", (X,), {}, np.tan(X)),
    ("sinh", (X,), {}, np.sinh(X)),
    ("cosh", (X,), {}, np.cosh(X)),
    ("tanh", (X,), {}, np.tanh(X)),
    ("asin", (UNIT,), {}, np.arcsin(UNIT)),
    ("acos", (UNIT,), {}, np.arccos(UNIT)),
    ("atan", (X,), {}, np.arctan(X)),
    ("asinh", (X,), {}, np.arcsinh(X)),
    ("acosh", (1 + POSITIVE,), {}, np.arccosh(1 + POSITIVE)),
    ("atanh", (UNIT,), {}, np.arctanh(UNIT)),
    ("erf", (X,), {}, special.erf(X)),
    ("erfc", (X,), {}, special.erfc(X)),
    ("erf_inv", (UNIT,), {}, special.erfinv(UNIT)),
    ("floor", (X,), {}, np.array([[-3.0, -1, 0], [1, 2, 0]])),
    ("ceil", (X,), {}, np.array([[-2.0, 0, 1], [2, 3, 0]])),
    ("round", (X,), {}, round_half_away(X)),
    ("round", (INTS,), {}, INTS),
    ("logical_not", (X,), {}, np.uint8([[0, 0, 0], [0, 0, 1]])),
    ("is_nan", (np.array([np.nan, np.inf, 0.0]),), {}, np.uint8([1, 0, 0])),
    ("is_nan", (INTS,), {}, np.zeros(5, np.uint8)),
    ("is_infinity", (np.array([np.nan, -np.inf, 0.0]),), {}, np.uint8([0, 1, 0])),
    ("bitwise_and", (BYTES, INTS[:4]), {}, BYTES.astype(np.int64) & INTS[:4]),
    ("bitwise_or", (BYTES, 3), {}, BYTES | np.uint8(3)),
    ("bitwise_xor", (INTS, DIVISORS), {}, INTS ^ DIVISORS),
    ("bitwise_not", (INTS,), {}, -INTS - 1),
    ("left_shift", (BYTES, 1), {}, BYTES << np.uint8(1)),
    ("left_shift", (INTS, 70), {}, INTS * 0),
    ("right_shift", (INTS, 1), {}, np.array([-4, -1, 0, 1, 4])),
    ("right_shift", (INTS, 64), {}, np.array([-1, -1, 0, 0, 0])),
    ("right_shift", (BYTES, 1), {}, BYTES >> np.uint8(1)),
    ("population_count", (INTS.astype(np.int8),), {}, np.array([6, 8, 0, 2, 1], np.int8)),
    ("count_leading_zeros", (INTS.astype(np.int16),), {}, np.array([0, 0, 16, 14, 12], np.int16)),
    ("count_leading_zeros", (np.array([0, 1, 7], ml_dtypes.uint4),), {}, np.array([4, 3, 1], ml_dtypes.uint4)),
    ("bitcast", (np.array([1.0, -0.0]),), {"type": "u64"}, np.array([0x3FF << 52, 1 << 63], np.uint64)),
    ("bitcast", (np.array([0x3F800000], np.int32),), {"type": "f32"}, np.array([1.0], np.float32)),
    ("as_type", (X,), {"type": "s32"}, np.array([[-2, 0, 0], [1, 2, 0]], np.int32)),
    ("as_type", (np.array([np.nan, np.inf, -np.inf]),), {"type": "s8"}, np.array([0, 127, -128], np.int8)),
    ("as_type", (INTS,), {"type": "f32"}, INTS.astype(np.float32)),
    ("select", (X > 0, X, 0), {}, np.where(X > 0, X, 0)),
    ("select", (np.uint8(1), X, Y), {}, np.broadcast_to(X, (2, 3))),
    ("select", (0, X, Y), {}, np.broadcast_to(Y, (2, 3))),
    ("select", (X > 0, Y, X[0]), {}, np.where(X > 0, np.broadcast_to(Y, X.shape), X[0])),
    ("clip", (X, -1, 2), {}, np.where(X < -1, -1, np.where(X > 2, 2, X))),
    ("clip", (INTS, -2.5, 3), {}, np.array([-2.5, -1, 0, 3, 3])),
    ("sum", (CUBE,), {}, np.array(12.0)),
    ("sum", (CUBE,), {"axes": [0, -1]}, CUBE.sum(2).sum(0)),
    ("sum", (CUBE,), {"axes": [1], "keep_axes": True}, CUBE.sum(1)[:, None]),
    ("sum", (CUBE,), {"axes": []}, CUBE),
    ("sum", (BYTES,), {}, np.array(456, np.uint32)),
    ("product", (X[0],), {}, np.array(0.625)),
    ("product", (INTS.astype(np.int8),), {"axes": [0]}, np.array(0, np.int32)),
    ("mean", (CUBE,), {"axes": [2]}, CUBE.sum(2) / 4),
    ("mean", (INTS,), {}, np.array(0.6)),
    ("reduce_max", (CUBE,), {"axes": [0]}, CUBE[1]),
    ("reduce_min", (INTS,), {}, np.array(-7)),
    ("logsumexp", (X + 1000,), {"axes": [1]}, 1000 + np.log(np.exp(X).sum(1))),
    ("logsumexp", (np.full(2, -np.inf),), {}, np.array(-np.inf)),
    ("all", (X,), {"axes": [1]}, np.uint8([1, 0])),
    ("any", (X * 0,), {}, np.uint8(0)),
    ("cumulative_sum", (X,), {}, np.array([X[0], X[0] + X[1]])),
    ("cumulative_sum", (X,), {"axis": -1, "reverse": True}, X[:, ::-1].cumsum(1)[:, ::-1]),
    ("cumulative_sum", (BYTES,), {}, np.uint8([0, 1, 201, 200])),
    ("cumulative_product", (X,), {"axis": 1}, np.cumprod(X, 1)),
    ("dot", (X, X.T.copy()), {}, np.einsum("ij,kj->ik", X, X)),
    ("dot", (X, X[0]), {}, np.einsum("ij,j->i", X, X[0])),
    ("dot", (X[0], X.T.copy()), {}, np.einsum("j,kj->k", X[0], X)),
    ("dot", (X, 3), {}, X + X + X),
    ("dot", (CUBE, CUBE[0].T.copy()), {}, np.einsum("ijk,kl->ijl", CUBE, CUBE[0].T)),
    ("dot", (BYTES, BYTES), {}, np.array(66, np.uint8)),
    ("dot", (CUBE, CUBE), {"contract_a": [-1], "contract_b": [2], "batch_a": [0], "batch_b": [0]},
     np.einsum("ijk,ilk->ijl", CUBE, CUBE)),
    ("dot", (CUBE, X), {"contract_a": [0, 1], "contract_b": [0, 1]}, np.einsum("ijk,ij->k", CUBE, X)),
    ("reshape", (X,), {"shape": [3, 2]}, np.array([[-2.5, -0.5], [0.5, 1.5], [2.5, 0.0]])),
    ("reshape", (2.5,), {"shape": [1, 1]}, np.array([[2.5]])),
    ("broadcast", (X[0],), {"shape": [2, 3]}, np.stack([X[0]] * 2)),
    ("broadcast", (X[0],), {"shape": [3, 2], "axes": [0]}, np.stack([X[0]] * 2, 1)),
    ("broadcast", (Y,), {"shape": [2, 3]}, np.repeat(Y, 3, 1)),
    ("broadcast", (1,), {"shape": [2]}, np.array([1, 1])),
    ("squeeze", (Y,), {}, np.array([2.0, -3.0])),
    ("squeeze", (CUBE[:1, :, :1].copy(),), {"axes": [-1]}, CUBE[:1, :, 0]),
    ("transpose", (CUBE,), {}, np.einsum("ijk->kji", CUBE)),
    ("transpose", (CUBE,), {"axes": [1, 0, -1]}, np.einsum("ijk->jik", CUBE)),
    ("concatenate", (X, Y), {"axis": -1}, np.array([[*X[0], 2.0], [*X[1], -3.0]])),
    ("concatenate", (INTS, X[0]), {}, np.array([*INTS, *X[0]])),
    ("stack", (X, X * 2), {"axis": 1}, np.array([[X[0], X[0] * 2], [X[1], X[1] * 2]])),
    ("stack", (1, 2.5), {}, np.array([1.0, 2.5])),
    ("iota", (), {"shape": [2, 3]}, np.arange(6, dtype=np.int32).reshape(2, 3)),
    ("iota", (), {"shape": [2, 3], "axis": -1, "type": "f32"}, np.float32([[0, 1, 2], [0, 1, 2]])),
    ("reverse", (CUBE,), {"axes": [0, -1]}, CUBE[::-1, :, ::-1]),
    ("reverse", (X,), {}, X[::-1, ::-1]),
    ("pad", (X, 7), {"padding_config": [[1, 0, 0], [0, -1, 1]]},
     np.array([[7, 7, 7, 7], [-2.5, 7, -0.5, 7], [1.5, 7, 2.5, 7]])),
    ("pad", (BYTES, 300), {"padding_config": [[-1, 1, 0]]}, np.array([1, 200, 255, 300], np.uint16)),
    ("tile", (X,), {"repetitions": [2]}, np.tile(X, 2)),
    ("tile", (X,), {"repetitions": [2, 1, 3]}, np.tile(X, (2, 1, 3))),
    ("flatten", (CUBE,), {}, CUBE.reshape(-1)),
    ("flatten", (CUBE,), {"axes": [1, 2]}, CUBE.reshape(2, 12)),
    ("flatten", (1.5,), {}, np.array([1.5])),
    ("new_axis", (X,), {"axis": -1}, X[..., None]),
    ("new_axis", (X,), {"axis": 0}, X[None]),
    ("outer", (X, INTS), {}, np.outer(X, INTS)),
    ("diff", (CUBE,), {}, np.diff(CUBE)),
    ("diff", (X * X,), {"order": 2, "axis": 1}, np.diff(X * X, 2, 1)),
    ("eye", (), {"shape": [2, 3]}, np.eye(2, 3, dtype=np.int32)),
    ("eye", (), {"shape": [2, 2, 2], "type": "f64"}, np.stack([np.eye(2)] * 2)),
    ("trace", (CUBE[:, :, :3].copy(),), {}, np.trace(CUBE[:, :, :3], axis1=1, axis2=2)),
    ("take_diagonal", (CUBE,), {}, CUBE.diagonal(0, 1, 2)),
    ("take_diagonal", (X,), {"offset": -1}, X.diagonal(-1)),
    ("make_diagonal", (X[0],), {"offset": 1}, np.diag(X[0], 1)),
    ("make_diagonal", (X,), {}, np.stack([np.diag(X[0]), np.diag(X[1])])),
    ("put_diagonal", (X, INTS[:2].copy()), {"offset": 1}, np.array([[-2.5, -7, 0.5], [1.5, 2.5, -1]])),
    ("tril", (CUBE,), {"k": -1}, np.tril(CUBE, -1)),
    ("triu", (X,), {"k": 1}, np.triu(X, 1)),
    ("stop_gradient", (X,), {}, X),
    ("complex", (X, Y), {}, X + 1j * Y),
    ("complex", (1, np.float32(X)), {}, np.complex64(1 + 1j * X)),
    ("real", (COMPLEX,), {}, COMPLEX.real),
    ("real", (X,), {}, X),
    ("imag", (np.complex64(COMPLEX),), {}, np.float32(COMPLEX.imag)),
    ("imag", (INTS,), {}, np.zeros(5)),
    ("phase", (COMPLEX,), {}, np.angle(COMPLEX)),
    ("conjugate", (COMPLEX,), {}, COMPLEX.conj()),
    ("conjugate", (np.float32(X),), {}, np.complex64(X)),
    ("fft", (CUBE,), {}, np.fft.fft(CUBE)),
    ("fft", (COMPLEX,), {"axis": 0, "length": 4}, np.fft.fft(COMPLEX, 4, 0)),
    ("ifft", (X,), {"length": 2}, np.fft.ifft(X, 2)),
    ("abs", (COMPLEX,), {}, np.abs(COMPLEX)),
    ("multiply", (COMPLEX, np.float64(Y)), {}, COMPLEX * Y),
    ("add", (np.complex64(COMPLEX), X), {}, np.complex64(COMPLEX) + X),
    ("exp", (COMPLEX,), {}, np.exp(COMPLEX)),
    ("log", (COMPLEX + 1,), {}, np.log(COMPLEX + 1)),
    ("sum", (COMPLEX,), {}, COMPLEX.sum()),
    ("as_type", (COMPLEX,), {"type": "f32"}, np.float32(COMPLEX.real)),
    ("as_type", (X,), {"type": "c64"}, np.complex64(X)),
    ("as_type", (np.array([300.7, -1.5, np.inf, -np.inf, np.nan]),), {"type": "u8"}, np.uint8([44, 255, 255, 0, 0])),
    ("as_type", (np.array([-1.5, 2.0**63, 2.0**64]),), {"type": "u64"}, np.uint64([2**64 - 1, 2**63, 2**64 - 1])),
    ("as_type", (np.array([-1 + 2j]),), {"type": "u8"}, np.uint8([255])),
]  # fmt: skip


@pytest.mark.parametrize(("name", "operands", "options", "expected"), VALUES)
def test_values(name: str, operands: tuple, options: dict[str, Any], expected: np.ndarray) -> None:
    check_value(name, operands, options, expected)


def test_every_operation_has_a_case() -> None:
    others = (linear_algebra, special_functions, indexing, ordering_and_windows)
    assert {case[0] for module in others for case in module.VALUES} | {case[0] for case in VALUES} == set(OPERATIONS)


ANY_TYPE = [name for name, operation in OPERATIONS.items() if operation.arity in (1, 2) and not operation.required]


SHAPES = {"put_diagonal": ((3, 3), (3,)), "gather": ((3, 3), (4, 2)), "conv": ((3, 3, 3), (3, 3, 3))}
OF_INTEGERS = (
    "quotient", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "left_shift", "right_shift",
    "population_count", "count_leading_zeros",
)  # fmt: skip


@pytest.mark.parametrize("left", ["u2", "u8", "s32", "u64", "f8", "bf16", "f16", "f32", "f64"])
@pytest.mark.parametrize("precision", ["f32", "f64"])
def test_inferred_types_are_those_of_the_results(left: str, precision: str) -> None:
    """All operations on all pairs of types, traced but not compiled."""
    for name in ANY_TYPE:
        for right in ("s4", "u64", "s64", "bf16", "f32") if OPERATIONS[name].arity == 2 else (left,):
            if name in (*OF_INTEGERS, "take", "take_along_axis", "gather") and not is_integer(right):
                continue
            if name in OF_INTEGERS and not is_integer(left):
                continue
            types = (left, right)[: OPERATIONS[name].arity]
            shapes = SHAPES.get(name, ((3, 3), (3, 3)))[: len(types)]
            specs = tuple(map(Spec, shapes, types))
            plan = plan_call(name, specs, {}, precision=precision)
            operands = [jax.ShapeDtypeStruct(spec.shape, DTYPES[spec.type]) for spec in specs]
            results = jax.eval_shape(
                lambda *xs, plan=plan: plan.run(*(cast(x, t) for x, t in zip(xs, plan.casts, strict=True))), *operands
            )
            found = tuple(Spec(x.shape, NAMES[x.dtype]) for x in (results if plan.elements else (results,)))
            assert found == (plan.elements or (plan.spec,)), (name, types)


def test_as_type_does_not_exceed_the_precision() -> None:
    assert run("as_type", X.astype(np.float32), type="f64", precision="f32")[1].type == "f32"


def test_integer_powers_have_gradients_at_zero_and_below() -> None:
    plan = plan_call("pow", (Spec((), "f64"), literal_spec(2, precision="f64")), {}, precision="f64")
    slope = jax.grad(lambda x: plan.run(x, np.asarray(2.0)))
    assert (float(slope(0.0)), float(slope(-3.0))) == (0.0, -6.0)


F3, F23, S3 = Spec((3,), "f64"), Spec((2, 3), "f64"), Spec((3,), "s64")
ONE = literal_spec(1, precision="f64")

# operation, specs, options, words of the error
REFUSED = [
    ("multiplay", (F3, F3), {}, "multiply"),
    ("qqq", (F3,), {}, "known are add"),
    ("add", (F3,), {}, "expected 2; found 1"),
    ("concatenate", (), {}, "one or more"),
    ("add", (F23, Spec((2,), "f64")), {}, "{2, 3} and {2}"),
    ("add", (F3, F3), {"axis": 0}, "no options"),
    ("sum", (F3,), {"axis": 0}, "axes, keep_axes"),
    ("sum", (F3,), {"axes": [1]}, "from -1 to 0"),
    ("sum", (F3,), {"axes": [0, -1]}, "twice"),
    ("sum", (F3,), {"axes": 0}, "a list of integers"),
    ("sum", (F3,), {"keep_axes": 1}, "a boolean"),
    ("sum", (Spec((), "f64"),), {"axes": [0]}, "scalar"),
    ("cumulative_sum", (F3,), {"axis": True}, "an integer"),
    ("quotient", (F3, S3), {}, "divides integers"),
    ("pow", (S3, literal_spec(-1, precision="f64")), {}, "negative exponent"),
    ("select", (F3, F23, ONE), {}, "shape of the predicate"),
    ("clip", (F3, F3, ONE), {}, "max and min"),
    ("bitwise_and", (S3, F3), {}, "bitwise_and is for integers"),
    ("population_count", (F3,), {}, "population_count is for integers"),
    ("bitcast", (F3,), {"type": "s32"}, "a type of 64 bits"),
    ("as_type", (F3,), {}, "type is missing"),
    ("as_type", (F3,), {"type": "f65"}, "one of u2"),
    ("as_type", (F3,), {"type": "float"}, "'float'"),
    ("dot", (F23, F23), {}, "axis 1 of left, axis 0 of right"),
    ("dot", (F23, F3), {"contract_a": [1]}, "same length"),
    ("dot", (F23, F3), {"contract_a": [2], "contract_b": [0]}, "contracted axes of left names an axis"),
    ("dot", (F23, F23), {"batch_a": [0], "batch_b": [0], "contract_a": [0], "contract_b": [0]}, "contracted and"),
    ("reshape", (F23,), {"shape": [4]}, "6 elements"),
    ("reshape", (F23,), {"shape": [-1]}, "sizes from 1"),
    ("broadcast", (F23,), {"shape": [3]}, "{2, 3}"),
    ("broadcast", (F3,), {"shape": [3, 2]}, "does not broadcast"),
    ("squeeze", (F3,), {"axes": [0]}, "size 1"),
    ("transpose", (F23,), {"axes": [0]}, "every axis"),
    ("concatenate", (F23, F3), {}, "{2, 3}, {3}"),
    ("concatenate", (ONE, ONE), {}, "{}, {}"),
    ("stack", (F23, F3), {}, "equal shapes"),
    ("iota", (F3,), {"shape": [3]}, "expected 0; found 1"),
    ("pad", (F3, F3), {"padding_config": [[0, 0, 0]]}, "must be a scalar"),
    ("pad", (F23, ONE), {"padding_config": [[0, 0, 0]]}, "2 entries, for {2, 3}"),
    ("pad", (F3, ONE), {"padding_config": [[-2, -1, 0]]}, "leaves nothing"),
    ("pad", (F3, ONE), {"padding_config": [[0, 0, -1]]}, "the last of at least 0"),
    ("pad", (F3, ONE), {"padding_config": [[0, 0]]}, "[low, high, interior]"),
    ("tile", (F3,), {"repetitions": [0]}, "sizes from 1"),
    ("flatten", (F23,), {"axes": [1, 0]}, "must be neighbours"),
    ("new_axis", (F3,), {"axis": 2}, "from -2 to 1"),
    ("diff", (F3,), {"order": 3}, "an order from 0 to 2"),
    ("eye", (), {"shape": [3]}, "eye needs a matrix"),
    ("trace", (F23,), {}, "trace needs a square matrix"),
    ("take_diagonal", (F23,), {"offset": 3}, "an offset from -1 to 2"),
    ("make_diagonal", (ONE,), {}, "needs a vector"),
    ("put_diagonal", (F23, F3), {}, "expected {2}; found {3}"),
    ("tril", (F3,), {}, "tril needs a matrix"),
]


@pytest.mark.parametrize(("name", "specs", "options", "words"), REFUSED)
def test_refused(name: str, specs: tuple[Spec, ...], options: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidModel) as caught:
        plan_call(name, specs, options, precision="f64")
    assert words in str(caught.value)
    assert caught.value.found is not None
