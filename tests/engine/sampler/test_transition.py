"""The loops of a transition against a recursive one, written as Stan's paper trees are: exactly, tree by tree."""

from __future__ import annotations

from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
import numpy as np

from nutkin.sampler.counter_rng import threefry
from nutkin.sampler.transition import TAG_DOUBLING, Point, build_transition, empty_checkpoints

DIMENSION, DEPTH, CASES = 4, 8, 1000

_FACTOR = np.random.default_rng(0).normal(size=(DIMENSION, DIMENSION))
PRECISION = _FACTOR @ _FACTOR.T + 0.1 * np.eye(DIMENSION)


def log_density(q):
    return -0.5 * q @ PRECISION @ q - 0.05 * (q**4).sum()


def gradient(q):
    return -PRECISION @ q - 0.2 * q**3


@jax.jit
def compiled(q, normals, seed, step, inverse_mass):
    """-> the outcome of the transition, and the direction of each doubling."""
    transition = build_transition(jax.value_and_grad(log_density), DIMENSION, DEPTH)

    def rng(tag, j):
        return threefry((seed, jnp.uint32(7)), (jnp.uint32(1), jnp.uint32(tag << 24) + j.astype(jnp.uint32)))

    value, slope = jax.value_and_grad(log_density)(q)
    checkpoints = empty_checkpoints(DIMENSION, DEPTH, jnp.float64)
    point = Point(q, slope, value)
    outcome = transition(point, normals, rng, step, inverse_mass, jnp.int32(DEPTH), jnp.bool_(False), checkpoints)
    return outcome, jnp.stack([rng(TAG_DOUBLING, jnp.int32(j))[0] & 1 for j in range(DEPTH)])


@dataclass
class Leapfrog:
    """One end of a trajectory, which moves when it is stepped; all ends of a tree share its leaves."""

    q: np.ndarray
    p: np.ndarray


@dataclass
class Recursive:
    """The algorithm as defined. A subtree is (first momentum, last momentum, sum of momenta), or None if it stopped."""

    step: float
    inverse_mass: np.ndarray
    energy: float
    positions: list[np.ndarray] = field(default_factory=list)
    acceptances: list[float] = field(default_factory=list)
    energies: list[float] = field(default_factory=list)
    diverging: bool = False

    def persists(self, first, last, total):
        return min((self.inverse_mass * total) @ first, (self.inverse_mass * total) @ last) > 0

    def joined(self, a, b):
        """The tree of two halves, unless it or the junction of its halves turns."""
        whole = self.persists(a[0], b[1], a[2] + b[2])
        first, second = self.persists(a[0], b[0], a[2] + b[0]), self.persists(a[1], b[1], b[2] + a[1])
        return (a[0], b[1], a[2] + b[2]) if whole and first and second else None

    def grow(self, depth, sign, end):
        if depth > 0:
            a = self.grow(depth - 1, sign, end)
            b = a and self.grow(depth - 1, sign, end)
            return b and self.joined(a, b)
        half = end.p + 0.5 * sign * self.step * gradient(end.q)
        end.q = end.q + sign * self.step * self.inverse_mass * half
        end.p = half + 0.5 * sign * self.step * gradient(end.q)
        error = 0.5 * (self.inverse_mass * end.p) @ end.p - log_density(end.q) - self.energy
        error = np.inf if np.isnan(error) else error
        self.positions.append(end.q)
        self.energies.append(self.energy + error)
        self.acceptances.append(min(1.0, np.exp(min(0.0, -error))))
        self.diverging = error > 1000
        return None if self.diverging else (end.p, end.p, end.p)


def recursive(q, normals, step, inverse_mass, directions):
    p = normals / np.sqrt(inverse_mass)
    run = Recursive(step, inverse_mass, 0.5 * (inverse_mass * p) @ p - log_density(q))
    ends = {0: Leapfrog(q, p), 1: Leapfrog(q, p)}
    tree, depth = (p, p, p), 0
    for direction in directions:
        depth += 1
        subtree = run.grow(depth - 1, 1 if direction else -1, ends[direction])
        # Seen from the far end, the old tree comes first.
        near_first = (tree[0], tree[1], tree[2]) if direction else (tree[1], tree[0], tree[2])
        both = subtree and run.joined(near_first, subtree)
        if both is None:
            break
        tree = both if direction else (both[1], both[0], both[2])
    return depth, run


def test_trees_are_those_of_the_definition():
    rng = np.random.default_rng(1)
    depths, divergences = set(), 0
    for seed in range(CASES):
        q, normals = rng.normal(size=DIMENSION) * 1.5, rng.normal(size=DIMENSION)
        step, inverse_mass = float(np.exp(rng.uniform(-5, 1.5))), np.exp(rng.normal(size=DIMENSION))
        outcome, directions = compiled(q, normals, jnp.uint32(seed), step, inverse_mass)
        with np.errstate(over="ignore", invalid="ignore"):
            depth, run = recursive(q, normals, step, inverse_mass, [int(d) for d in directions])
        assert (int(outcome.depth), int(outcome.leaves)) == (depth, len(run.positions)), seed
        assert bool(outcome.diverging) == run.diverging
        assert np.isclose(outcome.acceptance, np.mean(run.acceptances), atol=1e-8)
        candidates = np.array([q, *run.positions])
        distances = np.abs(candidates - outcome.point.position).max(1)
        chosen = int(distances.argmin())
        assert distances[chosen] < 1e-8
        assert bool(outcome.moved) == (chosen != 0)
        assert np.isclose(outcome.energy, [run.energy, *run.energies][chosen], atol=1e-7)
        depths.add(depth)
        divergences += run.diverging
    assert depths == set(range(1, DEPTH + 1))
    assert 50 < divergences < CASES / 2
