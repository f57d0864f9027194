"""Values, parameters and the expected log density of every distribution, by SciPy or by its formula."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import special, stats

RNG = np.random.default_rng(7)


class Case(NamedTuple):
    """Values, parameters in the table's order, and the log density of both."""

    value: np.ndarray
    parameters: tuple[np.ndarray, ...]
    expected: Callable[..., np.ndarray]


def positive(*shape: int) -> np.ndarray:
    return RNG.gamma(2.0, 1.0, shape) + 0.1


def real(*shape: int) -> np.ndarray:
    return RNG.normal(0, 2, shape)


def unit(*shape: int) -> np.ndarray:
    return RNG.uniform(0.05, 0.95, shape)


def counts(high: int, *shape: int) -> np.ndarray:
    return RNG.integers(0, high, shape).astype(float)


def simplex(*batch: int) -> np.ndarray:
    return RNG.dirichlet([9, 9, 9], batch)


def covariance(*batch: int) -> np.ndarray:
    a = RNG.normal(size=(*batch, 3, 3))
    return a @ np.swapaxes(a, -1, -2) + np.eye(3)


def correlation(*batch: int) -> np.ndarray:
    cov = covariance(*batch)
    scale = np.sqrt(np.diagonal(cov, axis1=-2, axis2=-1))
    return cov / scale[..., :, None] / scale[..., None, :]


def lower(covariances: np.ndarray) -> np.ndarray:
    return np.linalg.cholesky(covariances)


def product(chol: np.ndarray) -> np.ndarray:
    return chol @ np.swapaxes(chol, -1, -2)


def each(log_density: Callable[..., float]) -> Callable[..., np.ndarray]:
    """For each of the rows of all arguments."""
    return lambda *columns: np.array([log_density(*row) for row in zip(*columns, strict=True)])


mv_normal_each = each(stats.multivariate_normal.logpdf)


def walk(x: np.ndarray, sigma: np.ndarray) -> np.ndarray:
    steps = np.diff(x, axis=-1, prepend=0.0)
    return stats.norm.logpdf(steps, 0, sigma[:, None]).sum(-1)


def autoregression(x: np.ndarray, rho: np.ndarray, sigma: float) -> float:
    earlier = np.concatenate([np.zeros(len(rho)), x])
    means = [sum(r * earlier[len(rho) + t - 1 - i] for i, r in enumerate(rho)) for t in range(len(x))]
    return stats.norm.logpdf(x, means, sigma).sum()


def intrinsic(x: np.ndarray, adjacency: np.ndarray, sigma: float) -> float:
    pairs = sum(adjacency[i, j] * (x[i] - x[j]) ** 2 for i in range(len(x)) for j in range(i)) / sigma**2
    return -0.5 * pairs - 0.5 * (x.sum() / sigma / (0.001 * len(x))) ** 2 - len(x) * np.log(sigma)


def skew_double_exponential(x: np.ndarray, mu: np.ndarray, sigma: np.ndarray, tau: np.ndarray) -> np.ndarray:
    kappa = np.sqrt(tau / (1 - tau))
    return stats.laplace_asymmetric.logpdf(x, kappa, mu, kappa * sigma / (2 * tau))


def soft_laplace(x: np.ndarray, mu: np.ndarray, sigma: np.ndarray) -> np.ndarray:
    return np.log(1 / (np.pi * sigma * np.cosh((x - mu) / sigma)))


def logit_normal(x: np.ndarray, mu: np.ndarray, sigma: np.ndarray) -> np.ndarray:
    return stats.norm.logpdf(special.logit(x), mu, sigma) - np.log(x * (1 - x))


def kumaraswamy(x: np.ndarray, alpha: np.ndarray, beta: np.ndarray) -> np.ndarray:
    return np.log(alpha * beta * x ** (alpha - 1) * (1 - x**alpha) ** (beta - 1))


def entry(x: np.ndarray, table: np.ndarray) -> np.ndarray:
    return np.take_along_axis(table, x.astype(int)[:, None], -1)[:, 0]


def ordered(distribution_function: Callable[[np.ndarray], np.ndarray]) -> Callable[..., np.ndarray]:
    def log_density(x: np.ndarray, eta: np.ndarray, cutpoints: np.ndarray) -> np.ndarray:
        edges = np.broadcast_to(cutpoints, (len(x), cutpoints.shape[-1])) - eta[:, None]
        below = np.column_stack([np.zeros(len(x)), distribution_function(edges), np.ones(len(x))])
        return np.log(entry(x + 1, below) - entry(x, below))

    return log_density


