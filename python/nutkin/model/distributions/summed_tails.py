"""Both tails of counts that have no other form than sums of masses: beta-binomial and hypergeometric.

The tail on the far side of the mean is summed from its first mass outwards, as ratios of neighbouring masses, until
nothing changes it; all terms are positive. The other one is its complement.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from nutkin.model.distributions.counts import BETA_BINOMIAL, hypergeometric_kernel
from nutkin.model.incomplete import State, Tails, at_the_ends, both_tails, converged, tails_derivative
from nutkin.model.native.elementary import log

# As many steps take a second.
_MOST_MASSES = 1e6


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


@jax.custom_jvp
def _beta_binomial(n: Array, alpha: Array, beta: Array, count: Array) -> Tails:
    arguments = n, alpha, beta, count
    return both_tails(_smaller_beta_binomial(*arguments), _is_lower_beta_binomial(*arguments))


@jax.custom_jvp
def _hypergeometric(population: Array, k: Array, n: Array, count: Array) -> Tails:
    arguments = population, k, n, count
    return both_tails(_smaller_hypergeometric(*arguments), _is_lower_hypergeometric(*arguments))


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


def _by_count(*arguments: Array) -> Array:
    """No log density: a tail is flat between counts."""
    return jnp.full_like(arguments[-1], -np.inf)


_beta_binomial.defjvp(tails_derivative(_smaller_beta_binomial, _is_lower_beta_binomial, _by_count), symbolic_zeros=True)
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
