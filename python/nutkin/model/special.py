"""Functions of log densities whose values or derivatives need care at the edges of their domains."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from nutkin.model.native.elementary import exp, log, log1p
from nutkin.model.native.gamma import lgamma


@jax.custom_jvp
def softplus(x: Array) -> Array:
    """log(1 + exp(x)). Its derivative shares the one exponential with it."""
    return lax.max(x, lax.full_like(x, 0)) + log1p(exp(-lax.abs(x)))


@softplus.defjvp
def _softplus_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    (x,), (tangent,) = primals, tangents
    small = exp(-lax.abs(x))
    return softplus(x), tangent * jnp.where(x >= 0, 1, small) / (1 + small)


def xlogy(x: Array, y: Array) -> Array:
    """x log(y), and 0 where both are 0. Derivatives are finite wherever the value is."""
    return _times_log(x, y == 0, log(jnp.where(y == 0, 1, y)))


def xlog1py(x: Array, y: Array) -> Array:
    """x log(1 + y), and 0 where x is 0 and y is -1. Derivatives are finite wherever the value is."""
    return _times_log(x, y == -1, log1p(jnp.where(y == -1, 0, y)))


def _times_log(x: Array, is_edge: Array, logarithm: Array) -> Array:
    """x times a logarithm that is -inf at its edge. The logarithm keeps the shape of its argument."""
    logarithm = jnp.where(is_edge, -np.inf, logarithm)
    return x * jnp.where(is_edge & (x == 0), 0, logarithm)


def log_beta(a: Array, b: Array) -> Array:
    """The logarithm of the beta function."""
    return lgamma(a) + lgamma(b) - lgamma(a + b)
