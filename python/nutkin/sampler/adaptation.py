"""What a chain does by itself between two windows' ends: find an initial point, and tune its step size.

Pure functions on the chain's own state, run inside the compiled loop. The step size follows dual averaging (Hoffman and
Gelman 2014, section 3.2). The metric is learned on the host, at the ends of the warmup's windows.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

# Modes of a chain, in the order in which it passes through them. A search moves the chain by transitions of one leaf,
# which leave the same target invariant.
SEEK_POINT, SEARCH, SEARCH_UP, SEARCH_DOWN, RUN = 0, 1, 2, 3, 4

_SEARCH_ACCEPTANCE = 0.8
_SMALLEST_STEP, _LARGEST_STEP = 1e-10, 1e4
METRIC_RANGE = (1e-20, 1e20)


class Tuning(NamedTuple):
    """Numbers that the loop takes as data: another value never recompiles."""

    target_accept: float = 0.8
    gamma: float = 0.05
    t0: float = 10.0
    kappa: float = 0.75
    first_step: float = 0.1  # where the first search begins
    jitter: float = 0.0  # each transition's step is the tuned one times a uniform number in (1 - jitter, 1 + jitter)


class Step(NamedTuple):
    """Step size and dual averaging. All scalars."""

    size: jax.Array
    log_centre: jax.Array
    error_sum: jax.Array
    log_average: jax.Array
    count: jax.Array


class Adapted(NamedTuple):
    mode: jax.Array
    inverse_mass: jax.Array
    step: Step


def _choose(condition: jax.Array, new, old):
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), new, old)


def _restarted(size: jax.Array) -> Step:
    zero = jnp.zeros_like(size)
    return Step(size, jnp.log(10.0 * size), zero, jnp.log(size), zero)


def _averaged(step: Step, acceptance: jax.Array, tuning: Tuning) -> Step:
    count = step.count + 1.0
    weight = 1.0 / (count + tuning.t0)
    error = (1.0 - weight) * step.error_sum + weight * (tuning.target_accept - acceptance)
    log_size = step.log_centre - jnp.sqrt(count) / tuning.gamma * error
    forget = jnp.exp(-tuning.kappa * jnp.log(count))
    average = forget * log_size + (1.0 - forget) * step.log_average
    return Step(jnp.exp(log_size), step.log_centre, error, average, count)


def adapt(
    state: Adapted, found: jax.Array, gradient: jax.Array, acceptance: jax.Array, tune: jax.Array, tuning: Tuning
) -> Adapted:
    """The state after one transition.

    `found`: in mode SEEK_POINT, whether the transition reached a point with a finite log density and gradient;
    `gradient`: that of the initial point, 1 where it says nothing of the scale;
    `acceptance`: mean acceptance statistic of the transition; `tune`: whether this iteration updates the step size.
    The first metric is 1 / |gradient| at the initial point: a guess of the posterior's scales before any draw exists,
    as nutpie makes it (https://pymc-devs.github.io/nutpie/).
    """
    mode, inverse_mass, step = state
    seeking = mode == SEEK_POINT
    searching = (mode != RUN) & ~seeking

    # An initial point was found.
    start = seeking & found
    guess = 1.0 / jnp.abs(gradient)
    usable = (guess > METRIC_RANGE[0]) & (guess < METRIC_RANGE[1])
    inverse_mass = jnp.where(start, jnp.where(usable, guess, 1.0), inverse_mass).astype(inverse_mass.dtype)
    step = step._replace(size=jnp.where(start, tuning.first_step, step.size))

    # Step-size search: double or halve until the acceptance of one step crosses 0.8.
    up = acceptance > _SEARCH_ACCEPTANCE
    crossed = ((mode == SEARCH_UP) & ~up) | ((mode == SEARCH_DOWN) & up)
    out_of_range = (step.size < _SMALLEST_STEP) | (step.size > _LARGEST_STEP)
    ended = searching & (crossed | out_of_range)
    step = step._replace(size=jnp.where(searching & ~ended, step.size * jnp.where(up, 2.0, 0.5), step.size))
    direction = jnp.where(mode == SEARCH, jnp.where(up, SEARCH_UP, SEARCH_DOWN), mode)

    # A regular iteration of the warmup.
    step = _choose((mode == RUN) & tune, _averaged(step, acceptance, tuning), step)
    step = _choose(ended, _restarted(step.size), step)

    mode = jnp.where(start, SEARCH, jnp.where(ended, RUN, direction))
    return Adapted(mode.astype(jnp.int32), inverse_mass, step)
