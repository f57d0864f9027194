"""Log likelihood and residual of a row, given its linear predictor, for each family of generalised linear models.

A family has two parts. `row` works on L rows at once, with one exponential a row:

    row(eta, data, extra) -> (residual, terms, factor)

residual is the derivative of the row's log likelihood in eta (up to `finish`'s scale); terms (one or more) are summed
over all rows; factor, between 1 and 2, is multiplied over rows: the log of a product replaces the sum of logs. All are
weighted if `data` holds a weight. Then, once a pass,

    finish(layout, sums, residual_sum, log_product, data, extra) -> (value, scale of the residuals, gradient of extra)

Shapes: eta and data (L,), extra, sums and results scalar. What depends on the response only is left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from nutkin.model.native.elementary import bounded_exp, exp, log, normal_log
from nutkin.model.native.gamma import digamma, lgamma
from nutkin.model.native.loops import repeat, row

Data = Mapping[str, Array]


class Family(NamedTuple):
    row: Callable[[Array, Data, Array | None], tuple[Array, tuple[Array, ...], Array | None]]
    finish: Callable[..., tuple[Array, Array | None, Array | None]]
    terms: int


def _weighted(data: Data, *values: Array) -> tuple[Array, ...]:
    return tuple(data["weight"] * value for value in values) if "weight" in data else values


def _logistic(eta: Array) -> tuple[Array, Array]:
    """(sigmoid(eta), 1 + exp(-|eta|)) from one exponential."""
    e = bounded_exp(-jnp.abs(eta))
    one_plus = 1 + e
    t = 1 / one_plus
    return jnp.where(eta >= 0, t, e * t), one_plus


def _normal_row(eta, data, sigma):
    residual = data["response"] - eta
    weighted, square = _weighted(data, residual, residual * residual)
    return weighted, (square,), None


def _normal_finish(layout, sums, residual_sum, log_product, data, sigma):
    precision = 1 / (sigma * sigma)
    squares = sums[0] * precision
    n = data["total_weight"]
    return -0.5 * squares - n * log(sigma), precision, (squares - n) / sigma


def _bernoulli_row(eta, data, extra):
    y = data["response"]
    p, one_plus = _logistic(eta)
    residual, linear = y - p, y * eta - jnp.maximum(eta, 0)
    if "weight" in data:
        return data["weight"] * residual, (data["weight"] * (linear - normal_log(one_plus)),), None
    return residual, (linear,), one_plus


def _bernoulli_finish(layout, sums, residual_sum, log_product, data, extra):
    if layout.has_weights:
        return sums[0], None, None
    return sums[0] - (log_product - layout.padding * math.log(2)), None, None


def _binomial_row(eta, data, extra):
    y, trials = data["response"], data["trials"]
    p, one_plus = _logistic(eta)
    residual = y - trials * p
    residual, term = _weighted(data, residual, y * eta - trials * (jnp.maximum(eta, 0) + normal_log(one_plus)))
    return residual, (term,), None


def _binomial_finish(layout, sums, residual_sum, log_product, data, extra):
    return sums[0], None, None


def _poisson_row(eta, data, extra):
    y = data["response"]
    mean = exp(eta)
    residual, term = _weighted(data, y - mean, y * eta - mean)
    return residual, (term,), None


def _poisson_finish(layout, sums, residual_sum, log_product, data, extra):
    return sums[0] + (0 if layout.has_weights else layout.padding), None, None


def _neg_binomial_row(eta, data, alpha):
    """With z = eta - log(alpha) it is a binomial of y + alpha trials and log odds z."""
    y = data["response"]
    z = eta - log(alpha)
    p, one_plus = _logistic(z)
    softplus = jnp.maximum(z, 0) + normal_log(one_plus)
    trials = y + alpha
    residual, term, softplus = _weighted(data, y - trials * p, y * z - trials * softplus, softplus)
    return residual, (term, softplus), None


def _neg_binomial_finish(layout, sums, residual_sum, log_product, data, alpha):
    """lgamma(y + alpha) is summed over the distinct counts only."""

    def block(b, carry):
        shifted = row(data["count"], b) + alpha
        times = row(data["multiplicity"], b)
        logs, slopes = carry
        return logs + times * lgamma(shifted), slopes + times * digamma(shifted)

    zeros = jnp.zeros(layout.lanes, layout.dtype)
    logs, slopes = repeat(data["count_blocks"], block, (zeros, zeros))
    n = data["total_weight"]
    value = sums[0] + jnp.sum(logs) - n * lgamma(alpha)
    gradient = jnp.sum(slopes) - n * digamma(alpha) - sums[1] - residual_sum / alpha
    return value, None, gradient


FAMILIES: dict[str, Family] = {
    "normal": Family(_normal_row, _normal_finish, 1),
    "bernoulli_logit": Family(_bernoulli_row, _bernoulli_finish, 1),
    "binomial_logit": Family(_binomial_row, _binomial_finish, 1),
    "poisson_log": Family(_poisson_row, _poisson_finish, 1),
    "neg_binomial": Family(_neg_binomial_row, _neg_binomial_finish, 2),
}
