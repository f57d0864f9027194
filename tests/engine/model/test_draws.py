"""Random draws of every distribution: of its distribution function, on its support, of the right shape and type."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial

import jax
import numpy as np
import pytest
from scipy import special, stats

from engine.model.cumulative_cases import REFERENCES
from engine.model.distribution_cases import CASES, product
from nutkin.model.distributions import DISTRIBUTIONS
from nutkin.model.distributions.shapes import event_sizes
from nutkin.model.types import Spec

IMPROPER = {"flat", "half_flat", "icar", "icar_edges"}
NAMES = sorted(DISTRIBUTIONS.keys() - IMPROPER)
COUNT = 4000
# Of some thousand tests with a fixed seed.
LEAST_P = 1e-5
# Compiling takes longer than running.
QUICKLY = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}

Columns = list[tuple[np.ndarray, object]]


def shape_of(name: str, *batch: int) -> tuple[int, ...]:
    family, value = DISTRIBUTIONS[name], CASES[name].value
    return (*batch, *value.shape[value.ndim - family.event_rank :])


@cache
def sample(name: str) -> np.ndarray:
    """{COUNT, rows, …}: as many of each row of the parameters."""
    value, parameters, _ = CASES[name]
    draw = DISTRIBUTIONS[name].draw
    shape = shape_of(name, COUNT, len(value))
    compiled = jax.jit(lambda key, parameters: draw(key, parameters, shape), compiler_options=QUICKLY)
    return np.asarray(compiled(jax.random.key(5), parameters))


def assert_distributed(x: np.ndarray, distribution: object) -> None:
    """Each column of x {COUNT, rows} as the distribution of its row."""
    p = stats.kstest(np.sort(distribution.cdf(x), axis=0), "uniform", axis=0).pvalue
    assert np.min(p) > LEAST_P, p


def assert_frequencies(x: np.ndarray, masses: np.ndarray) -> None:
    """Each column of the counts x {COUNT, rows} as often as by the masses {counts, rows} of 0, 1, …."""
    for column, mass in zip(x.T, masses.T, strict=True):
        found = np.bincount(np.minimum(column, len(mass)).astype(int), minlength=len(mass) + 1)
        found = np.append(found[: len(mass)], found[len(mass) :].sum())
        expected = len(x) * np.append(mass, max(1 - mass.sum(), 0))
        is_rare = expected < 5
        assert found[is_rare].sum() <= expected[is_rare].sum() + 10 + 5 * np.sqrt(expected[is_rare].sum())
        if (~is_rare).sum() > 1:
            kept = expected[~is_rare]
            p = stats.chisquare(found[~is_rare], kept * found[~is_rare].sum() / kept.sum()).pvalue
            assert p > LEAST_P


def test_every_proper_distribution_has_draws() -> None:
    assert {name for name, family in DISTRIBUTIONS.items() if family.draw} == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_shapes_types_and_supports(name: str) -> None:
    family, (value, parameters, _) = DISTRIBUTIONS[name], CASES[name]
    x = sample(name)
    assert x.shape == (COUNT, *value.shape)
    named = dict(zip(family.parameters, parameters, strict=True))
    sizes = event_sizes(family, {parameter: Spec(array.shape, "f64") for parameter, array in named.items()})
    support = family.of_sizes(sizes).support
    assert np.isfinite(x).all()
    if support.contains is not None:
        assert np.all(support.contains(x, *(named[bound] for bound in support.bounds)))
    if support.discrete:
        np.testing.assert_array_equal(x, np.round(x))
    single = tuple(np.float32(parameter) for parameter in parameters)
    found = jax.eval_shape(lambda key: family.draw(key, single, (2, *value.shape)), jax.random.key(0))
    assert found.shape == (2, *value.shape)
    assert found.dtype == (np.float32 if single else np.float64)


@pytest.mark.parametrize("name", [n for n in NAMES if n in REFERENCES and not DISTRIBUTIONS[n].support.discrete])
def test_numbers_have_their_distribution_function(name: str) -> None:
    assert_distributed(sample(name), REFERENCES[name](*CASES[name].parameters))


@pytest.mark.parametrize("name", [n for n in NAMES if DISTRIBUTIONS[n].support.discrete and not DISTRIBUTIONS[n].event])
def test_counts_have_their_masses(name: str) -> None:
    value, parameters, log_mass = CASES[name]
    size = 4 if "cutpoints" in DISTRIBUTIONS[name].parameters else 3 if "categorical" in name else 150
    with np.errstate(divide="ignore", invalid="ignore"):
        masses = np.exp([log_mass(np.full(len(value), float(count)), *parameters) for count in range(size)])
    assert_frequencies(sample(name), np.nan_to_num(masses))


def test_von_mises() -> None:
    mu, kappa = CASES["von_mises"].parameters
    turned = sample("von_mises") - mu
    assert_distributed(turned - 2 * np.pi * np.round(turned / (2 * np.pi)), stats.vonmises(kappa))


W, V = np.array([1.0, -0.5, 2.0]), np.array([0.3, 1.5, 1.0])


def gaussian_projections(x: np.ndarray, mean: np.ndarray, covariance: np.ndarray) -> Iterator:
    for w in (W, V, W[::-1]):
        w = np.resize(w, x.shape[-1])
        yield x @ w, stats.norm(mean @ w, np.sqrt(np.einsum("i,...ij,j", w, covariance, w)))


def t_projections(x: np.ndarray, nu: np.ndarray, mean: np.ndarray, covariance: np.ndarray) -> Iterator:
    for w in (W, V, W[::-1]):
        yield x @ w, stats.t(nu, mean @ w, np.sqrt(np.einsum("i,...ij,j", w, covariance, w)))


def lkj(corr: np.ndarray, eta: np.ndarray) -> Iterator:
    """Correlations, and those given the third variable: Lewandowski, Kurowicka and Joe 2009."""
    for i, j in ((0, 1), (0, 2), (1, 2)):
        yield corr[..., i, j], stats.beta(eta + 0.5, eta + 0.5, -1, 2)
        a, b = corr[..., i, 3 - i - j], corr[..., j, 3 - i - j]
        yield (corr[..., i, j] - a * b) / np.sqrt((1 - a**2) * (1 - b**2)), stats.beta(eta, eta, -1, 2)


def of_quadratic_forms(matrices: np.ndarray, nu: np.ndarray, scale: np.ndarray) -> Iterator:
    for w in (W, V, W[::-1]):
        yield np.einsum("i,...ij,j", w, matrices, w) / np.einsum("i,...ij,j", w, scale, w), stats.chi2(nu)


def of_walk(x: np.ndarray, sigma: np.ndarray) -> Iterator:
    yield x[..., 0], stats.norm(0, sigma)
    yield x[..., -1], stats.norm(0, sigma * np.sqrt(x.shape[-1]))
    yield x[..., 3] - x[..., 1], stats.norm(0, sigma * np.sqrt(2))


def of_autoregression(x: np.ndarray, rho: np.ndarray, sigma: np.ndarray) -> Iterator:
    yield x[..., 0], stats.norm(0, sigma)
    yield x[..., 1] - rho[:, 0] * x[..., 0], stats.norm(0, sigma)
    residuals = x[..., 2:] - rho[:, 0, None] * x[..., 1:-1] - rho[:, 1, None] * x[..., :-2]
    yield residuals[..., -1], stats.norm(0, sigma)
    yield residuals.sum(-1), stats.norm(0, sigma * np.sqrt(x.shape[-1] - 2))


def of_field(x: np.ndarray, mu: np.ndarray, adjacency: np.ndarray, alpha: np.ndarray, tau: np.ndarray) -> Iterator:
    degrees = adjacency.sum(-1)[..., None] * np.eye(x.shape[-1])
    precision = tau[:, None, None] * (degrees - alpha[:, None, None] * adjacency)
    return gaussian_projections(x, mu, np.linalg.inv(precision))


def of_zero_sum(x: np.ndarray, sigma: np.ndarray) -> Iterator:
    yield x[..., 0], stats.norm(0, sigma * np.sqrt(1 - 1 / x.shape[-1]))
    yield x[..., 1] - x[..., 3], stats.norm(0, sigma * np.sqrt(2))


def of_matrix(x: np.ndarray, mu: np.ndarray, row_chol: np.ndarray, col_chol: np.ndarray) -> Iterator:
    for w, v in ((W[:2], V), (V[:2], W)):
        scale = np.linalg.norm(np.swapaxes(row_chol, -1, -2) @ w, axis=-1)
        scale = scale * np.linalg.norm(np.swapaxes(col_chol, -1, -2) @ v, axis=-1)
        yield np.einsum("i,...ij,j", w, x, v), stats.norm(np.einsum("i,...ij,j", w, mu, v), scale)


def inverse(matrices: np.ndarray) -> np.ndarray:
    return np.linalg.inv(matrices)


PROJECTIONS: dict[str, Callable[..., Iterator]] = {
    "dirichlet": lambda x, a: ((x[..., i], stats.beta(a[i], a.sum() - a[i])) for i in range(3)),
    "mv_normal": gaussian_projections,
    "mv_normal_cholesky": lambda x, mu, chol: gaussian_projections(x, mu, product(chol)),
    "mv_normal_precision": lambda x, mu, tau: gaussian_projections(x, mu, inverse(tau)),
    "mv_normal_low_rank": lambda x, mu, f, d: gaussian_projections(
        x, mu, f @ np.swapaxes(f, -1, -2) + d[..., None] * np.eye(3)
    ),
    "mv_student_t": t_projections,
    "mv_student_t_cholesky": lambda x, nu, mu, chol: t_projections(x, nu, mu, product(chol)),
    "zero_sum_normal": of_zero_sum,
    "uniform_on_sphere": lambda x: ((x @ w / np.linalg.norm(w), stats.uniform(-1, 2)) for w in (W, V)),
    "lkj_corr": lkj,
    "lkj_cholesky": lambda x, eta: lkj(product(x), eta),
    "wishart": of_quadratic_forms,
    "inv_wishart": lambda x, nu, scale: of_quadratic_forms(inverse(x), nu, inverse(scale)),
    "matrix_normal": of_matrix,
    "gaussian_random_walk": of_walk,
    "ar": of_autoregression,
    "car": of_field,
}

PARTS_OF_COUNTS: dict[str, Callable[..., object]] = {
    "multinomial": lambda n, p, part: stats.binom(n, p[..., part].sum(-1)),
    "multinomial_logit": lambda n, e, part: stats.binom(n, special.softmax(e, -1)[..., part].sum(-1)),
    "dirichlet_multinomial": lambda n, a, part: stats.betabinom(
        n, a[..., part].sum(-1), a.sum(-1) - a[..., part].sum(-1)
    ),
}


def test_every_vector_has_projections() -> None:
    assert {name for name in NAMES if DISTRIBUTIONS[name].event} == set(PROJECTIONS) | set(PARTS_OF_COUNTS)


@pytest.mark.parametrize("name", sorted(PROJECTIONS))
def test_projections_have_their_distribution_functions(name: str) -> None:
    for projection, distribution in PROJECTIONS[name](sample(name), *CASES[name].parameters):
        assert_distributed(projection, distribution)


@pytest.mark.parametrize("name", sorted(PARTS_OF_COUNTS))
def test_parts_of_counts_have_their_masses(name: str) -> None:
    for part in ([0], [1], [2], [0, 2]):
        distribution = PARTS_OF_COUNTS[name](*CASES[name].parameters, part)
        assert_frequencies(sample(name)[..., part].sum(-1), distribution.pmf(np.arange(8.0)[:, None]))


def drawn(name: str, *parameters: list[float] | np.ndarray, dtype: type = np.float64, rows: int = 2000) -> np.ndarray:
    """{rows, …} draws of each row of the parameters, whose batch is the first axis."""
    arrays = tuple(np.asarray(parameter, dtype) for parameter in parameters)
    family = DISTRIBUTIONS[name]
    shape = (rows, *arrays[-1].shape)
    draw = jax.jit(lambda key, arrays: family.draw(key, arrays, shape), compiler_options=QUICKLY)
    found = np.asarray(draw(jax.random.key(3), arrays))
    assert found.dtype == dtype
    return found


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_poisson_draws_of_large_and_impossible_means_end(dtype: type) -> None:
    x = drawn("poisson", [0.0, 3e4, 1e9, 1e30, np.inf, np.nan], dtype=dtype)
    assert np.all(x[:, 0] == 0)
    assert_distributed(
        x[:, 1:2] + np.random.default_rng(1).uniform(-0.5, 0.5, (len(x), 1)), stats.norm([3e4], [np.sqrt(3e4)])
    )
    np.testing.assert_allclose(x[:, 2].mean(), 1e9, rtol=1e-5)
    np.testing.assert_allclose(x[:, 3], 1e30, rtol=1e-5)
    assert np.all(x[:, 4] == np.inf)
    assert np.isnan(x[:, 5]).all()


MEANS = np.array([1e-4, 0.3, 3.0, 9.99, 10.0, 14.0, 60.0, 145.0])
TRIALS = np.array([1.0, 7.0, 50.0, 50.0, 21.0, 100.0, 1e3, 1e7])
SHARES = np.array([0.3, 0.5, 0.19, 0.81, 0.5, 0.9, 0.1, 1e-6])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_poisson_draws_of_any_mean(dtype: type) -> None:
    masses = stats.poisson(MEANS.astype(dtype)).pmf(np.arange(300)[:, None])
    assert_frequencies(drawn("poisson", MEANS, dtype=dtype, rows=20 * COUNT), masses)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_binomial_draws_of_any_share(dtype: type) -> None:
    masses = stats.binom(TRIALS.astype(int), SHARES.astype(dtype)).pmf(np.arange(300)[:, None])
    assert_frequencies(drawn("binomial", TRIALS, SHARES, dtype=dtype, rows=20 * COUNT), masses)


def test_counts_are_the_same_in_any_batch() -> None:
    keys = jax.random.split(jax.random.key(2), 3)
    for name, parameters in (("poisson", (MEANS,)), ("binomial", (TRIALS, SHARES))):
        draw = partial(DISTRIBUTIONS[name].draw, parameters=parameters, shape=(8,))
        np.testing.assert_array_equal(jax.vmap(draw)(keys)[1], draw(keys[1]))


def test_poisson_draws_of_rates_that_overflow_end() -> None:
    assert np.all(drawn("poisson_log", [900.0]) == np.inf)
    assert np.all(drawn("neg_binomial_log", [900.0], [2.0]) == np.inf)


def test_binomial_draws_at_the_edges_end() -> None:
    x = drawn("binomial", [5.0, 5.0, 0.0, np.inf, np.nan, 1e12], [0.0, 1.0, 0.3, 0.5, 0.5, 0.25], rows=200)
    np.testing.assert_array_equal(x[:, :3], np.broadcast_to([0.0, 5.0, 0.0], (200, 3)))
    assert np.isnan(x[:, 3:5]).all()
    assert abs(x[:, 5].mean() - 0.25e12) < 5 * np.sqrt(0.1875e12 / 200)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_von_mises_draws_of_any_concentration(dtype: type) -> None:
    mu, kappa = np.zeros(5), np.array([1e-30, 1e-3, 30.0, 1e7, np.inf])
    x = drawn("von_mises", mu, kappa, dtype=dtype)
    assert_distributed(x[:, :2], stats.uniform(-np.pi, 2 * np.pi))
    assert_distributed(x[:, 2:3], stats.vonmises(kappa[2:3]))
    assert_distributed(x[:, 3:4], stats.norm(0, 1 / np.sqrt(kappa[3:4])))
    assert np.isfinite(x[:, 4]).all()


@pytest.mark.parametrize("name", ["gamma", "inverse_gamma", "beta"])
def test_draws_of_small_shapes_stay_inside(name: str) -> None:
    x = drawn(name, [1e-3, 0.01], [1.0, 0.01], dtype=np.float32)
    assert DISTRIBUTIONS[name].support.contains(x).all()
    assert np.isfinite(x).all()


def test_draws_of_impossible_categories() -> None:
    p = np.array([0.0, 0.25, 0.0, 0.75, 0.0])
    counts = drawn("multinomial", np.array(9.0), p, rows=500)
    assert np.all(counts[:, [0, 2, 4]] == 0)
    np.testing.assert_array_equal(counts.sum(-1), 9)
    assert np.isin(DISTRIBUTIONS["categorical"].draw(jax.random.key(1), (p,), (500,)), [1, 3]).all()


def test_hypergeometric_draws_at_the_edges() -> None:
    x = drawn("hypergeometric", [20.0, 20.0, 5.0, 0.0, 1e5], [0.0, 20.0, 3.0, 0.0, 4e4], [7.0, 7.0, 5.0, 0.0, 3e4])
    np.testing.assert_array_equal(x[:, :4], np.broadcast_to([0.0, 7.0, 3.0, 0.0], (2000, 4)))
    distribution = stats.hypergeom(100_000, 40_000, 30_000)
    assert_distributed(
        x[:, 4:] + np.random.default_rng(1).uniform(-0.5, 0.5, (2000, 1)),
        stats.norm(distribution.mean(), distribution.std()),
    )


@pytest.mark.parametrize("name", ["multinomial", "multinomial_logit", "dirichlet_multinomial"])
def test_of_one_category_are_all(name: str) -> None:
    parameters = (np.array([3.0, 4.0]), np.ones((2, 1)))
    assert DISTRIBUTIONS[name].draw(jax.random.key(1), parameters, (2, 1)).tolist() == [[3], [4]]


@pytest.mark.parametrize("name", ["lkj_cholesky", "lkj_corr"])
def test_the_only_correlation_matrix_of_one_axis(name: str) -> None:
    assert DISTRIBUTIONS[name].draw(jax.random.key(1), (np.array([2.0, 3.0]),), (2, 1, 1)).tolist() == [[[1]], [[1]]]
