"""Stan's warmup: each chain by itself, with a metric update at the end of every window, and windows that double.

Source: Stan reference manual, "HMC algorithm parameters", section on automatic parameter tuning.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from nutkin.sampler.adaptation import Tuning
from nutkin.sampler.metric import from_positions
from nutkin.sampler.options import Options
from nutkin.sampler.record import count, wrong
from nutkin.sampler.warmup import SAMPLE, WARMUP, Adaptation, Learned, Window

INITIAL_BUFFER, FIRST_WINDOW, FINAL_BUFFER = 75, 25, 50


def window_ends(iterations: int) -> tuple[int, list[int]]:
    """-> (first iteration that is collected, ends of the metric windows), Stan's rule (but for warmups of 151 to 199
    iterations, whose only window takes all that is left).

    Buffers of 75 and 50 iterations around windows of 25, 50, 100, ...; the last window takes what is left. Short
    warmups give 15 % and 10 % to the buffers and have one window; below 20 iterations there is none.
    """
    if iterations < 20:
        return iterations, []
    initial, window, final = INITIAL_BUFFER, FIRST_WINDOW, FINAL_BUFFER
    if initial + window + final > iterations:
        initial, final = int(0.15 * iterations), int(0.1 * iterations)
        window = iterations - initial - final
    stop, end, ends = iterations - final, initial, []
    while end < stop:
        end += window
        window *= 2
        if end + window > stop:
            end = stop
        ends.append(end)
    return initial, ends


class Windowed:
    """A scheme for a group of one chain."""

    def __init__(self, options: Options) -> None:
        tuning = Tuning(target_accept=options.target_accept)
        depth = options.max_tree_depth
        first, ends = window_ends(options.warmup)
        starts = [0, first, *ends]
        self._windows = [
            Window(
                WARMUP,
                end - start,
                depth,
                tuning,
                tunes=True,
                learns_metric=end in ends,
                planned=options.warmup - end,
            )
            for start, end in zip(starts, [*starts[1:], options.warmup], strict=True)
            if end > start
        ]
        self._windows.append(Window(SAMPLE, options.draws * options.thin, depth, tuning))
        self._at = 0

    def state(self) -> dict[str, Any]:
        return {"at": self._at}

    def go_on(self, state: Mapping[str, Any]) -> Window:
        self._at = count(state.get("at"), "at")
        if self._at >= len(self._windows):
            raise wrong("at", f"below {len(self._windows)}")
        return self._windows[self._at]

    def first(self) -> Window:
        return self._windows[0]

    def next(self, learned: Learned) -> tuple[Sequence[Adaptation], Window]:
        (metric,), (step,) = learned.metrics, learned.steps
        searches = learned.moments is not None
        if searches:
            metric = from_positions(learned.moments.of_all_chains(), metric)
        self._at += 1
        window = self._windows[self._at]
        if window.phase == SAMPLE:
            step = step._replace(size=math.exp(step.log_average))
        return [Adaptation(metric, step, searches)], window
