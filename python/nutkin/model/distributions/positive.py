"""Distributions on the positive numbers, and on the numbers above a parameter."""

from __future__ import annotations

import math
from dataclasses import replace

import jax.numpy as jnp
from jax import Array, lax

from nutkin.model.distributions.family import ABOVE_0, ANY, Family, LogDensity
from nutkin.model.distributions.real import NORMAL, STUDENT_T, standardized
from nutkin.model.native.elementary import exp, log, log1p
from nutkin.model.native.gamma import lgamma
from nutkin.model.special import HALF_LOG_2PI, LOG_PI, softplus, xlogy
from nutkin.model.supports import NONNEGATIVE, POSITIVE, above, at_least

_LOG_2 = math.log(2)

_HALF_NORMAL = LogDensity(
    kernel=lambda x, sigma: -0.5 * lax.square(x / sigma),
    normalizer=lambda sigma: log(sigma) + (HALF_LOG_2PI - _LOG_2),
)

_LOGNORMAL = LogDensity(
    kernel=lambda x, mu, sigma: -0.5 * lax.square(standardized(log(x), mu, sigma)),
    normalizer=NORMAL.normalizer,
    carrier=lambda x: -log(x),
)

_HALF_CAUCHY = LogDensity(
    kernel=lambda x, sigma: -log1p(lax.square(x / sigma)),
    normalizer=lambda sigma: log(sigma) + (LOG_PI - _LOG_2),
)

_HALF_STUDENT_T = LogDensity(
    kernel=lambda x, nu, sigma: STUDENT_T.kernel(x, nu, 0, sigma),
    normalizer=lambda nu, sigma: STUDENT_T.normalizer(nu, 0, sigma) - _LOG_2,
)

_EXPONENTIAL = LogDensity(
    kernel=lambda x, rate: -rate * x,
    normalizer=lambda rate: -log(rate),
)

_GAMMA = LogDensity(
    kernel=lambda x, alpha, beta: xlogy(alpha - 1, x) - beta * x,
    normalizer=lambda alpha, beta: lgamma(alpha) - alpha * log(beta),
)

_CHI_SQUARE = replace(_GAMMA, prepare=lambda nu: (0.5 * nu, jnp.full_like(nu, 0.5)))

_INVERSE_GAMMA = LogDensity(
    kernel=lambda x, alpha, beta: -(alpha + 1) * log(x) - beta / x,
    normalizer=_GAMMA.normalizer,
)

_INV_CHI_SQUARE = replace(_INVERSE_GAMMA, prepare=lambda nu: (0.5 * nu, jnp.full_like(nu, 0.5)))

_SCALED_INV_CHI_SQUARE = LogDensity(
    kernel=lambda x, nu, sigma: -(0.5 * nu + 1) * log(x) - 0.5 * nu * lax.square(sigma) / x,
    normalizer=lambda nu, sigma: lgamma(0.5 * nu) - 0.5 * nu * (log(0.5 * nu) + 2 * log(sigma)),
)

_RAYLEIGH = LogDensity(
    kernel=lambda x, sigma: -0.5 * lax.square(x / sigma),
    normalizer=lambda sigma: 2 * log(sigma),
    carrier=log,
)


def _weibull_kernel(x: Array, alpha: Array, sigma: Array) -> Array:
    log_ratio = log(x / sigma)
    return (alpha - 1) * log_ratio - exp(alpha * log_ratio)


def _log_shape_over_scale(shape: Array, scale: Array) -> Array:
    return log(scale) - log(shape)


_WEIBULL = LogDensity(kernel=_weibull_kernel, normalizer=_log_shape_over_scale)


def _frechet_kernel(x: Array, alpha: Array, sigma: Array) -> Array:
    log_ratio = log(x / sigma)
    return -(alpha + 1) * log_ratio - exp(-alpha * log_ratio)


_FRECHET = LogDensity(kernel=_frechet_kernel, normalizer=_log_shape_over_scale)

_WALD = LogDensity(
    kernel=lambda x, mu, lambda_: -0.5 * lambda_ * lax.square((x - mu) / mu) / x,
    normalizer=lambda mu, lambda_: HALF_LOG_2PI - 0.5 * log(lambda_),
    carrier=lambda x: -1.5 * log(x),
)


