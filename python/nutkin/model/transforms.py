"""The bijections from the unconstrained space, in which the sampler moves, onto the supports of distributions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import jax.numpy as jnp
from jax import Array
from numpyro.distributions import transforms

from nutkin.model.supports import INTERVAL, NONNEGATIVE, POSITIVE, REAL, SIMPLEX, UNIT, Support


@dataclass(frozen=True)
class Transform:
    """A bijection onto some supports.

    `bijection` makes NumPyro's transform from the support's bounds. `dropped`: how many elements of the last axis are
    implied by the others, and have no coordinate.
    """

    supports: tuple[Support, ...]
    bijection: Callable[..., transforms.Transform]
    dropped: int = 0

    def unconstrained_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of the coordinates of a variable of this (constrained) shape."""
        return (*shape[:-1], shape[-1] - self.dropped) if self.dropped else shape

    def constrain(self, coordinates: Array, *bounds: Array) -> Array:
        """The value in the support. With bounds, both broadcast."""
        return self.bijection(*bounds)(coordinates).astype(coordinates.dtype)

    def unconstrain(self, value: Array, *bounds: Array) -> Array:
        """The coordinates of a value in the interior of the support."""
        return self.bijection(*bounds).inv(value).astype(value.dtype)

    def log_jacobian(self, coordinates: Array, value: Array, *bounds: Array) -> Array:
        """log |d value / d coordinates| at coordinates whose `constrain` is `value`, summed to a scalar."""
        return jnp.sum(self.bijection(*bounds).log_abs_det_jacobian(coordinates, value)).astype(coordinates.dtype)


def _interval(lower: Array, upper: Array) -> transforms.Transform:
    scaling = transforms.AffineTransform(lower, upper - lower)
    return transforms.ComposeTransform([transforms.SigmoidTransform(), scaling])


TRANSFORMS: dict[str, Transform] = {
    "identity": Transform((REAL,), transforms.IdentityTransform),
    "log": Transform((POSITIVE, NONNEGATIVE), transforms.ExpTransform),
    "softplus": Transform((POSITIVE, NONNEGATIVE), transforms.SoftplusTransform),
    "logit": Transform((UNIT,), transforms.SigmoidTransform),
    "interval": Transform((INTERVAL,), _interval),
    "stick_breaking": Transform((SIMPLEX,), transforms.StickBreakingTransform, dropped=1),
}
