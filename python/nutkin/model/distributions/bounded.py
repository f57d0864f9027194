"""Distributions on the unit interval, and on intervals between parameters."""

from __future__ import annotations

import math
from dataclasses import replace

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from nutkin.model.distributions.family import ABOVE_0, ANY, Family, LogDensity, Parameter
from nutkin.model.distributions.real import NORMAL, standardized
from nutkin.model.native.elementary import log, log1p
from nutkin.model.special import log_beta, xlog1py, xlogy
from nutkin.model.supports import INTERVAL, UNIT

_BETA = LogDensity(
    kernel=lambda x, alpha, beta: xlogy(alpha - 1, x) + xlog1py(beta - 1, -x),
    normalizer=log_beta,
)

_BETA_PROPORTION = replace(_BETA, prepare=lambda mu, kappa: (mu * kappa, (1 - mu) * kappa))


def _minus_log_logit_slope(x: Array) -> Array:
    return -log(x) - log1p(-x)


_LOGIT_NORMAL = LogDensity(
    kernel=lambda x, mu, sigma: -0.5 * lax.square(standardized(log(x) - log1p(-x), mu, sigma)),
    normalizer=NORMAL.normalizer,
    carrier=_minus_log_logit_slope,
)


def _kumaraswamy_kernel(x: Array, alpha: Array, beta: Array) -> Array:
    log_power = alpha * log(x)
    return log_power + (beta - 1) * log(-lax.expm1(log_power))


_KUMARASWAMY = LogDensity(
    kernel=_kumaraswamy_kernel,
    normalizer=lambda alpha, beta: -log(alpha) - log(beta),
    carrier=lambda x: -log(x),
)

_UNIFORM = LogDensity(normalizer=lambda lower, upper: log(upper - lower))

_LOG_UNIFORM = LogDensity(
    normalizer=lambda lower, upper: log(log(upper / lower)),
    carrier=lambda x, lower, upper: -log(x),
)


def _triangular_kernel(x: Array, lower: Array, c: Array, upper: Array) -> Array:
    """log of the height over that of the peak; a side may have no width."""
    rises = x < c
    height = jnp.where(rises, x - lower, upper - x)
    width = jnp.where(rises, c - lower, upper - c)
    inside = log(jnp.where(width > 0, height / jnp.where(width > 0, width, 1), 1))
    return jnp.where((lower <= c) & (c <= upper), inside, -np.inf)


_TRIANGULAR = LogDensity(
    kernel=_triangular_kernel,
    normalizer=lambda lower, c, upper: log(upper - lower) - math.log(2),
)

_ALPHA_BETA = {"alpha": ABOVE_0, "beta": ABOVE_0}
_LOWER_UPPER = {"lower": ANY, "upper": ANY}

FAMILIES: dict[str, Family] = {
    "beta": Family(_ALPHA_BETA, _BETA, UNIT),
    "beta_proportion": Family({"mu": Parameter(UNIT), "kappa": ABOVE_0}, _BETA_PROPORTION, UNIT),
    "logit_normal": Family({"mu": ANY, "sigma": ABOVE_0}, _LOGIT_NORMAL, UNIT),
    "kumaraswamy": Family(_ALPHA_BETA, _KUMARASWAMY, UNIT),
    "uniform": Family(_LOWER_UPPER, _UNIFORM, INTERVAL),
    "log_uniform": Family({"lower": ABOVE_0, "upper": ABOVE_0}, _LOG_UNIFORM, INTERVAL),
    "triangular": Family({"lower": ANY, "c": ANY, "upper": ANY}, _TRIANGULAR, INTERVAL),
}
