"""The compiled program of one chain: n iterations a call, from the search for an initial point to the last draw.

    advance(floats, words, factors, inputs) -> (floats, words, rows (cap, 2 d + 7), outputs by name (cap, ...))

A row is a draw, the gradient there, and the statistics of its transition. Outputs are the constrained values of the
rows `first`, `first + stride`, ... of this call. The metric and the rules of the iterations are data, and what is
learned from the rows is worked out on the host, so a run needs one executable. Random numbers are threefry(chain key,
(tick, tag | j)), where tick counts the transitions that the chain has made: how a run was cut into calls cannot change
its draws. Control flow is native (nested while loops), which XLA:CPU compiles into one function when the gradient
allows it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from nutkin.sampler.adaptation import METRIC_RANGE, RUN, SEEK_POINT, Adapted, Step, Tuning, adapt
from nutkin.sampler.counter_rng import normals, threefry_once, uniform, uniform_fine
from nutkin.sampler.transition import Point, build_transition, empty_checkpoints

STATISTICS = ("lp", "energy", "acceptance_rate", "step_size", "tree_depth", "n_steps", "diverging")
MAX_STARTS = 100  # random initial points that are tried before the chain gives up

_TAG_ITERATION, _TAG_JITTER = 1, 4


class State(NamedTuple):
    """All that a chain is between two transitions, but for the factor of a dense metric. With one, the gradient is that
    by the coordinates y of position + factor y, in which the metric is diagonal."""

    point: Point
    key: jax.Array  # uint32 (2,)
    tick: jax.Array  # uint32: transitions made so far, those of searches included
    gradients: jax.Array  # uint32: leapfrog steps so far, modulo 2^32
    adapted: Adapted


class Control(NamedTuple):
    """What a call shall do, all integers. Outputs are made of the rows first, first + stride, ... below n."""

    n: int = 0
    depth_cap: int = 0
    tune: int = 0  # 1: every iteration updates the step size
    first: int = 0
    stride: int = 1


def initial_state(dimension: int, seed: int, chain: int, centre: np.ndarray, dtype: np.dtype) -> State:
    """A chain that has not begun: `centre` (d,) is the middle of its random starts."""
    zero, zeros = dtype.type(0), np.zeros(dimension, dtype)
    key = np.random.SeedSequence(seed, spawn_key=(chain,)).generate_state(2)
    step = Step(dtype.type(1), zero, zero, zero, zero)
    adapted = Adapted(np.int32(SEEK_POINT), np.ones(dimension, dtype), step)
    return State(Point(centre.astype(dtype), zeros, zero), key, np.uint32(0), np.uint32(0), adapted)


def pack(state: State, tuning: Tuning, spread: Any, control: Control, xp) -> tuple[Any, Any]:
    """-> (floats (4 d + 12,), words uint32 (10,)): two arguments keep a call cheap. `xp` is numpy or jax.numpy.

    `spread` (d,): half the width of the random starts around the state's position."""
    (q, g, logp), key, tick, gradients, (mode, inverse_mass, step) = state
    floats = xp.concatenate([q, g, inverse_mass, xp.stack([logp, *step, *tuning]).astype(q.dtype), spread])
    counters = xp.stack([xp.asarray(v).astype(np.uint32) for v in (tick, gradients, mode, *control)])
    return floats, xp.concatenate([xp.asarray(key), counters])


def unpack(floats: Any, words: Any) -> tuple[State, Tuning, Any, Control]:
    """The inverse of `pack`: views, if the arrays are numpy's."""
    dimension = (len(floats) - 12) // 4
    q, g, inverse_mass = (floats[i * dimension : (i + 1) * dimension] for i in range(3))
    logp, *numbers = (floats[3 * dimension + i] for i in range(12))
    step, tuning = numbers[:5], Tuning(*numbers[5:])
    adapted = Adapted(words[4].astype(np.int32), inverse_mass, Step(*step))
    control = Control(*(words[5 + i].astype(np.int32) for i in range(5)))
    state = State(Point(q, g, logp), words[:2], words[2], words[3], adapted)
    return state, tuning, floats[3 * dimension + 12 :], control


