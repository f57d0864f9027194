"""Random draws of distributions made of others: each of its distribution function, also far out in a tail."""

import jax
import numpy as np
import pytest
from scipy import stats

from nutkin.model.distributions import DISTRIBUTIONS, find_family
from nutkin.model.ir import Combination

COUNT = 4000
LEAST_P = 1e-4


def made(name, *components):
    return Combination(name=name, components=components)


def draw(dist, shape=(COUNT,), precision=np.float64, **parameters):
    """`mu_of_0` is the parameter `0.mu`."""
    named = {name.partition("_of_"): value for name, value in parameters.items()}
    parameters = {f"{place}.{name}" if place else name: value for (name, _, place), value in named.items()}
    family = find_family(dist, parameters)
    values = tuple(np.asarray(parameters[name], precision) for name in family.parameters)
    return np.asarray(jax.jit(lambda key: family.draw(key, values, shape))(jax.random.key(3)))


def assert_distributed(x, cdf):
    assert stats.kstest(x, cdf).pvalue > LEAST_P


def assert_frequencies(x, masses):
    found = np.bincount(x.astype(int), minlength=len(masses))[: len(masses)]
    np.testing.assert_allclose(found / len(x), masses, atol=4 / np.sqrt(len(x)) / 2)


def test_mixtures_of_listed_components_and_over_an_axis():
    normal, gamma = {"mu_of_0": -2, "sigma_of_0": 0.5}, {"alpha_of_1": 3, "beta_of_1": 1}
    listed = draw(made("mixture", "normal", "gamma"), weights=[0.3, 0.7], **normal, **gamma)
    assert_distributed(listed, lambda x: 0.3 * stats.norm(-2, 0.5).cdf(x) + 0.7 * stats.gamma(3).cdf(x))
    mu, weights = np.array([[0, 1, 5], [3.0, 4, -5]]), np.array([[0.2, 0.3, 0.5], [0.6, 0, 0.4]])
    along = draw(made("mixture", "normal"), (COUNT, 2), weights=weights, mu_of_0=mu, sigma_of_0=0.7)
    for row in range(2):
        assert_distributed(along[:, row], lambda x, r=row: stats.norm(mu[r], 0.7).cdf(x[:, None]) @ weights[r])


def test_a_mixture_of_vectors_takes_all_of_a_vector_from_one_component():
    mu, cov = np.array([[0.0, 0], [8, 8]]), np.eye(2)
    x = draw(made("mixture", "mv_normal"), (COUNT, 2), weights=[0.4, 0.6], mu_of_0=mu, cov_of_0=[cov, cov])
    assert ((x[:, 0] > 4) == (x[:, 1] > 4)).all()
    assert (x[:, 0] > 4).mean() == pytest.approx(0.6, abs=0.03)


TRUNCATED = {
    "both": ("normal", {"mu": 1, "sigma": 2}, stats.norm(1, 2), -1, 2.5),
    "far right": ("normal", {"mu": 0, "sigma": 1}, stats.norm, 20, np.inf),
    "far left": ("normal", {"mu": 0, "sigma": 1}, stats.norm, -np.inf, -20),
    "far between": ("normal", {"mu": 0, "sigma": 1}, stats.norm, 10, 10.1),
    "whole": ("student_t", {"nu": 3, "mu": 0, "sigma": 1}, stats.t(3), -1e9, 1e9),
    "positive": ("gamma", {"alpha": 2, "beta": 1}, stats.gamma(2), 3, np.inf),
    "unit": ("beta", {"alpha": 2, "beta": 3}, stats.beta(2, 3), 0.2, 0.3),
}


@pytest.mark.parametrize("case", TRUNCATED)
@pytest.mark.parametrize("precision", [np.float64, np.float32])
def test_truncation(case, precision):
    dist, parameters, scipy, lower, upper = TRUNCATED[case]
    limits = {name: x for name, x in (("lower", lower), ("upper", upper)) if np.isfinite(x)}
    of_component = {f"{name}_of_0": x for name, x in parameters.items()}
    x = draw(made("truncated", dist), precision=precision, **of_component, **limits)
    assert (x >= precision(lower)).all()
    assert (x <= precision(upper)).all()
    if lower > scipy.median():  # by the tail in which it is
        assert_distributed(x, lambda x: 1 - (scipy.sf(x) - scipy.sf(upper)) / (scipy.sf(lower) - scipy.sf(upper)))
    else:
        assert_distributed(x, lambda x: (scipy.cdf(x) - scipy.cdf(lower)) / (scipy.cdf(upper) - scipy.cdf(lower)))


