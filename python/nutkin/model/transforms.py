"""The bijections from the unconstrained space, in which the sampler moves, onto the supports of distributions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from nutkin.model.special import softplus
from nutkin.model.supports import INTERVAL, NONNEGATIVE, POSITIVE, REAL, SIMPLEX, UNIT, Support


@dataclass(frozen=True)
class Transform:
    """A bijection onto some supports.

    `constrain` and `unconstrain` take coordinates or a value, then the support's bounds, and broadcast. `slopes` takes
    coordinates and bounds: terms whose sum over all coordinates is log |d value / d coordinates|. `dropped`: how many
    elements of the last axis are implied by the others, and have no coordinate.
    """

    supports: tuple[Support, ...]
    constrain: Callable[..., Array]
    unconstrain: Callable[..., Array]
    slopes: Callable[..., Array]
    dropped: int = 0

    def unconstrained_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of the coordinates of a variable of this (constrained) shape."""
        return (*shape[:-1], shape[-1] - self.dropped) if self.dropped else shape

    def log_jacobian(self, coordinates: Array, *bounds: Array) -> Array:
        """log |d value / d coordinates| at the coordinates: a scalar."""
        return jnp.sum(self.slopes(coordinates, *bounds))


def _sigmoid(x: Array) -> Array:
    """Within the open interval, also where rounding would reach its ends."""
    numbers = jnp.finfo(x.dtype)
    return lax.clamp(numbers.tiny, lax.logistic(x), 1 - numbers.eps)


def _sigmoid_slope(x: Array) -> Array:
    return -softplus(x) - softplus(-x)


def _logit(y: Array) -> Array:
    return lax.log(y) - lax.log1p(-y)


def _stick_offsets(parts: int, dtype: np.dtype) -> np.ndarray:
    """What makes equal parts of coordinates of 0."""
    return np.log(np.arange(parts - 1, 0, -1)).astype(dtype)


def _break_stick(x: Array) -> Array:
    """Each coordinate is the logit of the share that its part takes of what is left of the stick. All by logarithms."""
    x = x - _stick_offsets(x.shape[-1] + 1, x.dtype)
    left = lax.cumsum(-softplus(x), axis=x.ndim - 1)
    none = [(0, 0, 0)] * (x.ndim - 1)
    before = lax.pad(left, lax.full_like(left, 0, shape=()), [*none, (1, 0, 0)])
    shares = lax.pad(-softplus(-x), lax.full_like(x, 0, shape=()), [*none, (0, 1, 0)])
    return lax.max(lax.exp(before + shares), jnp.finfo(x.dtype).tiny)


def _join_stick(y: Array) -> Array:
    left = lax.cumsum(y, axis=y.ndim - 1, reverse=True)[..., 1:]
    return lax.log(y[..., :-1] / left) + _stick_offsets(y.shape[-1], y.dtype)


def _stick_slopes(x: Array) -> Array:
    """Of log y_k = log s_k + sum_{j<k} log(1 - s_j), with ds/dx = s (1 - s): log(1 - s_k) counts once a later part.

    The scheme is Stan's (Reference Manual, "Unit simplex").
    """
    parts = x.shape[-1] + 1
    x = x - _stick_offsets(parts, x.dtype)
    return -softplus(-x) - np.arange(parts - 1, 0, -1).astype(x.dtype) * softplus(x)


TRANSFORMS: dict[str, Transform] = {
    "identity": Transform((REAL,), lambda x: x, lambda y: y, jnp.zeros_like),
    "log": Transform((POSITIVE, NONNEGATIVE), lax.exp, lax.log, lambda x: x),
    "softplus": Transform(
        (POSITIVE, NONNEGATIVE), softplus, lambda y: y + lax.log(-lax.expm1(-y)), lambda x: -softplus(-x)
    ),
    "logit": Transform((UNIT,), _sigmoid, _logit, _sigmoid_slope),
    "interval": Transform(
        (INTERVAL,),
        lambda x, lower, upper: lower + (upper - lower) * _sigmoid(x),
        lambda y, lower, upper: _logit((y - lower) / (upper - lower)),
        lambda x, lower, upper: _sigmoid_slope(x) + lax.log(upper - lower),
    ),
    "stick_breaking": Transform((SIMPLEX,), _break_stick, _join_stick, _stick_slopes, dropped=1),
}
