"""One chain on the host: it advances chunk by chunk, and between chunks anything may happen to it.

How the iterations are cut into chunks follows the clock, and changes nothing about the draws.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

import jax
import numpy as np

from nutkin.errors import InitFailed
from nutkin.model.types import DTYPES
from nutkin.sampler import schedule
from nutkin.sampler.adaptation import SEEK_POINT, Tuning
from nutkin.sampler.compiled import Sampler
from nutkin.sampler.kernel import MAX_STARTS, STATISTICS, initial_state, pack, unpack
from nutkin.sampler.options import Options

WARMUP, SAMPLE = "warmup", "sample"
_FIRST_CHUNK, _GROWTH = 16, 8

_STATISTIC_TYPES = {"tree_depth": np.int32, "n_steps": np.int32, "diverging": np.uint8}


@dataclass(frozen=True)
class Chunk:
    """Consecutive draws: `variables` (count, ...) and `stats` (count,) by name; `start` counts from 0 in the phase."""

    chain: int
    phase: str
    start: int
    count: int
    variables: Mapping[str, np.ndarray]
    stats: Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Progress:
    """`iteration` and `total` count warmup and sampling together; `divergences` those of this phase; `tree_depth` is
    the mean of the last chunk; `gradients` counts leapfrog steps."""

    chain: int
    phase: str
    iteration: int
    total: int
    divergences: int
    step_size: float
    tree_depth: float
    gradients: int


@dataclass(frozen=True)
class Summary:
    """What a chain was at its end. `inverse_mass`: diagonal of the inverse metric (d,)."""

    chain: int
    draws: int
    divergences: int
    step_size: float
    inverse_mass: np.ndarray
    gradients: int


class Chain:
    """Not to be advanced from two threads at once; different chains may be."""

    def __init__(self, sampler: Sampler, options: Options, index: int, centre: np.ndarray, spread: np.ndarray) -> None:
        self._sampler, self._options, self._index = sampler, options, index
        dtype = DTYPES[sampler.target.precision]
        depth = options.max_tree_depth
        self._schedules = {
            WARMUP: schedule.windowed_warmup(options.warmup, depth),
            SAMPLE: schedule.sampling(options.draws * options.thin, depth),
        }
        self._phase = WARMUP if options.warmup else SAMPLE
        self._done = {WARMUP: 0, SAMPLE: 0}
        self._divergences = {WARMUP: 0, SAMPLE: 0}
        self._sent = {WARMUP: 0, SAMPLE: 0}
        self._tuning = np.array(Tuning(target_accept=options.target_accept), dtype)
        self._spread = spread.astype(dtype)
        self._gradients = 0
        self._tree_depth = 0.0
        self._next_count = _FIRST_CHUNK
        self._floats, self._words = pack(
            initial_state(sampler.target.dimension, options.seed, index, centre, dtype), np
        )

    @property
    def finished(self) -> bool:
        return self._phase == SAMPLE and self._done[SAMPLE] == self._schedules[SAMPLE].iterations

    def advance(self, seconds: float = 0.05) -> Chunk | None:
        """Make about `seconds` worth of iterations in one call of the executable, never across the end of the warmup.

        None: nothing is to be sent (warmup that is not kept). Errors: InitFailed.
        """
        phase, done = self._phase, self._done[self._phase]
        plan = self._schedules[phase]
        count = min(self._next_count, self._sampler.capacity, plan.iterations - done)
        entries = np.zeros(self._sampler.capacity, np.int32)
        entries[:count] = plan.entries(done, count)

        started = time.perf_counter()
        self._floats, self._words, draws, statistics = self._sampler.advance(
            self._floats, self._words, self._tuning, self._spread, entries, count
        )
        state = self._state()  # waits for the device
        elapsed = time.perf_counter() - started
        # The chain counts modulo 2^32, which one call cannot exceed.
        self._gradients += (int(state.gradients) - self._gradients) % 2**32
        if int(state.adapted.mode) == SEEK_POINT:
            raise self._no_start()

        self._next_count = max(1, min(int(count * seconds / elapsed), _GROWTH * count))
        statistics = np.asarray(statistics)[:count]
        self._divergences[phase] += int(statistics[:, STATISTICS.index("diverging")].sum())
        self._tree_depth = float(statistics[:, STATISTICS.index("tree_depth")].mean())
        self._done[phase] += count
        if phase == WARMUP and self._done[WARMUP] == plan.iterations:
            self._phase = SAMPLE
        if phase == WARMUP and not self._options.keep_warmup:
            return None
        return self._chunk(phase, done, draws, statistics)

    def progress(self) -> Progress:
        state = self._state()
        return Progress(
            chain=self._index,
            phase=self._phase,
            iteration=self._done[WARMUP] + self._done[SAMPLE],
            total=self._schedules[WARMUP].iterations + self._schedules[SAMPLE].iterations,
            divergences=self._divergences[self._phase],
            step_size=float(state.adapted.step.size),
            tree_depth=self._tree_depth,
            gradients=self._gradients,
        )

    def summary(self) -> Summary:
        state = self._state()
        return Summary(
            chain=self._index,
            draws=self._sent[SAMPLE],
            divergences=self._divergences[SAMPLE],
            step_size=float(state.adapted.step.size),
            inverse_mass=np.array(state.adapted.inverse_mass),
            gradients=self._gradients,
        )

    def _state(self):
        return unpack(np.asarray(self._floats), np.asarray(self._words), self._sampler.target.dimension)

    def _chunk(self, phase: str, done: int, draws: jax.Array, statistics: np.ndarray) -> Chunk | None:
        count = len(statistics)
        thin = self._options.thin
        if phase == SAMPLE and thin > 1:
            kept = np.arange((-done - 1) % thin, count, thin)
            count = len(kept)
            if count == 0:
                return None
            rows = np.zeros(draws.shape, draws.dtype)
            rows[:count] = np.asarray(draws)[kept]
            draws, statistics = rows, statistics[kept]
        variables = self._sampler.outputs(draws, count)
        if self._options.variables is not None:
            variables = {name: variables[name] for name in self._options.variables}
        stats = {
            name: np.ascontiguousarray(statistics[:, i].astype(_STATISTIC_TYPES.get(name, np.float64)))
            for i, name in enumerate(STATISTICS)
        }
        start = self._sent[phase]
        self._sent[phase] += count
        return Chunk(self._index, phase, start, count, variables, stats)

    def _no_start(self) -> InitFailed:
        terms = self._sampler.target.terms(np.asarray(self._floats)[: self._sampler.target.dimension])
        culprits = {name: value for name, value in terms.items() if not np.isfinite(value)}
        if culprits:
            node = next(iter(culprits))
            listed = ", ".join(f"`{name}` is {value}" for name, value in culprits.items())
            where = f"at the centre of the starts, {listed}"
        else:
            node, where = (
                None,
                "every term is finite at the centre of the starts, but its gradient is not, or no start around it is",
            )
        return InitFailed(
            f"chain {self._index} found no starting point in {MAX_STARTS} tries: {where}",
            node=node,
            expected="a finite log density with a finite gradient",
            hint="check the data against the supports of the distributions, or give starting values with `init`",
        )
