"""Both tails of the von Mises distribution of an angle from -pi to pi.

They are integrals of positive terms over arcs, so that each has its digits, by Gauss-Legendre rules over the part of an
arc in which the density falls by no more than exp(-40).
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from nutkin.model.incomplete import Tails
from nutkin.model.native.elementary import exp, log
from nutkin.model.special import log_i0e, softplus

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(48)
_NODES, _WEIGHTS = 0.5 * (_NODES + 1), 0.5 * _WEIGHTS
_FALL = 40.0
_PI = np.pi


@jax.custom_jvp
def von_mises_tails(x: Array, mu: Array, kappa: Array) -> Tails:
    """At x in (-pi, pi); all of one shape."""
    return _tails(x, mu, kappa)


@von_mises_tails.defjvp
def _von_mises_tails_jvp(primals: tuple[Array, ...], tangents: tuple[Array, ...]) -> tuple[Tails, Tails]:
    """By the ends of the arc the derivative is the density there, which mu moves both of."""
    (x, mu, kappa), (x_tangent, mu_tangent, kappa_tangent) = primals, tangents
    tails, by_kappa = jax.jvp(lambda kappa: _tails(x, mu, kappa), (kappa,), (kappa_tangent,))

    def log_density(angle: Array) -> Array:
        return -2 * kappa * lax.square(lax.sin(0.5 * (angle - mu))) - np.log(2 * _PI) - log_i0e(kappa)

    def along(tail: Array) -> Array:
        inner, outer = (exp(log_density(angle) - tail) for angle in (x, jnp.full_like(x, _PI)))
        return inner * (x_tangent - mu_tangent) + outer * mu_tangent

    lower, upper = tails
    return tails, (by_kappa[0] + along(lower), by_kappa[1] - along(upper))


def _tails(x: Array, mu: Array, kappa: Array) -> Tails:
    mu = mu - 2 * _PI * lax.round(mu / (2 * _PI))
    # A positive mu is reflected; then the cut at -pi is before the mean, and `start` behind the antipode of the mean.
    is_reflected = mu > 0
    x, mu = jnp.where(is_reflected, -x, x), jnp.where(is_reflected, -mu, mu)
    start, stop = jnp.maximum(_PI + mu, 0), x - mu
    beyond = jnp.clip(2 * _PI - stop, 0, _PI)
    zero, half = jnp.zeros_like(x), jnp.full_like(x, _PI)
    inside = jnp.clip(stop, 0, _PI)
    before = jnp.clip(-stop, 0, _PI)
    below = _log_arcs(kappa, (before, start), (zero, inside), (beyond, half))
    above = _log_arcs(kappa, (zero, before), (inside, half), (start, beyond))
    lower, upper = -softplus(above - below), -softplus(below - above)
    return jnp.where(is_reflected, upper, lower), jnp.where(is_reflected, lower, upper)


def _log_arcs(kappa: Array, *arcs: tuple[Array, Array]) -> Array:
    """log of the integral of exp(kappa (cos t - 1)) over arcs {…} from and to angles from 0 to pi."""
    first, last = (jnp.stack(ends) for ends in zip(*arcs, strict=True))
    sine = lax.sin(0.5 * first)
    reach = 2 * lax.asin(lax.sqrt(jnp.minimum(lax.square(sine) + 0.5 * _FALL / kappa, 1)))
    width = lax.stop_gradient(jnp.maximum(jnp.minimum(last, reach) - first, 0))[..., None]
    step = width * _NODES.astype(width.dtype)
    # sin^2(t / 2) - sin^2(first / 2) without cancellation
    rise = lax.sin(0.5 * step) * lax.sin(first[..., None] + 0.5 * step)
    sums = jnp.sum(_WEIGHTS.astype(width.dtype) * width * exp(-2 * kappa[..., None] * rise), axis=-1)
    heights = jnp.where(sums > 0, -2 * kappa * lax.square(sine), -np.inf)
    largest = jnp.max(heights, axis=0)
    return log(jnp.sum(exp(heights - largest) * sums, axis=0)) + largest
