"""Draws of the standard variables that the others are made of."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from nutkin.model.native.elementary import log, log1p

# No loop waits longer for draws that are accepted with a probability of a half at least.
_MOST_REJECTIONS = 1000


def unit(key: Array, shape: tuple[int, ...], dtype: np.dtype) -> Array:
    """Uniform in (0, 1]: logarithms of it are finite."""
    return 1 - jax.random.uniform(key, shape, dtype)


def accepted(key: Array, propose: Callable[[Array], tuple[Array, Array]], first: Array, is_done: Array) -> Array:
    """By rejection: of each element the first proposal that is accepted, or `first` where it is done.

    `propose`: of a key, the proposals and whether they are accepted, of all elements at once.
    """

    def step(carry: tuple[Array, ...]) -> tuple[Array, ...]:
        i, key, x, is_done = carry
        key, own = jax.random.split(key)
        proposal, accepts = propose(own)
        return i + 1, key, jnp.where(is_done, x, proposal), is_done | accepts

    def goes_on(carry: tuple[Array, ...]) -> Array:
        return ~jnp.all(carry[-1]) & (carry[0] < _MOST_REJECTIONS)

    return lax.while_loop(goes_on, step, (0, key, first, is_done))[2]


def log_gamma(key: Array, alpha: Array, shape: tuple[int, ...]) -> Array:
    """The logarithm of a gamma variable of rate 1, which for small alpha underflows.

    By rejection, of all elements at once until each is accepted (Marsaglia and Tsang 2000,
    https://doi.org/10.1145/358407.358414): 19 of 20 are in the first round. NaN where alpha is no positive number.
    """
    of_rounds, of_power = jax.random.split(key)
    alpha = jnp.broadcast_to(alpha, shape)
    is_number = (alpha > 0) & (alpha < np.inf)
    is_small = alpha < 1
    d = jnp.where(is_number, jnp.where(is_small, alpha + 1, alpha), 1) - np.asarray(1 / 3, alpha.dtype)
    c = 1 / lax.sqrt(9 * d)

    def propose(key: Array) -> tuple[Array, Array]:
        of_normal, of_test = jax.random.split(key)
        z = jax.random.normal(of_normal, shape, alpha.dtype)
        t = c * z
        log_root = log1p(jnp.maximum(t, -0.9999))
        # log v - v + 1 for v = (1 + t)^3, whose parts cancel for large alpha.
        slack = 0.5 * lax.square(z) + d * (3 * log_root - t * (3 + t * (3 + t)))
        return 3 * log_root, (t > -0.9999) & (log(unit(of_test, shape, alpha.dtype)) <= slack)

    log_v = accepted(of_rounds, propose, jnp.zeros_like(d), ~is_number)
    power = jnp.where(is_small, log(unit(of_power, shape, alpha.dtype)) / alpha, 0)
    return jnp.where(is_number, log(d) + log_v + power, np.nan)


def log_gammas(key: Array, alphas: tuple[Array, ...], shape: tuple[int, ...]) -> Array:
    """The same of some alphas: {alphas, …}. One draw of them all compiles faster than one of each."""
    stacked = jnp.stack([jnp.broadcast_to(alpha, shape) for alpha in alphas])
    return log_gamma(key, stacked, stacked.shape)
