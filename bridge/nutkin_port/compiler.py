"""The one thread that compiles. XLA cannot be interrupted, so a compilation that takes too long ends with the program.

It is too long above `limits.compile_seconds`; and, once nobody waits for it any more, as soon as a request for another
model waits for the thread, or after `limits.abandoned_seconds`. Until then it goes on: whoever wanted it may ask again.
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
        self._line: dict[Any, Any] = {}  # the models of those that wait, by whom they are for
        self._owner: Any = None  # whoever is being compiled for, and its model
        self._model: Any = None
        self._left = False  # the owner does not wait any more
        self._patience: threading.Timer | None = None  # runs while nobody does

    def submit(self, owner: Any, model: Any, task: Callable[[], None], too_long: Callable[[Exception], None]) -> None:
        """Queues a task for `owner`. `too_long` gets the error before the program ends because of it."""
        with self._lock:
            self._line[owner] = model
        self._pool.submit(self._run, owner, model, task, too_long)
        self._review()

    def abandon(self, owner: Any) -> None:
        """Nobody waits for `owner` any more."""
        with self._lock:
            self._line.pop(owner, None)
            self._left = self._left or self._owner is owner
        self._review()

    def release(self, owner: Any) -> None:
        """The program that `owner` waits for is there. What its task does after that is soon over, and to leave it then
        is no reason to end the program."""
        with self._lock:
            if self._owner is owner:
                self._owner = self._model = None
                self._left = False
                self._lose_patience(None)

    def compiles(self, owner: Any) -> bool:
        with self._lock:
            return self._owner is owner

    def _review(self) -> None:
        """Whether somebody waits for what is compiled, and for something else."""
        with self._lock:
            wanted = not self._left or self._model in self._line.values()
            if wanted:
                self._lose_patience(None)
            elif self._patience is None:
                reason = "nobody waited for a compilation any more"
                self._lose_patience(_timer(self._limits.abandoned_seconds, self._replace, reason))
            in_the_way = not wanted and bool(self._line)
        if in_the_way:
            self._replace("a compilation that nobody waits for was in the way of another")

    def _lose_patience(self, timer: threading.Timer | None) -> None:
        if self._patience is not None:
            self._patience.cancel()
        self._patience = timer

    def _run(self, owner: Any, model: Any, task: Callable[[], None], too_long: Callable[[Exception], None]) -> None:
        seconds = self._limits.compile_seconds

        def give_up() -> None:
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
            self._line.pop(owner, None)
            self._owner, self._model = owner, model
        timer = _timer(seconds, give_up)
        try:
            task()
        finally:
            timer.cancel()
            with self._lock:
                self._owner = self._model = None
                self._left = False
                self._lose_patience(None)


def _timer(seconds: float, act: Callable[..., None], *arguments: Any) -> threading.Timer:
    timer = threading.Timer(min(seconds, threading.TIMEOUT_MAX), act, arguments)
    timer.daemon = True
    timer.start()
    return timer
