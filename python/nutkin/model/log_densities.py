"""The log densities of the distributions, each in the three parts of an exponential family:

    log p(x | parameters) = kernel(x, *parameters) - normalizer(*parameters) + carrier(x, *bounds)

The kernel holds what depends on both, the normalizer what depends on the parameters only, constants included, and the
carrier what depends on the value (and the bounds of the support) only. A normalizer has the shape of the parameters
that it depends on: of scalar parameters it is computed once, not once a value.

Counts by log odds or log rate are exact also where the probability or the rate rounds to 0, 1 or infinity. A scale
divides before anything is squared: the square of a small f32 scale is 0. Terms that cancel each other stay in one
part, lest their sums over many values cancel with what rounding has left of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import jax.numpy as jnp
from jax import Array, lax

from nutkin.model.native.elementary import exp, log, log1p
from nutkin.model.native.gamma import lgamma
from nutkin.model.special import log_beta, softplus, xlog1py, xlogy

_LOG_2 = math.log(2)
_LOG_PI = math.log(math.pi)
_HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)

Part = Callable[..., Array]


@dataclass(frozen=True)
class LogDensity:
    """The parts of a log density; one that is None is 0. All arrays are of one floating type.

    `kernel` and `carrier` reduce the event axes of the value. `prepare` turns the parameters of the model language
    into those that kernel and normalizer take. Outside the support the density is unspecified.
    """

    kernel: Part | None = None
    normalizer: Part | None = None
    carrier: Part | None = None
    prepare: Callable[..., tuple[Array, ...]] | None = None


def _standardized(x: Array, mu: Array, sigma: Array) -> Array:
    # One division where sigma is a scalar, and none in the gradient.
    return (x - mu) * (1 / sigma)


NORMAL = LogDensity(
    kernel=lambda x, mu, sigma: -0.5 * lax.square(_standardized(x, mu, sigma)),
    normalizer=lambda mu, sigma: log(sigma) + _HALF_LOG_2PI,
)

HALF_NORMAL = LogDensity(
    kernel=lambda x, sigma: -0.5 * lax.square(x / sigma),
    normalizer=lambda sigma: log(sigma) + (_HALF_LOG_2PI - _LOG_2),
)

LOGNORMAL = LogDensity(
    kernel=lambda x, mu, sigma: -0.5 * lax.square(_standardized(log(x), mu, sigma)),
    normalizer=NORMAL.normalizer,
    carrier=lambda x: -log(x),
)


def _student_t_normalizer(nu: Array, mu: Array, sigma: Array) -> Array:
    gammas = lgamma(0.5 * nu) - lgamma(0.5 * nu + 0.5)
    return gammas + 0.5 * (log(nu) + _LOG_PI) + log(sigma)


STUDENT_T = LogDensity(
    kernel=lambda x, nu, mu, sigma: -0.5 * (nu + 1) * log1p(lax.square(_standardized(x, mu, sigma)) / nu),
    normalizer=_student_t_normalizer,
)

CAUCHY = LogDensity(
    kernel=lambda x, mu, sigma: -log1p(lax.square(_standardized(x, mu, sigma))),
    normalizer=lambda mu, sigma: log(sigma) + _LOG_PI,
)

HALF_CAUCHY = LogDensity(
    kernel=lambda x, sigma: -log1p(lax.square(x / sigma)),
    normalizer=lambda sigma: log(sigma) + (_LOG_PI - _LOG_2),
)

EXPONENTIAL = LogDensity(
    kernel=lambda x, rate: -rate * x,
    normalizer=lambda rate: -log(rate),
)

GAMMA = LogDensity(
    kernel=lambda x, alpha, beta: xlogy(alpha - 1, x) - beta * x,
    normalizer=lambda alpha, beta: lgamma(alpha) - alpha * log(beta),
)

INVERSE_GAMMA = LogDensity(
    kernel=lambda x, alpha, beta: -(alpha + 1) * log(x) - beta / x,
    normalizer=GAMMA.normalizer,
)

BETA = LogDensity(
    kernel=lambda x, alpha, beta: xlogy(alpha - 1, x) + xlog1py(beta - 1, -x),
    normalizer=log_beta,
)

UNIFORM = LogDensity(normalizer=lambda lower, upper: log(upper - lower))

LAPLACE = LogDensity(
    kernel=lambda x, mu, sigma: -lax.abs(_standardized(x, mu, sigma)),
    normalizer=lambda mu, sigma: log(sigma) + _LOG_2,
)


def _logistic_kernel(x: Array, mu: Array, sigma: Array) -> Array:
    z = _standardized(x, mu, sigma)
    return -z - 2 * softplus(-z)


LOGISTIC = LogDensity(kernel=_logistic_kernel, normalizer=lambda mu, sigma: log(sigma))


def _weibull_kernel(x: Array, alpha: Array, sigma: Array) -> Array:
    log_ratio = log(x / sigma)
    return (alpha - 1) * log_ratio - exp(alpha * log_ratio)


WEIBULL = LogDensity(
    kernel=_weibull_kernel,
    normalizer=lambda alpha, sigma: log(sigma) - log(alpha),
)

BERNOULLI = LogDensity(kernel=lambda x, p: xlogy(x, p) + xlog1py(1 - x, -p))

BERNOULLI_LOGIT = LogDensity(
    kernel=lambda x, logits: x * logits,
    normalizer=softplus,
)


def _log_ways(x: Array, n: Array) -> Array:
    return lgamma(n + 1) - lgamma(x + 1) - lgamma(n - x + 1)


BINOMIAL = LogDensity(
    kernel=lambda x, n, p: xlogy(x, p) + xlog1py(n - x, -p),
    carrier=_log_ways,
)

BINOMIAL_LOGIT = LogDensity(
    kernel=lambda x, n, logits: x * logits,
    normalizer=lambda n, logits: n * softplus(logits),
    carrier=_log_ways,
)


def _minus_log_factorial(x: Array) -> Array:
    return -lgamma(x + 1)


POISSON = LogDensity(
    kernel=xlogy,
    normalizer=lambda mu: mu,
    carrier=_minus_log_factorial,
)

POISSON_LOG = LogDensity(
    kernel=lambda x, eta: x * eta,
    normalizer=exp,
    carrier=_minus_log_factorial,
)


def _neg_binomial_kernel(x: Array, mu: Array, alpha: Array) -> Array:
    return lgamma(x + alpha) - lgamma(alpha) - x * log1p(alpha / mu)


NEG_BINOMIAL = LogDensity(
    kernel=_neg_binomial_kernel,
    normalizer=lambda mu, alpha: alpha * log1p(mu / alpha),
    carrier=_minus_log_factorial,
)

DIRICHLET = LogDensity(
    kernel=lambda x, alpha: jnp.sum(xlogy(alpha - 1, x), axis=-1),
    normalizer=lambda alpha: jnp.sum(lgamma(alpha), axis=-1) - lgamma(jnp.sum(alpha, axis=-1)),
)


def _mv_normal_kernel(x: Array, mu: Array, chol: Array) -> Array:
    residuals = x - mu
    size = residuals.shape[-1]
    if chol.ndim == 2:  # one matrix for all: one solve with many right-hand sides
        rows = residuals.reshape(-1, size)
    else:
        batch = jnp.broadcast_shapes(residuals.shape[:-1], chol.shape[:-2])
        rows = jnp.broadcast_to(residuals, (*batch, size))[..., None, :]
        chol = jnp.broadcast_to(chol, (*batch, size, size))
    standardized = lax.linalg.triangular_solve(chol, rows, lower=True, transpose_a=True)
    distances = jnp.sum(lax.square(standardized), axis=-1)
    return -0.5 * distances.reshape(residuals.shape[:-1] if chol.ndim == 2 else batch)


def _mv_normal_normalizer(mu: Array, chol: Array) -> Array:
    diagonal = jnp.diagonal(chol, axis1=-2, axis2=-1)
    return jnp.sum(log(lax.abs(diagonal)), axis=-1) + chol.shape[-1] * _HALF_LOG_2PI


MV_NORMAL_CHOLESKY = LogDensity(kernel=_mv_normal_kernel, normalizer=_mv_normal_normalizer)

MV_NORMAL = LogDensity(
    kernel=_mv_normal_kernel,
    normalizer=_mv_normal_normalizer,
    prepare=lambda mu, cov: (mu, lax.linalg.cholesky(cov)),
)


def _walk_kernel(x: Array, sigma: Array) -> Array:
    """The whole density: the number of steps is that of the value."""
    rate = jnp.reshape(1 / sigma, (*jnp.shape(sigma), 1))
    squares = lax.square(x[..., :1] * rate), lax.square((x[..., 1:] - x[..., :-1]) * rate)
    distance = jnp.sum(squares[0], axis=-1) + jnp.sum(squares[1], axis=-1)
    return -0.5 * distance - x.shape[-1] * (log(sigma) + _HALF_LOG_2PI)


GAUSSIAN_RANDOM_WALK = LogDensity(kernel=_walk_kernel)
