"""Distributions on the real line."""

from __future__ import annotations

import math

import jax.numpy as jnp
from jax import Array, lax

from nutkin.model.distributions.family import ABOVE_0, ANY, Family, LogDensity, Parameter
from nutkin.model.native.elementary import exp, log, log1p
from nutkin.model.native.gamma import lgamma
from nutkin.model.special import HALF_LOG_2PI, LOG_PI, log_erfcx, log_i0e, log_ndtr, softplus
from nutkin.model.supports import ANGLE, REAL, UNIT

_LOG_2 = math.log(2)


def standardized(x: Array, mu: Array, sigma: Array) -> Array:
    # One division where sigma is a scalar, and none in the gradient.
    return (x - mu) * (1 / sigma)


NORMAL = LogDensity(
    kernel=lambda x, mu, sigma: -0.5 * lax.square(standardized(x, mu, sigma)),
    normalizer=lambda mu, sigma: log(sigma) + HALF_LOG_2PI,
)


def _student_t_normalizer(nu: Array, mu: Array, sigma: Array) -> Array:
    gammas = lgamma(0.5 * nu) - lgamma(0.5 * nu + 0.5)
    return gammas + 0.5 * (log(nu) + LOG_PI) + log(sigma)


STUDENT_T = LogDensity(
    kernel=lambda x, nu, mu, sigma: -0.5 * (nu + 1) * log1p(lax.square(standardized(x, mu, sigma)) / nu),
    normalizer=_student_t_normalizer,
)

_CAUCHY = LogDensity(
    kernel=lambda x, mu, sigma: -log1p(lax.square(standardized(x, mu, sigma))),
    normalizer=lambda mu, sigma: log(sigma) + LOG_PI,
)

_LAPLACE = LogDensity(
    kernel=lambda x, mu, sigma: -lax.abs(standardized(x, mu, sigma)),
    normalizer=lambda mu, sigma: log(sigma) + _LOG_2,
)


def _logistic_kernel(x: Array, mu: Array, sigma: Array) -> Array:
    z = standardized(x, mu, sigma)
    return -z - 2 * softplus(-z)


_LOGISTIC = LogDensity(kernel=_logistic_kernel, normalizer=lambda mu, sigma: log(sigma))


def _gumbel_kernel(x: Array, mu: Array, beta: Array) -> Array:
    z = standardized(x, mu, beta)
    return -z - exp(-z)


_GUMBEL = LogDensity(kernel=_gumbel_kernel, normalizer=lambda mu, beta: log(beta))


def _soft_laplace_kernel(x: Array, mu: Array, sigma: Array) -> Array:
    z = lax.abs(standardized(x, mu, sigma))
    return -z - log1p(exp(-2 * z))


_SOFT_LAPLACE = LogDensity(kernel=_soft_laplace_kernel, normalizer=lambda mu, sigma: log(sigma) + (LOG_PI - _LOG_2))


def _asymmetric_laplace_kernel(x: Array, mu: Array, sigma: Array, kappa: Array) -> Array:
    z = standardized(x, mu, sigma)
    return jnp.where(z < 0, z / kappa, -z * kappa)


_ASYMMETRIC_LAPLACE = LogDensity(
    kernel=_asymmetric_laplace_kernel,
    normalizer=lambda mu, sigma, kappa: log(sigma) + log(kappa + 1 / kappa),
)


def _skew_double_exponential_kernel(x: Array, mu: Array, sigma: Array, tau: Array) -> Array:
    z = standardized(x, mu, sigma)
    return 2 * jnp.where(z < 0, (1 - tau) * z, -tau * z)


_SKEW_DOUBLE_EXPONENTIAL = LogDensity(
    kernel=_skew_double_exponential_kernel,
    normalizer=lambda mu, sigma, tau: log(sigma) - _LOG_2 - log(tau) - log1p(-tau),
)


def _skew_normal_kernel(x: Array, xi: Array, omega: Array, alpha: Array) -> Array:
    z = standardized(x, xi, omega)
    return log_ndtr(alpha * z) - 0.5 * lax.square(z)


_SKEW_NORMAL = LogDensity(
    kernel=_skew_normal_kernel,
    normalizer=lambda xi, omega, alpha: log(omega) + (HALF_LOG_2PI - _LOG_2),
)


def _exp_mod_normal_kernel(x: Array, mu: Array, sigma: Array, rate: Array) -> Array:
    """With z standardised and u = z - rate sigma: log Phi(u) + (u^2 - z^2) / 2.

    In the left tail u^2 / 2 would cancel with log Phi(u), so the scaled function takes both; in the right one z^2 would
    cancel with u^2.
    """
    z, spread = standardized(x, mu, sigma), rate * sigma
    u = z - spread
    left = log_erfcx(lax.max(-u, lax.full_like(u, 0)) * math.sqrt(0.5)) - _LOG_2 - 0.5 * lax.square(z)
    right = log_ndtr(lax.max(u, lax.full_like(u, 0))) + spread * (0.5 * spread - z)
    return jnp.where(u < 0, left, right)


_EXP_MOD_NORMAL = LogDensity(kernel=_exp_mod_normal_kernel, normalizer=lambda mu, sigma, rate: -log(rate))

_VON_MISES = LogDensity(
    kernel=lambda x, mu, kappa: -2 * kappa * lax.square(lax.sin(0.5 * (x - mu))),
    normalizer=lambda mu, kappa: log_i0e(kappa) + (LOG_PI + _LOG_2),
)

_LOCATION_SCALE = {"mu": ANY, "sigma": ABOVE_0}
_MU_SIGMA = ("mu", "sigma")

FAMILIES: dict[str, Family] = {
    "normal": Family(_LOCATION_SCALE, NORMAL, REAL, location_scale=_MU_SIGMA),
    "student_t": Family({"nu": ABOVE_0, **_LOCATION_SCALE}, STUDENT_T, REAL, location_scale=_MU_SIGMA),
    "cauchy": Family(_LOCATION_SCALE, _CAUCHY, REAL, location_scale=_MU_SIGMA),
    "laplace": Family(_LOCATION_SCALE, _LAPLACE, REAL, location_scale=_MU_SIGMA),
    "soft_laplace": Family(_LOCATION_SCALE, _SOFT_LAPLACE, REAL, location_scale=_MU_SIGMA),
    "asymmetric_laplace": Family(
        {**_LOCATION_SCALE, "kappa": ABOVE_0}, _ASYMMETRIC_LAPLACE, REAL, location_scale=_MU_SIGMA
    ),
    "skew_double_exponential": Family(
        {**_LOCATION_SCALE, "tau": Parameter(UNIT)},
        _SKEW_DOUBLE_EXPONENTIAL,
        REAL,
        location_scale=_MU_SIGMA,
    ),
    "logistic": Family(_LOCATION_SCALE, _LOGISTIC, REAL, location_scale=_MU_SIGMA),
    "gumbel": Family({"mu": ANY, "beta": ABOVE_0}, _GUMBEL, REAL, location_scale=("mu", "beta")),
    "skew_normal": Family(
        {"xi": ANY, "omega": ABOVE_0, "alpha": ANY}, _SKEW_NORMAL, REAL, location_scale=("xi", "omega")
    ),
    "exp_mod_normal": Family({**_LOCATION_SCALE, "lambda": ABOVE_0}, _EXP_MOD_NORMAL, REAL),
    "von_mises": Family({"mu": ANY, "kappa": ABOVE_0}, _VON_MISES, ANGLE),
    "flat": Family({}, LogDensity(kernel=jnp.zeros_like), REAL),
}
