"""The one thread that compiles. XLA cannot be interrupted, so a compilation that takes too long ends with the program.

It is too long above `limits.compile_seconds`; and, once nobody waits for it any more, as soon as a request for another
model needs the thread, or after `limits.abandoned_seconds`. Until then it goes on: whoever wanted it may ask again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import nutkin.sampler
from nutkin.errors import LimitExceeded
from nutkin_port.limits import Limits


class Compiler:
    """`replace` ends the program, with a reason in words; all that is open is then for the client to send again."""

    def __init__(self, limits: Limits, replace: Callable[[str], None]) -> None:
        self._limits = limits
        self._replace = replace
        self._pool = nutkin.sampler.Pool(1, "compiler")
        self._lock = threading.Lock()  # guards what follows
        self._owner: Any = None  # whoever is being compiled for, and its model
        self._model: Any = None
        self._abandoned = False
        self._timer: threading.Timer | None = None

    def submit(self, owner: Any, model: Any, task: Callable[[], None], too_long: Callable[[Exception], None]) -> None:
        """Queues a task for `owner`. `too_long` gets the error before the program ends because of it."""
        with self._lock:
            in_the_way = self._abandoned and self._model != model
        if in_the_way:
            self._replace("a compilation that nobody waits for was in the way of another")
        self._pool.submit(self._run, owner, model, task, too_long)

    def abandon(self, owner: Any) -> None:
        """Nobody waits for `owner` any more."""
        with self._lock:
            if self._owner is not owner:
                return
            self._abandoned = True
            self._watch(self._limits.abandoned_seconds, self._replace, "nobody waited for a compilation any more")

    def compiles(self, owner: Any) -> bool:
        with self._lock:
            return self._owner is owner

    def _run(self, owner: Any, model: Any, task: Callable[[], None], too_long: Callable[[Exception], None]) -> None:
        def give_up() -> None:
            seconds = self._limits.compile_seconds
            too_long(
                LimitExceeded(
                    "the compilation took too long",
                    expected=f"at most {seconds} seconds",
                    hint="a model with fewer nodes compiles faster: vectors instead of single variables, scans "
                    "instead of loops; or raise the limit compile_seconds",
                )
            )
            self._replace(f"a compilation took more than {seconds} seconds")

        with self._lock:
            self._owner, self._model, self._abandoned = owner, model, False
            self._watch(self._limits.compile_seconds, give_up)
        try:
            task()
        finally:
            with self._lock:
                self._owner = self._model = None
                self._abandoned = False
                self._stop_watching()

    def _watch(self, seconds: float, act: Callable[..., None], *arguments: Any) -> None:
        self._stop_watching()
        self._timer = threading.Timer(seconds, act, arguments)
        self._timer.daemon = True
        self._timer.start()

    def _stop_watching(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
