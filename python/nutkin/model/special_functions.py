"""The special functions of the model language, on their whole domains: gamma, beta, normal, Bessel, logarithms of sums.

Each takes floats of one type and of one shape after broadcasting, and gives the same. `special` has those of them that
the distributions use, on the part of the domain that these need.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array, lax

from nutkin.model.incomplete import beta_tails
from nutkin.model.native import gamma
from nutkin.model.native.elementary import exp, log, log1p
from nutkin.model.special import LOG_PI, log1mexp, log_ndtr, softplus, xlog1py, xlogy


def lgamma(x: Array) -> Array:
    """log |Gamma(x)| of finite x, below 0 by reflection (DLMF 5.5.3, https://dlmf.nist.gov/5.5); inf at 0, -1, -2, …"""
    is_reflected = x <= 0
    right = gamma.lgamma(jnp.where(is_reflected, 1 - x, x))
    return jnp.where(is_reflected, LOG_PI - log(_abs_sin_pi(jnp.where(is_reflected, x, 0.5))) - right, right)


def digamma(x: Array) -> Array:
    """The derivative of log Gamma, below 0 by reflection (DLMF 5.5.4); NaN at 0, -1, -2, …"""
    is_reflected = x <= 0
    right = gamma.digamma(jnp.where(is_reflected, 1 - x, x))
    left = jnp.where(is_reflected, x, 0.5)
    angle = math.pi * (left - lax.round(left))
    return jnp.where(is_reflected, jnp.where(angle == 0, jnp.nan, right - math.pi / jnp.tan(angle)), right)


def _abs_sin_pi(x: Array) -> Array:
    """|sin(pi x)|, exact near whole x."""
    return lax.abs(lax.sin(math.pi * (x - lax.stop_gradient(lax.round(x)))))


def trigamma(x: Array) -> Array:
    """The second derivative of log Gamma, below 0 by reflection (DLMF 5.15.6, https://dlmf.nist.gov/5.15)."""
    is_reflected = x <= 0
    right = lax.polygamma(jnp.ones_like(x), jnp.where(is_reflected, 1 - x, x))
    return jnp.where(is_reflected, (math.pi / _abs_sin_pi(jnp.where(is_reflected, x, 0.5))) ** 2 - right, right)


def lbeta(a: Array, b: Array) -> Array:
    """log |B(a, b)|."""
    return lgamma(a) + lgamma(b) - lgamma(a + b)


def ndtr(x: Array) -> Array:
    """The standard normal distribution function."""
    return 0.5 * lax.erfc(-x * math.sqrt(0.5))


def logit(x: Array) -> Array:
    """log(x / (1 - x)), the inverse of the sigmoid."""
    return log(x) - log1p(-x)


def log1m_exp(x: Array) -> Array:
    """log(1 - exp(x)) for x < 0."""
    return log1mexp(-x)


@jax.custom_jvp
def logaddexp(x: Array, y: Array) -> Array:
    """log(exp(x) + exp(y)). Its derivative is finite where both are infinite too."""
    return jnp.logaddexp(x, y)


@logaddexp.defjvp
def _logaddexp_jvp(primals: tuple[Array, Array], tangents: tuple[Array, Array]) -> tuple[Array, Array]:
    x, y = primals
    distance = jnp.where(x == y, 0, x - y)
    by_x, by_y = jax.nn.sigmoid(distance), jax.nn.sigmoid(-distance)
    return logaddexp(x, y), by_x * tangents[0] + by_y * tangents[1]


def betainc(a: Array, b: Array, x: Array) -> Array:
    """The regularized incomplete beta function I_x(a, b). At the ends of the unit interval its derivatives are 0."""
    is_end = (x == 0) | (x == 1)
    lower, _upper = beta_tails(a, b, logit(jnp.where(is_end, 0.5, x)))
    return jnp.where(is_end, lax.stop_gradient(x), exp(lower))


def _of_one_shape(function: Callable[..., Array]) -> Callable[..., Array]:
    return lambda *xs: function(*jnp.broadcast_arrays(*xs))


UNARY: dict[str, Callable[[Array], Array]] = {
    "lgamma": lgamma,
    "digamma": digamma,
    "trigamma": trigamma,
    "ndtr": ndtr,
    "log_ndtr": log_ndtr,
    "ndtri": jax.scipy.special.ndtri,
    "logit": logit,
    "softplus": softplus,
    "log1m_exp": log1m_exp,
    "bessel_i0e": lax.bessel_i0e,
    "bessel_i1e": lax.bessel_i1e,
}

BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "lbeta": lbeta,
    "xlogy": xlogy,
    "xlog1py": xlog1py,
    "logaddexp": logaddexp,
    "gammainc": _of_one_shape(lax.igamma),
    "gammaincc": _of_one_shape(lax.igammac),
}

TERNARY: dict[str, Callable[[Array, Array, Array], Array]] = {"betainc": betainc}
