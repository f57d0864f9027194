"""Control of runs: pauses, infos and checkpoints at every stage, and runs that go on from a checkpoint."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from port.kept import Draws, whole
from port.models import gaussian, shifted_gaussian, slow_to_compile
from port.port_client import Message, PortClient, address, encode

CONTROL = ("pause", "resume", "info", "checkpoint")
UNLIMITED = 10**9
CHUNK = 4000
NOTHING = {"size": 0, "offset": 0, "bytes": b""}
OPTIONS = {"chains": 2, "warmup": 190, "draws": 300, "seed": 7, "keep_warmup": True}


@pytest.fixture(scope="module")
def port() -> Iterator[PortClient]:
    """One program whose messages are small: after each test it has nothing open."""
    with PortClient("--limit", f"chunk={CHUNK}") as client:
        client.hello()
        yield client


@pytest.fixture(autouse=True)
def nothing_is_left(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if "port" in request.fixturenames:
        request.getfixturevalue("port").check_idle()


def start(port: PortClient, id: int, body: dict[str, Any] | None = None, **options: Any) -> None:
    port.send("sample", id, {**(body or gaussian()), "options": {**OPTIONS, **options}})


def info(port: PortClient, id: int) -> dict[str, Any]:
    port.send("info", id)
    return port.until("info", id=id)[0].body


def checkpoint(port: PortClient, id: int) -> tuple[bytes, list[Message]]:
    """One that is asked for, of a run that sends none otherwise; and the draws before it."""
    port.send("checkpoint", id)
    first, before = port.until("checkpoint", id=id)
    pieces = [first]
    while pieces[-1].body["offset"] + len(pieces[-1].body["bytes"]) < first.body["size"]:
        piece, between = port.until("checkpoint", id=id)
        before += between  # draws may come between: they are not counted
        pieces.append(piece)
    return whole(pieces), [message for message in before if message.kind == "draws"]


@pytest.fixture(scope="module")
def uninterrupted(port: PortClient) -> Draws:
    """A run with OPTIONS."""
    draws = Draws(OPTIONS["chains"])
    start(port, 1, credit=UNLIMITED)
    _, before = port.until("done", id=1)
    for message in before:
        if message.kind == "draws":
            draws.add(message)
    assert draws.delivered() == [[190, 300]] * 2
    return draws


def test_before_the_blobs_are_there(port: PortClient) -> None:
    encoded = encode(5.0)
    start(port, 1, shifted_gaussian(encoded), draws=10, warmup=10)
    port.until("need", id=1)
    port.send("pause", 1)
    port.send("pause", 1)
    found = info(port, 1)
    assert (found["stage"], found["paused"], found["credit"], found["chains"]) == ("waiting", True, 16, [])
    assert 0.0 <= found["seconds"] < 10.0
    port.send("checkpoint", 1)
    assert port.until("checkpoint", id=1)[0].body == NOTHING
    port.put(1, encoded)
    port.until("compiled", id=1)
    while info(port, 1)["stage"] != "running":
        time.sleep(0.01)
    assert checkpoint(port, 1)[1] == []
    assert [chain["iteration"] for chain in info(port, 1)["chains"]] in ([], [0, 0])
    port.send("resume", 1)
    port.send("resume", 1)
    assert port.until("done", id=1)[0].body["status"] == "complete"


def test_while_it_is_compiled_and_after_its_end() -> None:
    with PortClient() as port:
        port.hello()
        start(port, 1, slow_to_compile(), credit=1)
        port.until("compiling", id=1)
        assert info(port, 1)["stage"] == "compiling"
        start(port, 2, slow_to_compile(), credit=1)
        port.send("pause", 1)
        port.send("checkpoint", 1)
        assert port.until("checkpoint", id=1)[0].body == NOTHING
        assert info(port, 1)["paused"] is True
        assert info(port, 2)["stage"] == "waiting"
        port.send("cancel", 1)
        assert port.until("done", id=1)[0].body["status"] == "cancelled"
        for kind in CONTROL:
            port.send(kind, 1)
        port.send("ping", 3)
        assert port.until("pong", id=3)[1] == []


def test_a_paused_run_stops_and_goes_on(port: PortClient) -> None:
    start(port, 1, credit=UNLIMITED, draws=10**7, keep_warmup=False)
    port.until("draws", id=1)
    port.send("pause", 1)
    port.send("ping", 2)
    port.until("pong", id=2)
    deadline = time.monotonic() + 10.0
    while True:  # the chunks that are being computed are ended and sent
        first, second = info(port, 1), _info_later(port)
        if (first["chains"], first["credit"]) == (second["chains"], second["credit"]):
            break
        assert time.monotonic() < deadline
    assert first["paused"] is second["paused"] is True
    assert second["seconds"] > first["seconds"]
    assert {chain["phase"] for chain in second["chains"]} == {"sample"}
    state, before = checkpoint(port, 1)
    assert before == []
    assert len(state) > 0
    port.send("resume", 1)
    port.until("draws", id=1)
    port.send("pause", 1)
    port.send("cancel", 1)
    done, _ = port.until("done", id=1)
    assert done.body["status"] == "cancelled"


def _info_later(port: PortClient) -> dict[str, Any]:
    time.sleep(0.1)
    return info(port, 1)


def test_a_parked_run_is_paused_too(port: PortClient) -> None:
    start(port, 1, credit=1)
    first, _ = port.until("draws", id=1)
    port.send("pause", 1)
    assert info(port, 1)["credit"] == 0
    state, before = checkpoint(port, 1)
    assert before == []
    assert len(state) > 0
    port.send("ack", 1, {"chunks": UNLIMITED})  # what is there is sent, and no more is made
    port.send("resume", 1)
    done, _ = port.until("done", id=1)
    assert [chain["draws"] for chain in done.body["chains"]] == [300, 300]
    assert first.body["start"] == 0


@pytest.mark.parametrize("kind", CONTROL[:2] + CONTROL[3:])
def test_control_of_what_is_no_run(port: PortClient, kind: str) -> None:
    encoded = encode(77.0)
    port.send("log_density", 1, {**shifted_gaussian(encoded), "position": np.zeros(1)})
    port.until("need", id=1)
    assert info(port, 1) | {"seconds": 0} == {
        "stage": "waiting",
        "paused": False,
        "credit": 0,
        "seconds": 0,
        "chains": [],
    }
    port.send(kind, 1)
    error = port.until("error", id=1)[0].body
    assert (error["code"], error["found"]) == ("protocol", "LogDensity")


def test_predictions_have_no_checkpoint(port: PortClient) -> None:
    port.send("predict", 1, {**gaussian(), "options": {"redraw": None, "credit": 1, "draws": 10**6}})
    port.until("draws", id=1)
    port.send("pause", 1)
    port.send("ack", 1, {"chunks": 1})
    port.until("draws", id=1)
    assert info(port, 1) | {"seconds": 0} == {
        "stage": "running",
        "paused": True,
        "credit": 0,
        "seconds": 0,
        "chains": [],
    }
    port.send("checkpoint", 1)
    assert port.until("error", id=1)[0].body["code"] == "protocol"


def test_predictions_that_were_delivered_are_not_sent(port: PortClient) -> None:
    body = {**gaussian(), "options": {"redraw": None, "credit": UNLIMITED, "chains": 2, "draws": 500}}
    port.send("predict", 1, body)
    _, before = port.until("done", id=1)
    expected = np.concatenate([m.body["variables"]["x"] for m in before if m.kind == "draws" and m.body["chain"] == 1])
    port.send("predict", 1, {**body, "delivered": [[0, 500], [0, 333]]})
    _, before = port.until("done", id=1)
    found = [m.body for m in before if m.kind == "draws"]
    assert found[0]["start"] == 333
    assert {body["chain"] for body in found} == {1}
    np.testing.assert_array_equal(np.concatenate([body["variables"]["x"] for body in found]), expected[333:])


@pytest.mark.parametrize("delivered", [[[0]], [[0, 0, 0]], [[-1, 0]], [0, 0], [["0", 0]]])
def test_delivered_that_is_wrong(port: PortClient, delivered: Any) -> None:
    port.send("sample", 1, {**gaussian(), "options": {}, "delivered": delivered})
    error = port.until("error", id=1)[0].body
    assert error["code"] == "protocol"
    assert error["path"].startswith("$.delivered")


@pytest.mark.parametrize("content", [b"\x80", b"no checkpoint", b"\x81\xa6format\x01", b"\xdf\xff\xff\xff\xff"])
def test_bytes_that_are_no_checkpoint(port: PortClient, content: bytes) -> None:
    blob = encode(np.frombuffer(content, np.uint8), "u1")
    port.send("sample", 1, {**gaussian(), "options": OPTIONS, "checkpoint": address(blob)})
    port.until("need", id=1)
    port.put(1, blob, chunk=CHUNK)
    assert port.until("error", id=1)[0].body["code"] == "invalid_checkpoint"


def test_checkpoints_at_intervals(port: PortClient) -> None:
    """Never so many that they take more than a twentieth of the time; one of what was sent last before `done`."""
    start(port, 1, credit=UNLIMITED, draws=10**7, keep_warmup=False, checkpoint_every=0.01, max_time=0.5)
    done, before = port.until("done", id=1)
    assert done.body["status"] == "max_time"
    kinds = [m.kind for m in before if m.kind != "progress"]
    counts = [m.body["offset"] for m in before if m.kind == "checkpoint"].count(0)
    assert 2 < counts <= 51
    assert kinds[-1] == "checkpoint"


def resume(port: PortClient, id: int, state: bytes, draws: Draws, **options: Any) -> None:
    """A run that goes on from a checkpoint, b"" for none."""
    body = {**gaussian(), "options": {**OPTIONS, **options}, "delivered": draws.delivered()}
    if not state:
        port.send("sample", id, body)
        return
    blob = encode(np.frombuffer(state, np.uint8), "u1")
    port.send("sample", id, {**body, "checkpoint": address(blob)})
    message, _ = port.until("need", "compiled", id=id)
    if message.kind == "need":
        port.put(id, blob, chunk=CHUNK)


@pytest.mark.parametrize("seed", range(12))
def test_a_run_goes_on_where_it_was_cancelled(port: PortClient, uninterrupted: Draws, seed: int) -> None:
    """Of the checkpoints that were sent any may be taken, with more draws delivered than it counts."""
    choice = random.Random(seed)
    draws, state = Draws(OPTIONS["chains"]), b""
    for id in itertools.count(1):
        resume(
            port,
            id,
            state,
            draws,
            credit=choice.choice([1, 3, UNLIMITED]),
            checkpoint_every=choice.choice([None, 0.001]),
        )
        until = choice.randint(1, 40)
        found, done = go(port, id, draws, until, choice)
        if done.body["status"] == "complete":
            break
        state = choice.choice([state, *found])
    draws.check_same(uninterrupted)


def go(port: PortClient, id: int, draws: Draws, most: int, choice: random.Random) -> tuple[list[bytes], Message]:
    """Reads a run, cancelled after so many messages of draws: its checkpoints, and its end."""
    checkpoints: list[bytes] = []
    pieces: list[Message] = []
    seen = 0
    while True:
        message, _ = port.until("draws", "checkpoint", "done", id=id)
        if message.kind == "done":
            return checkpoints, message
        if message.kind == "checkpoint":
            pieces.append(message)
            if message.body["offset"] + len(message.body["bytes"]) == message.body["size"]:
                checkpoints.append(whole(pieces))
                pieces = []
            continue
        draws.add(message)
        seen += 1
        if seen == most:
            port.send("cancel", id)
        elif choice.random() < 0.1:
            port.send("pause", id)
            port.send("checkpoint", id)
            port.send("resume", id)
        port.send("ack", id, {"chunks": choice.randint(1, 2)})


def test_more_draws_of_a_run_that_was_complete(port: PortClient, uninterrupted: Draws) -> None:
    draws = Draws(OPTIONS["chains"])
    start(port, 1, draws=100, credit=UNLIMITED)
    _, before = port.until("done", id=1)
    for message in before:
        if message.kind == "draws":
            draws.add(message)
    state = whole([message for message in before if message.kind == "checkpoint"])
    resume(port, 2, state, draws, credit=UNLIMITED)
    go(port, 2, draws, 10**6, random.Random(0))
    draws.check_same(uninterrupted)