def write(
    floats: np.ndarray,
    words: np.ndarray,
    *,
    adapted: Adapted | None = None,
    tuning: Tuning | None = None,
    control: Control | None = None,
) -> None:
    """Replaces parts of a packed chain in place."""
    dimension = (len(floats) - 12) // 4
    if adapted is not None:
        floats[2 * dimension : 3 * dimension] = adapted.inverse_mass
        floats[3 * dimension + 1 : 3 * dimension + 6] = adapted.step
        words[4] = adapted.mode
    if tuning is not None:
        floats[3 * dimension + 6 : 3 * dimension + 12] = tuning
    if control is not None:
        words[5:] = control


def _as(dtype, numbers):
    return [jnp.asarray(number).astype(dtype) for number in numbers]


def _repacked(floats: jax.Array, words: jax.Array, state: State) -> tuple[jax.Array, jax.Array]:
    """A packed chain with another state, traced: the rest stays in its place."""
    (q, g, logp), _, *counters, (mode, inverse_mass, step) = state
    dimension = len(q)
    scalars = jnp.stack(_as(floats.dtype, (logp, *step)))
    for part, at in ((q, 0), (g, dimension), (inverse_mass, 2 * dimension), (scalars, 3 * dimension)):
        floats = lax.dynamic_update_slice(floats, part, (at,))
    return floats, lax.dynamic_update_slice(words, jnp.stack(_as(jnp.uint32, (*counters, mode))), (2,))


def _when(flag, function, state):
    """function(state) if flag: a loop of at most one trip stays inside the native function and skips the work."""
    return lax.while_loop(lambda c: c[0], lambda c: (jnp.bool_(False), function(c[1])), (flag, state))[1]


def _product(transposed, vector):
    """transposed^T @ vector, without a dot: that would keep the loop from being compiled into one function. The sum is
    over the first axis, so that it runs over whole rows."""
    return jnp.sum(transposed * vector[:, None], axis=0)


def _start_radius(tick):
    """Of the try with this number: every other one comes closer to the centre, where a far start is not finite."""
    closer = 1.0 / jnp.left_shift(jnp.int32(1), (tick >> 3).astype(jnp.int32) & 15).astype(jnp.float64)
    return jnp.where((tick & 1) == 1, closer, 1.0)


