"""Bounds of time and memory for code that is given hostile input."""

from __future__ import annotations

import contextlib
import resource
import signal
from collections.abc import Iterator
from types import FrameType


class TookTooLong(BaseException):
    """No `except Exception` of the code under test may take it for an error of the input."""


@contextlib.contextmanager
def bounded(*, seconds: float = 20, mebibytes: int = 1024) -> Iterator[None]:
    """What is done within takes no longer, or TookTooLong is raised, and no more memory, or MemoryError is.

    In the main thread only, which has the alarm.
    """
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    limits = resource.getrlimit(resource.RLIMIT_AS)
    before = signal.signal(signal.SIGALRM, _ring)
    resource.setrlimit(resource.RLIMIT_AS, (used + (mebibytes << 20), limits[1]))
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        resource.setrlimit(resource.RLIMIT_AS, limits)
        signal.signal(signal.SIGALRM, before)


def _ring(_number: int, _frame: FrameType | None) -> None:
    raise TookTooLong
