"""Frames: a 4-byte big-endian length and that many bytes, read from one descriptor and written to another.

Imports the standard library only, so that the input is watched before numpy and jax are loaded.
"""

from __future__ import annotations

import dataclasses
import os
import queue
import threading
from collections.abc import Callable

HEADER_BYTES = 4
SIGNAL_SECONDS = 0.5


@dataclasses.dataclass(frozen=True)
class FrameTooLong:
    """A header that announces more than the limit: nothing after it can be trusted."""

    length: int
    limit: int


class Inbox:
    """What was read and is not handled yet: frames, and signals of the program to itself.

    Bounded in bytes: a client that sends faster than its frames are handled waits in `put`.
    """

    def __init__(self, bound: int) -> None:
        self._bound = bound
        self._bytes = 0
        self._room = threading.Condition()
        self._items: queue.SimpleQueue[object] = queue.SimpleQueue()

    def put(self, frame: bytearray | FrameTooLong) -> None:
        size = len(frame) if isinstance(frame, bytearray) else 0
        with self._room:
            self._room.wait_for(lambda: self._bytes == 0 or self._bytes + size <= self._bound)
            self._bytes += size
        self._items.put(frame)

    def interrupt(self, item: object) -> None:
        """Adds an item from a signal handler: takes no lock, `SimpleQueue.put` is reentrant."""
        self._items.put(item)

    def get(self) -> object:
        """The next item. Handlers of signals run meanwhile, within SIGNAL_SECONDS."""
        while True:
            try:
                item = self._items.get(timeout=SIGNAL_SECONDS)
                break
            except queue.Empty:  # a signal that comes just before the wait does not end it
                continue
        if isinstance(item, bytearray):
            with self._room:
                self._bytes -= len(item)
                self._room.notify()
        return item


class FrameReader:
    """Reads whole frames from a blocking descriptor, each into one buffer of its own size."""

    def __init__(self, descriptor: int, limit: int) -> None:
        self._descriptor = descriptor
        self._limit = limit
        self._header = bytearray(HEADER_BYTES)

    def read(self) -> bytearray | FrameTooLong | None:
        """The next frame; None at the end of the input, also when it ends within a frame."""
        if not self._fill(self._header):
            return None
        length = int.from_bytes(self._header, "big")
        if length > self._limit:
            return FrameTooLong(length, self._limit)
        frame = bytearray(length)
        return frame if self._fill(frame) else None

    def _fill(self, buffer: bytearray) -> bool:
        rest = memoryview(buffer)
        while rest:
            count = os.readv(self._descriptor, [rest])
            if count == 0:
                return False
            rest = rest[count:]
        return True


def drain(reader: FrameReader, inbox: Inbox, at_end: Callable[[], None]) -> None:
    """Moves frames into the inbox until the input ends or cannot be trusted, then calls `at_end` at its end.

    After a frame that is too long the rest of the input is thrown away, still watching for its end.
    """
    trusted = True
    while (frame := reader.read()) is not None:
        if trusted:
            inbox.put(frame)
        trusted = trusted and not isinstance(frame, FrameTooLong)
    at_end()


class FrameWriter:
    """Writes whole frames; any thread may call it. `at_end` is called when nobody reads them any more."""

    def __init__(self, descriptor: int, at_end: Callable[[], None]) -> None:
        self._descriptor = descriptor
        self._at_end = at_end
        self._lock = threading.Lock()

    def write(self, frame: bytes) -> None:
        rest = [memoryview(len(frame).to_bytes(HEADER_BYTES, "big")), memoryview(frame)]
        with self._lock:
            try:
                while rest:
                    rest = _without(rest, os.writev(self._descriptor, rest))
            except BrokenPipeError:
                self._at_end()


def _without(buffers: list[memoryview], count: int) -> list[memoryview]:
    """What is left of the buffers after their first `count` bytes."""
    while buffers and count >= len(buffers[0]):
        count -= len(buffers[0])
        buffers = buffers[1:]
    return [buffers[0][count:], *buffers[1:]] if buffers else []
