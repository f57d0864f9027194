"""When a run has sampled enough: once R-hat and the effective sample size of every scalar are good enough.

It is looked at when every chain has a fixed number of draws, never in between: so where a run stops follows from its
draws, and from nothing that differs between two runs of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nutkin.errors import InvalidCheckpoint
from nutkin.sampler.chain import Chunk
from nutkin.sampler.diagnostics import ess, r_hat
from nutkin.sampler.options import Options
from nutkin.sampler.record import array, count, sequence, wrong
from nutkin.sampler.warmup import SAMPLE

FIRST_CHECK, GROWTH = 100, 1.5
MOST_BYTES = 64 * 2**20  # of draws that are kept; beyond it every second one of them is


class StopRule:
    """`next_check`: draws of each chain at which it is looked at next."""

    @staticmethod
    def is_wanted(options: Options) -> bool:
        return options.target_ess is not None or options.max_rhat is not None

    def __init__(self, options: Options) -> None:
        self._target_ess, self._max_rhat = options.target_ess, options.max_rhat
        self._variables = None if options.variables is None else [*options.variables]
        self.next_check = FIRST_CHECK
        self._stride = 1  # every so manieth draw is kept
        self._kept: list[list[np.ndarray]] = [[] for _ in range(options.chains)]

    def add(self, chunk: Chunk) -> None:
        """Draws of a chain, in their order."""
        if chunk.phase == SAMPLE:
            rows = [np.reshape(values, (chunk.count, -1)).astype(float) for values in chunk.variables.values()]
            first = -chunk.start % self._stride
            self._kept[chunk.chain].append(np.concatenate(rows, axis=1)[first :: self._stride])

    def check(self) -> bool:
        """Whether all chains, which have `next_check` draws, have sampled enough. If not, they go on to the next one.

        A scalar that never moves has nothing to converge."""
        draws = np.stack([np.concatenate(kept) for kept in self._kept])
        draws = draws[:, :, np.ptp(draws, axis=(0, 1)) != 0]
        enough = self._target_ess is None or bool((ess(draws) >= self._target_ess).all())
        if enough and self._max_rhat is not None:
            enough = bool((r_hat(draws) <= self._max_rhat).all())
        if not enough:
            self.next_check = int(GROWTH * self.next_check)
            self._make_room()
        return enough

    def _make_room(self) -> None:
        while sum(rows.nbytes for kept in self._kept for rows in kept) > MOST_BYTES:
            self._kept = [[np.concatenate(kept)[::2]] for kept in self._kept]
            self._stride *= 2

    def state(self, settled: Sequence[int]) -> dict[str, Any]:
        """What it keeps of the first draws of each chain, as many as are `settled`, as plain data."""
        kept = []
        for rows, draws in zip(self._kept, settled, strict=True):
            count = -(-draws // self._stride)
            kept.append(np.concatenate(rows)[:count] if count else np.zeros((0, 0)))
        return {"next_check": self.next_check, "stride": self._stride, "kept": kept, "variables": self._variables}

    def go_on(self, state: Mapping[str, Any] | None, settled: Sequence[int]) -> None:
        """Errors: InvalidCheckpoint where a run goes on that had no rule, and has draws already."""
        if state is None:
            if any(settled):
                raise wrong("rule", "the draws so far: a run that begins without a rule to stop by goes on without one")
            return
        self.next_check = count(state.get("next_check"), "next_check")
        self._stride = count(state.get("stride"), "stride")
        kept = sequence(state.get("kept"), "kept", len(self._kept))
        self._kept = [[rows] if len(array(rows, "kept", (None, None))) else [] for rows in kept]
        if self._stride < 1 or self.next_check < FIRST_CHECK:
            raise wrong("rule", "positive numbers")
        if [len(rows) for rows in kept] != [-(-draws // self._stride) for draws in settled]:
            raise wrong("kept", "the draws that were made")
        if len({rows.shape[1] for rows in kept if len(rows)}) > 1:
            raise wrong("kept", "as many scalars of each chain")
        if str(state.get("variables")) != str(self._variables):
            raise InvalidCheckpoint(
                "a run that ends when its variables have converged goes on with the same ones",
                expected=f"variables {state.get('variables')}",
                found=f"{self._variables}",
            )
