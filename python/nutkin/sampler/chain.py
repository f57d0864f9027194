"""One chain on the host: it advances chunk by chunk, and between chunks anything may happen to it.

How the iterations of a window are cut into chunks follows the clock, and changes nothing about the draws.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from nutkin.model.types import DTYPES
from nutkin.sampler.adaptation import RUN, SEARCH, SEEK_POINT, Adapted
from nutkin.sampler.compiled import Sampler
from nutkin.sampler.kernel import STATISTICS
from nutkin.sampler.metric import Metric
from nutkin.sampler.moments import Collector, moments
from nutkin.sampler.no_start import no_start
from nutkin.sampler.options import DENSE, Options
from nutkin.sampler.record import Record, wrong
from nutkin.sampler.state import Control, State, counted, initial_state, inverse_mass, pack, steps, unpack, write
from nutkin.sampler.warmup import SAMPLE, WARMUP, Adaptation, Learned, Window

_FIRST_CHUNK, _GROWTH = 16, 32

_STATISTIC_TYPES = {"tree_depth": np.int32, "n_steps": np.int32, "diverging": np.uint8}
_ACCEPTANCE, _STEP_SIZE, _TREE_DEPTH, _DIVERGING = (
    STATISTICS.index(name) for name in ("acceptance_rate", "step_size", "tree_depth", "diverging")
)


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
    """`iteration` and `total` count warmup and sampling together, `total` as far as the warmup is planned;
    `divergences` and `draws`, those kept, of this phase; `tree_depth` is the mean of the last chunk; `gradients` counts
    leapfrog steps, `gradients_per_second` those of the last call; `seconds_left`: at its speed, None before it."""

    chain: int
    phase: str
    iteration: int
    total: int
    divergences: int
    step_size: float
    tree_depth: float
    gradients: int
    draws: int
    gradients_per_second: float
    seconds_left: float | None


@dataclass(frozen=True)
class Summary:
    """What a chain was at its end. `warmup`: iterations of it; `divergences`: after it; `inverse_mass`: diagonal of the
    inverse metric (d,)."""

    chain: int
    draws: int
    warmup: int
    divergences: int
    step_size: float
    inverse_mass: np.ndarray
    gradients: int


class Chain:
    """Not to be advanced from two threads at once; different chains may be."""

    def __init__(
        self, sampler: Sampler, options: Options, index: int, window: Window, centre: np.ndarray, spread: np.ndarray
    ) -> None:
        self.index = index
        self._sampler, self._options = sampler, options
        self._dimension = sampler.target.dimension
        self._done = {WARMUP: 0, SAMPLE: 0}
        self._sent = {WARMUP: 0, SAMPLE: 0}
        self._gradients = 0
        self._tree_depth = 0.0
        self._seconds_each, self._most_next = sampler.pace.seconds, _FIRST_CHUNK
        self._divergences = 0  # in this phase
        self._speed = 0.0  # leapfrog steps a second, in the last call
        self._enough = False
        self._window = window
        state = initial_state(self._dimension, options.seed, index, centre)
        self._packed = pack(state, window.tuning, spread, Control())
        self._learned: Metric | None = None  # the first metric is the program's
        self._factors = None  # an argument of a program with a dense metric
        if options.mass_matrix == DENSE:
            self._factors = np.stack([np.eye(self._dimension, dtype=DTYPES[sampler.target.precision])] * 2)
        self.begin(window)

    @property
    def sent(self) -> tuple[int, int]:
        """Draws kept so far, of the warmup and of the sampling."""
        return self._sent[WARMUP], self._sent[SAMPLE]

    def settle(self) -> None:
        """All that it has drawn so far is where it belongs: what a checkpoint of its run takes until the next time."""
        self.settled = Record(
            packed=self._packed,
            metric=self._learned,
            done=(self._done[WARMUP], self._done[SAMPLE]),
            sent=self.sent,
            gradients=self._gradients,
            divergences=self._divergences,
            divergences_before=self._divergences_before,
            in_window=self._in_window,
            collected=self._collector.collected(),
            statistics=(*self._statistics,),
        )

    def go_on(self, record: Record) -> None:
        """Is what it was, in the window that it has begun. Errors: InvalidCheckpoint where that cannot be."""
        self._check(record)
        self._packed, self._learned = record.packed, record.metric
        if self._factors is not None and record.metric is not None:
            self._factors = self._with_transpose(_factor(record.metric))
        self._done[WARMUP], self._done[SAMPLE] = record.done
        self._sent[WARMUP], self._sent[SAMPLE] = record.sent
        self._gradients = record.gradients
        self._divergences, self._divergences_before = record.divergences, record.divergences_before
        self._in_window = record.in_window
        self._collector.go_on(record.collected)
        self._statistics = [*record.statistics]
        self.settled = record

    def _check(self, record: Record) -> None:
        window, whole = self._window, record.collected.whole
        sampled = record.done[1] if window.phase == SAMPLE else record.in_window
        rows = sum(map(len, record.collected.rest)) + (whole.count if whole else 0)
        counts = {
            "in_window": record.in_window <= window.iterations and record.in_window == sampled,
            "rows": rows == (record.in_window if window.learns_metric else 0),
            "statistics": sum(map(len, record.statistics)) == (record.in_window if window.learns_step else 0),
        }
        for name, fits in counts.items():
            if not fits:
                raise wrong(name, "what belongs to the window of the chain")

    def go_on_until(self, iterations: int) -> None:
        """Its window, that of the sampling, has so many iterations."""
        self._window = replace(self._window, iterations=iterations)

    def finish(self) -> None:
        """It has sampled enough, whatever was asked for."""
        self._enough = True

    def begin(self, window: Window, adaptation: Adaptation | None = None) -> None:
        """Goes on by the rules of `window`, and with what was learned for it."""
        if adaptation is not None:
            self._adapt(adaptation)
        if window.phase != self._window.phase:
            self._divergences = 0
        self._window = window
        self._in_window = 0
        self._divergences_before = self._divergences
        self._packed = self._packed.copy()  # a record may have it
        write(self._packed, tuning=window.tuning)
        self._collector = Collector(dense=self._factors is not None)
        self._statistics: list[np.ndarray] = []  # of a window that learns the step
        self.settle()

    def _with_transpose(self, factor: np.ndarray) -> np.ndarray:
        return np.stack([factor, factor.T]).astype(self._factors.dtype)

    def _adapt(self, adaptation: Adaptation) -> None:
        metric = adaptation.metric
        self._packed = self._packed.copy()  # a record may have it
        if self._factors is not None and metric is not self._learned:
            by_position = self._by_position(self.state.point.gradient)
            factor = _factor(metric)
            self._factors = self._with_transpose(factor)
            write(self._packed, gradient=factor.T @ by_position)
        self._learned = metric
        mode = SEARCH if adaptation.searches else RUN
        write(self._packed, adapted=Adapted(mode, metric.inverse_mass, adaptation.step))

    def _by_position(self, gradients: np.ndarray) -> np.ndarray:
        """Gradients (..., d) in the chain's coordinates -> those by the position."""
        inverse = self._metric.inverse_factor
        return gradients if inverse is None else gradients @ inverse

    def _moment_rows(self, rows: np.ndarray) -> np.ndarray:
        """Positions and the gradients by them (n, 2 d), of rows of the program."""
        positions_and_gradients = rows[:, : 2 * self._dimension]
        if self._metric.factor is None:
            return positions_and_gradients
        positions, gradients = np.hsplit(positions_and_gradients, 2)
        return np.hstack([positions, self._by_position(gradients)])

    @property
    def _metric(self) -> Metric:
        return self._learned or Metric(inverse_mass(self._packed).copy())

    @property
    def _step_size(self) -> float:
        return steps(self._packed[None])[0].size

    @property
    def state(self) -> State:
        return unpack(self._packed)[0]

    @property
    def waits(self) -> bool:
        """Whether its window is over, so that it needs the next one."""
        return self._in_window == self._window.iterations and not self.finished

    @property
    def finished(self) -> bool:
        return self._enough or self._done[SAMPLE] == self._options.draws * self._options.thin

    @property
    def phase(self) -> str:
        return self._window.phase

    @property
    def expected_seconds(self) -> float:
        """Of the rest of its window, as its last call lets expect, or the program's pace; infinite if neither does."""
        return self._seconds_each * (self._window.iterations - self._in_window)

    def _most(self, seconds: float) -> int:
        """The iterations that its next call may make."""
        affordable = _FIRST_CHUNK if math.isinf(self._seconds_each) else max(1, int(seconds / self._seconds_each))
        return min(affordable, self._most_next, self._window.iterations - self._in_window)

    def _control(self, count: int) -> Control:
        window, thin = self._window, self._options.thin
        first, stride = (-self._done[window.phase] - 1) % thin, thin
        if window.phase == WARMUP:
            first, stride = (0, 1) if self._options.keep_warmup else (count, 1)
        return Control(count, window.depth_cap, int(window.tunes), min(first, count), stride)

    def _take(self, packed: np.ndarray, rows: np.ndarray, divergences: int, depth: float, seconds: float) -> None:
        """Its state after a call, and its `rows` (count, 2 d + 7); of them: how many diverged, the mean depth of the
        trees, and the `seconds` that they took."""
        window, count = self._window, len(rows)
        self._packed = packed
        gradients, mode = counted(packed)
        # The chain counts modulo 2^32, which one call cannot exceed.
        made = (gradients - self._gradients) % 2**32
        self._gradients += made
        self._speed = made / seconds if seconds > 0 else 0.0
        if mode == SEEK_POINT:
            state, _, spread, _ = unpack(packed)
            raise no_start(self._sampler.target, self.index, state, spread)
        self._seconds_each, self._most_next = seconds / count, _GROWTH * count
        if not any(self._done.values()):
            self._sampler.pace.seconds = self._seconds_each
        self._divergences += divergences
        self._tree_depth = depth
        self._done[window.phase] += count
        self._in_window += count
        if window.learns_metric:
            self._collector.add(self._moment_rows(rows))
        if window.learns_step:
            self._statistics.append(rows[:, 2 * self._dimension :].copy())

    def progress(self) -> Progress:
        window = self._window
        iteration = sum(self._done.values())
        total = iteration + window.iterations - self._in_window + window.planned
        if window.phase == WARMUP:
            total += self._options.draws * self._options.thin
        elif not self._enough:
            total = iteration + self._options.draws * self._options.thin - self._done[SAMPLE]
        left = self._seconds_each * (total - iteration)
        return Progress(
            chain=self.index,
            phase=window.phase,
            iteration=iteration,
            total=total,
            divergences=self._divergences,
            step_size=self._step_size,
            tree_depth=self._tree_depth,
            gradients=self._gradients,
            draws=self._sent[window.phase],
            gradients_per_second=self._speed,
            seconds_left=left if math.isfinite(left) else None,
        )

    def summary(self) -> Summary:
        return Summary(
            chain=self.index,
            draws=self._sent[SAMPLE],
            warmup=self._done[WARMUP],
            divergences=self._divergences if self._window.phase == SAMPLE else 0,
            step_size=self._step_size,
            inverse_mass=self._metric.diagonal,
            gradients=self._gradients,
        )

    def _chunk(self, statistics: np.ndarray, blocks: Mapping[str, np.ndarray], rows: slice) -> Chunk:
        """Draws with these statistics (count, 7), whose values are these rows of the blocks."""
        phase, count = self._window.phase, len(statistics)
        variables = self._sampler.blocks.split(blocks, rows, self._options.variables)
        stats = {
            name: statistics[:, i].astype(_STATISTIC_TYPES.get(name, np.float64)) for i, name in enumerate(STATISTICS)
        }
        start = self._sent[phase]
        self._sent[phase] += count
        return Chunk(self.index, phase, start, count, variables, stats)


