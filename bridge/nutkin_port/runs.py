"""A run: its chains advance chunk by chunk on a pool of threads, and their draws go out as far as credit allows.

Each step of a chain is a task of its own, queued behind those of all others, so more chains than threads take turns;
short steps of several chains share one. A chain whose chunk may not be sent yet is parked: it holds that one chunk, and
no thread. One that waits for others at the end of a window of the warmup holds none either.
"""

from __future__ import annotations

import collections
import dataclasses
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

import nutkin.sampler
from nutkin.errors import LimitExceeded
from nutkin.sampler import Chain, Chunk, Pool, PredictedChain, Progress
from nutkin_port.limits import Limits

PROGRESS_SECONDS = 0.1

Send = Callable[[str, dict[str, Any]], None]


class Outbox:
    """A chain, the pieces of its last chunk that are not sent yet, and how many of its draws are."""

    def __init__(self, chain: Chain | PredictedChain) -> None:
        self.chain = chain
        self.unsent: collections.deque[dict[str, Any]] = collections.deque()
        self.sent = 0
        self.progress: Progress | None = None  # not reported yet
        self.reported = 0.0


class Run:
    """`finish` is called once, after the last draws: with the body of `done`, or with the error that ended a chain."""

    def __init__(
        self,
        run: nutkin.sampler.Run | nutkin.sampler.Predictions,
        *,
        credit: int,
        compile_seconds: float,
        limits: Limits,
        pool: Pool,
        send: Send,
        finish: Callable[[dict[str, Any] | Exception], None],
    ) -> None:
        self._limits = limits
        self._pool = pool
        self._send = send
        self._finish = finish
        self._lock = threading.Lock()  # held only to change what follows, never while computing or sending
        self._outboxes = [Outbox(chain) for chain in run.chains]
        self._running = len(self._outboxes)
        self._parked: collections.deque[Outbox] = collections.deque()
        self._waiting: dict[int, Outbox] = {}  # by the index of the chain
        self._credit = credit
        self._cancelled = False
        self._error: Exception | None = None
        self._last_progress = 0.0
        self._compile_seconds = compile_seconds
        self._run = run

    def start(self) -> None:
        for chains in self._run.first_calls():
            self._submit(self._advance, *(self._outboxes[chain.index] for chain in chains))

    def ack(self, chunks: int) -> None:
        """Lets this many more `draws` messages go out."""
        with self._lock:
            self._credit += chunks
            woken = [self._parked.popleft() for _ in range(min(chunks, len(self._parked)))]
        for outbox in woken:
            self._submit(self._flush, outbox)

    def cancel(self) -> None:
        """Ends every chain after the chunk that it is computing."""
        with self._lock:
            self._cancelled = True
            woken = [*self._parked, *self._waiting.values()]
            self._parked.clear()
            self._waiting.clear()
        for outbox in woken:
            self._submit(self._flush, outbox)

    def fail(self, error: Exception) -> None:
        """Ends the run with this error instead of `done`; no draws follow but those being sent."""
        with self._lock:
            self._error = self._error or error
        self.cancel()

    def _submit(self, task: Callable[..., None], *outboxes: Outbox) -> None:
        self._pool.submit(self._attempt, task, *outboxes)

    def _attempt(self, task: Callable[..., None], *outboxes: Outbox) -> None:
        try:
            task(*outboxes)
        except Exception as error:  # the answer of the run, whatever it is
            self.fail(error)
            for outbox in outboxes:
                self._end(outbox)

    def _advance(self, *outboxes: Outbox) -> None:
        if not self._cancelled:
            for chunk in self._run.advance([outbox.chain for outbox in outboxes]):
                self._outboxes[chunk.chain].unsent.extend(pieces(chunk, self._limits))
            for outbox in outboxes:
                self._report(outbox)
        for outbox in outboxes:
            self._attempt(self._flush, outbox)

    def _flush(self, outbox: Outbox) -> None:
        """Sends what credit allows; then the chain is parked, ended, left to wait, or queued for its next step."""
        while outbox.unsent:
            with self._lock:
                stopping = self._error is not None or (self._cancelled and self._credit == 0)
                if not stopping and self._credit == 0:
                    self._parked.append(outbox)
                    return
                self._credit -= not stopping
            if stopping:
                break
            piece = outbox.unsent.popleft()
            self._send("draws", piece)
            outbox.sent += piece["count"] if piece["phase"] == "sample" else 0
        if self._cancelled or outbox.chain.finished:
            self._end(outbox)
        elif outbox.chain.waits:
            self._meet(outbox)
        else:
            self._submit(self._advance, outbox)

    def _meet(self, outbox: Outbox) -> None:
        """The last chain of its group to wait lets all of them go on.

        Whoever takes a chain off those that wait queues its next step: this, or `cancel`."""
        with self._lock:
            cancelled = self._cancelled
            if not cancelled:
                self._waiting[outbox.chain.index] = outbox
        if cancelled:
            self._end(outbox)
            return
        try:
            met = self._run.meet(outbox.chain)
        except Exception as error:  # the answer of the run, whatever it is
            self.fail(error)  # ends this chain too: it waits
            return
        with self._lock:
            woken = [
                [self._waiting.pop(chain.index) for chain in chains if chain.index in self._waiting] for chains in met
            ]
        for outboxes in filter(None, woken):
            self._submit(self._advance, *outboxes)

    def _report(self, outbox: Outbox) -> None:
        """At most one `progress` in PROGRESS_SECONDS, of the chain that waited longest; one of each that finished."""
        if (progress := outbox.chain.progress()) is None:
            return
        if outbox.chain.finished:
            with self._lock:
                outbox.progress = None
            self._send("progress", dataclasses.asdict(progress))
            return
        with self._lock:
            outbox.progress = progress
            now = time.monotonic()
            if now - self._last_progress < PROGRESS_SECONDS:
                return
            self._last_progress = now
            chosen = min((other for other in self._outboxes if other.progress), key=lambda other: other.reported)
            chosen.reported = now
            progress, chosen.progress = chosen.progress, None
        self._send("progress", dataclasses.asdict(progress))

    def _end(self, outbox: Outbox) -> None:
        with self._lock:
            self._running -= 1
            last = self._running == 0
        if last:
            try:
                result = self._error or self._done()
            except Exception as error:  # the answer of the run, whatever it is
                result = error
            self._finish(result)

    def _done(self) -> dict[str, Any]:
        complete = all(outbox.chain.finished and not outbox.unsent for outbox in self._outboxes)
        return {
            "status": "complete" if complete else "cancelled",
            "chains": [
                dataclasses.asdict(summary) | {"draws": outbox.sent}
                for outbox in self._outboxes
                if (summary := outbox.chain.summary()) is not None
            ],
            "pilot": self._run.pilot and _pilot(self._run.pilot),
            "seconds": {"compile": self._compile_seconds, **self._run.seconds()},
        }


