"""The sets in which the values and parameters of distributions lie, with the test whether numbers lie in them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Support:
    """A set of values.

    `contains` takes an array (numpy's or JAX's) and the `bounds`, which are parameters of the distribution, and gives
    an array of booleans, without the event axes; None where every number is a member. `inside` is a member that
    stands in for masked values, None where there is none for all bounds and event axes. `hint`: what to know
    of values outside.
    """

    description: str
    contains: Callable[..., Any] | None = None
    bounds: tuple[str, ...] = ()
    inside: float | None = None
    discrete: bool = False
    hint: str | None = None


def _is_whole(x: Any) -> Any:
    return x % 1 == 0


def indices_below(size: int) -> Support:
    """The indices of an axis of this size, counted from its start only."""
    # As s64, in which the size fits: the largest indices of u64 become negative.
    return Support(
        f"indices from 0 to {size - 1}",
        lambda x: (x.astype(np.int64) >= 0) & (x.astype(np.int64) < size),
        hint="indices start at 0",
    )


# Sums of up to some thousand rounded f32 probabilities stay within this.
_SIMPLEX_TOLERANCE = 1e-4

REAL = Support("a real number", inside=0.0)
POSITIVE = Support("a positive number", lambda x: x > 0, inside=1.0)
NONNEGATIVE = Support("a number of at least 0", lambda x: x >= 0, inside=1.0)
UNIT = Support("a number in (0, 1)", lambda x: (x > 0) & (x < 1), inside=0.5)
PROBABILITY = Support("a probability, in [0, 1]", lambda x: (x >= 0) & (x <= 1), inside=0.5)
INTERVAL = Support(
    "a number from lower to upper", lambda x, lower, upper: (x >= lower) & (x <= upper), ("lower", "upper")
)
BINARY = Support("0 or 1", lambda x: (x == 0) | (x == 1), inside=0.0, discrete=True)
COUNT = Support("a whole number of at least 0", lambda x: (x >= 0) & _is_whole(x), inside=0.0, discrete=True)
COUNT_TO_N = Support(
    "a whole number from 0 to n", lambda x, n: (x >= 0) & (x <= n) & _is_whole(x), ("n",), inside=0.0, discrete=True
)
SIMPLEX = Support(
    "positive numbers that sum to 1 along the last axis",
    lambda x: (x > 0).all(-1) & (abs(x.sum(-1) - 1) <= _SIMPLEX_TOLERANCE),
)
