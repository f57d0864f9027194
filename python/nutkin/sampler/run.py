"""A run: the chains of one request, ready to be advanced in any order, and the windows at whose ends they meet."""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nutkin.errors import InvalidOption
from nutkin.sampler.chain import Chain, advance, learned
from nutkin.sampler.compiled import Sampler
from nutkin.sampler.options import POOLED, Options
from nutkin.sampler.pooled import Pooled
from nutkin.sampler.warmup import SAMPLE, Scheme
from nutkin.sampler.windowed import Windowed

# A call, and another thread for it, cost half a millisecond: one does for all chains if it is shorter than the first;
# else there are as many for each core as are needed to keep them near the second.
_SHORT_CALL_SECONDS, _CALL_SECONDS = 0.005, 0.01


def cores() -> int:
    """How many chains can run at once: the cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass
class _Group:
    """Chains that warm up together; `arrived` counts those that wait for the others."""

    scheme: Scheme
    chains: tuple[Chain, ...]
    arrived: int = 0


@dataclass(frozen=True)
class Pilot:
    """A warmup before the run, which has decided how far parameters are centered, and what it cost.

    `weights`: by the name of the parameter, of its shape; `gradients`: of all its chains; `seconds`: wall time."""

    weights: Mapping[str, np.ndarray]
    gradients: int
    seconds: float


class Run:
    """`pilot`: what was before it. `chains` are to be advanced until each is finished. One that waits is handed to
    `meet`, and goes on when that returns it. The order of the chains' steps, their threads and their chunks change no
    draw."""

    def __init__(self, sampler: Sampler, options: Options, pilot: Pilot | None = None) -> None:
        """Errors: InvalidOption for an unknown variable, or a starting value that does not fit."""
        target = sampler.target
        names = [output.name for output in (*target.parameters, *target.deterministic)]
        unknown = [name for name in options.variables or () if name not in names]
        if unknown:
            raise InvalidOption(
                f"option `variables` names `{unknown[0]}`, which the model does not have",
                path="$.options.variables",
                expected=", ".join(f"`{name}`" for name in names),
                found=f"`{unknown[0]}`",
            )
        try:
            centre, given = target.unconstrain(options.init.values)
        except InvalidOption as error:
            error.message = f"option `init`: {error.message}"
            raise
        spread = np.where(given, 0.0, options.init.radius)
        indices = range(options.chains)
        pooled = options.adaptation == POOLED
        groups = []
        for members in [indices] if pooled else [[index] for index in indices]:
            scheme = Pooled(options) if pooled else Windowed(options)
            first = scheme.first()
            chains = tuple(Chain(sampler, options, index, first, centre, spread) for index in members)
            groups.append(_Group(scheme, chains))
        self.pilot = pilot
        self._sampler = sampler
        self.chains = tuple(chain for group in groups for chain in group.chains)
        self._groups = [group for group in groups for _ in group.chains]  # by the index of the chain
        self._lock = threading.Lock()  # guards the counts below and those of the groups
        self._started = time.monotonic()
        self._warming = len(groups) if options.warmup else 0
        self._warm = self._started

    def first_calls(self) -> tuple[tuple[Chain, ...], ...]:
        """All chains, those in one tuple best advanced in one call."""
        return self._shared(self.chains)

    advance = staticmethod(advance)

    def meet(self, chain: Chain) -> tuple[tuple[Chain, ...], ...]:
        """`chain` waits. -> the chains that may be advanced again, those in one tuple best in one call; none, until the
        last of its group is here.

        Any thread may call it; what the chains learned is worked out once, by the last to come, in their order."""
        group = self._groups[chain.index]
        with self._lock:
            group.arrived += 1
            if group.arrived < len(group.chains):
                return ()
            group.arrived = 0
        adaptations, window = group.scheme.next(learned(group.chains))
        for member, adaptation in zip(group.chains, adaptations, strict=True):
            member.begin(window, adaptation)
        if window.phase == SAMPLE:
            with self._lock:
                self._warming -= 1
                self._warm = time.monotonic()
        return self._shared(group.chains)

    def _shared(self, chains: Sequence[Chain]) -> tuple[tuple[Chain, ...], ...]:
        """The chains, evenly in the tuples that share a call; each alone, if nothing is known of their speed."""
        expected = sum(chain.expected_seconds for chain in chains)
        count = math.ceil(len(chains) / self._sampler.slots)
        if expected > _SHORT_CALL_SECONDS:
            rounds = math.ceil(min(expected / _CALL_SECONDS, len(chains)) / cores())
            count = max(count, min(rounds * cores(), len(chains)))
        return tuple(chains[first::count] for first in range(count))

    def seconds(self) -> dict[str, float]:
        """Wall time since the run was made: `warmup` until the last chain had ended it, `sample` since then."""
        with self._lock:
            now = time.monotonic()
            warm = now if self._warming else self._warm
            return {"warmup": warm - self._started, "sample": now - warm}
