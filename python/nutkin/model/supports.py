"""The sets in which the values and parameters of distributions lie, with the test whether numbers lie in them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Support:
    """A set of values.

    `contains` takes an array (numpy's or JAX's) and the `bounds`, which are parameters of the distribution, and gives
    an array of booleans, without the `event_rank` last axes of a value; None where every number is a member. `inside`
    is a member that stands in for masked values, None where there is none for all bounds and event axes. `transforms`:
    the names of those that map onto it, the usual one first. `hint`: what to know of values outside.
    """

    description: str
    contains: Callable[..., Any] | None = None
    bounds: tuple[str, ...] = ()
    event_rank: int = 0
    inside: float | None = None
    discrete: bool = False
    transforms: tuple[str, ...] = ()
    hint: str | None = None
    has_infinities: bool = False


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


def places_below(sizes: Sequence[int]) -> Support:
    """Tuples of indices, along the last axis, one for each axis of these sizes."""
    limits = np.asarray(sizes)
    return Support(
        "indices from 0 to " + " and ".join(str(size - 1) for size in sizes) + " along the last axis",
        lambda x: ((x.astype(np.int64) >= 0) & (x.astype(np.int64) < limits)).all(-1),
        event_rank=1,
        hint="indices start at 0",
    )


@functools.lru_cache(maxsize=1024)
def finite(event_rank: int) -> Support:
    """What can be observed of values with these event axes. Above a bound, an infinity would be."""
    return Support(
        "finite numbers" if event_rank else "a finite number",
        lambda x: np.isfinite(x).all(tuple(range(-event_rank, 0))),
        event_rank=event_rank,
        hint="leave it out with a mask; where only a limit of the value is known, observe the limit under censored",
    )


@functools.lru_cache(maxsize=1024)
def edges_below(size: int) -> Support:
    """The pairs of nodes of a graph of so many."""
    return Support(
        f"two different indices from 0 to {size - 1}",
        lambda x: ((x >= 0) & (x < size) & _is_whole(x)).all(-1) & (x[..., 0] != x[..., 1]),
        event_rank=1,
        hint="indices start at 0",
    )


@functools.lru_cache(maxsize=1024)
def degrees_for(size: int) -> Support:
    """The degrees of freedom of a density of symmetric matrices of this size."""
    return Support(f"a number above k - 1, which is {size - 1}", lambda x: x > size - 1)


@functools.lru_cache(maxsize=1024)
def categories_below(size: int) -> Support:
    """The numbers of so many categories, the first of which is 0."""
    return Support(
        f"whole numbers from 0 to {size - 1}",
        lambda x: (x >= 0) & (x < size) & _is_whole(x),
        inside=0.0,
        discrete=True,
        hint="categories start at 0",
    )


# Sums of up to some thousand rounded f32 probabilities, and products of some hundred rows, stay within this.
_TOLERANCE = 1e-4


def _is_near(x: Any, y: Any) -> Any:
    return abs(x - y) <= _TOLERANCE


def _sums_to(x: Any, total: Any) -> Any:
    return _is_near(x.sum(-1), total)


def _is_lower_triangle(x: Any) -> Any:
    """Zeros above a positive diagonal."""
    size = x.shape[-1]
    above, diagonal = np.triu(np.ones((size, size), bool), 1), np.eye(size, dtype=bool)
    return ((x == 0) | ~above).all((-2, -1)) & ((x > 0) | ~diagonal).all((-2, -1))


def _has_unit_diagonal(x: Any) -> Any:
    return (_is_near(x, 1) | ~np.eye(x.shape[-1], dtype=bool)).all((-2, -1))


def _factorizable(x: Any) -> Any:
    """As a type for which there is linear algebra."""
    return x if x.dtype in (np.float32, np.float64, np.complex64, np.complex128) else x.astype(np.float64)


def _is_symmetric(x: Any) -> Any:
    """Up to rounding; of complex numbers, whether it is Hermitian."""
    x = _factorizable(x)
    scale = abs(x).max((-2, -1), keepdims=True)
    return (abs(x - x.swapaxes(-2, -1).conj()) <= _TOLERANCE * scale).all((-2, -1))


def _is_covariance(x: Any) -> Any:
    """Symmetric up to rounding, with positive eigenvalues."""
    x = _factorizable(x)
    return _is_symmetric(x) & (x.__array_namespace__().linalg.eigvalsh(x) > 0).all(-1)


def _is_invertible(x: Any) -> Any:
    x = _factorizable(x)
    return x.__array_namespace__().linalg.matrix_rank(x) == x.shape[-1]


def above(bound: str) -> Support:
    """The numbers above a parameter."""
    return Support(f"a number above {bound}", lambda x, lower: x > lower, (bound,), transforms=("lower",))


def at_least(bound: str) -> Support:
    return Support(f"a number of at least {bound}", lambda x, lower: x >= lower, (bound,), transforms=("lower",))


def at_most(bound: str) -> Support:
    return Support(f"a number of at most {bound}", lambda x, upper: x <= upper, (bound,), transforms=("upper",))


_OF_POSITIVE = ("log", "softplus", "positive_ordered")

REAL = Support("a real number", inside=0.0, transforms=("identity", "ordered"))
POSITIVE = Support("a positive number", lambda x: x > 0, inside=1.0, transforms=_OF_POSITIVE)
NONNEGATIVE = Support("a number of at least 0", lambda x: x >= 0, inside=1.0, transforms=_OF_POSITIVE)
UNIT = Support("a number in (0, 1)", lambda x: (x > 0) & (x < 1), inside=0.5, transforms=("logit",))
PROBABILITY = Support("a probability, in [0, 1]", lambda x: (x >= 0) & (x <= 1), inside=0.5)
POSITIVE_PROBABILITY = Support("a probability above 0", lambda x: (x > 0) & (x <= 1), inside=0.5)
ANGLE = Support(
    "an angle from -pi to pi",
    lambda x: abs(x) <= np.asarray(np.pi, np.result_type(x.dtype, np.float32)),
    inside=0.0,
    transforms=("angle",),
)
INTERVAL = Support(
    "a number from lower to upper",
    lambda x, lower, upper: (x >= lower) & (x <= upper),
    ("lower", "upper"),
    transforms=("interval",),
)
UP_TO_UPPER = Support(
    "a number from 0 to upper", lambda x, upper: (x >= 0) & (x <= upper), ("upper",), transforms=("fraction",)
)

BINARY = Support("0 or 1", lambda x: (x == 0) | (x == 1), inside=0.0, discrete=True)
COUNT = Support("a whole number of at least 0", lambda x: (x >= 0) & _is_whole(x), inside=0.0, discrete=True)
POSITIVE_COUNT = Support("a whole number of at least 1", lambda x: (x >= 1) & _is_whole(x), inside=1.0, discrete=True)
COUNT_TO_N = Support(
    "a whole number from 0 to n", lambda x, n: (x >= 0) & (x <= n) & _is_whole(x), ("n",), inside=0.0, discrete=True
)
WHOLE = Support("a whole number", _is_whole, inside=0.0)
WHOLE_INTERVAL = Support(
    "a whole number from lower to upper",
    lambda x, lower, upper: (x >= lower) & (x <= upper) & _is_whole(x),
    ("lower", "upper"),
    discrete=True,
)
HYPERGEOMETRIC = Support(
    "a whole number of successes that k of the population and n draws allow",
    lambda x, population, k, n: (x >= 0) & (x <= k) & (x <= n) & (n - x <= population - k) & _is_whole(x),
    ("population", "k", "n"),
    discrete=True,
)
COUNTS_OF_N = Support(
    "whole numbers of at least 0 that sum to n along the last axis",
    lambda x, n: ((x >= 0) & _is_whole(x)).all(-1) & (x.sum(-1) == n),
    ("n",),
    event_rank=1,
    discrete=True,
)

SIMPLEX = Support(
    "positive numbers that sum to 1 along the last axis",
    lambda x: (x > 0).all(-1) & _sums_to(x, 1),
    event_rank=1,
    transforms=("stick_breaking",),
)
PROBABILITIES = Support(
    "probabilities that sum to 1 along the last axis",
    lambda x: (x >= 0).all(-1) & _sums_to(x, 1),
    event_rank=1,
)
ORDERED = Support(
    "numbers that increase along the last axis",
    lambda x: (x[..., 1:] > x[..., :-1]).all(-1),
    event_rank=1,
    transforms=("ordered",),
)
ZERO_SUM = Support(
    "numbers that sum to 0 along the last axis", lambda x: _sums_to(x, 0), event_rank=1, transforms=("zero_sum",)
)
UNIT_VECTOR = Support("a vector of length 1", lambda x: _sums_to(x * x, 1), event_rank=1, transforms=("unit_vector",))
CHOLESKY = Support("a lower Cholesky factor: zeros above a positive diagonal", _is_lower_triangle, event_rank=2)
CORRELATION_CHOLESKY = Support(
    "the lower Cholesky factor of a correlation matrix",
    lambda x: _is_lower_triangle(x) & _sums_to(x * x, 1).all(-1),
    event_rank=2,
    transforms=("correlation_cholesky",),
)
COVARIANCE = Support("a symmetric positive definite matrix", _is_covariance, event_rank=2, transforms=("covariance",))
CORRELATION = Support(
    "a correlation matrix",
    lambda x: _is_covariance(x) & _has_unit_diagonal(x),
    event_rank=2,
    transforms=("correlation",),
)
SYMMETRIC = Support("a symmetric matrix", _is_symmetric, event_rank=2)
INVERTIBLE = Support("an invertible matrix", _is_invertible, event_rank=2)
NONZERO_DIAGONAL = Support(
    "a matrix without zeros on its diagonal",
    lambda x: ((x != 0) | ~np.eye(x.shape[-1], dtype=bool)).all((-2, -1)),
    event_rank=2,
)
ADJACENCY = Support(
    "a symmetric matrix of numbers of at least 0, with zeros on its diagonal",
    lambda x: ((x >= 0) & (x == x.swapaxes(-2, -1)) & ((x == 0) | ~np.eye(x.shape[-1], dtype=bool))).all((-2, -1)),
    event_rank=2,
)