def build_advance(
    log_density: Callable[..., jax.Array],
    outputs: Callable[..., Mapping[str, jax.Array]],
    dimension: int,
    max_depth: int,
    capacity: int,
    *,
    dense: bool = False,
) -> Callable[..., tuple[jax.Array, jax.Array, jax.Array, Mapping[str, jax.Array]]]:
    """-> advance, to be jitted. `log_density(position, inputs)`, `outputs(position, inputs)`; `capacity` is the most
    iterations of one call. A `dense` program takes the factor of the metric and its transpose, (2, d, d), as
    `factors`; else they are None.

    The carry of the loop is as packed as its arguments: what is unpacked outside of it costs a call 0.1 ms."""

    def advance(floats, words, factors, inputs):
        dtype = floats.dtype
        value_and_gradient = jax.value_and_grad(lambda q: log_density(q, inputs))

        def around(origin):
            """The log density by y, at origin + factor y, with its gradient."""

            def at(y):
                value, gradient = value_and_gradient(origin + _product(factors[1], y))
                return value, _product(factors[0], gradient)

            return at

        def iteration(carry):
            i, floats, words, rows, checkpoints = carry
            state, tuning, spread, control = unpack(floats, words)
            mode = state.adapted.mode
            running, seeking = mode == RUN, mode == SEEK_POINT
            key = (state.key[0], state.key[1])

            def rng(tag, j):
                return threefry_once(key, (state.tick, jnp.uint32(tag << 24) + j.astype(jnp.uint32)))

            pairs = 2 * ((dimension + 1) // 2)
            uniforms = uniform_fine(*rng(_TAG_ITERATION, lax.iota(jnp.uint32, pairs)))
            shift = spread * (_start_radius(state.tick) * (2.0 * uniforms[:dimension] - 1.0)).astype(dtype)
            origin = state.point.position + jnp.where(seeking, shift, 0.0)
            point = state.point._replace(position=jnp.zeros_like(origin) if dense else origin)
            density = around(origin) if dense else value_and_gradient
            transition = build_transition(density, dimension, max_depth)
            jitter = jnp.where(running, tuning.jitter, 0.0) * (2.0 * uniform(rng(_TAG_JITTER, jnp.uint32(0))[0]) - 1.0)
            size = jnp.where(seeking, 0.0, state.adapted.step.size * (1.0 + jitter)).astype(dtype)
            cap = jnp.where(running, control.depth_cap, 1)
            outcome = transition(
                point, normals(uniforms, dimension), rng, size, state.adapted.inverse_mass, cap, seeking, checkpoints
            )

            new = outcome.point
            if dense:
                new = new._replace(position=origin + _product(factors[1], new.position))
            # A start that was given may lie where the gradient vanishes: it says nothing of the scale there.
            scale_gradient = jnp.where(spread > 0, new.gradient, 1.0)
            found = outcome.moved & jnp.isfinite(new.logp) & jnp.all(jnp.isfinite(new.gradient))
            # Where the gradient is beyond any metric, no step is small enough: another start is better.
            found = found & jnp.all(jnp.abs(scale_gradient) * METRIC_RANGE[0] < 1.0)
            fail = seeking & ~found  # the next try starts from the same centre
            new = Point(
                jnp.where(fail, state.point.position, new.position),
                jnp.where(fail, 0.0, new.gradient),
                jnp.where(fail, 0.0, new.logp),
            )
            acceptance = outcome.acceptance.astype(dtype)
            tune = control.tune != 0
            adapted = _when(
                ~running | tune,
                lambda a: adapt(a, found, scale_gradient, acceptance, tune, tuning),
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
            # Each part is written in its place: joined first, a row would be chosen from them number by number.
            for part, at in (
                (new.position, 0),
                (new.gradient, dimension),
                (jnp.stack(_as(jnp.float64, numbers)), 2 * dimension),
            ):
                rows = lax.dynamic_update_slice(rows, part.astype(rows.dtype)[None], (i, jnp.int32(at)))
            state = State(
                new,
                state.key,
                state.tick + jnp.uint32(1),
                state.gradients + outcome.leaves.astype(jnp.uint32),
                adapted,
            )
            floats, words = _repacked(floats, words, state)
            return i + running.astype(jnp.int32), floats, words, rows, outcome.checkpoints

        def more(carry):
            state, _, _, control = unpack(*carry[1:3])
            return (carry[0] < control.n) & ((state.adapted.mode != SEEK_POINT) | (state.tick < MAX_STARTS))

        _, floats, words, rows, _ = lax.while_loop(
            more,
            iteration,
            (
                jnp.int32(0),
                floats,
                words,
                jnp.zeros((capacity, 2 * dimension + len(STATISTICS)), jnp.float64),
                empty_checkpoints(dimension, max_depth, dtype),
            ),
        )
        return floats, words, rows, _outputs(rows, unpack(floats, words)[3], inputs, dtype)

    def _outputs(rows, control: Control, inputs, dtype):
        """Row by row, so that no value depends on its place in the chunk."""
        shapes = jax.eval_shape(outputs, jnp.zeros(dimension, dtype), inputs)
        empty = {name: jnp.zeros((capacity, *s.shape), s.dtype) for name, s in shapes.items()}

        def body(carry):
            i, k, buffers = carry
            position = lax.dynamic_slice(rows, (i, jnp.int32(0)), (1, dimension))[0].astype(dtype)
            values = outputs(position, inputs)
            filled = {name: lax.dynamic_update_index_in_dim(buffers[name], values[name], k, 0) for name in buffers}
            return i + control.stride, k + 1, filled

        return lax.while_loop(lambda c: c[0] < control.n, body, (control.first, jnp.int32(0), empty))[2]

    return advance
