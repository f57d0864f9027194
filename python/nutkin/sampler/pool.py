"""Threads that end when there is nothing to do.

A thread that is woken is often put on the core of the thread that wakes it, and two chains then share that core for
some milliseconds while another one idles. A thread that is started is put on an idle core.
"""

from __future__ import annotations

import collections
import functools
import threading
from collections.abc import Callable
from typing import Any


class Pool:
    """Runs tasks in the order in which they are submitted, on at most `threads` threads."""

    def __init__(self, threads: int, name: str) -> None:
        self._most = threads
        self._name = name
        self._lock = threading.Lock()
        self._tasks: collections.deque[Callable[[], None]] = collections.deque()
        self._running = 0
        self._thread = threading.local()

    def submit(self, task: Callable[..., None], *arguments: Any) -> None:
        """A task that submits another goes on first: its own thread takes the next one when it has ended, and other
        threads are started only for what is left then."""
        with self._lock:
            self._tasks.append(functools.partial(task, *arguments))
            if not getattr(self._thread, "is_ours", False):
                self._share_out()

    def _share_out(self) -> None:
        while self._tasks and self._running < self._most:
            try:
                threading.Thread(target=self._work, args=(self._tasks[0],), name=self._name).start()
            except RuntimeError:  # no more threads can be had
                if self._running:
                    return
                self._tasks.popleft()
                raise
            self._tasks.popleft()
            self._running += 1

    def _work(self, task: Callable[[], None] | None) -> None:
        self._thread.is_ours = True
        try:
            while task is not None:
                task()
                with self._lock:
                    task = self._tasks.popleft() if self._tasks else None
                    self._share_out()
        finally:
            with self._lock:
                self._running -= 1
                self._share_out()
