"""Who leaves a compilation, and what becomes of the program then."""

from __future__ import annotations

import threading
import time
from typing import Any

import msgpack
import pytest

from nutkin_port.compiler import Compiler
from nutkin_port.limits import Limits
from nutkin_port.request import Request
from nutkin_port.requests import Requests
from port.models import gaussian


def unused(error: Exception) -> None:
    raise AssertionError("nothing takes too long here") from error


@pytest.mark.parametrize("released", [True, False])
def test_only_what_is_still_compiled_ends_the_program_when_it_is_left(released: bool) -> None:
    replaced: list[str] = []
    compiler = Compiler(Limits(), replaced.append)
    there, go_on, done = threading.Event(), threading.Event(), threading.Event()

    def task() -> None:
        if released:
            compiler.release("one")
        there.set()
        assert go_on.wait(10)

    compiler.submit("one", "its model", task, unused)
    assert there.wait(10)
    compiler.submit("other", "another model", done.set, unused)
    assert compiler.compiles("one") is not released
    compiler.abandon("one")
    go_on.set()
    assert done.wait(10)
    assert replaced == [] if released else replaced == ["a compilation that nobody waits for was in the way of another"]


class Answers:
    """What is written, in the place of a stream."""

    def __init__(self) -> None:
        self._found: list[tuple[str, int]] = []
        self._changed = threading.Condition()

    def write(self, frame: bytes) -> None:
        kind, id, _body = msgpack.unpackb(frame)
        with self._changed:
            self._found.append((kind, id))
            self._changed.notify_all()

    def wait_for(self, kind: str, id: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: (kind, id) in self._found, 60)


@pytest.mark.parametrize(("kind", "options"), [("sample", {}), ("predict", {"redraw": None})])
def test_a_run_that_is_left_when_it_is_compiled_ends_no_program(
    monkeypatch: pytest.MonkeyPatch, kind: str, options: dict[str, Any]
) -> None:
    """Also while the thread that compiles is still about to start it, and another request waits for that thread. The
    sizes are those of no other case, whose programs would be at hand."""
    answers, replaced, go_on = Answers(), [], threading.Event()
    start = Requests._start

    def slow_start(self: Requests, request: Request, *arguments: Any, **named: Any) -> None:
        if request.id == 1:
            assert go_on.wait(60)
        start(self, request, *arguments, **named)

    monkeypatch.setattr(Requests, "_start", slow_start)
    requests = Requests(answers, None, Limits(), replaced.append)  # nothing is logged
    body = {**gaussian(30 + len(kind)), "options": {"draws": 10, "chains": 1, **options}}
    requests.handle(msgpack.packb([kind, 1, body]))
    answers.wait_for("compiled", 1)
    requests.handle(msgpack.packb(["compile", 2, gaussian(40 + len(kind))]))
    until = time.monotonic() + 60
    while not requests._compiler._line and time.monotonic() < until:
        time.sleep(0.001)
    requests.handle(msgpack.packb(["cancel", 1, {}]))
    answers.wait_for("done", 1)
    go_on.set()
    answers.wait_for("compiled", 2)
    assert replaced == []
