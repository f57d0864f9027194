"""Functions of log densities whose values or derivatives need care at the edges of their domains."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from nutkin.model.native.elementary import exp, log, log1p
from nutkin.model.native.gamma import lgamma

LOG_PI = math.log(math.pi)
HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)

# From here on the asymptotic series of erfcx with its terms is exact to 1e-15.
_ERFCX_ASYMPTOTIC = 8.0
_ERFCX_TERMS = 13


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


def log1mexp(x: Array) -> Array:
    """log(1 - exp(-x)) for x > 0 (Mächler 2012, https://cran.r-project.org/package=Rmpfr, "log1mexp")."""
    is_small = x < math.log(2)
    small = log(-lax.expm1(-jnp.where(is_small, x, 1)))
    return jnp.where(is_small, small, log1p(-exp(-jnp.where(is_small, 1, x))))


def log_erfcx(x: Array) -> Array:
    """log(exp(x^2) erfc(x)) for x >= 0 (DLMF 7.12.1, https://dlmf.nist.gov/7.12)."""
    is_far = x >= _ERFCX_ASYMPTOTIC
    near = jnp.where(is_far, 1, x)
    far = jnp.where(is_far, x, _ERFCX_ASYMPTOTIC)
    ratio = -0.5 / lax.square(far)
    series = jnp.ones_like(far)
    for n in range(_ERFCX_TERMS, 0, -1):
        series = 1 + (2 * n - 1) * ratio * series
    scaled = jnp.where(is_far, series / far, lax.erfc(near))
    return log(scaled) + jnp.where(is_far, -0.5 * LOG_PI, lax.square(near))


def log_ndtr(x: Array) -> Array:
    """The logarithm of the standard normal distribution function."""
    half = lax.abs(x) * math.sqrt(0.5)
    is_left = x < 0
    left = log_erfcx(jnp.where(is_left, half, 0)) - lax.square(half) - math.log(2)
    return jnp.where(is_left, left, log1p(-0.5 * lax.erfc(jnp.where(is_left, 0, half))))


def log_i0e(x: Array) -> Array:
    """The logarithm of exp(-x) I_0(x), I_0 being the modified Bessel function, for x >= 0."""
    return log(lax.bessel_i0e(x))
