"""The bijections from the unconstrained space, in which the sampler moves, onto the supports of distributions."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from nutkin.model import matrix_transforms
from nutkin.model.special import softplus
from nutkin.model.supports import ORDERED, REAL, Support


def _same_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    return shape


@dataclass(frozen=True)
class Transform:
    """A bijection onto the supports that name it.

    `constrain` and `unconstrain` take coordinates or a value, then the support's bounds, and broadcast. `slopes` takes
    coordinates and bounds: terms whose sum over all coordinates is log |d value / d coordinates|.
    `unconstrained_shape`: the shape of the coordinates of a value of some (constrained) shape. `event_rank`: how many
    of the last axes it takes together. `within`: where its values lie, if that is less than the support.
    """

    constrain: Callable[..., Array]
    unconstrain: Callable[..., Array]
    slopes: Callable[..., Array]
    unconstrained_shape: Callable[[tuple[int, ...]], tuple[int, ...]] = _same_shape
    event_rank: int = 0
    within: Support = REAL

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


def _order(x: Array) -> Array:
    """The first, then the first plus the sums of positive steps (Stan Reference Manual, "Ordered vector")."""
    steps = jnp.concatenate([x[..., :1], lax.exp(x[..., 1:])], axis=-1)
    return lax.cumsum(steps, axis=x.ndim - 1)


def _differences(y: Array) -> Array:
    return jnp.concatenate([y[..., :1], lax.log(y[..., 1:] - y[..., :-1])], axis=-1)


def _log_steps(y: Array) -> Array:
    """Of positive numbers that increase (Stan Reference Manual, "Positive ordered vector")."""
    return lax.log(jnp.concatenate([y[..., :1], y[..., 1:] - y[..., :-1]], axis=-1))


def _order_slopes(x: Array) -> Array:
    return x[..., 1:]


def _to_zero_sum(x: Array) -> Array:
    """(x, 0) by the reflection that takes the last axis to (1, …, 1) / sqrt(k): lengths stay."""
    size = x.shape[-1] + 1
    total = jnp.sum(x, axis=-1, keepdims=True)
    return jnp.concatenate([x - total / (size - math.sqrt(size)), total / math.sqrt(size)], axis=-1)


def _from_zero_sum(y: Array) -> Array:
    return y[..., :-1] + y[..., -1:] / (math.sqrt(y.shape[-1]) - 1)


def _normalize(x: Array) -> Array:
    return x * lax.rsqrt(jnp.sum(lax.square(x), axis=-1, keepdims=True))


def _but_the_last(shape: tuple[int, ...]) -> tuple[int, ...]:
    return (*shape[:-1], shape[-1] - 1)


TRANSFORMS: dict[str, Transform] = {
    "identity": Transform(lambda x: x, lambda y: y, jnp.zeros_like),
    "log": Transform(lax.exp, lax.log, lambda x: x),
    "softplus": Transform(softplus, lambda y: y + lax.log(-lax.expm1(-y)), lambda x: -softplus(-x)),
    "lower": Transform(
        lambda x, lower: lower + lax.exp(x),
        lambda y, lower: lax.log(y - lower),
        lambda x, lower: x,
    ),
    "upper": Transform(
        lambda x, upper: upper - lax.exp(x),
        lambda y, upper: lax.log(upper - y),
        lambda x, upper: x,
    ),
    "fraction": Transform(
        lambda x, upper: upper * _sigmoid(x),
        lambda y, upper: _logit(y / upper),
        lambda x, upper: _sigmoid_slope(x) + lax.log(upper),
    ),
    "logit": Transform(_sigmoid, _logit, _sigmoid_slope),
    "interval": Transform(
        lambda x, lower, upper: lower + (upper - lower) * _sigmoid(x),
        lambda y, lower, upper: _logit((y - lower) / (upper - lower)),
        lambda x, lower, upper: _sigmoid_slope(x) + lax.log(upper - lower),
    ),
    "angle": Transform(
        lambda x: math.pi * (2 * _sigmoid(x) - 1),
        lambda y: _logit(0.5 + y / (2 * math.pi)),
        lambda x: _sigmoid_slope(x) + math.log(2 * math.pi),
    ),
    "ordered": Transform(_order, _differences, _order_slopes, event_rank=1, within=ORDERED),
    "positive_ordered": Transform(
        lambda x: lax.cumsum(lax.exp(x), axis=x.ndim - 1), _log_steps, lambda x: x, event_rank=1, within=ORDERED
    ),
    "stick_breaking": Transform(_break_stick, _join_stick, _stick_slopes, _but_the_last, 1),
    "zero_sum": Transform(_to_zero_sum, _from_zero_sum, jnp.zeros_like, _but_the_last, 1),
    # The length of the coordinates does not matter: their density is that of a standard normal vector (Stan Reference
    # Manual, "Unit vector").
    "unit_vector": Transform(_normalize, lambda y: y, lambda x: -0.5 * lax.square(x), event_rank=1),
    "correlation_cholesky": Transform(
        matrix_transforms.correlation_cholesky,
        matrix_transforms.from_correlation_cholesky,
        matrix_transforms.correlation_cholesky_slopes,
        matrix_transforms.below_diagonal,
        event_rank=2,
    ),
    "correlation": Transform(
        matrix_transforms.correlation,
        matrix_transforms.from_correlation,
        matrix_transforms.correlation_slopes,
        matrix_transforms.below_diagonal,
        event_rank=2,
    ),
    "covariance": Transform(
        matrix_transforms.covariance,
        matrix_transforms.from_covariance,
        matrix_transforms.covariance_slopes,
        matrix_transforms.with_diagonal,
        event_rank=2,
    ),
}
