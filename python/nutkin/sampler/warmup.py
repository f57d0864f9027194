"""What a warmup is: windows of iterations under the same rules, and a scheme that decides at the end of each.

A scheme sees what the chains of its group learned in a window, and answers with their states and the next window; the
last one is the sampling. `pooled` groups all chains of a run, `windowed` leaves each to itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from nutkin.sampler.adaptation import Step, Tuning
from nutkin.sampler.metric import Metric
from nutkin.sampler.moments import Moments

WARMUP, SAMPLE = "warmup", "sample"


@dataclass(frozen=True)
class Window:
    """`iterations` of a chain, with trees of at most `depth_cap` doublings.

    `tunes`: every iteration updates the step size; `learns_metric`: the moments of its rows are wanted at its end;
    `learns_step`: so are the step size and the acceptance of each iteration; `planned`: how many iterations the phase
    has after this window, as far as that is known."""

    phase: str
    iterations: int
    depth_cap: int
    tuning: Tuning
    tunes: bool = False
    learns_metric: bool = False
    learns_step: bool = False
    planned: int = 0


@dataclass(frozen=True)
class Adaptation:
    """What a chain starts a window with. `searches`: it looks for another step size first, from this one on."""

    metric: Metric
    step: Step
    searches: bool = False


@dataclass(frozen=True)
class Learned:
    """Of the chains of a group in one window: the metric of each, and its step as it is now; `iterations` of each, and
    how many diverged of all; `moments` of the rows of each, or None; `step_sizes` and `acceptances` (chains, n), empty
    unless the window learns the step."""

    metrics: Sequence[Metric]
    steps: Sequence[Step]
    iterations: int
    divergences: int
    moments: Moments | None
    step_sizes: np.ndarray
    acceptances: np.ndarray


class Scheme(Protocol):
    """The warmup of a group of chains, from its first window to the sampling that follows."""

    def first(self) -> Window: ...

    def next(self, learned: Learned) -> tuple[Sequence[Adaptation], Window]:
        """-> what the chains start the next window with, in their order, and the window."""
        ...

    def state(self) -> dict[str, Any]:
        """What changes of it, as plain data."""
        ...

    def go_on(self, state: Mapping[str, Any]) -> Window:
        """-> the window that was running. Errors: InvalidCheckpoint."""
        ...
