"""The schedule of a run: what each iteration does besides its transition, as data.

An entry is an int32: flag bits, and the depth cap in bits 8 to 11. One executable serves every warmup and the sampling
that follows, since nothing but the schedule tells them apart.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

TUNE_STEP = 1  # one update of dual averaging
COLLECT = 2  # add the position to the variance estimate
SET_METRIC = 4  # take the metric from the estimate, clear it, look for a step size again
FIX_STEP = 8  # take the averaged step size

FLAGS = 255  # mask of the flag bits
_DEPTH_SHIFT = 8
DEPTH_MASK = 15

INITIAL_BUFFER, FIRST_WINDOW, FINAL_BUFFER = 75, 25, 50


def entry(flags: int, depth_cap: int) -> int:
    return flags | depth_cap << _DEPTH_SHIFT


def depth_cap(entries):
    """The depth cap of an entry (numpy or traced)."""
    return (entries >> _DEPTH_SHIFT) & DEPTH_MASK


@dataclass(frozen=True)
class Schedule:
    """The entries of a phase. They are worked out when they are asked for: a phase may have 10^9 iterations."""

    iterations: int
    _entry_of: Callable[[np.ndarray], np.ndarray]

    def entries(self, start: int, count: int) -> np.ndarray:
        """int32 (count,): the entries from iteration `start` on."""
        return self._entry_of(np.arange(start, start + count)).astype(np.int32)


def sampling(iterations: int, max_depth: int) -> Schedule:
    """Transitions and nothing else."""
    return Schedule(iterations, lambda i: np.full(i.shape, entry(0, max_depth)))


def window_ends(iterations: int) -> tuple[int, list[int]]:
    """-> (first iteration that is collected, ends of the metric windows), Stan's rule (but for warmups of 151 to 199
    iterations, whose only window takes all that is left).

    Buffers of 75 and 50 iterations around windows of 25, 50, 100, ...; the last window takes what is left. Short
    warmups give 15 % and 10 % to the buffers and have one window; below 20 iterations there is none.
    Source: Stan reference manual, "HMC algorithm parameters", section on automatic parameter tuning.
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


def windowed_warmup(iterations: int, max_depth: int) -> Schedule:
    """Stan's windowed warmup with a metric update at the end of every window."""
    first, ends = window_ends(iterations)
    stop = ends[-1] if ends else first

    def entry_of(i: np.ndarray) -> np.ndarray:
        return (
            entry(TUNE_STEP, max_depth)
            | COLLECT * ((first <= i) & (i < stop))
            | SET_METRIC * np.isin(i + 1, ends)
            | FIX_STEP * (i + 1 == iterations)
        )

    return Schedule(iterations, entry_of)
