"""The compiled program of a chain: n iterations a call, from the search for an initial point to the last draw.

    advance(packed (slots, 22 + 4 d), factors, inputs) -> (packed, rows (capacity, 2 d + 7), blocks (capacity, ...))

`packed` holds chains as `nutkin.sampler.state` packs them; a call advances one after the other, up to the first slot
with n = 0. A row is a draw, the gradient there, and the statistics of its transition. The blocks are the constrained
values of the rows `first`, `first + stride`, ... of each chain, as `nutkin.sampler.output_blocks` joins them. Rows and
values of the chains follow each other without gaps. The metric and the rules of the iterations are data, and what is
learned from the rows is worked out on the host, so a run needs one executable. Random numbers are threefry(chain key,
(tick, tag | j)), where tick counts the transitions that the chain has made: how a run was cut into calls cannot change
its draws.

Control flow is native (nested while loops), which XLA:CPU compiles into one function when the gradient allows it. All
of it is in the loop over chains: what XLA runs as steps of their own ahead of a loop costs each call, and it hands more
than eight of them to other threads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from nutkin.sampler.adaptation import METRIC_RANGE, RUN, SEEK_POINT, adapt
from nutkin.sampler.counter_rng import normals, uniform
from nutkin.sampler.output_blocks import OutputBlocks
from nutkin.sampler.starts import MAX_STARTS, start_shift, uniforms_of, words_of
from nutkin.sampler.state import Control, State, iterations, pack, unpack_typed
from nutkin.sampler.transition import Point, build_transition, empty_checkpoints

STATISTICS = ("lp", "energy", "acceptance_rate", "step_size", "tree_depth", "n_steps", "diverging")

_TAG_JITTER = 4


class _Call(NamedTuple):
    """Where a call is. `at`: (3,), the chain that it advances, and how many rows and kept draws it has written."""

    at: jax.Array
    packed: jax.Array
    rows: jax.Array
    buffers: dict[str, jax.Array]
    constants: Any


def _when(flag, function, state):
    """function(state) if flag: a loop of at most one trip stays inside the native function and skips the work."""
    return lax.while_loop(lambda c: c[0], lambda c: (jnp.bool_(False), function(c[1])), (flag, state))[1]


def _product(transposed, vector):
    """transposed^T @ vector, without a dot: that would keep the loop from being compiled into one function. The sum is
    over the first axis, so that it runs over whole rows."""
    return jnp.sum(transposed * vector[:, None], axis=0)


def build_advance(
    log_density: Callable[..., jax.Array],
    outputs: Callable[..., Mapping[str, jax.Array]],
    blocks: OutputBlocks,
    dimension: int,
    dtype: Any,
    max_depth: int,
    capacity: int,
    *,
    dense: bool = False,
) -> Callable[..., tuple[jax.Array, jax.Array, Mapping[str, jax.Array]]]:
    """-> advance, to be jitted. `log_density(position, inputs)` and `outputs(position, inputs)` are of `dtype`;
    `blocks` says where the outputs go; `capacity` is the most iterations of one call, those of all its chains. A
    `dense` program takes the factor of the metric and its transpose, (2, d, d), as `factors`; else they are None."""

    def advance(packed, factors, inputs):
        def of_chain(call: _Call):
            return lax.dynamic_index_in_dim(call.packed, call.at[0], 0, keepdims=False)

        def one(call: _Call):
            index, row, kept = call.at
            factors, inputs = call.constants
            state, tuning, spread, control = unpack_typed(of_chain(call), dtype)
            state, rows = iterate(state, call.rows, row, tuning, spread, control, factors, inputs)
            kept, buffers = fill(call.buffers, kept, rows, row, control, inputs)
            packed = pack(state, tuning, spread, control, jnp)
            return _Call(
                jnp.stack([index + 1, row + control.n, kept]),
                lax.dynamic_update_index_in_dim(call.packed, packed, index, 0),
                rows,
                buffers,
                lax.optimization_barrier(call.constants),  # else XLA moves work on the data out of this loop
            )

        def more(call: _Call):
            return (call.at[0] < len(packed)) & (iterations(of_chain(call)) > 0)

        rows = jnp.zeros((capacity, 2 * dimension + len(STATISTICS)), jnp.float64)
        call = _Call(jnp.zeros(3, jnp.int32), packed, rows, blocks.empty(capacity), (factors, inputs))
        call = lax.while_loop(more, one, call)
        return call.packed, call.rows, call.buffers

    def iterate(state, rows, first_row, tuning, spread, control: Control, factors, inputs):
        value_and_gradient = jax.value_and_grad(lambda q: log_density(q, inputs))

        def around(origin):
            """The log density by y, at origin + factor y, with its gradient."""

            def at(y):
                value, gradient = value_and_gradient(origin + _product(factors[1], y))
                return value, _product(factors[0], gradient)

            return at

        def iteration(carry):
            i, state, rows, checkpoints = carry
            mode = state.adapted.mode
            running, seeking = mode == RUN, mode == SEEK_POINT

            rng = words_of(state.key, state.tick)
            uniforms = uniforms_of(rng, dimension)
            shift = start_shift(uniforms[:dimension], state.tick, spread)
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
                (jnp.stack([jnp.asarray(number).astype(jnp.float64) for number in numbers]), 2 * dimension),
            ):
                rows = lax.dynamic_update_slice(rows, part.astype(rows.dtype)[None], (first_row + i, jnp.int32(at)))
            state = State(
                new,
                state.key,
                state.tick + jnp.uint32(1),
                state.gradients + outcome.leaves.astype(jnp.uint32),
                adapted,
            )
            return i + running.astype(jnp.int32), state, rows, outcome.checkpoints

        def more(carry):
            i, state = carry[:2]
            return (i < control.n) & ((state.adapted.mode != SEEK_POINT) | (state.tick < MAX_STARTS))

        carry = (jnp.int32(0), state, rows, empty_checkpoints(dimension, max_depth, dtype))
        return lax.while_loop(more, iteration, carry)[1:3]

    def fill(buffers, kept, rows, first_row, control: Control, inputs):
        """Row by row, so that no value depends on its place in the call."""

        def body(carry):
            i, kept, buffers = carry
            position = lax.dynamic_slice(rows, (first_row + i, jnp.int32(0)), (1, dimension))[0].astype(dtype)
            values = blocks.joined(outputs(position, inputs))
            filled = {name: lax.dynamic_update_index_in_dim(buffers[name], values[name], kept, 0) for name in buffers}
            return i + control.stride, kept + 1, filled

        return lax.while_loop(lambda carry: carry[0] < control.n, body, (control.first, kept, buffers))[1:]

    return advance