def lkj(matrix: np.ndarray, eta: np.ndarray) -> np.ndarray:
    """Lewandowski, Kurowicka and Joe 2009, formula 16."""
    d = matrix.shape[-1]
    normalizer = sum(
        (2 * eta - 2 + d - k) * (d - k) * np.log(2)
        + (d - k) * special.betaln(eta + (d - k - 1) / 2, eta + (d - k - 1) / 2)
        for k in range(1, d)
    )
    return (eta - 1) * np.linalg.slogdet(matrix)[1] - normalizer


def lkj_cholesky(chol: np.ndarray, eta: np.ndarray) -> np.ndarray:
    """With the Jacobian of L -> L L^T, the product of L_ii^(k - 1 - i)."""
    diagonal = np.diagonal(chol, axis1=-2, axis2=-1)
    return lkj(product(chol), eta) + (np.log(diagonal) * np.arange(diagonal.shape[-1] - 1, -1, -1)).sum(-1)


def on_sphere(x: np.ndarray) -> np.ndarray:
    area = {2: 2 * np.pi, 3: 4 * np.pi}[x.shape[-1]]
    return np.full(x.shape[:-1], -np.log(area))


_SQUARE_EDGES = np.array([[0, 1], [1, 2], [2, 3], [0, 3]], float)
_SQUARE_ADJACENCY = np.array([[0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0]], float)


def car(x: np.ndarray, mu: np.ndarray, adjacency: np.ndarray, alpha: float, tau: float) -> float:
    precision = tau * (np.diag(adjacency.sum(0)) - alpha * adjacency)
    return stats.multivariate_normal.logpdf(x, mu, np.linalg.inv(precision))


def zero_sum(*shape: int) -> np.ndarray:
    x = real(*shape)
    return x - x.mean(-1, keepdims=True)


def direction(*shape: int) -> np.ndarray:
    x = real(*shape)
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


expit = special.expit
_MU = real(5)
_WAYS = RNG.multinomial(7, [0.2, 0.5, 0.3], 4).astype(float)

