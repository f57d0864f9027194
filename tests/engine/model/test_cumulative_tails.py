"""Distribution functions where the tails underflow, in float32, of numbers between counts, and of all shapes."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from engine.model.test_cumulative import NAMES, arguments, both_tails, expected
from nutkin.model.distributions import DISTRIBUTIONS
from nutkin.model.incomplete import beta_tails, gamma_tails

# The logarithm of the lower (0) or the upper tail (1): by mpmath or fractions with 60 digits, an angle by quadrature.
FAR = [
    ("gamma", 2000.0, (3.5, 1.0), 1, -1982.1974672975283),
    ("gamma", 1e-200, (3.5, 1.0), 0, -1614.2633016666744),
    ("inverse_gamma", 1e-3, (2.5, 1.0), 0, -989.92155032737343),
    ("poisson", 3.0, (1000.0,), 0, -981.06549213528388),
    ("poisson", 3000.0, (1000.0,), 1, -1301.4529126247085),
    ("poisson_log", 2.0, (-800.0,), 1, -2400 - np.log(6)),
    ("binomial", 900.0, (1000.0, 0.1), 1, -1765.3326390896356),
    ("binomial", 3.0, (1000.0, 0.9), 0, -2277.0645813774729),
    ("binomial_logit", 2.0, (5.0, 900.0), 0, -2700 + np.log(10)),
    ("neg_binomial", 3000.0, (2.0, 1.5), 1, -1675.7061489193112),
    ("beta", 1e-100, (2.5, 3.0), 0, -573.58258006379972),
    ("beta", 0.999, (2.5, 300.0), 1, -2064.0508524609006),
    ("student_t", 1e30, (3.0, 0.0, 1.0), 1, -207.13493493041951),
    ("student_t", -60.0, (200.0, 0.0, 1.0), 0, -297.98648635815422),
    ("normal", -50.0, (0.0, 1.0), 0, -1254.8313611394199),
    ("skew_normal", -30.0, (0.0, 1.0, 5.0), 0, -11712.814788994481),
    ("exp_mod_normal", -40.0, (0.0, 1.0, 0.5), 0, -809.00411510362665),
    ("wald", 900.0, (1.5, 2.0), 1, -408.63653562269545),
    ("wald", 1e-3, (1.5, 2.0), 0, -1002.6938526267255),
    ("logistic", -900.0, (0.0, 1.0), 0, -900.0),
    ("gumbel", 700.0, (0.0, 1.0), 1, -700.0),
    ("weibull", 1e3, (2.0, 1.0), 1, -1e6),
    ("weibull", 1e-200, (2.0, 1.0), 0, -400 * np.log(10)),
    ("kumaraswamy", 1e-200, (2.0, 3.0), 0, -400 * np.log(10) + np.log(3)),
    ("uniform", 1e-20, (0.0, 1.0), 0, -20 * np.log(10)),
    ("half_cauchy", 1e20, (1.0,), 1, -20 * np.log(10) + np.log(2 / np.pi)),
    ("beta_binomial", 0.0, (300.0, 200.0, 3.0), 0, -324.29186483643578),
    ("hypergeometric", 299.0, (1000.0, 400.0, 300.0), 1, -385.41602378176485),
    ("von_mises", -3.0, (0.0, 300.0), 0, -598.5797617755828),
    ("cauchy", 1e200, (0.0, 1.0), 1, -200 * np.log(10) - np.log(np.pi)),
]


@pytest.mark.parametrize(("name", "x", "parameters", "which", "value"), FAR)
def test_far_tails(name: str, x: float, parameters: tuple[float, ...], which: int, value: float) -> None:
    # Of the shape of the other tests, whose programs are compiled already.
    tails = both_tails(name, jnp.full((10, 5), x), *(jnp.full(5, parameter) for parameter in parameters))
    np.testing.assert_allclose(tails[which], value, rtol=1e-13)
    np.testing.assert_allclose(tails[1 - which], -np.exp(value), rtol=1e-10, atol=1e-307)


@pytest.mark.parametrize("name", NAMES)
def test_f32_stays_f32_and_close(name: str) -> None:
    single = [np.clip(argument, -1e30, 1e30).astype(np.float32) for argument in arguments(name)]
    x, *parameters = (np.asarray(argument, float) for argument in single)
    full = [np.broadcast_to(p, (*x.shape, *p.shape[1 if len(p) == 5 else 0 :])) for p in parameters]
    with np.errstate(divide="ignore"):
        log_tails = expected(name, x, *full)
    for found, log_tail in zip(both_tails(name, *map(jnp.asarray, single)), log_tails, strict=True):
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, log_tail, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", [name for name in NAMES if DISTRIBUTIONS[name].support.discrete])
def test_counts_are_rounded_down(name: str) -> None:
    x, *parameters = map(jnp.asarray, arguments(name))
    for found, whole in zip(both_tails(name, x + 0.75, *parameters), both_tails(name, x, *parameters), strict=True):
        np.testing.assert_array_equal(found, whole)


def test_parameters_broadcast() -> None:
    column, row = jnp.linspace(0.5, 5, 10)[:, None], jnp.linspace(1, 3, 5)
    full = [jnp.broadcast_to(argument, (10, 5)) for argument in (column, row, row, row)]
    found, repeated = both_tails("student_t", column, row, row, row), both_tails("student_t", *full)
    assert found[0].shape == (10, 5)
    np.testing.assert_allclose(found, repeated, rtol=1e-14)


def test_sums_of_many_terms_and_of_few() -> None:
    """Each tail sums to the other, and its derivatives to 0, for parameters of all sizes."""
    a = jnp.array([1e-6, 1.0, 1.0, 7.0, 1e5])
    for log_x in (jnp.log(a), jnp.log(2 * a), jnp.full(5, 0.5)):
        (lower, upper), by_a = jax.jvp(lambda a: gamma_tails(a, log_x), (a,), (jnp.ones(5),))
        np.testing.assert_allclose(jnp.exp(lower) + jnp.exp(upper), 1, rtol=1e-13)
        np.testing.assert_allclose(by_a[0] * jnp.exp(lower) + by_a[1] * jnp.exp(upper), 0, atol=1e-9)
    (lower, upper), by_a = jax.jvp(lambda a: beta_tails(a, a[::-1], a * 0), (a,), (jnp.ones(5),))
    np.testing.assert_allclose(lower, upper[::-1], rtol=1e-12)
    assert np.isfinite(by_a).all()


def test_very_large_parameters_end() -> None:
    for tails in (gamma_tails(jnp.asarray(1e30), jnp.log(1e30)), beta_tails(jnp.asarray(1e30), 1e30, 0.0)):
        assert not np.isnan(tails).any()
