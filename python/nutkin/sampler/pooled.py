"""The pooled warmup: short windows, at whose ends all chains meet and share one metric and one step size.

Four windows learn the metric. The first three take sqrt(var position / var gradient) from few draws, the measure of
nutpie (https://pymc-devs.github.io/nutpie/); the last takes the variance of the positions. A fifth window learns the
step size: the acceptance of a leapfrog step is close to 2 Phi(-c eps^2) (Beskos et al. 2013,
https://doi.org/10.3150/12-BEJ414), so one constant is fitted to all its iterations and solved for the target.
Chains that are in different places by their R-hat adapt alone for a window, which is repeated; a last window over which
they have not mixed is followed by a longer one. Divergences raise the target.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any

import numpy as np

from nutkin.sampler.adaptation import Step, Tuning
from nutkin.sampler.metric import Metric, from_gradients, from_positions
from nutkin.sampler.moments import Moments
from nutkin.sampler.options import MAX_TREE_DEPTH, Options
from nutkin.sampler.record import count, number, pair, sequence, wrong
from nutkin.sampler.warmup import SAMPLE, WARMUP, Adaptation, Learned, Window


@dataclass(frozen=True)
class Stage:
    """A window that learns the metric, and what dual averaging restarts with at its end.

    `by_gradient`: the metric is sqrt(var position / var gradient), else var position; `centre`: what the step size is
    pulled to, in units of the step size then; `count`: iterations that dual averaging takes as made; `gamma`: how
    little it follows a single acceptance."""

    iterations: int
    depth_cap: int
    by_gradient: bool
    centre: float
    count: float
    gamma: float


STAGES = (
    Stage(10, 6, True, 10.0, 0.0, 0.05),
    Stage(20, 7, True, 3.0, 0.0, 0.05),
    Stage(40, 8, True, 1.0, 5.0, 0.1),
    Stage(80, MAX_TREE_DEPTH, False, 1.0, 10.0, 0.2),
)
STEP_ITERATIONS = 40
ALONE = 2  # a single chain has windows as many times as long

APART = 2.0  # R-hat from which chains are in different places
MIXED = 1.1  # R-hat that the last metric window may have
LONGER = 1.5
FEWEST_ROWS = 8
JITTER = 0.1
# (share of divergent iterations, target of the acceptance from there on), if they are at least FEWEST_DIVERGENCES
GUARD = ((0.05, 0.95), (0.006, 0.9))
FEWEST_DIVERGENCES = 3


class Pooled:
    """A scheme for the chains of a run, however many. `options.warmup` is the most iterations that it takes."""

    def __init__(self, options: Options) -> None:
        self._options = options
        stretch = ALONE if options.chains == 1 else 1
        lengths = [stretch * n for n in (*(stage.iterations for stage in STAGES), STEP_ITERATIONS)]
        whole = sum(lengths)
        if whole > options.warmup:
            lengths = [n * options.warmup // whole for n in lengths]
            lengths[-1] = options.warmup - sum(lengths[:-1])
        self._stages = [replace(stage, iterations=n) for stage, n in zip(STAGES, lengths, strict=False) if n]
        self._step_iterations = lengths[-1]
        self._at = 0  # index of the stage whose window is running; past the last one, the step size is learned
        self._done = 0
        self._tuning = Tuning(target_accept=options.target_accept)
        self._metric_iterations = self._metric_divergences = 0  # of all chains in the last metric window
        self._samples = False  # whether the window of the sampling is running

    def state(self) -> dict[str, Any]:
        return {
            "lengths": [stage.iterations for stage in self._stages],
            "at": self._at,
            "done": self._done,
            "tuning": [float(number) for number in self._tuning],
            "metric": [self._metric_iterations, self._metric_divergences],
            "samples": int(self._samples),
        }

    def go_on(self, state: Mapping[str, Any]) -> Window:
        lengths = sequence(state.get("lengths"), "lengths", len(self._stages))
        self._stages = [
            replace(stage, iterations=count(length, "lengths"))
            for stage, length in zip(self._stages, lengths, strict=True)
        ]
        self._at = count(state.get("at"), "at")
        if self._at > len(self._stages):
            raise wrong("at", f"at most {len(self._stages)}")
        self._done = count(state.get("done"), "done")
        tuning = sequence(state.get("tuning"), "tuning", len(Tuning._fields))
        self._tuning = Tuning(*(number(value, "tuning") for value in tuning))
        self._metric_iterations, self._metric_divergences = pair(state.get("metric"), "metric")
        self._samples = bool(count(state.get("samples"), "samples"))
        return self._sampling() if self._samples else self._window()

    def first(self) -> Window:
        return self._window()

    def next(self, learned: Learned) -> tuple[Sequence[Adaptation], Window]:
        self._done += learned.iterations
        if self._at == len(self._stages):
            return self._with_fitted_step(learned), self._sampling()
        stage = self._stages[self._at]
        pooled = learned.moments.of_all_chains()
        spread = r_hat(learned.moments, pooled)
        together = spread < APART
        adapted = self._adapted(learned, stage, pooled if together else None)
        self._tuning = self._tuning._replace(gamma=stage.gamma)
        self._metric_iterations = len(learned.steps) * learned.iterations
        self._metric_divergences = learned.divergences
        longer = int(LONGER * stage.iterations)
        if not together and self._at > 0 and self._done < self._options.warmup / 2 and self._fits(stage.iterations):
            pass  # the same window again
        elif self._at == len(self._stages) - 1 and spread > MIXED and self._fits(longer):
            self._stages[self._at] = replace(stage, iterations=longer)
        else:
            self._at += 1
        return adapted, self._window()

    def _fits(self, iterations: int) -> bool:
        """Whether a window more leaves time for those that are planned."""
        return self._done + iterations + self._planned() <= self._options.warmup

    def _planned(self) -> int:
        """Iterations after the window that is running."""
        if self._at == len(self._stages):
            return 0
        return sum(stage.iterations for stage in self._stages[self._at + 1 :]) + self._step_iterations

    def _window(self) -> Window:
        depth = self._options.max_tree_depth
        if self._at < len(self._stages):
            stage = self._stages[self._at]
            cap = min(stage.depth_cap, depth)
            return Window(
                WARMUP, stage.iterations, cap, self._tuning, tunes=True, learns_metric=True, planned=self._planned()
            )
        if self._step_iterations:
            return Window(WARMUP, self._step_iterations, depth, self._tuning, tunes=True, learns_step=True)
        return self._sampling()

    def _sampling(self) -> Window:
        self._samples = True
        iterations = self._options.draws * self._options.thin
        return Window(SAMPLE, iterations, self._options.max_tree_depth, self._tuning._replace(jitter=JITTER))

    def _adapted(self, learned: Learned, stage: Stage, pooled: Moments | None) -> list[Adaptation]:
        """A new metric, a step size that goes as far in it as the old one did, and dual averaging that starts there:
        by the moments of all rows, if the chains are together, else for each chain by its own."""
        if pooled is not None:
            estimate = from_gradients if stage.by_gradient else from_positions
            return _of_group(learned.metrics, learned.steps, pooled, estimate, stage)
        alone = zip(learned.metrics, learned.steps, learned.moments.of_each_chain(), strict=True)
        return [
            own
            for metric, step, moments in alone
            for own in _of_group([metric], [step], moments, from_gradients, stage)
        ]

    def _with_fitted_step(self, learned: Learned) -> list[Adaptation]:
        iterations = self._metric_iterations + learned.step_sizes.size
        divergences = self._metric_divergences + learned.divergences
        target = self._options.target_accept
        if divergences >= FEWEST_DIVERGENCES:
            raised = [accept for share, accept in GUARD if divergences > share * iterations]
            target = max([target, *raised])
        size = fitted_step(learned.step_sizes.ravel(), learned.acceptances.ravel(), target)
        return [
            Adaptation(metric, step._replace(size=size))
            for metric, step in zip(learned.metrics, learned.steps, strict=True)
        ]


def _of_group(
    metrics: Sequence[Metric],
    steps: Sequence[Step],
    moments: Moments,
    estimate: Callable[[Moments, Metric], Metric],
    stage: Stage,
) -> list[Adaptation]:
    """Of chains that share what is estimated from the `moments` of all their rows."""
    new = metrics
    if moments.count >= FEWEST_ROWS:
        new = [estimate(moments, metrics[0])] * len(metrics)
    sizes = [
        _log_step(step) + before.log_scale - after.log_scale
        for step, before, after in zip(steps, metrics, new, strict=True)
    ]
    size = sum(sizes) / len(sizes)
    step = Step(math.exp(size), size + math.log(stage.centre), 0.0, size, stage.count)
    return [Adaptation(metric, step) for metric in new]


def r_hat(chains: Moments, pooled: Moments) -> float:
    """The largest potential scale reduction over the coordinates (Gelman and Rubin 1992), without its correction for
    the length; 1 for a single chain. `pooled`: the moments of all rows of the `chains` together."""
    count, length = len(chains.mean), chains.count
    if count == 1:
        return 1.0
    within = chains.squares[:, : chains.mean.shape[1] // 2].sum(0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = pooled.squares[: len(within)] / within - 1.0  # of the squares between the chains to those within
    largest = np.max(ratios, initial=0.0, where=~np.isnan(ratios))
    return math.sqrt(1.0 + largest * count * max(length - 1, 1) / (length * (count - 1)))


def _log_step(step: Step) -> float:
    """The average of dual averaging, once it has one."""
    return float(step.log_average) if step.count > 5 else math.log(step.size)


def fitted_step(sizes: np.ndarray, acceptances: np.ndarray, target: float) -> float:
    """The step size with this acceptance, on the curve 2 Phi(-c eps^2) whose mean over `sizes` (n,) is that of
    `acceptances` (n,). At most a factor of e^1.5 from the median of `sizes`."""
    squares = (sizes / np.median(sizes)) ** 2 / math.sqrt(2.0)
    mean = float(acceptances.mean())
    quantile = -NormalDist().inv_cdf(0.5 * target)
    low, high = -1.5, 1.5  # logarithm of the step size with the target acceptance, in units of the median
    for _ in range(14):
        middle = 0.5 * (low + high)
        curve = quantile * math.exp(-2.0 * middle) * squares
        if sum(map(math.erfc, curve.tolist())) < mean * len(curve):
            low = middle
        else:
            high = middle
    return float(np.median(sizes)) * math.exp(0.5 * (low + high))
