"""exp, log and log1p against numpy in extended precision, at the ends of their domains, and in their derivatives."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from nutkin.model.native import elementary

WIDE = np.exp(np.linspace(-708, 709, 200_001))
NEAR_ONE = 1 + np.concatenate([-np.geomspace(1e-16, 0.6, 50_000), np.geomspace(1e-16, 2, 50_000)])
SMALL = np.concatenate([-np.geomspace(1e-300, 0.9999, 100_000), np.geomspace(1e-300, 1e300, 100_000)])
CASES = {
    "exp": (elementary.exp, np.exp, np.linspace(-708, 709.4, 400_001)),
    "bounded_exp": (elementary.bounded_exp, np.exp, np.linspace(-708, 709.4, 400_001)),
    "log": (elementary.log, np.log, np.concatenate([WIDE, NEAR_ONE])),
    "normal_log": (elementary.normal_log, np.log, np.concatenate([WIDE, NEAR_ONE])),
    "log1p": (elementary.log1p, np.log1p, SMALL),
}


@pytest.mark.parametrize(("function", "exact", "x"), CASES.values(), ids=CASES.keys())
def test_float64_is_accurate_to_two_units_in_the_last_place(function, exact, x):
    expected = exact(x.astype(np.longdouble))
    error = np.abs(np.asarray(jax.jit(function)(x)) - expected)
    assert np.max(error / np.where(expected == 0, 1, np.abs(expected))) < 2 * np.finfo(float).eps


@pytest.mark.parametrize("name", ["exp", "log", "log1p"])
def test_the_ends_of_the_domain_are_those_of_the_library(name):
    x = np.array([-np.inf, -800.0, -1.0, -0.0, 0.0, 1.0, 800.0, np.inf, np.nan])
    np.testing.assert_allclose(getattr(elementary, name)(x), getattr(lax, name)(x), rtol=5e-16)


@pytest.mark.parametrize("name", ["exp", "log", "log1p"])
def test_float32_is_the_library_s_own(name):
    x = np.linspace(0.1, 5, 100, dtype=np.float32)
    np.testing.assert_array_equal(getattr(elementary, name)(x), getattr(lax, name)(x))


@pytest.mark.parametrize("name", ["exp", "log", "log1p"])
@pytest.mark.parametrize("order", [1, 2, 3])
def test_derivatives(name, order):
    ours, library = getattr(elementary, name), getattr(lax, name)
    for _ in range(order):
        ours, library = jax.grad(ours), jax.grad(library)
    x = jnp.linspace(0.1, 5, 50)
    np.testing.assert_allclose(jax.vmap(ours)(x), jax.vmap(library)(x), rtol=1e-13)


def test_split_gives_exponent_and_mantissa():
    exponent, mantissa = elementary.split(jnp.asarray(WIDE))
    assert mantissa.min() >= np.sqrt(0.5) * (1 - 1e-15)
    assert mantissa.max() < np.sqrt(2.0) * (1 + 1e-15)
    np.testing.assert_array_equal(np.ldexp(np.asarray(mantissa), np.asarray(exponent).astype(int)), WIDE)