def test_truncated_counts():
    x = draw(made("truncated", "poisson"), mu_of_0=2.0, lower=1.0, upper=4.0)
    masses = stats.poisson(2).pmf(np.arange(5)) * (np.arange(5) >= 1)
    assert_frequencies(x, masses / masses.sum())


INVERTED = {
    "levy": ({"mu": 1, "sigma": 2}, stats.levy(1, 2), 2, 900),
    "wald": ({"mu": 2, "lambda": 3}, stats.invgauss(2 / 3, scale=3), 0.5, 4),
    "uniform": ({"lower": -1, "upper": 3}, stats.uniform(-1, 4), 0, 2.5),
    "cauchy": ({"mu": 0, "sigma": 1}, stats.cauchy, 1e6, 1e12),
}


@pytest.mark.parametrize("name", INVERTED)
def test_other_distribution_functions_are_inverted(name):
    parameters, scipy, lower, upper = INVERTED[name]
    x = draw(made("truncated", name), **{f"{p}_of_0": v for p, v in parameters.items()}, lower=lower, upper=upper)
    assert_distributed(x, lambda x: (scipy.sf(lower) - scipy.sf(x)) / (scipy.sf(lower) - scipy.sf(upper)))


def test_censored_values_are_at_the_limits():
    x = draw(made("censored", "normal"), mu_of_0=0, sigma_of_0=1, lower=-1.0, upper=0.5)
    assert (x == -1).mean() == pytest.approx(stats.norm.cdf(-1), abs=0.03)
    assert (x == 0.5).mean() == pytest.approx(stats.norm.sf(0.5), abs=0.03)
    assert ((x >= -1) & (x <= 0.5)).all()


def test_parts_of_angles_and_of_counts_whose_masses_are_summed():
    angles = draw(made("truncated", "von_mises"), mu_of_0=0.3, kappa_of_0=2.0, lower=0.0)
    below = stats.vonmises(2.0, 0.3).cdf
    assert_distributed(angles, lambda x: (below(x) - below(0.0)) / (below(np.pi) - below(0.0)))
    counts = draw(made("truncated", "beta_binomial"), n_of_0=7.0, alpha_of_0=2.0, beta_of_0=3.0, lower=2.0)
    masses = stats.betabinom(7, 2.0, 3.0).pmf(np.arange(8)) * (np.arange(8) >= 2)
    assert_frequencies(counts, masses / masses.sum())


def test_more_zeros():
    poisson = stats.poisson(1.5).pmf(np.arange(8))
    inflated = draw(made("zero_inflated", "poisson"), mu_of_0=1.5, p=0.3)
    assert_frequencies(inflated, 0.7 * poisson + 0.3 * (np.arange(8) == 0))
    hurdle = draw(made("hurdle", "poisson"), mu_of_0=1.5, p=0.3)
    above = poisson * (np.arange(8) > 0)
    assert_frequencies(hurdle, 0.7 * above / stats.poisson(1.5).sf(0) + 0.3 * (np.arange(8) == 0))
    rare = draw(made("hurdle", "poisson"), mu_of_0=1e-9, p=0.5)
    assert set(np.unique(rare)) == {0, 1}
    positive = draw(made("hurdle", "gamma"), alpha_of_0=2, beta_of_0=1, p=0.25)
    assert (positive == 0).mean() == pytest.approx(0.25, abs=0.03)
    assert_distributed(positive[positive > 0], stats.gamma(2).cdf)


def test_nested():
    x = draw(made("zero_inflated", made("truncated", "poisson")), **{"0.0.mu": 2.0, "0.upper": 3.0, "p": 0.5})
    masses = stats.poisson(2).pmf(np.arange(4)) / stats.poisson(2).cdf(3)
    assert_frequencies(x, 0.5 * masses + 0.5 * (np.arange(4) == 0))


@pytest.mark.parametrize(
    "dist",
    [made("mixture", "flat", "normal"), made("interval_censored", "normal")],
    ids=str,
)
def test_what_has_no_draws(dist):
    parts = [DISTRIBUTIONS[component].parameters for component in dist.components]
    names = [f"{place}.{name}" for place, part in enumerate(parts) for name in part]
    own = {"mixture": ["weights"]}.get(dist.name, [])
    assert find_family(dist, [*names, *own]).draw is None
