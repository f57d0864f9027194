"""One transition of multinomial NUTS, written as nested native loops for a single chain.

Algorithm: Hoffman and Gelman 2014 (https://jmlr.org/papers/v15/hoffman14a.html) with multinomial sampling and the
generalised U-turn criterion of Betancourt 2017 (https://arxiv.org/abs/1701.02434), checked also between the halves of
every subtree, as Stan does. A subtree is grown leaf by leaf; the momenta that later U-turn checks need are kept in one
row a level (Phan et al. 2019, https://arxiv.org/abs/1912.11554).

Shapes: d is the number of unconstrained coordinates, K the largest tree depth. Everything has one call site of the
gradient and no batching, so that XLA:CPU can compile the whole into one native function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from nutkin.sampler.counter_rng import uniform
from nutkin.sampler.lane_sum import lane_sum

MAX_ENERGY_ERROR = 1000.0
_MAX_LOG_WEIGHT = 500.0

TAG_DOUBLING, TAG_LEAF = 2, 3

Words = tuple[jax.Array, jax.Array]
Rng = Callable[[int, jax.Array], Words]
LogDensityAndGradient = Callable[[jax.Array], tuple[jax.Array, jax.Array]]


class Point(NamedTuple):
    """A position (d,), the gradient of the log density there (d,), and the log density."""

    position: jax.Array
    gradient: jax.Array
    logp: jax.Array


class Checkpoints(NamedTuple):
    """Momenta kept for the U-turn checks inside a subtree, a row for each level: (K + 1, d) each; row K is spare.

    first: momentum of the even leaf that opened the level; before: momentum of the leaf before it;
    total: sum of the momenta of all leaves up to and including `first`."""

    first: jax.Array
    before: jax.Array
    total: jax.Array


class Outcome(NamedTuple):
    point: Point
    energy: jax.Array  # Hamiltonian of the chosen state
    moved: jax.Array  # bool: the chosen state is not the initial one
    depth: jax.Array
    leaves: jax.Array  # leapfrog steps
    acceptance: jax.Array  # float64, mean over the leaves of min(1, exp(-energy error))
    diverging: jax.Array
    checkpoints: Checkpoints


class _Leaves(NamedTuple):
    """A subtree while it grows: its last leaf, its proposal, and the sums over its leaves."""

    growing: jax.Array
    count: jax.Array
    position: jax.Array  # of the last leaf
    last_momentum: jax.Array
    gradient: jax.Array
    proposal: Point
    log_weight: jax.Array  # of the proposal: minus its energy error
    weight: jax.Array
    momentum: jax.Array
    checkpoints: Checkpoints
    leaves: jax.Array
    acceptance: jax.Array
    diverging: jax.Array
    turning: jax.Array


class _Tree(NamedTuple):
    growing: jax.Array
    depth: jax.Array
    ends: jax.Array  # (2, 3, d): backward and forward end
    proposal: Point
    log_weight: jax.Array
    moved: jax.Array
    weight: jax.Array
    momentum: jax.Array
    leaves: jax.Array
    acceptance: jax.Array
    diverging: jax.Array
    checkpoints: Checkpoints


def empty_checkpoints(dimension: int, max_depth: int, dtype: jnp.dtype) -> Checkpoints:
    rows = jnp.zeros((max_depth + 1, dimension), dtype)
    return Checkpoints(rows, rows, rows)


def takes_subtree(whole: jax.Array, weight: jax.Array, subtree_weight: jax.Array, u: jax.Array) -> jax.Array:
    """Biased progressive sampling between subtrees. A subtree that stopped early must not be taken: the way back to the
    start might not exist from its states."""
    return whole & (u * weight < subtree_weight)


def build_transition(
    log_density_and_gradient: LogDensityAndGradient, dimension: int, max_depth: int
) -> Callable[..., Outcome]:
    """-> transition(point, normals, rng, step_size, inverse_mass, depth_cap, accept_any, checkpoints) -> Outcome.

    `rng(tag, j)` gives two random words of this transition; `accept_any` takes the first leaf whatever the energy at
    the start is, if the leaf's log density is finite: how an initial point is tried."""

    def row(rows: jax.Array, index: jax.Array) -> jax.Array:
        return lax.dynamic_index_in_dim(rows, index, 0, keepdims=False)

    def set_row(rows: jax.Array, value: jax.Array, index: jax.Array) -> jax.Array:
        return lax.dynamic_update_slice(rows, value[None], (index, jnp.int32(0)))

    def transition(point, normals, rng: Rng, step_size, inverse_mass, depth_cap, accept_any, checkpoints) -> Outcome:
        dtype = point.position.dtype

        def energy(logp, p):
            # Energies and weights are float64 whatever the precision of the model: exp(500) is no float32.
            return (0.5 * lane_sum(inverse_mass * p * p)).astype(jnp.float64) - logp.astype(jnp.float64)

        def turns(p_first, p_last, total):
            """The generalised criterion on one segment of the trajectory."""
            rho = inverse_mass * total
            return (lane_sum(rho * p_first) <= 0) | (lane_sum(rho * p_last) <= 0)

        def halves_turn(first, last_of_first, first_of_second, last, total_first, total_second):
            """The criterion on a tree, and on each half with the nearest leaf of the other."""
            return (
                turns(first, last, total_first + total_second)
                | turns(first, first_of_second, total_first + first_of_second)
                | turns(last_of_first, last, total_second + last_of_first)
            )

        momentum = (normals / jnp.sqrt(inverse_mass)).astype(dtype)
        initial_energy = jnp.where(accept_any, jnp.inf, energy(point.logp, momentum))

        def grow_leaf(direction_step, stop):
            def leaf(s: _Leaves) -> _Leaves:
                e = direction_step
                p_half = s.last_momentum + 0.5 * e * s.gradient
                q = s.position + e * (inverse_mass * p_half)
                logp, g = log_density_and_gradient(q)
                p = p_half + 0.5 * e * g
                log_weight = initial_energy - energy(logp, p)
                # A density of infinity is a pole of the model or an overflow: whoever enters it never leaves.
                log_weight = jnp.where(jnp.isnan(log_weight) | (logp == jnp.inf), -jnp.inf, log_weight)
                diverging = log_weight < -MAX_ENERGY_ERROR
                # Linear weights need one exp a leaf. They are relative to the start: the cap is met only far in a tail.
                w = jnp.exp(jnp.minimum(log_weight, _MAX_LOG_WEIGHT))
                weight = s.weight + w
                word, _ = rng(TAG_LEAF, s.leaves)
                take = uniform(word) * weight < w
                proposal = jax.tree.map(lambda new, old: jnp.where(take, new, old), Point(q, g, logp), s.proposal)
                total = s.momentum + p

                odd = (s.count & 1) == 1
                level = lax.population_count(s.count >> 1)
                lowest = level - lax.population_count(s.count ^ (s.count + 1)) + 2
                at = jnp.where(odd, jnp.int32(max_depth), level)
                saved = Checkpoints(
                    set_row(s.checkpoints.first, p, at),
                    set_row(s.checkpoints.before, s.last_momentum, at),
                    set_row(s.checkpoints.total, total, at),
                )

                def check(c):
                    """Level k ends at this leaf. Its second half opened at row k + 1; for a pair that is this leaf."""
                    k, _, second_first, first_last, second_before = c
                    first, before_total = row(saved.first, k), row(saved.total, k)
                    opening = before_total - first  # all leaves before the segment
                    turning = halves_turn(
                        first, first_last, second_first, p, second_before - opening, total - second_before
                    )
                    return k - 1, turning, first, row(saved.before, k), opening

                more = lambda c: (c[0] >= lowest) & ~c[1] & odd  # noqa: E731
                turning = lax.while_loop(more, check, (level, jnp.bool_(False), p, s.last_momentum, s.momentum))[1]

                count = s.count + 1
                return _Leaves(
                    ~turning & ~diverging & (count < stop),
                    count,
                    q,
                    p,
                    g,
                    proposal,
                    jnp.where(take, log_weight, s.log_weight),
                    weight,
                    total,
                    saved,
                    s.leaves + 1,
                    s.acceptance + jnp.minimum(1.0, w),
                    diverging,
                    turning,
                )

            return leaf

        def doubling(t: _Tree) -> _Tree:
            word_direction, word_take = rng(TAG_DOUBLING, t.depth)
            forward = (word_direction & 1).astype(jnp.int32)
            end = row(t.ends, forward)
            start = _Leaves(
                jnp.bool_(True),
                jnp.int32(0),
                *end,
                t.proposal,
                t.log_weight,
                jnp.zeros((), t.weight.dtype),
                jnp.zeros_like(t.momentum),
                t.checkpoints,
                t.leaves,
                t.acceptance,
                jnp.bool_(False),
                jnp.bool_(False),
            )
            signed = step_size * jnp.where(forward == 1, 1.0, -1.0).astype(dtype)
            s = lax.while_loop(lambda s: s.growing, grow_leaf(signed, jnp.left_shift(jnp.int32(1), t.depth)), start)

            whole = ~s.diverging & ~s.turning
            take = takes_subtree(whole, t.weight, s.weight, uniform(word_take))
            proposal = jax.tree.map(lambda new, old: jnp.where(take, new, old), s.proposal, t.proposal)
            last = jnp.stack([s.position, s.last_momentum, s.gradient])
            ends = lax.dynamic_update_slice(t.ends, last[None], (forward, jnp.int32(0), jnp.int32(0)))
            far_end = row(t.ends, 1 - forward)
            turning = halves_turn(far_end[1], end[1], s.checkpoints.first[0], s.last_momentum, t.momentum, s.momentum)
            return _Tree(
                whole & ~turning & (t.depth + 1 < depth_cap),
                t.depth + 1,
                ends,
                proposal,
                jnp.where(take, s.log_weight, t.log_weight),
                t.moved | take,
                t.weight + s.weight,
                t.momentum + s.momentum,
                s.leaves,
                s.acceptance,
                s.diverging,
                s.checkpoints,
            )

        end = jnp.stack([point.position, momentum, point.gradient])
        zero = jnp.zeros_like(initial_energy)
        tree = lax.while_loop(
            lambda t: t.growing,
            doubling,
            _Tree(
                jnp.bool_(True),
                jnp.int32(0),
                jnp.stack([end, end]),
                point,
                zero,
                jnp.bool_(False),
                zero + 1.0,
                momentum,
                jnp.int32(0),
                zero,
                jnp.bool_(False),
                checkpoints,
            ),
        )
        return Outcome(
            tree.proposal,
            initial_energy - tree.log_weight,
            tree.moved,
            tree.depth,
            tree.leaves,
            tree.acceptance / tree.leaves,
            tree.diverging,
            tree.checkpoints,
        )

    return transition
