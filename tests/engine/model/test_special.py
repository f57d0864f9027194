"""The functions with edges: values against SciPy, derivatives against what they are, at the edges too."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special as scipy_special

from nutkin.model.special import log_beta, softplus, xlog1py, xlogy

X = np.array([0.0, 0.3, 1.0, 7.0, -2.0])


def test_softplus() -> None:
    x = np.array([-800.0, -40.0, -1.0, 0.0, 1e-9, 3.0, 40.0, 800.0])
    np.testing.assert_allclose(jax.jit(softplus)(x), np.logaddexp(0, x), rtol=1e-15)
    slope = jax.jit(jax.vmap(jax.grad(softplus)))(x)
    np.testing.assert_allclose(slope, scipy_special.expit(x), rtol=1e-15)
    second = jax.jit(jax.vmap(jax.grad(jax.grad(softplus))))(x)
    np.testing.assert_allclose(second, scipy_special.expit(x) * scipy_special.expit(-x), rtol=1e-12)


@pytest.mark.parametrize(
    ("function", "reference", "y", "edge"),
    [
        (xlogy, scipy_special.xlogy, np.array([1e-300, 0.2, 1.0, 5.0, 1e200]), 0.0),
        (xlog1py, scipy_special.xlog1py, np.array([-0.999, -1e-20, 0.0, 3.0, 1e200]), -1.0),
    ],
)
def test_x_times_a_logarithm(function, reference, y: np.ndarray, edge: float) -> None:
    x, y = (grid.ravel() for grid in np.meshgrid(X, y))
    np.testing.assert_allclose(jax.jit(function)(x, y), reference(x, y), rtol=1e-15)
    by_x, by_y = jax.jit(jax.vmap(jax.grad(function, (0, 1))))(x, y)
    np.testing.assert_allclose(by_x, reference(1.0, y), rtol=1e-15)  # also where x is 0
    np.testing.assert_allclose(by_y, x / (y - edge), rtol=1e-14)

    value, gradient = jax.value_and_grad(function, (0, 1))(0.0, edge)
    assert value == 0
    assert np.isfinite(gradient).all()
    assert function(2.0, edge) == -np.inf
    assert np.isnan(function(2.0, np.nan))
    assert np.isnan(function(2.0, edge - 1))


def test_the_logarithm_of_a_scalar_is_taken_once() -> None:
    traced = str(jax.make_jaxpr(jax.grad(lambda y: jnp.sum(xlogy(np.ones(7), y))))(0.5))
    assert "log" in traced
    assert all("f64[7]" not in line for line in traced.splitlines() if " log " in line)


def test_log_beta() -> None:
    a, b = np.array([0.1, 3.0, 50.0]), np.array([2.0, 0.5, 1.0])
    np.testing.assert_allclose(jax.jit(log_beta)(a, b), scipy_special.betaln(a, b), rtol=1e-12)
