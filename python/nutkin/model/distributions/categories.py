"""Distributions over categories, which are numbered from 0, and of their counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from nutkin.model.distributions.family import A_COUNT, ANY, Family, LogDensity, Parameter
from nutkin.model.native.elementary import exp, log
from nutkin.model.native.gamma import lgamma
from nutkin.model.special import log1mexp, log_ndtr, softplus, xlogy
from nutkin.model.supports import COUNTS_OF_N, ORDERED, POSITIVE, PROBABILITIES, categories_below

_CATEGORIES = ("k",)
_COUNTS = ("k",)
_CUTPOINTS = ("k - 1",)


def _is_category(x: Array, size: int) -> Array:
    """Whether each value is each of the categories: {…, k}."""
    return x[..., None] == np.arange(size).astype(x.dtype)


def entry(x: Array, table: Array) -> Array:
    """table[…, x]: by comparison, since the gradient of an index would be a scatter."""
    return jnp.sum(jnp.where(_is_category(x, table.shape[-1]), table, 0), axis=-1)


def logsumexp(x: Array) -> Array:
    """log of the sum of exp(x) along the last axis."""
    largest = lax.stop_gradient(jnp.max(x, axis=-1, keepdims=True))
    return log(jnp.sum(exp(x - largest), axis=-1)) + largest[..., 0]


_CATEGORICAL = LogDensity(kernel=lambda x, p: entry(x, log(p)))

_CATEGORICAL_LOGIT = LogDensity(kernel=entry, normalizer=logsumexp)


def _between(x: Array, cutpoints: Array) -> tuple[Array, Array, Array, Array]:
    """The cutpoints below and above each category, 0 where there is none; whether it is the first, the last."""
    size = cutpoints.shape[-1]
    is_first, is_last = x == 0, x == size
    return entry(x - 1, cutpoints), entry(x, cutpoints), is_first, is_last


def _ordered_logistic(x: Array, eta: Array, cutpoints: Array) -> Array:
    """With a and b the distances of eta from its neighbours: sigmoid(b) - sigmoid(a) as a product."""
    low, high, is_first, is_last = _between(x, cutpoints)
    a, b = low - eta, high - eta
    gap = jnp.where(is_first | is_last, 1, high - low)
    above = jnp.where(is_first, 0, -softplus(a))
    below = jnp.where(is_last, 0, -softplus(-b))
    return above + below + jnp.where(is_first | is_last, 0, log1mexp(gap))


_ORDERED_LOGISTIC = LogDensity(kernel=_ordered_logistic)


def _ordered_probit(x: Array, eta: Array, cutpoints: Array) -> Array:
    low, high, is_first, is_last = _between(x, cutpoints)
    a, b = low - eta, high - eta
    # In the tail in which both are small, where their difference has all its digits. The first and the last category
    # are a tail.
    is_tail = is_first | is_last
    flips = (a > 0) & ~is_first
    left, right = jnp.where(flips, -b, a), jnp.where(flips | is_last, -a, b)
    log_right, log_left = log_ndtr(right), log_ndtr(jnp.where(is_tail, 0, left))
    return log_right + jnp.where(is_tail, 0, log1mexp(jnp.where(is_tail, 1, log_right - log_left)))


_ORDERED_PROBIT = LogDensity(kernel=_ordered_probit)


def _log_arrangements(x: Array, n: Array) -> Array:
    """log of the multinomial coefficient. The counts sum to n."""
    return lgamma(n + 1) - jnp.sum(lgamma(x + 1), axis=-1)


_MULTINOMIAL = LogDensity(
    kernel=lambda x, n, p: jnp.sum(xlogy(x, p), axis=-1),
    carrier=_log_arrangements,
)

_MULTINOMIAL_LOGIT = LogDensity(
    kernel=lambda x, n, logits: jnp.sum(x * logits, axis=-1),
    normalizer=lambda n, logits: n * logsumexp(logits),
    carrier=_log_arrangements,
)


def _dirichlet_multinomial_kernel(x: Array, n: Array, alpha: Array) -> Array:
    total = jnp.sum(alpha, axis=-1)
    return jnp.sum(lgamma(x + alpha) - lgamma(alpha), axis=-1) + lgamma(total) - lgamma(n + total)


_DIRICHLET_MULTINOMIAL = LogDensity(kernel=_dirichlet_multinomial_kernel, carrier=_log_arrangements)


def _categories(family: Family, sizes: Mapping[str, int]) -> Family:
    return replace(family, support=categories_below(sizes["k"] if "k" in sizes else sizes["k - 1"] + 1))


_TWO = categories_below(2)


_PROBABILITIES = Parameter(PROBABILITIES, _CATEGORIES)
_LOGITS = Parameter(event=_CATEGORIES)
_ORDERED_PARAMETERS = {"eta": ANY, "cutpoints": Parameter(ORDERED, _CUTPOINTS)}

FAMILIES: dict[str, Family] = {
    "categorical": Family({"p": _PROBABILITIES}, _CATEGORICAL, _TWO, sized=_categories),
    "categorical_logit": Family({"logits": _LOGITS}, _CATEGORICAL_LOGIT, _TWO, sized=_categories),
    "ordered_logistic": Family(_ORDERED_PARAMETERS, _ORDERED_LOGISTIC, _TWO, sized=_categories),
    "ordered_probit": Family(_ORDERED_PARAMETERS, _ORDERED_PROBIT, _TWO, sized=_categories),
    "multinomial": Family({"n": A_COUNT, "p": _PROBABILITIES}, _MULTINOMIAL, COUNTS_OF_N, event=_COUNTS),
    "multinomial_logit": Family({"n": A_COUNT, "logits": _LOGITS}, _MULTINOMIAL_LOGIT, COUNTS_OF_N, event=_COUNTS),
    "dirichlet_multinomial": Family(
        {"n": A_COUNT, "alpha": Parameter(POSITIVE, _CATEGORIES)}, _DIRICHLET_MULTINOMIAL, COUNTS_OF_N, event=_COUNTS
    ),
}
