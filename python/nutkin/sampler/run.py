"""A run: the chains of one request, ready to be advanced in any order, and the windows at whose ends they meet."""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from nutkin.errors import InvalidOption
from nutkin.sampler.chain import Chain, Chunk, advance, learned
from nutkin.sampler.checkpoint import Checkpoint, fingerprint, read, write
from nutkin.sampler.compiled import Sampler
from nutkin.sampler.options import POOLED, Options
from nutkin.sampler.pooled import Pooled
from nutkin.sampler.stop_rule import StopRule
from nutkin.sampler.warmup import SAMPLE, WARMUP, Scheme
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

    resumable = True

    def __init__(
        self,
        sampler: Sampler,
        options: Options,
        pilot: Pilot | None = None,
        checkpoint: Mapping[str, Any] | None = None,
    ) -> None:
        """`checkpoint`: what `checkpoint()` gave of a run on the same model, data and options, but for those that
        choose what is sent and when it ends. Errors: InvalidOption for an unknown variable, or a starting value that
        does not fit; InvalidCheckpoint."""
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
        self.converged = False
        self._sampler, self._options = sampler, options
        self.chains = tuple(chain for group in groups for chain in group.chains)
        self._every_group = groups
        self._groups = [group for group in groups for _ in group.chains]  # by the index of the chain
        self._lock = threading.Lock()  # guards what follows, the counts of the groups, and what is settled
        self._started = time.monotonic()
        self._rule = StopRule(options) if StopRule.is_wanted(options) else None
        self._sampling_arrived = 0
        if checkpoint is not None:
            self._go_on(checkpoint)
        elif self._rule is not None and not options.warmup:
            self._sample_until_checked(self.chains)
        self._warming = sum(group.chains[0].phase == WARMUP for group in groups)
        self._warm = self._started

    @cached_property
    def _fingerprint(self) -> Mapping[str, Any]:
        return fingerprint(self._sampler, self._options)

    def _go_on(self, tree: Mapping[str, Any]) -> None:
        found = read(tree, self._fingerprint, self._sampler, self._options, len(self._every_group))
        for group, state in zip(self._every_group, found.schemes, strict=True):
            window = group.scheme.go_on(state)
            for chain in group.chains:
                chain.begin(window)
                chain.go_on(found.records[chain.index])
        if self._rule is not None:
            self._rule.go_on(found.rule, [chain.sent[1] for chain in self.chains])
            self._sample_until_checked([chain for chain in self.chains if chain.phase == SAMPLE])

    def checkpoint(self) -> dict[str, Any]:
        """The run as it is, as plain data: of each chain what was settled last. Any thread may call it, at any time."""
        with self._lock:
            records = [chain.settled for chain in self.chains]
            schemes = [group.scheme.state() for group in self._every_group]
            rule = None if self._rule is None else self._rule.state([record.sent[1] for record in records])
        pilot = self.pilot and {
            "weights": dict(self.pilot.weights),
            "cost": [self.pilot.gradients, self.pilot.seconds],
        }
        return write(Checkpoint(schemes, records, rule), self._fingerprint, pilot)

    def first_calls(self) -> tuple[tuple[Chain, ...], ...]:
        """All chains, those in one tuple best advanced in one call; of a run that goes on from a checkpoint each alone,
        some of which may be finished, or wait."""
        if any(any(chain.settled.done) or chain.waits for chain in self.chains):
            return tuple((chain,) for chain in self.chains)
        return self._shared(self.chains)

    def advance(self, chains: Sequence[Chain]) -> list[Chunk]:
        """As `nutkin.sampler.advance`."""
        chunks = advance(chains)
        if self._rule is not None:
            for chunk in chunks:
                self._rule.add(chunk)
        return chunks

    def meet(self, chain: Chain) -> tuple[tuple[Chain, ...], ...]:
        """`chain` waits. -> the chains that may be advanced again, or are finished, those in one tuple best in one
        call; none, until the last of its group is here.

        Any thread may call it; what the chains learned is worked out once, by the last to come, in their order."""
        if chain.phase == SAMPLE:
            return self._meet_to_check()
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
                self._warming -= 1
                self._warm = time.monotonic()
                if self._rule is not None:
                    self._sample_until_checked(group.chains)
        return self._shared(group.chains)

    def _meet_to_check(self) -> tuple[tuple[Chain, ...], ...]:
        """The last of all chains to come looks whether they have sampled enough."""
        with self._lock:
            self._sampling_arrived += 1
            if self._sampling_arrived < len(self.chains):
                return ()
            self._sampling_arrived = 0
            self.converged = self._rule.check()
            for chain in self.chains if self.converged else ():
                chain.finish()
            self._sample_until_checked(self.chains)
        return self._shared(self.chains)

    def _sample_until_checked(self, chains: Sequence[Chain]) -> None:
        draws = min(self._rule.next_check, self._options.draws)
        for chain in chains:
            chain.go_on_until(draws * self._options.thin)

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
