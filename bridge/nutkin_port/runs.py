"""A run: its chains advance chunk by chunk on a pool of threads, and their draws go out as far as credit allows.

Each step of a chain is a task of its own, queued behind those of all others, so more chains than threads take turns;
short steps of several chains share one. A chain whose chunk may not be sent yet is parked: it holds that one chunk, and
no thread. One that waits for others at the end of a window, or whose run is paused, holds none either.

A chain is settled when all its draws are sent. A checkpoint takes what was settled last, so it never counts a draw that
was not sent before it.
"""

from __future__ import annotations

import collections
import dataclasses
import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

import nutkin.sampler
from nutkin.errors import LimitExceeded
from nutkin.sampler import SAMPLE, WARMUP, Chain, Chunk, Pool, PredictedChain, Progress
from nutkin_port import codec
from nutkin_port.limits import Limits

# A consumer that looks at nothing gets few: their number grows as the logarithm of the time.
PROGRESS_SECONDS, PROGRESS_SHARE = 0.1, 0.01
CHECKPOINT_SHARE = 0.05  # of the time may go into checkpoints

COMPLETE, CONVERGED, MAX_TIME, CANCELLED = "complete", "converged", "max_time", "cancelled"

Send = Callable[[str, dict[str, Any]], None]


class Outbox:
    """A chain, the pieces of its last chunk that are not sent yet, and how many draws of each phase the client has."""

    def __init__(self, chain: Chain | PredictedChain, delivered: Sequence[int]) -> None:
        self.chain = chain
        self.unsent: collections.deque[dict[str, Any]] = collections.deque()
        self.sent = {phase: max(pair) for phase, *pair in zip((WARMUP, SAMPLE), delivered, chain.sent, strict=True)}
        self.progress: Progress | None = None  # not reported yet
        self.reported = 0.0


