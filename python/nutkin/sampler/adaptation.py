"""What a chain learns: an initial point, a step size, and a diagonal metric.

Pure functions on the chain's own state, run inside the compiled loop. The step size follows dual averaging (Hoffman and
Gelman 2014, section 3.2); the metric is the variance of the positions, by Welford's sums, shrunk as Stan does.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from nutkin.sampler import schedule

# Modes of a chain, in the order in which it passes through them. A search moves the chain by transitions of one leaf,
# which leave the same target invariant.
SEEK_POINT, SEARCH, SEARCH_UP, SEARCH_DOWN, RUN = 0, 1, 2, 3, 4

_SEARCH_ACCEPTANCE = 0.8
_SMALLEST_STEP, _LARGEST_STEP = 1e-10, 1e4
_METRIC_RANGE = (1e-20, 1e20)
_SHRINK_COUNT, _SHRINK_TO = 5.0, 1e-3


class Tuning(NamedTuple):
    """Numbers that the loop takes as data: another value never recompiles."""

    target_accept: float = 0.8
    gamma: float = 0.05
    t0: float = 10.0
    kappa: float = 0.75
    first_step: float = 0.1  # where the first search begins


class Step(NamedTuple):
    """Step size and dual averaging. All scalars."""

    size: jax.Array
    log_centre: jax.Array
    error_sum: jax.Array
    log_average: jax.Array
    count: jax.Array


class Moments(NamedTuple):
    """Welford's count (scalar), mean (d,) and sum of squared deviations (d,)."""

    count: jax.Array
    mean: jax.Array
    squares: jax.Array


class Adapted(NamedTuple):
    mode: jax.Array
    inverse_mass: jax.Array
    step: Step
    moments: Moments


def add(moments: Moments, x: jax.Array) -> Moments:
    count = moments.count + 1.0
    deviation = x - moments.mean
    mean = moments.mean + deviation / count
    return Moments(count, mean, moments.squares + deviation * (x - mean))


def shrunk_variance(moments: Moments) -> jax.Array:
    """Sample variance pulled towards 1e-3 with the weight of five observations."""
    variance = moments.squares / jnp.maximum(moments.count - 1.0, 1.0)
    weight = _SHRINK_COUNT / (moments.count + _SHRINK_COUNT)
    return (1.0 - weight) * variance + weight * _SHRINK_TO


def _choose(condition: jax.Array, new, old):
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), new, old)


def _usable(metric: jax.Array, otherwise: jax.Array) -> jax.Array:
    return jnp.where((metric > _METRIC_RANGE[0]) & (metric < _METRIC_RANGE[1]), metric, otherwise)


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
    state: Adapted,
    found: jax.Array,
    position: jax.Array,
    gradient: jax.Array,
    acceptance: jax.Array,
    entry: jax.Array,
    tuning: Tuning,
) -> Adapted:
    """The state after one transition.

    `found`: in mode SEEK_POINT, whether the transition reached a point with a finite log density and gradient;
    `gradient`: that of the initial point, 1 where it says nothing of the scale;
    `acceptance`: mean acceptance statistic of the transition; `entry`: the iteration's schedule entry.
    The first metric is 1 / |gradient| at the initial point: a guess of the posterior's scales before any draw exists,
    as nutpie makes it (https://pymc-devs.github.io/nutpie/).
    """
    mode, inverse_mass, step, moments = state
    running = mode == RUN
    seeking = mode == SEEK_POINT
    searching = ~running & ~seeking

    def on(flag: int) -> jax.Array:
        return running & ((entry & flag) != 0)

    # An initial point was found.
    start = seeking & found
    inverse_mass = _usable(jnp.where(start, 1.0 / jnp.abs(gradient), inverse_mass), jnp.ones_like(inverse_mass))
    step = step._replace(size=jnp.where(start, tuning.first_step, step.size))

    # Step-size search: double or halve until the acceptance of one step crosses 0.8.
    up = acceptance > _SEARCH_ACCEPTANCE
    crossed = ((mode == SEARCH_UP) & ~up) | ((mode == SEARCH_DOWN) & up)
    out_of_range = (step.size < _SMALLEST_STEP) | (step.size > _LARGEST_STEP)
    ended = searching & (crossed | out_of_range)
    step = step._replace(size=jnp.where(searching & ~ended, step.size * jnp.where(up, 2.0, 0.5), step.size))
    direction = jnp.where(mode == SEARCH, jnp.where(up, SEARCH_UP, SEARCH_DOWN), mode)

    # A regular iteration of the warmup.
    step = _choose(on(schedule.TUNE_STEP), _averaged(step, acceptance, tuning), step)
    moments = _choose(on(schedule.COLLECT), add(moments, position), moments)
    renew = on(schedule.SET_METRIC)
    inverse_mass = jnp.where(renew, _usable(shrunk_variance(moments), inverse_mass), inverse_mass)
    moments = _choose(renew, jax.tree.map(jnp.zeros_like, moments), moments)
    step = step._replace(size=jnp.where(on(schedule.FIX_STEP), jnp.exp(step.log_average), step.size))
    step = _choose(ended, _restarted(step.size), step)

    mode = jnp.where(start | renew, SEARCH, jnp.where(ended, RUN, direction))
    return Adapted(mode.astype(jnp.int32), inverse_mass, step, moments)