CASES = {
    name: Case(*case)
    for name, case in {
        "normal": (real(5), (real(5), positive(5)), stats.norm.logpdf),
        "half_normal": (positive(5), (positive(5),), lambda x, s: stats.halfnorm.logpdf(x, 0, s)),
        "lognormal": (positive(5), (real(5), positive(5)), lambda x, m, s: stats.lognorm.logpdf(x, s, 0, np.exp(m))),
        "student_t": (real(5), (positive(5), real(5), positive(5)), stats.t.logpdf),
        "cauchy": (real(5), (real(5), positive(5)), stats.cauchy.logpdf),
        "half_cauchy": (positive(5), (positive(5),), lambda x, s: stats.halfcauchy.logpdf(x, 0, s)),
        "exponential": (positive(5), (positive(5),), lambda x, r: stats.expon.logpdf(x, 0, 1 / r)),
        "gamma": (positive(5), (positive(5), positive(5)), lambda x, a, b: stats.gamma.logpdf(x, a, 0, 1 / b)),
        "inverse_gamma": (positive(5), (positive(5), positive(5)), lambda x, a, b: stats.invgamma.logpdf(x, a, 0, b)),
        "beta": (unit(5), (positive(5), positive(5)), stats.beta.logpdf),
        "uniform": (unit(5), (-positive(5), 1 + positive(5)), lambda x, lo, hi: stats.uniform.logpdf(x, lo, hi - lo)),
        "laplace": (real(5), (real(5), positive(5)), stats.laplace.logpdf),
        "logistic": (real(5), (real(5), positive(5)), stats.logistic.logpdf),
        "weibull": (positive(5), (positive(5), positive(5)), lambda x, a, s: stats.weibull_min.logpdf(x, a, 0, s)),
        "bernoulli": (counts(2, 9), (unit(9),), stats.bernoulli.logpmf),
        "bernoulli_logit": (counts(2, 9), (real(9),), lambda x, eta: stats.bernoulli.logpmf(x, expit(eta))),
        "binomial": (counts(6, 9), (5 + counts(6, 9), unit(9)), stats.binom.logpmf),
        "binomial_logit": (
            counts(6, 9),
            (5 + counts(6, 9), real(9)),
            lambda x, n, e: stats.binom.logpmf(x, n, expit(e)),
        ),
        "poisson": (counts(9, 9), (positive(9),), stats.poisson.logpmf),
        "poisson_log": (counts(9, 9), (real(9),), lambda x, eta: stats.poisson.logpmf(x, np.exp(eta))),
        "neg_binomial": (
            counts(9, 9),
            (positive(9), positive(9)),
            lambda x, m, a: stats.nbinom.logpmf(x, a, a / (a + m)),
        ),
        "dirichlet": (simplex(4), (positive(3),), lambda x, a: stats.dirichlet.logpdf(x.T, a)),
        "mv_normal": (real(4, 3), (real(4, 3), covariance(4)), mv_normal_each),
        "mv_normal_cholesky": (
            real(4, 3),
            (real(4, 3), lower(covariance(4))),
            lambda x, mu, chol: mv_normal_each(x, mu, product(chol)),
        ),
        "gaussian_random_walk": (real(4, 6), (positive(4),), walk),
        "soft_laplace": (real(5), (real(5), positive(5)), soft_laplace),
        "asymmetric_laplace": (
            real(5),
            (real(5), positive(5), positive(5)),
            lambda x, m, s, k: stats.laplace_asymmetric.logpdf(x, k, m, s),
        ),
        "skew_double_exponential": (real(5), (real(5), positive(5), unit(5)), skew_double_exponential),
        "gumbel": (real(5), (real(5), positive(5)), stats.gumbel_r.logpdf),
        "skew_normal": (
            real(5),
            (real(5), positive(5), real(5)),
            lambda x, xi, omega, alpha: stats.skewnorm.logpdf(x, alpha, xi, omega),
        ),
        "exp_mod_normal": (
            real(5),
            (real(5), positive(5), positive(5)),
            lambda x, m, s, r: stats.exponnorm.logpdf(x, 1 / (s * r), m, s),
        ),
        "von_mises": (
            RNG.uniform(-3, 3, 5),
            (real(5), positive(5)),
            lambda x, m, k: k * np.cos(x - m) - np.log(2 * np.pi * special.i0(k)),
        ),
        "flat": (real(5), (), np.zeros_like),
        "half_student_t": (
            positive(5),
            (positive(5), positive(5)),
            lambda x, n, s: stats.t.logpdf(x, n, 0, s) + np.log(2),
        ),
        "half_flat": (positive(5), (), np.zeros_like),
        "chi_square": (positive(5), (positive(5),), stats.chi2.logpdf),
        "inv_chi_square": (positive(5), (positive(5),), lambda x, n: stats.invgamma.logpdf(x, n / 2, 0, 0.5)),
        "scaled_inv_chi_square": (
            positive(5),
            (positive(5), positive(5)),
            lambda x, n, s: stats.invgamma.logpdf(x, n / 2, 0, n * s**2 / 2),
        ),
        "rayleigh": (positive(5), (positive(5),), lambda x, s: stats.rayleigh.logpdf(x, 0, s)),
        "frechet": (positive(5), (positive(5), positive(5)), lambda x, a, s: stats.invweibull.logpdf(x, a, 0, s)),
        "wald": (positive(5), (positive(5), positive(5)), lambda x, m, r: stats.invgauss.logpdf(x, m / r, 0, r)),
        "loglogistic": (positive(5), (positive(5), positive(5)), lambda x, a, b: stats.fisk.logpdf(x, b, 0, a)),
        "gompertz": (positive(5), (unit(5), unit(5)), lambda x, a, b: stats.gompertz.logpdf(x, a, 0, 1 / b)),
        "pareto": (3 + positive(5), (positive(5), positive(5)), lambda x, y, a: stats.pareto.logpdf(x, a, 0, y)),
        "pareto_type_2": (
            _MU + positive(5),
            (_MU, positive(5), positive(5)),
            lambda x, m, r, a: stats.lomax.logpdf(x, a, m, r),
        ),
        "levy": (_MU + positive(5), (_MU, positive(5)), stats.levy.logpdf),
        "beta_proportion": (unit(5), (unit(5), positive(5)), lambda x, m, k: stats.beta.logpdf(x, m * k, (1 - m) * k)),
        "logit_normal": (unit(5), (real(5), positive(5)), logit_normal),
        "kumaraswamy": (unit(5), (positive(5), positive(5)), kumaraswamy),
        "log_uniform": (1 + unit(5), (unit(5), 2 + positive(5)), stats.loguniform.logpdf),
        "triangular": (
            unit(5),
            (-positive(5), unit(5), 1 + positive(5)),
            lambda x, lo, c, hi: stats.triang.logpdf(x, (c - lo) / (hi - lo), lo, hi - lo),
        ),
        "beta_binomial": (counts(6, 9), (np.full(9, 7.0), positive(9), positive(9)), stats.betabinom.logpmf),
        "neg_binomial_log": (
            counts(9, 9),
            (real(9), positive(9)),
            lambda x, e, a: stats.nbinom.logpmf(x, a, a / (a + np.exp(e))),
        ),
        "beta_neg_binomial": (counts(9, 9), (1 + counts(5, 9), positive(9), positive(9)), stats.betanbinom.logpmf),
        "geometric": (1 + counts(9, 9), (unit(9),), stats.geom.logpmf),
        "discrete_uniform": (
            counts(5, 9),
            (np.zeros(9), 5 + counts(5, 9)),
            lambda x, lo, hi: stats.randint.logpmf(x, lo, hi + 1),
        ),
        "hypergeometric": (counts(4, 9), (np.full(9, 20.0), np.full(9, 8.0), np.full(9, 5.0)), stats.hypergeom.logpmf),
        "categorical": (counts(3, 9), (simplex(9),), lambda x, p: entry(x, np.log(p))),
        "categorical_logit": (counts(3, 9), (real(9, 3),), lambda x, e: entry(x, special.log_softmax(e, -1))),
        "ordered_logistic": (counts(4, 9), (real(9), np.array([-1.0, 0.5, 2.0])), ordered(expit)),
        "ordered_probit": (counts(4, 9), (real(9) / 2, np.array([-1.0, 0.5, 2.0])), ordered(special.ndtr)),
        "multinomial": (_WAYS, (np.full(4, 7.0), simplex(4)), each(stats.multinomial.logpmf)),
        "multinomial_logit": (
            _WAYS,
            (np.full(4, 7.0), real(4, 3)),
            lambda x, n, e: each(stats.multinomial.logpmf)(x, n, special.softmax(e, -1)),
        ),
        "dirichlet_multinomial": (
            _WAYS,
            (np.full(4, 7.0), positive(4, 3)),
            each(lambda x, n, a: stats.dirichlet_multinomial.logpmf(x.astype(int), a, int(n))),
        ),
        "mv_normal_precision": (
            real(4, 3),
            (real(4, 3), covariance(4)),
            lambda x, mu, tau: mv_normal_each(x, mu, np.linalg.inv(tau)),
        ),
        "mv_normal_low_rank": (
            real(4, 3),
            (real(4, 3), real(4, 3, 2), positive(4, 3)),
            each(lambda x, mu, f, d: stats.multivariate_normal.logpdf(x, mu, f @ f.T + np.diag(d))),
        ),
        "mv_student_t": (
            real(4, 3),
            (positive(4), real(4, 3), covariance(4)),
            each(lambda x, nu, mu, cov: stats.multivariate_t.logpdf(x, mu, cov, nu)),
        ),
        "mv_student_t_cholesky": (
            real(4, 3),
            (positive(4), real(4, 3), lower(covariance(4))),
            each(lambda x, nu, mu, chol: stats.multivariate_t.logpdf(x, mu, product(chol), nu)),
        ),
        "zero_sum_normal": (
            zero_sum(4, 5),
            (positive(4),),
            lambda x, s: stats.norm.logpdf(x, 0, s[:, None]).sum(-1) - stats.norm.logpdf(0, 0, s),
        ),
        "uniform_on_sphere": (direction(4, 3), (), on_sphere),
        "lkj_corr": (correlation(4), (positive(4),), lkj),
        "lkj_cholesky": (lower(correlation(4)), (positive(4),), lkj_cholesky),
        "wishart": (covariance(4), (2 + positive(4), covariance(4)), each(stats.wishart.logpdf)),
        "inv_wishart": (covariance(4), (2 + positive(4), covariance(4)), each(stats.invwishart.logpdf)),
        "matrix_normal": (
            real(4, 2, 3),
            (real(4, 2, 3), lower(covariance(4)[:, :2, :2]), lower(covariance(4))),
            each(lambda x, mu, r, c: stats.matrix_normal.logpdf(x, mu, product(r), product(c))),
        ),
        "ar": (real(4, 6), (real(4, 2), positive(4)), each(autoregression)),
        "car": (
            real(3, 4),
            (real(3, 4), np.broadcast_to(_SQUARE_ADJACENCY, (3, 4, 4)), unit(3), positive(3)),
            each(car),
        ),
        "icar": (zero_sum(3, 4), (np.broadcast_to(_SQUARE_ADJACENCY, (3, 4, 4)), positive(3)), each(intrinsic)),
        "icar_edges": (
            zero_sum(3, 4),
            (np.stack([_SQUARE_EDGES, _SQUARE_EDGES[::-1], _SQUARE_EDGES[:, ::-1]]), positive(3)),
            each(lambda x, edges, sigma: intrinsic(x, _SQUARE_ADJACENCY, sigma)),
        ),
    }.items()
}