def _loglogistic_kernel(x: Array, alpha: Array, beta: Array) -> Array:
    logit = beta * log(x / alpha)
    return logit - 2 * softplus(logit)


_LOGLOGISTIC = LogDensity(
    kernel=_loglogistic_kernel,
    normalizer=lambda alpha, beta: -log(beta),
    carrier=lambda x: -log(x),
)

_GOMPERTZ = LogDensity(
    kernel=lambda x, alpha, beta: beta * x - alpha * lax.expm1(beta * x),
    normalizer=lambda alpha, beta: -log(alpha) - log(beta),
)

_PARETO = LogDensity(
    kernel=lambda x, y_min, alpha: -alpha * log(x / y_min),
    normalizer=lambda y_min, alpha: -log(alpha),
    carrier=lambda x, y_min: -log(x),
)

_PARETO_TYPE_2 = LogDensity(
    kernel=lambda x, mu, lambda_, alpha: -(alpha + 1) * log1p((x - mu) / lambda_),
    normalizer=lambda mu, lambda_, alpha: log(lambda_) - log(alpha),
)

_LEVY = LogDensity(
    kernel=lambda x, mu, sigma: -0.5 * sigma / (x - mu) - 1.5 * log(x - mu),
    normalizer=lambda mu, sigma: HALF_LOG_2PI - 0.5 * log(sigma),
)

_ALPHA_BETA = {"alpha": ABOVE_0, "beta": ABOVE_0}
_ALPHA_SIGMA = {"alpha": ABOVE_0, "sigma": ABOVE_0}

FAMILIES: dict[str, Family] = {
    "half_normal": Family({"sigma": ABOVE_0}, _HALF_NORMAL, NONNEGATIVE),
    "half_cauchy": Family({"sigma": ABOVE_0}, _HALF_CAUCHY, NONNEGATIVE),
    "half_student_t": Family({"nu": ABOVE_0, "sigma": ABOVE_0}, _HALF_STUDENT_T, NONNEGATIVE),
    "half_flat": Family({}, LogDensity(kernel=jnp.zeros_like), NONNEGATIVE),
    "lognormal": Family({"mu": ANY, "sigma": ABOVE_0}, _LOGNORMAL, POSITIVE),
    "exponential": Family({"rate": ABOVE_0}, _EXPONENTIAL, NONNEGATIVE),
    "gamma": Family(_ALPHA_BETA, _GAMMA, POSITIVE),
    "chi_square": Family({"nu": ABOVE_0}, _CHI_SQUARE, POSITIVE),
    "inverse_gamma": Family(_ALPHA_BETA, _INVERSE_GAMMA, POSITIVE),
    "inv_chi_square": Family({"nu": ABOVE_0}, _INV_CHI_SQUARE, POSITIVE),
    "scaled_inv_chi_square": Family({"nu": ABOVE_0, "sigma": ABOVE_0}, _SCALED_INV_CHI_SQUARE, POSITIVE),
    "rayleigh": Family({"sigma": ABOVE_0}, _RAYLEIGH, POSITIVE),
    "weibull": Family(_ALPHA_SIGMA, _WEIBULL, POSITIVE),
    "frechet": Family(_ALPHA_SIGMA, _FRECHET, POSITIVE),
    "wald": Family({"mu": ABOVE_0, "lambda": ABOVE_0}, _WALD, POSITIVE),
    "loglogistic": Family(_ALPHA_BETA, _LOGLOGISTIC, POSITIVE),
    "gompertz": Family(_ALPHA_BETA, _GOMPERTZ, NONNEGATIVE),
    "pareto": Family({"y_min": ABOVE_0, "alpha": ABOVE_0}, _PARETO, at_least("y_min")),
    "pareto_type_2": Family({"mu": ANY, "lambda": ABOVE_0, "alpha": ABOVE_0}, _PARETO_TYPE_2, at_least("mu")),
    "levy": Family({"mu": ANY, "sigma": ABOVE_0}, _LEVY, above("mu")),
}
