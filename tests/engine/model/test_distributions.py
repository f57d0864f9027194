"""Every distribution of the table against SciPy, NumPyro and finite differences, and in its three parts."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.special import digamma, gammaln, xlogy

from engine.builder import Builder
from engine.model.densities import bind, finite_differences
from engine.model.distribution_cases import CASES, covariance, lower, mv_normal_each, real
from engine.model.jacobians import log_volume
from engine.model.numpyro_oracle import NUMPYRO
from nutkin.model.distributions import DISTRIBUTIONS
from nutkin.model.distributions.shapes import event_sizes
from nutkin.model.supports import REAL
from nutkin.model.types import Spec

NAMES = sorted(DISTRIBUTIONS)


def test_every_distribution_has_a_case() -> None:
    assert set(CASES) == set(DISTRIBUTIONS)


def moving(name: str) -> list[int]:
    """The arguments of the log density, the value first, by which its derivatives are compared."""
    family = DISTRIBUTIONS[name]
    if name in NUMPYRO:
        return list(range(1 if family.support.discrete else 0, 1 + len(family.parameters)))
    # Counts have no gradient, and matrices leave their set when one element moves.
    return [
        i
        for i, (parameter, of) in enumerate(family.parameters.items(), 1)
        if not (of.support.discrete or (family.support.discrete and parameter in family.support.bounds))
        and len(of.event) < 2
    ]


@cache
def program(name: str) -> Callable[..., tuple[jax.Array, tuple[jax.Array, ...]]]:
    """value, *parameters -> (log density of each value, derivatives of their sum by what moves): one for all tests."""

    @jax.jit
    def evaluate(*arguments: jax.Array) -> tuple[jax.Array, tuple[jax.Array, ...]]:
        def log_density(*moved: jax.Array) -> jax.Array:
            value, *parameters = (
                dict(zip(moving(name), moved, strict=True)).get(i, x) for i, x in enumerate(arguments)
            )
            return DISTRIBUTIONS[name].log_density(value, tuple(parameters))

        found, pull_back = jax.vjp(log_density, *(arguments[i] for i in moving(name)))
        return found, pull_back(jnp.ones_like(found))

    return evaluate


@pytest.mark.parametrize("name", NAMES)
def test_log_density_is_scipys(name: str) -> None:
    value, parameters, expected = CASES[name]
    found, _ = program(name)(value, *parameters)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, expected(value, *parameters), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("name", sorted(NUMPYRO))
def test_value_and_gradient_are_numpyros(name: str) -> None:
    """To all digits, by the value too where it is continuous, away from the edges."""
    value, parameters, _ = CASES[name]

    def numpyros(value, *parameters):
        return jnp.sum(NUMPYRO[name](*parameters).log_prob(value))

    expected, expected_gradient = jax.jit(jax.value_and_grad(numpyros, moving(name)))(value, *parameters)
    found, gradient = program(name)(value, *parameters)
    np.testing.assert_allclose(np.sum(found), expected, rtol=1e-12)
    for mine, theirs in zip(gradient, expected_gradient, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=1e-13)


def test_neg_binomial_gradient() -> None:
    value, (mu, alpha), _ = CASES["neg_binomial"]
    _, (by_mu, by_alpha) = program("neg_binomial")(value, mu, alpha)
    np.testing.assert_allclose(by_mu, (value - mu) * alpha / mu / (mu + alpha), rtol=1e-11)
    expected = digamma(value + alpha) - digamma(alpha) - np.log1p(mu / alpha) + (mu - value) / (mu + alpha)
    np.testing.assert_allclose(by_alpha, expected, rtol=1e-11)


@pytest.mark.parametrize("name", NAMES)
def test_parts_depend_on_what_they_say(name: str) -> None:
    """A normalizer on the parameters alone: of one set of parameters it is one number, for any number of values."""
    family, (value, parameters, _) = DISTRIBUTIONS[name], CASES[name]
    single = []
    for parameter, array in zip(family.parameters.values(), parameters, strict=True):
        single.append(array.reshape(-1, *array.shape[array.ndim - len(parameter.event) :])[0])
    value = np.minimum(value, single[0]) if name.startswith("binomial") else value
    batch = value.shape[: value.ndim - family.event_rank]
    parts = family.parts(jnp.asarray(value), tuple(map(jnp.asarray, single)))
    assert parts.kernel is None or parts.kernel.shape == batch
    assert parts.normalizer is None or np.shape(parts.normalizer) == ()
    assert parts.carrier is None or parts.carrier.shape == batch
    whole = np.broadcast_to(sum(parts.signed()), batch)
    repeated = [np.broadcast_to(array, parameter.shape) for array, parameter in zip(single, parameters, strict=True)]
    np.testing.assert_allclose(whole, program(name)(value, *repeated)[0], rtol=1e-12)


@pytest.mark.parametrize("name", sorted(DISTRIBUTIONS.keys() - NUMPYRO.keys()))
def test_gradient_of_the_parameters(name: str) -> None:
    value, parameters, _ = CASES[name]
    arguments = (value, *parameters)
    _, gradient = program(name)(*arguments)
    for i, found in zip(moving(name), gradient, strict=True):

        def total(flat: np.ndarray) -> float:
            moved = flat.reshape(arguments[i].shape)
            return np.sum(program(name)(*arguments[:i], moved, *arguments[i + 1 :])[0])

        numeric = finite_differences(total, arguments[i].ravel())
        np.testing.assert_allclose(np.ravel(found), numeric, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", NAMES)
def test_f32_stays_f32_and_close(name: str) -> None:
    value, parameters, expected = CASES[name]
    single = [np.float32(array) for array in (value, *parameters)]
    found = jax.jit(DISTRIBUTIONS[name].log_density)(single[0], tuple(single[1:]))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected(value, *parameters), rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("name", [name for name in NAMES if DISTRIBUTIONS[name].support.contains is not None])
def test_supports_hold_their_values(name: str) -> None:
    value, parameters, _ = CASES[name]
    family = DISTRIBUTIONS[name]
    named = dict(zip(family.parameters, parameters, strict=True))
    sizes = event_sizes(family, {parameter: Spec(array.shape, "f64") for parameter, array in named.items()})
    support = family.of_sizes(sizes).support
    bounds = [named[bound] for bound in support.bounds]
    assert np.all(support.contains(value, *bounds))
    outside = -1.0 - 100 * np.abs(value)
    assert not np.any(support.contains(outside, *bounds))
    assert np.shape(support.contains(value, *bounds)) == value.shape[: value.ndim - support.event_rank]
    assert support.event_rank == family.event_rank or support is REAL


EXTREMES = [
    # eta y - exp(eta) - log y!, worked out by hand
    ("poisson_log", 3.0, (50.0,), 150 - np.exp(50.0) - np.log(6)),
    ("poisson_log", 0.0, (-800.0,), 0.0),
    ("poisson_log", 2.0, (-800.0,), -1600 - np.log(2)),
    ("bernoulli_logit", 1.0, (-800.0,), -800.0),
    ("bernoulli_logit", 0.0, (-800.0,), 0.0),
    ("bernoulli_logit", 1.0, (800.0,), 0.0),
    ("bernoulli_logit", 0.0, (50.0,), -50.0),
    ("binomial_logit", 3.0, (3.0, 900.0), 0.0),
    ("binomial_logit", 1.0, (3.0, 900.0), np.log(3) - 1800),
    ("student_t", 0.0, (1e6, 0.0, 1.0), -0.5 * np.log(2 * np.pi)),
    ("bernoulli", 0.0, (0.0,), 0.0),
    ("bernoulli", 1.0, (1.0,), 0.0),
    ("bernoulli", 1.0, (1e-300,), np.log(1e-300)),
    ("binomial", 3.0, (3.0, 1.0), 0.0),
    ("binomial", 0.0, (3.0, 0.0), 0.0),
    ("poisson", 0.0, (0.0,), 0.0),
    ("gamma", 0.0, (1.0, 2.0), np.log(2)),
    ("exponential", 0.0, (2.0,), np.log(2)),
    ("beta", 0.0, (1.0, 3.0), np.log(3)),
    ("beta", 1.0, (3.0, 1.0), np.log(3)),
    ("logistic", 900.0, (0.0, 1.0), -900.0),
    ("logistic", -900.0, (0.0, 1.0), -900.0),
    ("normal", 1e150, (0.0, 1e150), -0.5 - np.log(1e150) - 0.5 * np.log(2 * np.pi)),
]


@pytest.mark.parametrize(("name", "value", "parameters", "expected"), EXTREMES)
def test_extremes(name: str, value: float, parameters: tuple[float, ...], expected: float) -> None:
    family = DISTRIBUTIONS[name]
    *leading, last = parameters

    @jax.jit
    @jax.value_and_grad
    def evaluate(last):
        return family.log_density(jnp.asarray(value), (*map(jnp.asarray, leading), last))

    found, gradient = evaluate(last)
    assert float(found) == pytest.approx(expected, rel=1e-6, abs=1e-9)
    assert np.isfinite(gradient)


@pytest.mark.parametrize(("name", "leading"), [("bernoulli_logit", ()), ("binomial_logit", (1.0,))])
@pytest.mark.parametrize("value", [0.0, 1.0])
def test_gradient_at_log_odds_of_zero(name: str, leading: tuple[float, ...], value: float) -> None:
    family = DISTRIBUTIONS[name]

    @jax.jit
    @jax.grad
    def slope(eta):
        return family.log_density(jnp.asarray(value), (*map(jnp.asarray, leading), eta))

    assert float(slope(0.0)) == value - 0.5


IMPOSSIBLE = [
    ("bernoulli", 1.0, (0.0,)),
    ("bernoulli", 0.0, (1.0,)),
    ("binomial", 1.0, (3.0, 0.0)),
    ("poisson", 2.0, (0.0,)),
]


@pytest.mark.parametrize(("name", "value", "parameters"), IMPOSSIBLE)
def test_impossible_values(name: str, value: float, parameters: tuple[float, ...]) -> None:
    assert DISTRIBUTIONS[name].log_density(jnp.asarray(value), tuple(map(jnp.asarray, parameters))) == -np.inf


@pytest.mark.parametrize("name", ["normal", "half_normal", "student_t", "lognormal", "gaussian_random_walk"])
def test_small_f32_scales(name: str) -> None:
    """Whose squares are 0."""
    sigma = np.float32(1e-25)
    parameters = {"sigma": sigma, "mu": np.float32(0), "nu": np.float32(3)}
    value = np.float32([2e-25]) if name != "lognormal" else np.float32(1)
    family = DISTRIBUTIONS[name]
    found = jax.jit(family.log_density)(value, tuple(parameters[parameter] for parameter in family.parameters))
    z = 0.0 if name == "lognormal" else 2.0
    expected = (
        stats.t.logpdf(z, 3) if name == "student_t" else stats.norm.logpdf(z) + np.log(2) * (name == "half_normal")
    )
    np.testing.assert_allclose(np.sum(found), expected - np.log(1e-25), rtol=1e-6)


@pytest.mark.parametrize(
    "batches", [((), ()), ((4,), ()), ((), (4,)), ((2, 4), (2, 1)), ((1, 4), (2, 1)), ((), (2, 4))]
)
@pytest.mark.parametrize("name", ["mv_normal", "mv_normal_cholesky"])
def test_mv_normal_broadcasts(name: str, batches: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    batch, matrices = batches
    value, mu, cov = real(*batch, 3), real(3), covariance(*matrices)
    found = jax.jit(DISTRIBUTIONS[name].log_density)(value, (mu, cov if name == "mv_normal" else lower(cov)))
    full = np.broadcast_shapes(batch, matrices)
    flat = [np.broadcast_to(a, (*full, *a.shape[a.ndim - r :])).reshape(-1, *a.shape[a.ndim - r :]) for a, r in
            ((value, 1), (mu, 1), (cov, 2))]  # fmt: skip
    np.testing.assert_allclose(found, mv_normal_each(*flat).reshape(full), rtol=1e-11)


def test_neg_binomial_tends_to_poisson() -> None:
    value, mu = jnp.arange(6.0), jnp.full(6, 2.5)
    found = jax.jit(DISTRIBUTIONS["neg_binomial"].log_density)(value, (mu, jnp.full(6, 1e7)))
    np.testing.assert_allclose(found, xlogy(value, 2.5) - 2.5 - gammaln(value + 1), rtol=1e-5)


@pytest.mark.parametrize("name", [name for name in NAMES if DISTRIBUTIONS[name].transform not in (None, "unit_vector")])
def test_as_a_parameter_of_a_model(name: str) -> None:
    """A variable has SciPy's density at its value and the log-Jacobian; its gradient is that of differences."""
    value, parameters, expected = CASES[name]
    family = DISTRIBUTIONS[name]
    b = Builder()
    data = {f"p{i}": np.asarray(parameter) for i, parameter in enumerate(parameters)}
    args = {parameter: b.data(slot) for parameter, slot in zip(family.parameters, data, strict=True)}
    b.rv("x", name, args, shape=list(value.shape))
    density, inputs = bind(b.tree(), data)
    position, given = density.unconstrain({"x": value}, inputs)
    assert given.all()

    @jax.jit
    def evaluate(q):
        def constrained(q):
            x = density.outputs(q, inputs)["x"]
            return x, x

        jacobian, x = jax.jacfwd(constrained, has_aux=True)(q)
        return jax.value_and_grad(lambda q: density.log_density(q, inputs))(q), x, jacobian

    (found, gradient), x, free = evaluate(position)
    np.testing.assert_allclose(x, value, rtol=1e-9, atol=1e-12)
    jacobian = 0.0 if family.transform == "identity" else log_volume(family.transform, np.asarray(free))
    assert float(found) == pytest.approx(expected(value, *parameters).sum() + jacobian, rel=1e-9)
    numeric = finite_differences(lambda q: evaluate(q)[0][0], position)
    np.testing.assert_allclose(gradient, numeric, rtol=1e-6, atol=1e-7)
