"""Both tails of counts that have no other form than sums: beta-binomial, hypergeometric, beta negative binomial.

The tail on the far side of the mean is summed from its first mass outwards, as ratios of neighbouring masses, until
nothing changes it; all terms are positive. The other one is its complement. Where masses fall like a power, the rest of
a sum is a series that falls faster.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from nutkin.model.distributions.counts import BETA_BINOMIAL, BETA_NEG_BINOMIAL, hypergeometric_kernel
from nutkin.model.incomplete import State, Tails, at_the_ends, both_tails, converged, tails_derivative
from nutkin.model.native.elementary import log

# As many steps take a second.
_MOST_MASSES = 1e6
# From here on the terms of the faster series fall by their 40th power.
_LEAST_COUNT = 40.0


def beta_binomial_tails(x: Array, n: Array, alpha: Array, beta: Array) -> Tails:
    count, n, alpha, beta = jnp.broadcast_arrays(lax.floor(x), n, alpha, beta)
    is_start, is_end = count < 0, count >= n
    is_outside = is_start | is_end
    tails = _beta_binomial(jnp.where(is_outside, 1, n), alpha, beta, jnp.where(is_outside, 0, count))
    return at_the_ends(tails, is_start, is_end)


def hypergeometric_tails(x: Array, population: Array, k: Array, n: Array) -> Tails:
    count, population, k, n = jnp.broadcast_arrays(lax.floor(x), population, k, n)
    is_start, is_end = count < jnp.maximum(0, n + k - population), count >= jnp.minimum(n, k)
    is_outside = is_start | is_end
    inside = zip((2, 1, 1, 0), (population, k, n, count), strict=True)
    tails = _hypergeometric(*(jnp.where(is_outside, stands_in, given) for stands_in, given in inside))
    return at_the_ends(tails, is_start, is_end)


def beta_neg_binomial_tails(x: Array, r: Array, alpha: Array, beta: Array) -> Tails:
    count, r, alpha, beta = jnp.broadcast_arrays(lax.floor(x), r, alpha, beta)
    is_start, is_end = count < 0, count == np.inf
    tails = _beta_neg_binomial(r, alpha, beta, jnp.where(is_start | is_end, 0, count))
    return at_the_ends(tails, is_start, is_end)


@jax.custom_jvp
def _beta_binomial(n: Array, alpha: Array, beta: Array, count: Array) -> Tails:
    arguments = n, alpha, beta, count
    return both_tails(_smaller_beta_binomial(*arguments), _is_lower_beta_binomial(*arguments))


@jax.custom_jvp
def _hypergeometric(population: Array, k: Array, n: Array, count: Array) -> Tails:
    arguments = population, k, n, count
    return both_tails(_smaller_hypergeometric(*arguments), _is_lower_hypergeometric(*arguments))


@jax.custom_jvp
def _beta_neg_binomial(r: Array, alpha: Array, beta: Array, count: Array) -> Tails:
    arguments = r, alpha, beta, count
    return both_tails(_smaller_beta_neg_binomial(*arguments), _is_lower_beta_neg_binomial(*arguments))


def _is_lower_beta_binomial(n: Array, alpha: Array, beta: Array, count: Array) -> Array:
    return count * (alpha + beta) < n * alpha


def _smaller_beta_binomial(n: Array, alpha: Array, beta: Array, count: Array) -> Array:
    is_lower = _is_lower_beta_binomial(n, alpha, beta, count)
    # The successes up to a count are the failures from n - count on.
    first = jnp.where(is_lower, n - count, count + 1)
    alpha, beta = jnp.where(is_lower, beta, alpha), jnp.where(is_lower, alpha, beta)
    log_mass = BETA_BINOMIAL.kernel(first, n, alpha, beta) + BETA_BINOMIAL.carrier(first, n)
    return log_mass + log(_sum_from(_beta_binomial_ratio, first, n, alpha, beta))


def _is_lower_hypergeometric(population: Array, k: Array, n: Array, count: Array) -> Array:
    return count * population < n * k


def _smaller_hypergeometric(population: Array, k: Array, n: Array, count: Array) -> Array:
    is_lower = _is_lower_hypergeometric(population, k, n, count)
    first = jnp.where(is_lower, n - count, count + 1)
    k = jnp.where(is_lower, population - k, k)
    log_mass = hypergeometric_kernel(first, population, k, n)
    return log_mass + log(_sum_from(_hypergeometric_ratio, first, population, k, n))


def _is_lower_beta_neg_binomial(r: Array, alpha: Array, beta: Array, count: Array) -> Array:
    return count * alpha < r * beta


def _smaller_beta_neg_binomial(r: Array, alpha: Array, beta: Array, count: Array) -> Array:
    is_lower = _is_lower_beta_neg_binomial(r, alpha, beta, count)
    first = jnp.where(is_lower, count, count + 1)
    log_mass = BETA_NEG_BINOMIAL.kernel(first, r, alpha, beta) + BETA_NEG_BINOMIAL.carrier(first)
    down = _sum_down(jnp.where(is_lower, count, 0), r, alpha, beta)
    up = _sum_up(jnp.where(is_lower, _LEAST_COUNT, first), r, alpha, beta)
    return log_mass + log(jnp.where(is_lower, down, up))


def _by_count(*arguments: Array) -> Array:
    """No log density: a tail is flat between counts."""
    return jnp.full_like(arguments[-1], -np.inf)


_beta_binomial.defjvp(tails_derivative(_smaller_beta_binomial, _is_lower_beta_binomial, _by_count), symbolic_zeros=True)
_beta_neg_binomial.defjvp(
    tails_derivative(_smaller_beta_neg_binomial, _is_lower_beta_neg_binomial, _by_count), symbolic_zeros=True
)
_hypergeometric.defjvp(
    tails_derivative(_smaller_hypergeometric, _is_lower_hypergeometric, _by_count), symbolic_zeros=True
)


def _beta_binomial_ratio(x: Array, n: Array, alpha: Array, beta: Array) -> Array:
    """The mass of x + 1 to that of x; 0 from n on."""
    left = jnp.maximum(n - x, 0)
    return left * (x + alpha) / ((x + 1) * (jnp.maximum(left - 1, 0) + beta))


def _hypergeometric_ratio(x: Array, population: Array, k: Array, n: Array) -> Array:
    left = jnp.maximum(k - x, 0) * jnp.maximum(n - x, 0)
    return left / ((x + 1) * (population - k - n + x + 1))


def _beta_neg_binomial_ratio(x: Array, r: Array, alpha: Array, beta: Array) -> Array:
    return (x + r) * (x + beta) / ((x + 1) * (x + r + alpha + beta))


def _sum_up(first: Array, r: Array, alpha: Array, beta: Array) -> Array:
    """The sum of the masses of a beta negative binomial variable from the first on, in units of it.

    From a count j on it is the mass of j times j / alpha times the sum of (alpha + beta)_m (alpha + r)_m /
    ((j + r + alpha + beta)_m (1 + alpha)_m), whose terms fall like m^-(j + 1): DLMF 16.4.11,
    https://dlmf.nist.gov/16.4.
    """

    def start(first: Array, r: Array, alpha: Array, beta: Array) -> State:
        term = jnp.where(first >= _LEAST_COUNT, first / alpha, 1)
        return term, term, jnp.ones_like(term)

    def step(i: Array, state: State, first: Array, r: Array, alpha: Array, beta: Array) -> State:
        term, total, _ = state
        x, turn = first + i, jnp.maximum(first, _LEAST_COUNT)
        m = jnp.maximum(x - 1 - turn, 0)
        of_series = (alpha + beta + m) * (alpha + r + m) / ((turn + r + alpha + beta + m) * (1 + alpha + m))
        of_masses = _beta_neg_binomial_ratio(x - 1, r, alpha, beta) * jnp.where(x == turn, x / alpha, 1)
        term = term * jnp.where(x > turn, of_series, of_masses)
        total = total + term
        return term, total, term / total

    return converged(start, step, _MOST_MASSES, (first, r, alpha, beta))


def _sum_down(count: Array, r: Array, alpha: Array, beta: Array) -> Array:
    """The sum of its masses up to a count, in units of that of the count."""

    def ratio(below: Array, count: Array, r: Array, alpha: Array, beta: Array) -> Array:
        x = jnp.maximum(count - below, 1)
        return jnp.where(below < count, 1 / _beta_neg_binomial_ratio(x - 1, r, alpha, beta), 0)

    return _sum_from(ratio, jnp.zeros_like(count), count, r, alpha, beta)


def _sum_from(ratio: Callable[..., Array], first: Array, *parameters: Array) -> Array:
    """The sum of the masses from the first on, in units of it."""

    def start(first: Array, *parameters: Array) -> State:
        return (jnp.ones_like(first),) * 3

    def step(i: Array, state: State, first: Array, *parameters: Array) -> State:
        term, total, _ = state
        term = term * ratio(first + (i - 1), *parameters)
        total = total + term
        return term, total, term / total

    return converged(start, step, _MOST_MASSES, (first, *parameters))
