"""What the distribution functions are made of: pairs of the logarithms of a lower and an upper tail.

Each tail is computed where it is the smaller one, so that it keeps its digits; the other one is its complement. Where
an argument is outside a domain, a number inside stands in for it, lest the gradient be NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jax import Array

from nutkin.model.incomplete import Tails, at_the_ends
from nutkin.model.native.elementary import exp, log, log1p
from nutkin.model.special import log1mexp

_LOG_HALF = -math.log(2)
_SURELY = 7.0  # exp(-exp(7)) is less than any rounding


def _between(lower: float, upper: float, inside: float, tails: Callable[..., Tails]) -> Callable[..., Tails]:
    def guarded(x: Array, *parameters: Array) -> Tails:
        is_start, is_end = x <= lower, x >= upper
        return at_the_ends(tails(jnp.where(is_start | is_end, inside, x), *parameters), is_start, is_end)

    return guarded


def on_line(tails: Callable[..., Tails]) -> Callable[..., Tails]:
    """The same at infinite numbers."""
    return _between(-np.inf, np.inf, 0.0, tails)


def above_0(tails: Callable[..., Tails]) -> Callable[..., Tails]:
    """Of a positive number, the same for all."""
    return _between(0.0, np.inf, 1.0, tails)


def in_unit(tails: Callable[..., Tails]) -> Callable[..., Tails]:
    """Of a number in (0, 1), the same for all."""
    return _between(0.0, 1.0, 0.5, tails)


def within_pi(tails: Callable[..., Tails]) -> Callable[..., Tails]:
    """Of an angle in (-pi, pi), the same for all."""
    return _between(-np.pi, np.pi, 0.0, tails)


def reverse(tails: Tails) -> Tails:
    lower, upper = tails
    return upper, lower


def symmetric(z: Array, log_upper: Callable[[Array], Array]) -> Tails:
    """Of a distribution symmetric about 0, by its upper tail from there on."""
    is_right = z >= 0
    smaller = log_upper(jnp.where(is_right, z, -z))
    larger = log1mexp(-smaller)
    return jnp.where(is_right, larger, smaller), jnp.where(is_right, smaller, larger)


def by_log_cumulative_hazard(log_hazard: Array) -> Tails:
    """Where the upper tail is exp(-w), by log(w)."""
    is_early, is_late = log_hazard < jnp.log(jnp.finfo(log_hazard.dtype).eps), log_hazard > _SURELY
    lower = log1mexp(exp(jnp.where(is_early | is_late, 0, log_hazard)))
    return jnp.where(is_early, log_hazard, jnp.where(is_late, 0, lower)), -exp(log_hazard)


def shares(below: Array, above: Array) -> Tails:
    """Where the tails are to each other as these amounts; negative ones are 0."""
    below, above = (jnp.where(amount > 0, amount, 0) for amount in (below, above))
    total = below + above
    lower, upper = below / total, above / total
    return _log_share(lower, upper), _log_share(upper, lower)


def _log_share(share: Array, rest: Array) -> Array:
    is_large, is_none = share > 0.5, share <= 0
    small = log(jnp.where(is_large | is_none, 0.5, share))
    return jnp.where(is_none, -np.inf, jnp.where(is_large, log1p(-jnp.where(is_large, rest, 0)), small))


def log_or_end(x: Array) -> Array:
    """log(x) for x >= 0: where it is -inf, its derivative is 0."""
    return jnp.where(x > 0, log(jnp.where(x > 0, x, 1)), -np.inf)


def complement(log_share: Array, log_rest: Array) -> Array:
    """log(1 - share), which is also given: as a complement where that has more digits."""
    is_small = log_share < _LOG_HALF
    return jnp.where(is_small, log1mexp(-jnp.where(is_small, log_share, -1)), log_rest)


def logaddexp(x: Array, y: Array) -> Array:
    """log(exp(x) + exp(y)) of numbers that are not both -inf."""
    larger = jnp.maximum(x, y)
    return larger + log1p(exp(jnp.minimum(x, y) - larger))
