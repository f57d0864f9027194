"""log Gamma and digamma against SciPy."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from scipy import special

from nutkin.model.native import gamma

X = np.concatenate([np.exp(np.linspace(-30, 30, 20_001)), np.linspace(0.3, 12, 20_001)])
CASES = {"lgamma": (gamma.lgamma, special.gammaln), "digamma": (gamma.digamma, special.digamma)}


@pytest.mark.parametrize(("function", "exact"), CASES.values(), ids=CASES.keys())
def test_float64_is_accurate(function, exact):
    expected = exact(X)
    error = np.abs(np.asarray(jax.jit(function)(X)) - expected)
    assert np.max(error / np.maximum(np.abs(expected), 1)) < 1e-14


@pytest.mark.parametrize("name", ["lgamma", "digamma"])
def test_float32_is_the_library_s_own(name):
    x = np.linspace(0.1, 20, 100, dtype=np.float32)
    np.testing.assert_array_equal(getattr(gamma, name)(x), getattr(lax, name)(x))


def test_the_ends_of_the_domain():
    assert gamma.lgamma(jnp.float64(0.0)) == np.inf
    assert np.isnan(gamma.lgamma(jnp.float64(-0.5)))


def test_derivatives():
    x = jnp.linspace(0.2, 20, 60)
    np.testing.assert_allclose(jax.vmap(jax.grad(gamma.lgamma))(x), special.digamma(x), rtol=0, atol=3e-14)
    np.testing.assert_allclose(jax.vmap(jax.grad(gamma.digamma))(x), special.polygamma(1, x), rtol=1e-12)
