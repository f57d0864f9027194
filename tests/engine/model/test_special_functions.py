"""The special functions: values against SciPy, at the ends of their domains too, and gradients."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from scipy import special

from engine.model.operation_runs import check_gradient, check_value
from nutkin.model.special_functions import betainc, logaddexp

LINE = np.array([-7.3, -3.5, -1.25, -0.5, 1e-9, 0.25, 0.5, 1.75, 4.0, 9.1])
POLES = np.array([0.0, -1.0, -6.0])
UNIT = np.array([1e-300, 1e-9, 0.1, 0.3, 0.5, 0.7, 0.999])
A, B, P = np.array([0.5, 2.0, 30.0]), np.array([0.3, 2.0, 40.0]), np.array([0.3, 0.2, 0.4])
INTEGERS = np.array([1, 3, 7])


VALUES = [
    ("lgamma", (LINE,), {}, special.gammaln(LINE)),
    ("lgamma", (POLES,), {}, np.full(3, np.inf)),
    ("lgamma", (INTEGERS,), {}, np.log([1.0, 2.0, 720.0])),
    ("digamma", (LINE,), {}, special.digamma(LINE)),
    ("digamma", (POLES,), {}, np.full(3, np.nan)),
    ("trigamma", (LINE,), {}, special.polygamma(1, LINE)),
    ("trigamma", (POLES,), {}, np.full(3, np.inf)),
    ("ndtr", (LINE * 3,), {}, special.ndtr(LINE * 3)),
    ("log_ndtr", (LINE * 5,), {}, special.log_ndtr(LINE * 5)),
    ("ndtri", (UNIT,), {}, special.ndtri(UNIT)),
    ("ndtri", (np.array([0.0, 1.0]),), {}, np.array([-np.inf, np.inf])),
    ("logit", (UNIT,), {}, special.logit(UNIT)),
    ("logit", (np.array([0.0, 1.0]),), {}, np.array([-np.inf, np.inf])),
    ("softplus", (LINE * 100,), {}, np.logaddexp(0, LINE * 100)),
    ("log1m_exp", (-np.abs(LINE),), {}, np.log(-np.expm1(-np.abs(LINE)))),
    ("bessel_i0e", (LINE * 9,), {}, special.i0e(LINE * 9)),
    ("bessel_i1e", (LINE * 9,), {}, special.i1e(LINE * 9)),
    ("lbeta", (A[:, None], B), {}, special.betaln(A[:, None], B)),
    ("lbeta", (np.array([-0.3]), 0.7), {}, special.betaln([-0.3], 0.7)),
    ("xlogy", (A, B), {}, special.xlogy(A, B)),
    ("xlogy", (0, np.array([0.0, 2.0])), {}, np.zeros(2)),
    ("xlog1py", (A, -P), {}, special.xlog1py(A, -P)),
    ("logaddexp", (LINE, 0.5), {}, np.logaddexp(LINE, 0.5)),
    ("logaddexp", (np.full(1, -np.inf), np.full(1, -np.inf)), {}, np.full(1, -np.inf)),
    ("gammainc", (A[:, None], B), {}, special.gammainc(A[:, None], B)),
    ("gammainc", (INTEGERS, 2), {}, special.gammainc(INTEGERS, 2.0)),
    ("gammaincc", (A[:, None], B), {}, special.gammaincc(A[:, None], B)),
    ("betainc", (A[:, None], B, P), {}, special.betainc(A[:, None], B, P)),
    ("betainc", (2, 3, np.array([0.0, 1.0])), {}, np.array([0.0, 1.0])),
]


@pytest.mark.parametrize(("name", "operands", "options", "expected"), VALUES)
def test_values(name: str, operands: tuple, options: dict[str, Any], expected: Any) -> None:
    check_value(name, operands, options, np.asarray(expected), rtol=1e-12)


@pytest.mark.parametrize("name", ["lgamma", "digamma", "trigamma", "ndtr", "log_ndtr", "softplus"])
def test_gradients_on_the_line(name: str) -> None:
    check_gradient(name, (LINE[np.abs(LINE) > 0.1],), {})


@pytest.mark.parametrize(
    ("name", "operands"),
    [
        ("ndtri", (UNIT[2:-1],)),
        ("logit", (UNIT[2:-1],)),
        ("log1m_exp", (-UNIT[2:-1],)),
        ("bessel_i0e", (LINE[:4],)),
        ("bessel_i1e", (LINE[5:],)),
        ("lbeta", (A, B)),
        ("xlogy", (A, B)),
        ("xlog1py", (A, -P)),
        ("logaddexp", (LINE, LINE[::-1].copy())),
        ("gammainc", (A, B)),
        ("gammaincc", (A, B)),
        ("betainc", (A, B, P)),
    ],
)
def test_gradients(name: str, operands: tuple) -> None:
    check_gradient(name, operands, {})


def test_a_sum_of_probabilities_of_0_has_a_gradient() -> None:
    slopes = jax.grad(logaddexp, (0, 1))(-np.inf, -np.inf)
    assert slopes == (0.5, 0.5)
    assert jax.grad(logaddexp, (0, 1))(-np.inf, 0.0) == (0.0, 1.0)


def test_the_incomplete_beta_function_has_finite_derivatives_at_the_ends() -> None:
    slopes = jax.jit(jax.grad(betainc, (0, 1, 2)))
    for x in (0.0, 1.0):
        assert slopes(2.0, 3.0, x) == (0.0, 0.0, 0.0)
