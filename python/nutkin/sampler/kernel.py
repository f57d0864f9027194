"""The compiled loop of one chain: n iterations a call, from the search for an initial point to the last draw.

    advance(floats, words, tuning, spread, schedule, n, inputs) -> (floats, words, draws (cap, d), statistics (cap, 7))

All that tells warmup from sampling is in the schedule, so a run needs one executable. Random numbers are
threefry(chain key, (tick, tag | j)), where tick counts the transitions that the chain has made: how a run was cut into
calls cannot change its draws. Control flow is native (nested while loops), which XLA:CPU compiles into one function
when the gradient allows it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from nutkin.sampler import schedule
from nutkin.sampler.adaptation import RUN, SEEK_POINT, Adapted, Moments, Step, Tuning, adapt
from nutkin.sampler.counter_rng import normals, threefry, uniform_fine
from nutkin.sampler.transition import Point, build_transition, empty_checkpoints

STATISTICS = ("lp", "energy", "acceptance_rate", "step_size", "tree_depth", "n_steps", "diverging")
MAX_STARTS = 100  # random initial points that are tried before the chain gives up

_TAG_ITERATION = 1


class State(NamedTuple):
    """All that a chain is between two transitions."""

    point: Point
    key: jax.Array  # uint32 (2,)
    tick: jax.Array  # uint32: transitions made so far, those of searches included
    gradients: jax.Array  # uint32: leapfrog steps so far, modulo 2^32
    adapted: Adapted


def initial_state(dimension: int, seed: int, chain: int, centre: np.ndarray, dtype: np.dtype) -> State:
    """A chain that has not begun: `centre` (d,) is the middle of its random starts."""
    zero, zeros = dtype.type(0), np.zeros(dimension, dtype)
    key = np.random.SeedSequence(seed, spawn_key=(chain,)).generate_state(2)
    step = Step(dtype.type(1), zero, zero, zero, zero)
    adapted = Adapted(np.int32(SEEK_POINT), np.ones(dimension, dtype), step, Moments(zero, zeros, zeros))
    return State(Point(centre.astype(dtype), zeros, zero), key, np.uint32(0), np.uint32(0), adapted)


def pack(state: State, xp):
    """State -> (floats (5 d + 7,), words uint32 (5,)): few arguments keep a call cheap. `xp` is numpy or jax.numpy."""
    (q, g, logp), key, tick, gradients, (mode, inverse_mass, step, moments) = state
    scalars = xp.stack([logp, *step, moments.count])
    floats = xp.concatenate([q, g, inverse_mass, moments.mean, moments.squares, scalars])
    counters = xp.stack([xp.asarray(v).astype(np.uint32) for v in (tick, gradients, mode)])
    return floats, xp.concatenate([xp.asarray(key), counters])


def unpack(floats, words, dimension: int) -> State:
    """The inverse of `pack`."""
    q, g, inverse_mass, mean, squares = (floats[i * dimension : (i + 1) * dimension] for i in range(5))
    logp, *step, count = (floats[5 * dimension + i] for i in range(7))
    adapted = Adapted(words[4].astype(np.int32), inverse_mass, Step(*step), Moments(count, mean, squares))
    return State(Point(q, g, logp), words[:2], words[2], words[3], adapted)


def _when(flag, function, state):
    """function(state) if flag: a loop of at most one trip stays inside the native function and skips the work."""
    return lax.while_loop(lambda c: c[0], lambda c: (jnp.bool_(False), function(c[1])), (flag, state))[1]


def build_advance(
    log_density: Callable[..., jax.Array], dimension: int, max_depth: int, capacity: int
) -> Callable[..., tuple[jax.Array, jax.Array, jax.Array, jax.Array]]:
    """-> advance, to be jitted. `log_density(position, inputs)`; `capacity` is the most iterations of one call."""

    def advance(floats, words, tuning, spread, entries, n, inputs):
        dtype = floats.dtype
        tuning = Tuning(*(tuning[i] for i in range(len(Tuning._fields))))
        transition = build_transition(jax.value_and_grad(lambda q: log_density(q, inputs)), dimension, max_depth)

        def iteration(carry):
            i, state, draws, statistics, checkpoints = carry
            mode = state.adapted.mode
            running, seeking = mode == RUN, mode == SEEK_POINT
            key = (state.key[0], state.key[1])

            def rng(tag, j):
                return threefry(key, (state.tick, jnp.uint32(tag << 24) + j.astype(jnp.uint32)))

            pairs = 2 * ((dimension + 1) // 2)
            uniforms = uniform_fine(*rng(_TAG_ITERATION, lax.iota(jnp.uint32, pairs)))
            start = state.point.position + spread * (2.0 * uniforms[:dimension] - 1.0).astype(dtype)
            point = state.point._replace(position=jnp.where(seeking, start, state.point.position))
            size = jnp.where(seeking, 0.0, state.adapted.step.size).astype(dtype)
            cap = jnp.where(running, schedule.depth_cap(entries[i]), 1)
            outcome = transition(
                point, normals(uniforms, dimension), rng, size, state.adapted.inverse_mass, cap, seeking, checkpoints
            )

            new = outcome.point
            found = outcome.moved & jnp.isfinite(new.logp) & jnp.all(jnp.isfinite(new.gradient))
            fail = seeking & ~found  # the next try starts from the same centre
            new = Point(
                jnp.where(fail, state.point.position, new.position),
                jnp.where(fail, 0.0, new.gradient),
                jnp.where(fail, 0.0, new.logp),
            )
            acceptance = outcome.acceptance.astype(dtype)
            # A start that was given may lie where the gradient vanishes: it says nothing of the scale there.
            scale_gradient = jnp.where(spread > 0, new.gradient, 1.0)
            adapted = _when(
                ~running | ((entries[i] & schedule.FLAGS) != 0),
                lambda a: adapt(a, found, new.position, scale_gradient, acceptance, entries[i], tuning),
                state.adapted,
            )
            numbers = (
                new.logp,
                outcome.energy,
                outcome.acceptance,
                size,
                outcome.depth,
                outcome.leaves,
                outcome.diverging,
            )
            row = jnp.stack([jnp.asarray(v).astype(statistics.dtype) for v in numbers])
            draws = lax.dynamic_update_slice(draws, new.position[None], (i, jnp.int32(0)))
            statistics = lax.dynamic_update_slice(statistics, row[None], (i, jnp.int32(0)))
            state = State(
                new,
                state.key,
                state.tick + jnp.uint32(1),
                state.gradients + outcome.leaves.astype(jnp.uint32),
                adapted,
            )
            return i + running.astype(jnp.int32), state, draws, statistics, outcome.checkpoints

        def more(carry):
            state = carry[1]
            return (carry[0] < n) & ((state.adapted.mode != SEEK_POINT) | (state.tick < MAX_STARTS))

        _, state, draws, statistics, _ = lax.while_loop(
            more,
            iteration,
            (
                jnp.int32(0),
                unpack(floats, words, dimension),
                jnp.zeros((capacity, dimension), dtype),
                jnp.zeros((capacity, len(STATISTICS)), jnp.float64),
                empty_checkpoints(dimension, max_depth, dtype),
            ),
        )
        return *pack(state, jnp), draws, statistics

    return advance