def _pilot(pilot: nutkin.sampler.Pilot) -> dict[str, Any]:
    return {"centering": dict(pilot.weights), "gradients": pilot.gradients, "seconds": pilot.seconds}


def pieces(chunk: Chunk, limits: Limits) -> Iterator[dict[str, Any]]:
    """The bodies of `draws` messages that a chunk becomes: each below the limit of a chunk, or of a single draw."""
    arrays = {**chunk.variables, **chunk.stats}
    overhead = 256 + sum(len(name.encode()) + 32 + 8 * array.ndim for name, array in arrays.items())
    draw_bytes = sum(array.nbytes for array in arrays.values()) // chunk.count
    if overhead + draw_bytes > limits.frame:
        raise LimitExceeded(
            "one draw does not fit into a frame",
            expected=f"at most {limits.frame} bytes",
            found=f"{overhead + draw_bytes} bytes",
            hint="choose fewer variables with the option `variables`",
        )
    step = max(1, (limits.chunk - overhead) // max(1, draw_bytes))
    for first in range(0, chunk.count, step):
        rows = slice(first, min(first + step, chunk.count))
        yield {
            "chain": chunk.chain,
            "phase": chunk.phase,
            "start": chunk.start + first,
            "count": rows.stop - first,
            "variables": _rows(chunk.variables, rows),
            "stats": _rows(chunk.stats, rows),
        }


def _rows(arrays: Mapping[str, np.ndarray], rows: slice) -> dict[str, np.ndarray]:
    return {name: array[rows] for name, array in arrays.items()}