class Run:
    """`finish` is called once, after the last draws: with the body of `done`, or with the error that ended a chain.

    `delivered`: of the first chains, how many draws of the warmup and of the sampling the client has: they are not
    sent. `checkpoint_every`, `max_time`: seconds, None for never."""

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
        delivered: Sequence[Sequence[int]] = (),
        checkpoint_every: float | None = None,
        max_time: float | None = None,
    ) -> None:
        self._limits = limits
        self._pool = pool
        self._send = send
        self._finish = finish
        self._lock = threading.Lock()  # held only to change what follows, never while computing or sending
        delivered = [*delivered, *[(0, 0)] * len(run.chains)]
        self._outboxes = [Outbox(chain, counts) for chain, counts in zip(run.chains, delivered, strict=False)]
        self._running = len(self._outboxes)
        self._parked: collections.deque[Outbox] = collections.deque()
        self._waiting: dict[int, Outbox] = {}  # by the index of the chain
        self._paused = False
        self._held: list[tuple[Outbox, ...]] = []  # whose next step waits for the end of a pause
        self._credit = credit
        self._stopped: str | None = None  # the status of a run that ends early
        self._error: Exception | None = None
        self._started = self._last_progress = time.monotonic()
        self._compile_seconds = compile_seconds
        self._run = run
        self._checkpoint_every = checkpoint_every
        self._next_checkpoint = math.inf if checkpoint_every is None else self._started + checkpoint_every
        self._checkpointing = threading.Lock()  # the pieces of one come before those of another, and before the end
        self._over = False
        self._deadline: threading.Timer | None = None
        if max_time is not None:
            self._deadline = threading.Timer(min(max_time, threading.TIMEOUT_MAX), self.stop, (MAX_TIME,))

    def start(self) -> None:
        if self._deadline is not None:
            self._deadline.daemon = True
            self._deadline.start()
        for chains in self._run.first_calls():
            self._go_on([self._outboxes[chain.index] for chain in chains])

    def _go_on(self, outboxes: Sequence[Outbox]) -> None:
        """Queues what these chains, alike, are ready for."""
        if outboxes[0].chain.finished or outboxes[0].chain.waits:
            for outbox in outboxes:
                self._submit(self._flush, outbox)
        else:
            self._submit(self._advance, *outboxes)

    def ack(self, chunks: int) -> None:
        """Lets this many more `draws` messages go out."""
        with self._lock:
            self._credit += chunks
            woken = [self._parked.popleft() for _ in range(min(chunks, len(self._parked)))]
        for outbox in woken:
            self._submit(self._flush, outbox)

    def pause(self) -> None:
        """Stops every chain after the chunk that it is computing."""
        with self._lock:
            self._paused = True

    def resume(self) -> None:
        with self._lock:
            self._paused = False
            held, self._held = self._held, []
        for outboxes in held:
            self._submit(self._advance, *outboxes)

    def stop(self, status: str = CANCELLED) -> None:
        """Ends every chain after the chunk that it is computing."""
        with self._lock:
            self._stopped = self._stopped or status
            parked = [*self._parked]
            idle = [*self._waiting.values(), *(outbox for held in self._held for outbox in held)]
            self._parked.clear()
            self._waiting.clear()
            self._held.clear()
        for outbox in parked:
            self._submit(self._flush, outbox)
        for outbox in idle:  # all is sent, and others may just be changing it, where they meet
            self._submit(self._end, outbox)

    def info(self) -> dict[str, Any]:
        """The fields of `info` that are the run's."""
        chains = [progress for outbox in self._outboxes if (progress := outbox.chain.progress()) is not None]
        with self._lock:
            return {"paused": self._paused, "credit": self._credit, "chains": [*map(dataclasses.asdict, chains)]}

    def checkpoint(self) -> None:
        """Sends the state of the run, in pieces; nothing once the run is over."""
        with self._checkpointing:
            if self._over:
                return
            started = time.monotonic()
            content = codec.pack_tree(self._run.checkpoint())
            for offset in range(0, len(content), self._limits.chunk):
                piece = content[offset : offset + self._limits.chunk]
                self._send("checkpoint", {"size": len(content), "offset": offset, "bytes": piece})
            ended = time.monotonic()
            if self._checkpoint_every is not None:
                pause = max(self._checkpoint_every, (ended - started) / CHECKPOINT_SHARE)
                self._next_checkpoint = ended + pause

    def _checkpoint_in_time(self) -> None:
        with self._lock:
            due = time.monotonic() >= self._next_checkpoint
            if due:
                self._next_checkpoint = math.inf  # no other thread, until this one has made it
        if due:
            self.checkpoint()

    def fail(self, error: Exception) -> None:
        """Ends the run with this error instead of `done`; no draws follow but those being sent."""
        with self._lock:
            self._error = self._error or error
        self.stop()

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
        with self._lock:
            if self._paused and self._stopped is None:
                self._held.append(outboxes)
                return
        if self._stopped is None:
            for chunk in self._run.advance([outbox.chain for outbox in outboxes]):
                outbox = self._outboxes[chunk.chain]
                outbox.unsent.extend(pieces(chunk, outbox.sent[chunk.phase], self._limits))
            for outbox in outboxes:
                self._report(outbox)
        for outbox in outboxes:
            self._attempt(self._flush, outbox)

    def _flush(self, outbox: Outbox) -> None:
        """Sends what credit allows; then the chain is parked, ended, left to wait, or queued for its next step."""
        while outbox.unsent:
            with self._lock:
                stopping = self._error is not None or (self._stopped is not None and self._credit == 0)
                if not stopping and self._credit == 0:
                    self._parked.append(outbox)
                    return
                self._credit -= not stopping
            if stopping:
                break
            piece = outbox.unsent.popleft()
            self._send("draws", piece)
            outbox.sent[piece["phase"]] = piece["start"] + piece["count"]
        if not outbox.unsent:
            outbox.chain.settle()
            self._checkpoint_in_time()
        if self._stopped is not None or outbox.chain.finished:
            self._end(outbox)
        elif outbox.chain.waits:
            self._meet(outbox)
        else:
            self._submit(self._advance, outbox)

    def _meet(self, outbox: Outbox) -> None:
        """The last chain of its group to wait lets all of them go on.

        Whoever takes a chain off those that wait queues its next step: this, or `stop`."""
        with self._lock:
            stopped = self._stopped is not None
            if not stopped:
                self._waiting[outbox.chain.index] = outbox
        if stopped:
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
            self._go_on(outboxes)

    def _report(self, outbox: Outbox) -> None:
        """At most one `progress` in PROGRESS_SECONDS and PROGRESS_SHARE of the time so far, of the chain that waited
        longest; one of each that finished."""
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
            if now - self._last_progress < max(PROGRESS_SECONDS, PROGRESS_SHARE * (now - self._started)):
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
            if self._deadline is not None:
                self._deadline.cancel()
            try:
                result = self._error or self._done()
            except Exception as error:  # the answer of the run, whatever it is
                result = error
            with self._checkpointing:
                self._over = True
            self._finish(result)

    def _done(self) -> dict[str, Any]:
        if self._run.resumable:
            self.checkpoint()
        complete = all(outbox.chain.finished and not outbox.unsent for outbox in self._outboxes)
        return {
            "status": (CONVERGED if self._run.converged else COMPLETE) if complete else self._stopped,
            "chains": [
                dataclasses.asdict(summary) | {"draws": outbox.sent[SAMPLE]}
                for outbox in self._outboxes
                if (summary := outbox.chain.summary()) is not None
            ],
            "pilot": self._run.pilot and _pilot(self._run.pilot),
            "seconds": {"compile": self._compile_seconds, **self._run.seconds()},
        }


def _pilot(pilot: nutkin.sampler.Pilot) -> dict[str, Any]:
    return {"centering": dict(pilot.weights), "gradients": pilot.gradients, "seconds": pilot.seconds}


def pieces(chunk: Chunk, sent: int, limits: Limits) -> Iterator[dict[str, Any]]:
    """The bodies of `draws` messages that a chunk becomes, without those of the first `sent` draws of its phase: each
    below the limit of a chunk, or of a single draw."""
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
    for first in range(max(0, sent - chunk.start), chunk.count, step):
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
