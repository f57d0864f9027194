"""Reference distribution functions of the distributions of one number: SciPy's, or formulas on top of SciPy's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special, stats


@dataclass(frozen=True)
class Transformed:
    """The distribution of to(Z) for an increasing function and its inverse."""

    standard: Any
    to: Callable[[np.ndarray], np.ndarray]
    back: Callable[[np.ndarray], np.ndarray]

    def cdf(self, x: np.ndarray) -> np.ndarray:
        return self.standard.cdf(self.back(x))

    def sf(self, x: np.ndarray) -> np.ndarray:
        return self.standard.sf(self.back(x))

    def ppf(self, q: np.ndarray) -> np.ndarray:
        return self.to(self.standard.ppf(q))

    def isf(self, q: np.ndarray) -> np.ndarray:
        return self.to(self.standard.isf(q))


@dataclass(frozen=True)
class Categories:
    """Of the probabilities {…, k}."""

    p: np.ndarray

    def cdf(self, x: np.ndarray) -> np.ndarray:
        return np.where(self._is_at_most(x), self.p, 0).sum(-1) / self.p.sum(-1)

    def sf(self, x: np.ndarray) -> np.ndarray:
        return np.where(self._is_at_most(x), 0, self.p).sum(-1) / self.p.sum(-1)

    def ppf(self, q: np.ndarray) -> np.ndarray:
        return (self.p.cumsum(-1)[..., :-1] < np.asarray(q)[..., None]).sum(-1).astype(float)

    def isf(self, q: np.ndarray) -> np.ndarray:
        return self.ppf(1 - q)

    def _is_at_most(self, x: np.ndarray) -> np.ndarray:
        return np.arange(self.p.shape[-1]) <= np.asarray(x)[..., None]


@dataclass(frozen=True)
class Amounts:
    """Of the amounts below and above x, which have no digits in common."""

    below: Callable[[np.ndarray], np.ndarray]
    above: Callable[[np.ndarray], np.ndarray]

    def cdf(self, x: np.ndarray) -> np.ndarray:
        return self.below(x) / (self.below(x) + self.above(x))

    def sf(self, x: np.ndarray) -> np.ndarray:
        return self.above(x) / (self.below(x) + self.above(x))


@dataclass(frozen=True)
class VonMises:
    """By brute force: 200 Gauss-Legendre rules along each of the two arcs of the density of SciPy."""

    mu: np.ndarray
    kappa: np.ndarray

    def cdf(self, x: np.ndarray) -> np.ndarray:
        return self._between(-np.pi, x)

    def sf(self, x: np.ndarray) -> np.ndarray:
        return self._between(x, np.pi)

    def _between(self, first: np.ndarray | float, last: np.ndarray | float) -> np.ndarray:
        nodes, weights = np.polynomial.legendre.leggauss(10)
        share = ((np.arange(200)[:, None] + 0.5 * (nodes + 1)) / 200).reshape(-1)
        first, width = np.asarray(first)[..., None], np.asarray(last - first)
        density = stats.vonmises(self.kappa[..., None], self.mu[..., None]).pdf(first + width[..., None] * share)
        return width * (density @ np.tile(weights / 400, 200))


def beta_neg_binomial(r: np.ndarray, alpha: np.ndarray, beta: np.ndarray) -> Amounts:
    """Negative binomial tails integrated over the beta distribution of log odds, by the trapezoidal rule."""
    logits = np.linspace(-150, 150, 6001)
    p, q = special.expit(logits), special.expit(-logits)
    density = np.exp(
        alpha[..., None] * np.log(p) + beta[..., None] * np.log(q) - special.betaln(alpha, beta)[..., None]
    )

    def integral(of: Callable[..., np.ndarray]) -> Callable[[np.ndarray], np.ndarray]:
        return lambda x: np.sum(of(np.floor(x)[..., None], r[..., None]) * density, axis=-1)

    return Amounts(
        integral(lambda k, r: special.betainc(r, k + 1, p)), integral(lambda k, r: special.betainc(k + 1, r, q))
    )


def masses(of: Callable[..., Any], size: int) -> Callable[..., Categories]:
    """By sums of SciPy's masses, whose own upper tails are differences."""

    def distribution(*parameters: np.ndarray) -> Categories:
        return Categories(of(*(np.asarray(parameter)[..., None] for parameter in parameters)).pmf(np.arange(size)))

    return distribution


def exponential_of(hazard: Callable[[np.ndarray], np.ndarray], back: Callable[[np.ndarray], np.ndarray]) -> Transformed:
    """The distribution with this cumulative hazard, and its inverse."""
    return Transformed(stats.expon(), back, hazard)


def kumaraswamy(alpha: np.ndarray, beta: np.ndarray) -> Transformed:
    return exponential_of(lambda x: -beta * np.log1p(-(x**alpha)), lambda z: (-np.expm1(-z / beta)) ** (1 / alpha))


def levy(mu: np.ndarray, sigma: np.ndarray) -> Amounts:
    return Amounts(
        lambda x: special.erfc(np.sqrt(0.5 * sigma / (x - mu))), lambda x: special.erf(np.sqrt(0.5 * sigma / (x - mu)))
    )


