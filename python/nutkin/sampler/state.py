"""The state of a chain, and the one vector that holds it with the orders for a call of its program.

A call costs less the fewer arrays cross into and out of XLA, so all of it is float64 (22 + 4 d,), in which integers of
32 bits and numbers of float32 are exact: 22 numbers in the order of the fields below, then the vectors.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from nutkin.sampler.adaptation import SEEK_POINT, Adapted, Step, Tuning
from nutkin.sampler.transition import Point


class State(NamedTuple):
    """All that a chain is between two transitions, but for the factor of a dense metric. With one, the gradient is that
    by the coordinates y of position + factor y, in which the metric is diagonal."""

    point: Point
    key: tuple[jax.Array, jax.Array]  # uint32 each
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


_COUNTERS = 5  # key, tick, gradients, mode
_STEP = slice(_COUNTERS + 1, _COUNTERS + 1 + len(Step._fields))  # after the log density
_TUNING = slice(_STEP.stop, _STEP.stop + len(Tuning._fields))
_CONTROL = slice(_TUNING.stop, _TUNING.stop + len(Control._fields))
_NUMBERS = _CONTROL.stop
_KEY, _TICK, _GRADIENTS, _MODE, _LOGP = slice(0, 2), 2, 3, 4, 5


def packed_size(dimension: int) -> int:
    return _NUMBERS + 4 * dimension


def initial_state(dimension: int, seed: int, chain: int, centre: np.ndarray) -> State:
    """A chain that has not begun: `centre` (d,) is the middle of its random starts."""
    key = np.random.SeedSequence(seed, spawn_key=(chain,)).generate_state(2)
    adapted = Adapted(SEEK_POINT, np.ones(dimension), Step(1.0, 0.0, 0.0, 0.0, 0.0))
    return State(Point(centre, np.zeros(dimension), 0.0), tuple(key), 0, 0, adapted)


def pack(state: State, tuning: Tuning, spread: Any, control: Control, xp: Any = np) -> Any:
    """-> (22 + 4 d,). `spread` (d,): half the width of the random starts around the state's position; `xp`: numpy or
    jax.numpy."""
    (position, gradient, logp), key, tick, gradients, (mode, inverse_mass, step) = state
    numbers = (*key, tick, gradients, mode, logp, *step, *tuning, *control)
    vectors = (position, gradient, inverse_mass, spread)
    return xp.concatenate([xp.array(numbers, xp.float64), *vectors], dtype=xp.float64)


def unpack(packed: Any) -> tuple[State, Tuning, Any, Control]:
    """The inverse of `pack`, all numbers float64; the vectors are views, if `packed` is an array of numpy."""
    dimension = (len(packed) - _NUMBERS) // 4
    numbers = packed[:_NUMBERS].tolist() if isinstance(packed, np.ndarray) else [packed[i] for i in range(_NUMBERS)]
    position, gradient, inverse_mass, spread = (
        packed[_NUMBERS + i * dimension : _NUMBERS + (i + 1) * dimension] for i in range(4)
    )
    adapted = Adapted(numbers[_MODE], inverse_mass, Step(*numbers[_STEP]))
    point = Point(position, gradient, numbers[_LOGP])
    state = State(point, tuple(numbers[_KEY]), numbers[_TICK], numbers[_GRADIENTS], adapted)
    return state, Tuning(*numbers[_TUNING]), spread, Control(*numbers[_CONTROL])


def unpack_typed(packed: jax.Array, dtype: np.dtype) -> tuple[State, Tuning, jax.Array, Control]:
    """As the program computes with it: vectors and tuning in `dtype`, counters uint32, the rest int32."""
    state, tuning, spread, control = unpack(packed)
    real, integer, word = (lambda x, to=to: x.astype(to) for to in (dtype, jnp.int32, jnp.uint32))
    point, key, tick, gradients, (mode, inverse_mass, step) = state
    adapted = Adapted(integer(mode), real(inverse_mass), Step(*map(real, step)))
    state = State(Point(*map(real, point)), tuple(map(word, key)), word(tick), word(gradients), adapted)
    return state, Tuning(*map(real, tuning)), real(spread), Control(*map(integer, control))


def write(
    packed: np.ndarray,
    *,
    gradient: np.ndarray | None = None,
    adapted: Adapted | None = None,
    tuning: Tuning | None = None,
    control: Control | None = None,
) -> None:
    """Replaces parts of a packed chain in place."""
    if gradient is not None:
        packed[_NUMBERS + len(gradient) : _NUMBERS + 2 * len(gradient)] = gradient
    if adapted is not None:
        packed[_MODE] = adapted.mode
        packed[_STEP] = adapted.step
        inverse_mass(packed)[:] = adapted.inverse_mass
    if tuning is not None:
        packed[_TUNING] = tuning
    if control is not None:
        packed[_CONTROL] = control


def steps(packed: np.ndarray) -> list[Step]:
    """Of packed chains (chains, 22 + 4 d)."""
    return [Step(*numbers) for numbers in packed[:, _STEP].tolist()]


def inverse_mass(packed: np.ndarray) -> np.ndarray:
    """A view (..., d) of packed chains (..., 22 + 4 d)."""
    dimension = (packed.shape[-1] - _NUMBERS) // 4
    return packed[..., _NUMBERS + 2 * dimension : _NUMBERS + 3 * dimension]


def counted(packed: np.ndarray) -> tuple[int, int]:
    """-> (leapfrog steps so far modulo 2^32, mode)."""
    return int(packed[_GRADIENTS]), int(packed[_MODE])


def iterations(packed: jax.Array) -> jax.Array:
    """`Control.n`, as packed."""
    return packed[_CONTROL.start]