def _factor(metric: Metric) -> np.ndarray:
    """(d, d)."""
    return np.eye(len(metric.inverse_mass)) if metric.factor is None else metric.factor


def advance(chains: Sequence[Chain], seconds: float = 0.05) -> list[Chunk]:
    """Make about `seconds` worth of iterations of each of these chains of a run, in one call of its program: never
    across the end of a window, or more than fit into a call. -> draws, unless they are of a warmup that is not kept.

    A call of several costs less where the call costs more than the iterations. They are at most as many as the program
    has slots, in windows of the same length and equally far in them. Errors: InitFailed.
    """
    one = chains[0]
    sampler, dimension = one._sampler, one._dimension
    count = min([sampler.capacity // len(chains), *(chain._most(seconds) for chain in chains)])
    controls = [chain._control(count) for chain in chains]
    packed = np.zeros((sampler.slots, len(one._packed)))
    for chain, control, slot in zip(chains, controls, packed, strict=False):
        slot[:] = chain._packed
        write(slot, control=control)

    started = time.perf_counter()
    packed, rows, blocks = sampler.advance(packed, one._factors)
    elapsed = (time.perf_counter() - started) / len(chains)

    rows = rows[: len(chains) * count].reshape(len(chains), count, -1)
    statistics = rows[:, :, 2 * dimension :]
    divergences = statistics[:, :, _DIVERGING].sum(1).tolist()
    depths = statistics[:, :, _TREE_DEPTH].sum(1).tolist()
    chunks, kept = [], 0
    for i, (chain, control) in enumerate(zip(chains, controls, strict=True)):
        chain._take(packed[i], rows[i], int(divergences[i]), depths[i] / count, elapsed)
        of_draws = statistics[i, control.first :: control.stride]
        if len(of_draws):
            chunks.append(chain._chunk(of_draws, blocks, slice(kept, kept + len(of_draws))))
        kept += len(of_draws)
    return chunks


def learned(chains: Sequence[Chain]) -> Learned:
    """What the window that is over for all of these has to say."""
    window, packed = chains[0]._window, np.stack([chain._packed for chain in chains])
    statistics = np.empty((len(chains), 0, len(STATISTICS)))
    if window.learns_step:
        statistics = np.stack([np.concatenate(chain._statistics) for chain in chains])
    return Learned(
        [chain._metric for chain in chains],
        steps(packed),
        window.iterations,
        sum(chain._divergences - chain._divergences_before for chain in chains),
        moments([chain._collector for chain in chains]) if window.learns_metric else None,
        statistics[:, :, _STEP_SIZE],
        statistics[:, :, _ACCEPTANCE],
    )
