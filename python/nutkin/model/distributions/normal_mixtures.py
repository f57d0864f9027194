"""Both tails of the skew normal, exponentially modified normal and inverse Gaussian distributions.

Their distribution functions are sums and differences of normal tails. Where such a difference is small it is taken of
Mills ratios, or it is an integral of positive terms.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from nutkin.model.distributions.tails import complement, logaddexp
from nutkin.model.incomplete import Tails
from nutkin.model.native.elementary import exp, log
from nutkin.model.special import HALF_LOG_2PI, LOG_PI, log1mexp, log_erfcx, log_ndtr

_LOG_2 = math.log(2)
_ROOT_HALF = math.sqrt(0.5)

# The double exponential rule for integrals from 0 of what decays like exp(-v), Takahasi and Mori 1974,
# https://doi.org/10.2977/prims/1195192451: v = exp(t - exp(-t)) at equidistant t.
_STEP = 0.1
_T = np.arange(-3.6, 3.9, _STEP)
_NODES = np.exp(_T - np.exp(-_T))
_LOG_WEIGHTS = np.log(_STEP * _NODES * (1 + np.exp(-_T)))
_UNIT_NODES, _UNIT_WEIGHTS = (0.5 * numbers for numbers in np.polynomial.legendre.leggauss(20))
_UNIT_NODES = _UNIT_NODES + 0.5


@jax.custom_jvp
def skew_normal_tails(z: Array, alpha: Array) -> Tails:
    """Of the density 2 phi(z) Phi(alpha z)."""
    is_right = z >= 0
    z, alpha = jnp.where(is_right, z, -z), jnp.where(is_right, alpha, -alpha)
    is_steep = alpha > 1
    lower = _skew_normal_lower(z, jnp.where(is_steep, alpha, 1))
    is_low = is_steep & (lower < -_LOG_2)
    smaller = jnp.where(is_low, lower, _skew_normal_upper(z, alpha))
    larger = log1mexp(-lax.min(smaller, lax.full_like(smaller, -jnp.finfo(smaller.dtype).eps)))
    is_lower = is_low == is_right
    return jnp.where(is_lower, smaller, larger), jnp.where(is_lower, larger, smaller)


@skew_normal_tails.defjvp
def _skew_normal_tails_jvp(primals: tuple[Array, Array], tangents: tuple[Array, Array]) -> tuple[Tails, Tails]:
    """The derivative by alpha is that of Owen's function (1956, https://doi.org/10.1214/aoms/1177728074)."""
    (z, alpha), (z_tangent, alpha_tangent) = primals, tangents
    tails = lower, upper = skew_normal_tails(z, alpha)
    by_z = _log_skew_normal_density(z, alpha)
    spread = 1 + lax.square(alpha)
    by_alpha = -0.5 * lax.square(z) * spread - LOG_PI - log(spread)
    return tails, (
        exp(by_z - lower) * z_tangent - exp(by_alpha - lower) * alpha_tangent,
        exp(by_alpha - upper) * alpha_tangent - exp(by_z - upper) * z_tangent,
    )


def _log_skew_normal_density(z: Array, alpha: Array) -> Array:
    return log_ndtr(alpha * z) - 0.5 * lax.square(z) + (_LOG_2 - HALF_LOG_2PI)


def _skew_normal_upper(start: Array, alpha: Array) -> Array:
    """log of the integral of the density from start >= 0, in units of the width in which it decays."""
    spread = 1 + lax.square(lax.min(alpha, lax.full_like(alpha, 0)))
    width = 1 / (start * spread + lax.sqrt(spread))
    z = start[..., None] + width[..., None] * _NODES.astype(width.dtype)
    terms = _log_skew_normal_density(z, alpha[..., None]) + _LOG_WEIGHTS.astype(width.dtype)
    largest = jnp.max(terms, axis=-1, keepdims=True)
    return log(jnp.sum(exp(terms - largest), axis=-1)) + largest[..., 0] + log(width)


def _skew_normal_lower(z: Array, alpha: Array) -> Array:
    """log of Phi(alpha z) (2 Phi(z) - 1) + 2 T(alpha z, 1 / alpha) with Owen's T, for z >= 0 and alpha >= 1.

    It is Phi(z) - 2 T(z, alpha) by formula 2.4 of Owen 1956.
    """
    u, weights = _UNIT_NODES.astype(z.dtype), _UNIT_WEIGHTS.astype(z.dtype)
    inner = exp(-0.5 * lax.square(z[..., None] * u)) / (lax.square(alpha[..., None]) + lax.square(u))
    twice_t = exp(-0.5 * lax.square(alpha * z)) * alpha * jnp.sum(weights * inner, axis=-1) / math.pi
    return log(exp(log_ndtr(alpha * z)) * lax.erf(z * _ROOT_HALF) + twice_t)


@jax.jit
def normal_and_mills_tails(a: Array, gap: Array) -> Tails:
    """log(Phi(a) + phi(a) M(a + gap)) and log(Phi(-a) - phi(a) M(a + gap)) with M the Mills ratio and gap > 0.

    A small gap costs digits of the difference.
    """
    a, gap = jnp.broadcast_arrays(a, gap)
    b = a + gap
    # For positive a both of the terms have the factor exp(-a^2 / 2), which would take digits of their ratio.
    both = jnp.stack([a, b])
    scaled = log_erfcx(jnp.where(both >= 0, both, 0) * _ROOT_HALF)
    log_lower, log_upper, log_beyond = log_ndtr(jnp.stack([a, -a, jnp.where(b >= 0, 0, -b)]))
    shifted = jnp.where(b >= 0, scaled[1] - _LOG_2 - 0.5 * lax.square(a), log_beyond + gap * (0.5 * gap + a))
    ratio = jnp.where(a >= 0, scaled[0] - scaled[1], log_upper - shifted)
    difference = log_upper + log1mexp(ratio)
    return complement(difference, logaddexp(log_lower, shifted)), difference
