"""Draws of the standard counts, Poisson and binomial, that the others are made of.

Small means are inverted by one uniform number, larger ones drawn by transformed rejection: Hörmann 1993,
https://doi.org/10.1016/0167-6687(93)90997-4 (PTRS) and https://doi.org/10.1080/00949659308811496 (BTRS). All elements
are searched, or proposed, at once. Masses are relative to their modes, so that they have their digits in float32 too.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from nutkin.model.distributions.standard_draws import accepted, unit
from nutkin.model.native.elementary import exp, log, log1p
from nutkin.model.special import HALF_LOG_2PI, softplus

_SMALL_MEAN = 10.0
# From here on the quantiles of Cornish and Fisher (Abramowitz and Stegun 26.2.49) are off by 1e-8 standard deviations.
_LARGE_MEAN = 1e6
_STEPS_AT_ONCE = 4
# The coefficients behind 1/12 of the continued fraction.
_STIELTJES = (1 / 30, 53 / 210, 195 / 371, 22999 / 22737)


def poisson(key: Array, mu: Array, shape: tuple[int, ...]) -> Array:
    """Infinite for an infinite mean, NaN where the mean is no number."""
    of_small, of_middle, of_large = jax.random.split(key, 3)
    mu = jnp.broadcast_to(mu, shape)
    is_small, is_middle = mu < _SMALL_MEAN, (mu >= _SMALL_MEAN) & (mu < _LARGE_MEAN)
    mean = jnp.where(is_small, mu, 0)
    small = _inverted(of_small, mean, exp(-mean), lambda k: mean / (k + 1))
    middle = _transformed_rejection_of_poisson(of_middle, jnp.where(is_middle, mu, _SMALL_MEAN), ~is_middle)
    z = jax.random.normal(of_large, shape, mu.dtype)
    large = lax.round(mu + lax.sqrt(mu) * z + (lax.square(z) - 1) / 6)
    return jnp.where(is_small, small, jnp.where(is_middle, middle, jnp.where(mu == np.inf, mu, large)))


def binomial(key: Array, n: Array, logit: Array, shape: tuple[int, ...]) -> Array:
    """By the rarer of the two outcomes, whose probability does not round to 1. NaN where n or logit is no number."""
    of_small, of_large = jax.random.split(key)
    n, logit = jnp.broadcast_to(n, shape), jnp.broadcast_to(logit, shape)
    is_number = (n >= 0) & (n < np.inf) & (logit == logit)
    log_odds = -lax.abs(jnp.where(is_number, logit, 0))
    trials, p = jnp.where(is_number, n, 0), exp(-softplus(-log_odds))
    is_small = trials * p < _SMALL_MEAN
    few, odds = jnp.where(is_small, trials, 0), exp(log_odds)
    none = exp(-few * softplus(log_odds))
    small = _inverted(of_small, few * p, none, lambda k: odds * jnp.maximum(few - k, 0) / (k + 1))
    many = jnp.where(is_small, 4 * _SMALL_MEAN, trials), jnp.where(is_small, 0, log_odds)
    count = jnp.where(is_small, small, _transformed_rejection_of_binomial(of_large, *many, is_small))
    return jnp.where(is_number, jnp.where(logit > 0, n - count, count), np.nan)


def _inverted(key: Array, mean: Array, none: Array, ratio: Callable[[Array], Array]) -> Array:
    """The first count up to which the masses exceed a uniform number: of that of 0, and ratios of k + 1 to k."""
    dtype = mean.dtype
    least = np.asarray(1e-3 * jnp.finfo(dtype).eps, dtype)

    def step(carry: tuple[Array, ...]) -> tuple[Array, ...]:
        k, rest, mass, count = carry
        for _ in range(_STEPS_AT_ONCE):
            rest = rest - mass
            count = count + (rest > 0)
            mass = mass * ratio(k)
            k = k + 1
        return k, rest, mass, count

    def goes_on(carry: tuple[Array, ...]) -> Array:
        _, rest, mass, _ = carry
        return jnp.any((rest > 0) & (mass > least))

    start = (jnp.zeros((), dtype), unit(key, mean.shape, dtype), none, jnp.zeros_like(mean))
    _, rest, _, count = lax.while_loop(goes_on, step, start)
    # What rounding leaves of the probability goes to the middle.
    return jnp.where(rest > 0, lax.floor(mean), count)


def _transformed_rejection_of_poisson(key: Array, mu: Array, is_done: Array) -> Array:
    b = 0.931 + 2.53 * lax.sqrt(mu)
    a = 0.02483 * b - 0.059
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    surely = 0.9277 - 3.6224 / (b - 2)
    mode = lax.floor(mu)
    log_rise = _log_rise(mode)
    tilt = log1p((mu - mode - 1) / (mode + 1))
    log_mass_of_mode = mode * tilt - (mu - mode - 1) - 0.5 * log(mode + 1) - HALF_LOG_2PI - _stirling_error(mode + 1)

    def propose(key: Array) -> tuple[Array, Array]:
        u, v, edge = _square(key, mu)
        k = lax.floor((2 * a / edge + b) * u + mu + 0.43)
        log_mass = log_mass_of_mode + (k - mode) * tilt - log_rise(k)
        is_below = log(v * inverse_alpha / (a / lax.square(edge) + b)) <= log_mass
        is_possible = (k >= 0) & ((edge >= 0.013) | (v <= edge))
        return k, ((edge >= 0.07) & (v <= surely)) | (is_possible & is_below)

    return accepted(key, propose, jnp.zeros_like(mu), is_done)


def _transformed_rejection_of_binomial(key: Array, n: Array, log_odds: Array, is_done: Array) -> Array:
    p = exp(-softplus(-log_odds))
    deviation = lax.sqrt(n * p * (1 - p))
    b = 1.15 + 2.53 * deviation
    a = 0.0248 * b - 0.0873 + 0.01 * p
    alpha = (2.83 + 5.1 / b) * deviation
    surely = 0.92 - 4.2 / b
    mode = lax.floor((n + 1) * p)
    log_rise, log_rise_of_rest = _log_rise(mode), _log_rise(n - mode)
    tilt = log_odds - log((mode + 1) / (n - mode + 1))

    def propose(key: Array) -> tuple[Array, Array]:
        u, v, edge = _square(key, n)
        k = lax.floor((2 * a / edge + b) * u + n * p + 0.5)
        log_ratio = (k - mode) * tilt - log_rise(k) - log_rise_of_rest(n - k)
        is_below = log(v * alpha / (a / lax.square(edge) + b)) <= log_ratio
        return k, ((edge >= 0.07) & (v <= surely)) | ((k >= 0) & (k <= n) & is_below)

    return accepted(key, propose, jnp.zeros_like(n), is_done)


def _log_rise(mode: Array) -> Callable[[Array], Array]:
    """Of k, log(k! / mode!) - (k - mode) log(mode + 1), by Stirling's formula."""
    error, inverse = _stirling_error(mode + 1), 1 / (mode + 1)

    def log_rise(k: Array) -> Array:
        return (k + 0.5) * log1p((k - mode) * inverse) - (k - mode) + (_stirling_error(k + 1) - error)

    return log_rise


def _stirling_error(x: Array) -> Array:
    """That of Stirling's formula for log Gamma(x), to 2e-5 at 1, 1e-12 at 6: DLMF 5.10.1, https://dlmf.nist.gov/5.10"""
    fraction = x
    for a in reversed(_STIELTJES):
        fraction = x + a / fraction
    return 1 / (12 * fraction)


def _square(key: Array, like: Array) -> tuple[Array, Array, Array]:
    """u in (-1/2, 1/2], v in (0, 1], and how far u is from its ends."""
    bits = jax.random.bits(key, like.shape, np.uint64)
    words = (bits >> np.uint64(32)).astype(np.uint32), bits.astype(np.uint32)
    u, v = ((word.astype(like.dtype) + 1) * np.asarray(2.0**-32, like.dtype) for word in words)
    return u - 0.5, v, 0.5 - lax.abs(u - 0.5)