def triangular(lower: np.ndarray, c: np.ndarray, upper: np.ndarray) -> Amounts:
    """Integrals of the two sides, of height 1."""
    left, right = c - lower, upper - c
    to_the_left = lambda x: np.where(x < c, (x - lower) ** 2 / left, left + (x - c) * (1 + (upper - x) / right))  # noqa: E731
    to_the_right = lambda x: np.where(x < c, right + (c - x) * (1 + (x - lower) / left), (upper - x) ** 2 / right)  # noqa: E731
    return Amounts(to_the_left, to_the_right)


def skew_double_exponential(mu: np.ndarray, sigma: np.ndarray, tau: np.ndarray) -> Any:
    kappa = np.sqrt(tau / (1 - tau))
    return stats.laplace_asymmetric(kappa, mu, kappa * sigma / (2 * tau))


def ordered(cdf: Callable[[np.ndarray], np.ndarray]) -> Callable[..., Categories]:
    def distribution(eta: np.ndarray, cutpoints: np.ndarray) -> Categories:
        below = cdf(cutpoints - eta[..., None])
        none = np.zeros((*eta.shape, 1))
        return Categories(np.diff(np.concatenate([none, below, none + 1], -1), axis=-1))

    return distribution


expit = special.expit

REFERENCES: dict[str, Callable[..., Any]] = {
    "normal": stats.norm,
    "student_t": stats.t,
    "cauchy": stats.cauchy,
    "laplace": stats.laplace,
    "soft_laplace": stats.hypsecant,
    "asymmetric_laplace": lambda m, s, k: stats.laplace_asymmetric(k, m, s),
    "skew_double_exponential": skew_double_exponential,
    "logistic": stats.logistic,
    "gumbel": stats.gumbel_r,
    "skew_normal": lambda xi, omega, alpha: stats.skewnorm(alpha, xi, omega),
    "von_mises": VonMises,
    "exp_mod_normal": lambda m, s, r: stats.exponnorm(1 / (s * r), m, s),
    "half_normal": lambda s: stats.halfnorm(0, s),
    "half_cauchy": lambda s: stats.halfcauchy(0, s),
    "half_student_t": lambda n, s: Transformed(stats.f(1, n), lambda z: s * np.sqrt(z), lambda x: (x / s) ** 2),
    "lognormal": lambda m, s: stats.lognorm(s, 0, np.exp(m)),
    "exponential": lambda r: stats.expon(0, 1 / r),
    "gamma": lambda a, b: stats.gamma(a, 0, 1 / b),
    "chi_square": stats.chi2,
    "inverse_gamma": lambda a, b: stats.invgamma(a, 0, b),
    "inv_chi_square": lambda n: stats.invgamma(n / 2, 0, 0.5),
    "scaled_inv_chi_square": lambda n, s: stats.invgamma(n / 2, 0, n * s**2 / 2),
    "rayleigh": lambda s: stats.rayleigh(0, s),
    "weibull": lambda a, s: stats.weibull_min(a, 0, s),
    "frechet": lambda a, s: stats.invweibull(a, 0, s),
    "wald": lambda m, r: stats.invgauss(m / r, 0, r),
    "loglogistic": lambda a, b: Transformed(stats.logistic(), lambda z: a * np.exp(z / b), lambda x: b * np.log(x / a)),
    "gompertz": lambda a, b: stats.gompertz(a, 0, 1 / b),
    "pareto": lambda y, a: exponential_of(lambda x: a * np.log1p((x - y) / y), lambda z: y * np.exp(z / a)),
    "pareto_type_2": lambda m, r, a: stats.lomax(a, m, r),
    "levy": levy,
    "beta": stats.beta,
    "beta_proportion": lambda m, k: stats.beta(m * k, (1 - m) * k),
    "logit_normal": lambda m, s: Transformed(stats.norm(m, s), special.expit, special.logit),
    "kumaraswamy": kumaraswamy,
    "uniform": lambda lower, upper: Amounts(lambda x: x - lower, lambda x: upper - x),
    "log_uniform": lambda lower, upper: Amounts(
        lambda x: np.log1p((x - lower) / lower), lambda x: -np.log1p((x - upper) / upper)
    ),
    "triangular": triangular,
    "bernoulli": stats.bernoulli,
    "bernoulli_logit": lambda e: stats.bernoulli(expit(e)),
    "binomial": stats.binom,
    "binomial_logit": lambda n, e: stats.binom(n, expit(e)),
    "beta_binomial": masses(stats.betabinom, 8),
    "poisson": stats.poisson,
    "poisson_log": lambda e: stats.poisson(np.exp(e)),
    "neg_binomial": lambda m, a: stats.nbinom(a, a / (a + m)),
    "neg_binomial_log": lambda e, a: stats.nbinom(a, a / (a + np.exp(e))),
    "beta_neg_binomial": beta_neg_binomial,
    "geometric": stats.geom,
    "discrete_uniform": lambda lower, upper: stats.randint(lower, upper + 1),
    "hypergeometric": masses(stats.hypergeom, 6),
    "categorical": Categories,
    "categorical_logit": lambda e: Categories(special.softmax(e, -1)),
    "ordered_logistic": ordered(expit),
    "ordered_probit": ordered(special.ndtr),
}
