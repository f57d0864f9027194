"""Draws of the standard variables that the others are made of."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array


def unit(key: Array, shape: tuple[int, ...], dtype: np.dtype) -> Array:
    """Uniform in (0, 1]: logarithms of it are finite."""
    return 1 - jax.random.uniform(key, shape, dtype)


def log_gamma(key: Array, alpha: Array, shape: tuple[int, ...]) -> Array:
    """The logarithm of a gamma variable of rate 1, which for small alpha underflows."""
    return jax.random.loggamma(key, alpha, shape, alpha.dtype)


def log_gammas(key: Array, alphas: tuple[Array, ...], shape: tuple[int, ...]) -> Array:
    """The same of some alphas: {alphas, …}. One draw of them all compiles faster than one of each."""
    stacked = jnp.stack([jnp.broadcast_to(alpha, shape) for alpha in alphas])
    return log_gamma(key, stacked, stacked.shape)
