"""Each limit of the program: what is above it gets its error, or waits, and the program lives on, or says why not."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from nutkin.errors import LimitExceeded
from nutkin_port.compiler import Compiler
from nutkin_port.limits import Limits
from port.models import gaussian, schools, shifted_gaussian, slow_to_compile
from port.port_client import DEADLINE, PortClient, address, encode, environment

SMALL = {"nesting": 7, "rank": 1, "elements": 50, "tensor": 1000, "tensors": 600, "nodes": 9, "requests": 2, "runs": 1}
UNLIMITED = 10**9


def limited(**limits: int) -> PortClient:
    arguments = [part for name, value in limits.items() for part in ("--limit", f"{name}={value}")]
    port = PortClient(*arguments)
    found = port.hello()["limits"]
    assert {name: found[name] for name in limits} == limits
    return port


@pytest.fixture(scope="module")
def port() -> Iterator[PortClient]:
    """One program with small limits: after each test it has nothing open."""
    with limited(**SMALL) as client:
        yield client


@pytest.fixture(autouse=True)
def nothing_is_left(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if "port" in request.fixturenames:
        request.getfixturevalue("port").check_idle()


def error_of(port: PortClient, id: int) -> dict[str, Any]:
    return port.until("error", id=id)[0].body


def test_nesting(port: PortClient) -> None:
    values: Any = {"x": np.zeros(3)}
    port.send("log_density", 1, {**gaussian(), "values": values})
    port.until("value", id=1)
    for level in range(20):
        values = {f"in {level}": values}
    port.send("log_density", 1, {**gaussian(), "values": values})
    error = error_of(port, 1)
    assert (error["code"], error["expected"]) == ("protocol", "at most 7 levels")


@pytest.mark.parametrize(
    ("array", "text", "expected"),
    [
        (np.zeros((2, 2)), "too many axes", "at most 1"),
        (np.zeros(51), "too many elements", "at most 50"),
        (np.zeros(126), "too large", "at most"),
    ],
)
def test_tensors_that_are_too_large(port: PortClient, array: np.ndarray, text: str, expected: str) -> None:
    encoded = encode(array)
    port.send("compile", 1, gaussian() | {"data": {"z": address(encoded)}})
    port.until("need", id=1)
    port.put(1, encoded)
    error = error_of(port, 1)
    assert error["code"] == "limit"
    assert text in error["message"]
    assert error["expected"].startswith(expected)


def test_all_tensors_of_a_request_together(port: PortClient) -> None:
    """Also those that the program has from requests before."""
    first, second = encode(np.arange(40.0)), encode(np.arange(40.0) + 1.0)
    for encoded in (first, second):
        port.send("log_density", 1, {**shifted_gaussian(encoded, size=40), "position": np.zeros(40)})
        port.until("need", id=1)
        port.put(1, encoded)
        port.until("value", id=1)
    port.send("compile", 1, gaussian() | {"data": {"a": address(first), "b": address(second)}})
    error = error_of(port, 1)
    assert (error["code"], error["expected"], error["found"]) == ("limit", "at most 600 bytes in all", "640 bytes")
    third = encode(np.arange(40.0) + 2.0)
    port.send("compile", 1, gaussian() | {"data": {"a": address(first), "b": address(third)}})
    port.until("need", id=1)
    port.put(1, third)
    assert error_of(port, 1)["expected"] == "at most 600 bytes in all"


def test_nodes(port: PortClient) -> None:
    port.send("compile", 1, slow_to_compile(terms=6))
    error = error_of(port, 1)
    assert (error["code"], error["found"]) == ("limit", "12")


def test_requests(port: PortClient) -> None:
    waiting = schools() | {"data": {"y": bytes(32), "sigma": bytes(32)}}
    for id in (1, 2):
        port.send("compile", id, waiting)
        port.until("need", id=id)
    port.send("ping", 3)  # counts for none
    port.until("pong", id=3)
    port.send("compile", 3, waiting)
    error = error_of(port, 3)
    assert (error["code"], error["expected"]) == ("limit", "at most 2")
    for id in (1, 2):
        port.send("cancel", id)
        assert error_of(port, id)["code"] == "cancelled"


def info(port: PortClient, id: int) -> dict[str, Any]:
    port.send("info", id)
    return port.until("info", id=id)[0].body


def sample(port: PortClient, id: int, **options: Any) -> None:
    port.send("sample", id, {**gaussian(), "options": {"chains": 2, "warmup": 10, "seed": id, **options}})


def test_runs_wait_in_line(port: PortClient) -> None:
    """Credit and a pause that are given meanwhile count; a run that is cancelled there never begins."""
    sample(port, 1, draws=10**7, credit=1)
    port.until("draws", id=1)
    sample(port, 2, draws=20, credit=0)
    port.until("compiled", id=2)
    waiting = info(port, 2)
    assert (waiting["stage"], waiting["paused"], waiting["credit"], waiting["chains"]) == ("waiting", False, 0, [])
    port.send("pause", 2)
    port.send("ack", 2, {"chunks": 40})  # as many as there may be at most
    assert (info(port, 2)["paused"], info(port, 2)["credit"]) == (True, 40)
    port.send("checkpoint", 2)
    assert port.until("checkpoint", id=2)[0].body == {"size": 0, "offset": 0, "bytes": b""}
    assert info(port, 1)["stage"] == "running"
    port.send("cancel", 1)
    assert port.until("done", id=1)[0].body["status"] == "cancelled"
    sample(port, 3, draws=20)
    port.until("compiled", id=3)
    while info(port, 2)["stage"] == "waiting":
        time.sleep(0.01)
    assert (info(port, 2)["stage"], info(port, 3)["stage"]) == ("running", "waiting")
    port.send("cancel", 3)
    assert port.until("done", id=3)[0].body["chains"] == []
    port.send("resume", 2)
    done, before = port.until("done", id=2)
    assert done.body["status"] == "complete"
    assert sum(m.body["count"] for m in before if m.kind == "draws") == 40


def test_run_seconds() -> None:
    """Of a run and of predictions; a shorter option holds, a longer one does not."""
    with limited(run_seconds=1) as port:
        sample(port, 1, draws=10**8, credit=UNLIMITED, max_time=1000.0)
        sample(port, 2, draws=10**8, credit=1, max_time=0.05)
        prior = {**gaussian(), "options": {"redraw": None, "draws": 10**8, "credit": UNLIMITED}}
        port.send("predict", 3, prior)
        seconds = {}
        for _ in range(3):
            done, _ = port.until("done")
            assert done.body["status"] == "max_time"
            seconds[done.id] = done.body["seconds"]["warmup"] + done.body["seconds"]["sample"]
        assert seconds[2] < 1.0 <= seconds[1]


def test_times_that_never_come() -> None:
    """Longer than a clock can wait: nothing is said of it, and nothing ends."""
    longest = 2**63 - 1
    with limited(compile_seconds=longest, abandoned_seconds=longest, run_seconds=longest) as port:
        sample(port, 1, draws=10)
        done, before = port.until("done", id=1)
        port.send("compile", 2, slow_to_compile())
        port.until("compiling", id=2)
        port.send("cancel", 2)
        assert error_of(port, 2)["code"] == "cancelled"
        port.send("shutdown", 0)
        assert done.body["status"] == "complete"
        assert not [message for message in before + port.rest() if message.kind == "log"]


def test_resident() -> None:
    """The program alone is above this: a request is refused, its id is free again, and a ping is answered."""
    with limited(resident=1000) as port:
        for _ in range(2):
            port.send("compile", 1, gaussian())
            error = error_of(port, 1)
            assert (error["code"], error["expected"]) == ("limit", "at most 1000 bytes")
        port.send("ping", 1)
        assert port.until("pong", id=1)[0].body["requests"] == 0


def test_above_resident_the_store_is_emptied_first() -> None:
    encoded = encode(np.arange(10_000_000.0))
    with PortClient() as port:
        port.hello()
        port.send("ping", 1)
        resident = port.until("pong", id=1)[0].body["resident"]
    with limited(resident=resident + 40_000_000) as port:
        for _ in range(2):
            port.send("compile", 1, gaussian() | {"data": {"z": address(encoded)}})
            port.until("need", id=1)  # the second time too: it was dropped
            port.put(1, encoded)
            assert error_of(port, 1)["code"] == "invalid_data"


def test_compile_seconds() -> None:
    """Its error, then the end: other requests are left without an answer."""
    with limited(compile_seconds=1) as port:
        port.send("compile", 1, slow_to_compile())
        port.until("compiling", id=1)
        port.send("compile", 2, slow_to_compile(terms=300))
        error, log = port.rest()
        assert port.exit_status() == 75
    assert (error.kind, error.id, error.body["code"]) == ("error", 1, "limit")
    assert "more than 1 seconds" in log.body["text"]


@pytest.mark.parametrize(("seconds", "end", "code"), [(1, "pause", "protocol"), (1000, "cancel", "cancelled")])
def test_abandoned_seconds(seconds: int, end: str, code: str) -> None:
    """After that time, or as soon as the compilation is in the way of another; a wrong message ends a request too."""
    with limited(abandoned_seconds=seconds) as port:
        port.send("compile", 1, slow_to_compile())
        port.until("compiling", id=1)
        port.send(end, 1)
        assert error_of(port, 1)["code"] == code
        if seconds > 1:
            port.send("log_density", 2, {**gaussian(), "position": np.zeros(3)})
        (log,) = port.rest()
        assert "nobody wait" in log.body["text"]
        assert port.exit_status() == 75


class Compilations:
    """A compiler of tasks that end when they are told to, and why it wanted its program replaced."""

    def __init__(self, **limits: int) -> None:
        self.reasons: list[str] = []
        self.replaced = threading.Event()
        self.compiler = Compiler(Limits(**limits), self._replace)
        self.errors: list[Exception] = []
        self._ends: dict[str, threading.Event] = {}

    def _replace(self, reason: str) -> None:
        self.reasons.append(reason)
        self.replaced.set()

    def submit(self, owner: str, model: str) -> threading.Event:
        """Whether it has begun."""
        begun, end = threading.Event(), self._ends.setdefault(owner, threading.Event())

        def task() -> None:
            begun.set()
            end.wait(DEADLINE)

        self.compiler.submit(owner, model, task, self.errors.append)
        return begun

    def begin(self, owner: str, model: str) -> None:
        assert self.submit(owner, model).wait(DEADLINE)

    def end(self, owner: str) -> None:
        self._ends[owner].set()


@pytest.fixture
def compilations() -> Iterator[Callable[..., Compilations]]:
    made: list[Compilations] = []

    def make(**limits: int) -> Compilations:
        made.append(Compilations(**limits))
        made[-1].begin("first", "model")
        return made[-1]

    yield make
    for one in made:
        for owner in one._ends:
            one.end(owner)


def test_a_compilation_takes_too_long(compilations: Callable[..., Compilations]) -> None:
    slow = compilations(compile_seconds=0.01)
    assert slow.replaced.wait(DEADLINE)
    (error,) = slow.errors
    assert isinstance(error, LimitExceeded)
    assert "compile_seconds" in error.hint


def test_one_who_asks_again_for_what_was_abandoned_waits_for_it(compilations: Callable[..., Compilations]) -> None:
    again = compilations(abandoned_seconds=0.05)
    second = again.submit("second", "model")
    again.compiler.abandon("first")
    again.submit("third", "another model")
    assert not again.replaced.wait(0.2)
    again.end("first")
    assert second.wait(DEADLINE)
    assert again.reasons == []


def test_patience_begins_anew_for_each_who_leaves(compilations: Callable[..., Compilations]) -> None:
    again = compilations(abandoned_seconds=0.3)
    for owner in ("second", "third"):
        again.compiler.abandon("first")
        again.submit(owner, "model")
        assert not again.replaced.wait(0.4)
        again.compiler.abandon(owner)
    assert again.replaced.wait(DEADLINE)
    assert again.reasons == ["nobody waited for a compilation any more"]


def test_those_who_wait_already_are_in_the_way_too(compilations: Callable[..., Compilations]) -> None:
    late = compilations()
    late.submit("second", "another model")
    assert late.reasons == []
    late.compiler.abandon("first")
    assert late.reasons == ["a compilation that nobody waits for was in the way of another"]


def test_those_who_have_left_are_not(compilations: Callable[..., Compilations]) -> None:
    left = compilations()
    left.submit("second", "another model")
    left.compiler.abandon("second")
    left.compiler.abandon("first")
    assert left.reasons == []


@pytest.mark.parametrize(
    ("setting", "text"),
    [
        ("speed=9", "there is no limit 'speed'; expected one of frame, chunk,"),
        ("runs=0", "expected a whole number above 0"),
        ("runs=-1", "expected a whole number above 0"),
        ("runs=1.5", "expected a whole number above 0"),
        ("runs=\u0665", "expected a whole number above 0"),
        ("runs", "the limit runs is ''"),
        (f"store={2**63}", "expected a whole number above 0"),
        ("nesting=65", "the limit nesting is 65; expected at most 64"),
        ("rank=65", "expected at most 64"),
        (f"frame={2**31}", f"expected at most {2**31 - 1}"),
        ("frame=1000", "the limit chunk is 1048576; expected at most half of frame, 1000"),
    ],
)
def test_limits_that_are_wrong(setting: str, text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(text)):
        Limits.parse([setting])


def test_a_wrong_limit_on_the_command_line() -> None:
    command = [sys.executable, "-m", "nutkin_port", "--limit", "speed=9"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE, env=environment(), check=False)
    assert result.returncode == 2
    assert "there is no limit 'speed'" in result.stderr
