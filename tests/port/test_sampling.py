"""Sampling with the real program: credit, chains that take turns, cancelling, and the last answer."""

from __future__ import annotations

import os
import queue
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from port.models import SCHOOLS_Y, gaussian, put_schools, schools, shifted_gaussian, slow_to_compile
from port.port_client import DEADLINE, Message, PortClient, encode

QUIET_SECONDS = 0.4
UNLIMITED = 10**9
STATISTICS = {
    "lp": np.float64,
    "energy": np.float64,
    "diverging": np.uint8,
    "tree_depth": np.int32,
    "n_steps": np.int32,
    "acceptance_rate": np.float64,
    "step_size": np.float64,
}


@pytest.fixture(scope="module")
def port() -> Iterator[PortClient]:
    """One program for all tests here, which has the tensors of eight schools: each waits for the last answer of its
    run."""
    with PortClient() as client:
        client.hello()
        client.send("log_density", 1, {**schools(), "position": np.zeros(10)})
        put_schools(client, 1)
        client.until("value", id=1)
        yield client


def start(port: PortClient, id: int, body: dict[str, Any] | None = None, **options: Any) -> None:
    port.send("sample", id, {**(body or gaussian()), "options": options})


def draws_of(messages: list[Message], chain: int, phase: str = "sample") -> list[dict[str, Any]]:
    """The bodies of `draws` messages of one chain, checked to follow each other without gaps."""
    bodies = [m.body for m in messages if m.kind == "draws" and (m.body["chain"], m.body["phase"]) == (chain, phase)]
    end = 0
    for body in bodies:
        assert body["start"] == end
        end += body["count"]
    return bodies


def exactly(port: PortClient, count: int) -> list[Message]:
    """The next `count` messages of draws, after which the run is checked to send nothing and to stop computing."""
    messages = [port.until("draws")[0] for _ in range(count)]
    deadline = time.monotonic() + DEADLINE
    while not idle(port):  # chains finish the chunk that they are at
        assert time.monotonic() < deadline
    return messages


def idle(port: PortClient) -> bool:
    """Whether the program takes less than a fifth of a core for a while, in which nothing but progress arrives."""
    before, end = cpu_ticks(port.process.pid), time.monotonic() + QUIET_SECONDS
    try:
        while True:
            message = port.receive(max(0.0, end - time.monotonic()))
            assert message is not None
            assert message.kind in ("compiled", "progress")
    except queue.Empty:
        return cpu_ticks(port.process.pid) - before <= 0.2 * QUIET_SECONDS * os.sysconf("SC_CLK_TCK")


def cpu_ticks(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def test_eight_schools(port: PortClient) -> None:
    start(port, 1, schools(), chains=4, credit=UNLIMITED, seed=1)
    done, before = port.until("done", id=1)
    assert done.body["status"] == "complete"
    assert done.body["seconds"].keys() == {"compile", "warmup", "sample"}
    assert [message.kind for message in before].count("compiled") == 1
    assert before[0].kind == "compiled"
    mu = []
    for chain in range(4):
        bodies = draws_of(before, chain)
        assert sum(body["count"] for body in bodies) == 1000
        for body in bodies:
            assert {name: array.dtype for name, array in body["stats"].items()} == STATISTICS
            assert all(array.shape == (body["count"],) for array in body["stats"].values())
            assert {name: array.shape[1:] for name, array in body["variables"].items()} == {
                "mu": (),
                "tau": (),
                "theta": (8,),
            }
            mu.append(body["variables"]["mu"])
        ended = done.body["chains"][chain]
        assert (ended["chain"], ended["draws"], ended["inverse_mass"].shape) == (chain, 1000, (10,))
    np.testing.assert_allclose(np.concatenate(mu).mean(), 4.4, atol=0.4)


def test_draws_do_not_depend_on_credit(port: PortClient) -> None:
    variables = []
    for id, credit in ((1, UNLIMITED), (2, 1)):
        start(port, id, chains=2, draws=300, warmup=50, seed=5, credit=credit)
        messages = []
        while (message := port.receive()).kind != "done":
            messages.append(message)
            if message.kind == "draws" and credit == 1:
                port.send("ack", id, {"chunks": 1})
        bodies = [draws_of(messages, chain) for chain in range(2)]
        variables.append([np.concatenate([body["variables"]["x"] for body in chain]) for chain in bodies])
    np.testing.assert_array_equal(variables[0], variables[1])


def test_without_credit_nothing_is_sent_and_nothing_runs(port: PortClient) -> None:
    start(port, 1, chains=4, draws=10**6, warmup=10, credit=2)
    exactly(port, 2)
    port.send("ping", 2)  # other requests are not held up
    assert port.until("pong", id=2)[0].body["requests"] == 1
    port.send("ack", 1, {"chunks": 0})
    port.send("ack", 1, {"chunks": 3})
    exactly(port, 3)
    start(port, 2, chains=1, draws=50, warmup=10, credit=UNLIMITED)
    assert port.until("done", id=2)[0].body["status"] == "complete"
    port.send("cancel", 1)
    done, before = port.until("done", id=1)
    assert [message.kind for message in before] == ["checkpoint"]
    assert done.body["status"] == "cancelled"


def test_warmup_needs_credit_only_when_it_is_kept(port: PortClient) -> None:
    start(port, 1, chains=1, draws=1, warmup=100, credit=0, keep_warmup=True)
    port.until("compiled", id=1)
    exactly(port, 0)
    port.send("ack", 1, {"chunks": UNLIMITED})
    done, before = port.until("done", id=1)
    assert sum(body["count"] for body in draws_of(before, 0, "warmup")) == 100
    assert sum(body["count"] for body in draws_of(before, 0)) == done.body["chains"][0]["draws"] == 1


def test_cancel_keeps_what_was_sent(port: PortClient) -> None:
    start(port, 1, chains=2, draws=10**7, warmup=10, credit=UNLIMITED)
    first, _ = port.until("draws", id=1)
    port.send("cancel", 1)
    done, before = port.until("done", id=1)
    assert done.body["status"] == "cancelled"
    for chain in range(2):
        sent = sum(body["count"] for body in draws_of([first, *before], chain))
        assert done.body["chains"][chain]["draws"] == sent
    port.send("cancel", 1)  # nothing to be answered
    port.send("ping", 2)
    assert port.until("pong", id=2)[1] == []


def test_cancel_while_waiting_for_blobs(port: PortClient) -> None:
    start(port, 1, shifted_gaussian(encode(77.0)))
    port.until("need", id=1)
    port.send("cancel", 1)
    done, before = port.until("done", id=1)
    assert before == []
    seconds = {"compile": 0.0, "warmup": 0.0, "sample": 0.0}
    assert done.body == {"status": "cancelled", "chains": [], "pilot": None, "seconds": seconds}
    port.send("ping", 2)
    assert port.until("pong", id=2)[0].body["requests"] == 0


def test_more_chains_than_cores_take_turns(port: PortClient) -> None:
    chains = 4 * len(os.sched_getaffinity(0))
    start(port, 1, chains=chains, draws=10**7, warmup=10, credit=UNLIMITED)
    seen: set[int] = set()
    while len(seen) < chains:
        message, _ = port.until("draws", id=1)
        seen.add(message.body["chain"])
    port.send("cancel", 1)
    done, _ = port.until("done", id=1)
    assert len(done.body["chains"]) == chains


def test_progress_is_sent_at_most_ten_times_a_second(port: PortClient) -> None:
    start(port, 1, chains=4, draws=10**7, warmup=10, credit=UNLIMITED)
    progress: list[dict[str, Any]] = []
    while len({body["chain"] for body in progress}) < 4 or len(progress) < 5:
        message, _ = port.until("progress", id=1)
        progress.append(message.body)
    port.send("cancel", 1)
    done, before = port.until("done", id=1)
    progress += [message.body for message in before if message.kind == "progress"]
    seconds = done.body["seconds"]
    assert len(progress) <= 10 * (seconds["warmup"] + seconds["sample"]) + 1
    last = progress[-1]
    assert (last["phase"], last["total"], last["divergences"]) == ("sample", 10**7 + 10, 0)
    assert 10 < last["iteration"] < last["total"]
    assert last["step_size"] > 0
    assert last["gradients"] > 0


def test_credit_may_come_before_the_run(port: PortClient) -> None:
    start(port, 1, gaussian(size=23), chains=1, draws=20, warmup=20, credit=0)
    port.send("ack", 1, {"chunks": 1000})  # while it is compiled
    done, _ = port.until("done", id=1)
    assert done.body["chains"][0]["draws"] == 20


def test_every_finished_chain_says_so(port: PortClient) -> None:
    start(port, 1, chains=4, draws=50, warmup=50, credit=UNLIMITED)
    _, before = port.until("done", id=1)
    last = {m.body["chain"]: m.body for m in before if m.kind == "progress"}
    assert {chain: body["iteration"] for chain, body in last.items()} == dict.fromkeys(range(4), 100)


def test_a_request_whose_programs_are_there_passes_a_compilation(port: PortClient) -> None:
    start(port, 1, chains=1, draws=10, credit=UNLIMITED)
    port.until("done", id=1)
    port.send("compile", 2, {**slow_to_compile(terms=200), "options": {}})
    start(port, 3, chains=1, draws=10, credit=UNLIMITED)
    done, before = port.until("done", id=3)
    assert done.body["status"] == "complete"
    assert not any(message.id == 2 for message in before)
    port.until("compiled", id=2)


def test_variables_and_thinning(port: PortClient) -> None:
    start(port, 1, schools(), chains=1, draws=50, warmup=50, thin=3, variables=["tau"], credit=UNLIMITED)
    _, before = port.until("done", id=1)
    bodies = draws_of(before, 0)
    assert sum(body["count"] for body in bodies) == 50
    assert all(body["variables"].keys() == {"tau"} for body in bodies)


@pytest.mark.parametrize(
    ("options", "code", "text"),
    [
        ({"variables": ["nu"]}, "invalid_option", "`nu`"),
        ({"init": {"values": {"x": np.zeros(4)}}}, "invalid_option", "x"),
        ({"init": {"values": {"z": np.zeros(3)}}}, "invalid_option", "z"),
    ],
)
def test_options_that_do_not_fit_the_model(port: PortClient, options: dict[str, Any], code: str, text: str) -> None:
    start(port, 1, **options)
    error, before = port.until("error", id=1)
    assert before == []
    assert error.body["code"] == code
    assert text in str(error.body)


def test_a_run_that_cannot_start_ends_with_its_error(port: PortClient) -> None:
    body = gaussian()
    body["model"]["nodes"] += [
        {"kind": "constant", "value": -1},
        {"kind": "call", "op": "log", "args": [3], "opts": {}},
        {"kind": "factor", "name": "impossible", "value": 4},
    ]
    start(port, 1, body, chains=3)
    error, before = port.until("error", id=1)
    assert error.body["code"] == "init_failed"
    assert "impossible" in str(error.body)
    assert not [message for message in before if message.kind in ("draws", "done")]
    port.send("ping", 2)
    pong, before = port.until("pong", id=2)
    assert (before, pong.body["requests"]) == ([], 0)


def test_a_wrong_message_for_a_run_ends_it_after_its_draws(port: PortClient) -> None:
    start(port, 1, chains=2, draws=10**7, warmup=10, credit=UNLIMITED)
    port.until("draws", id=1)
    port.send(
        "put", 1, {"blob": bytes(32), "encoding": "tensor", "size": len(SCHOOLS_Y), "offset": 0, "bytes": SCHOOLS_Y}
    )
    error, _ = port.until("error", id=1)
    assert error.body["code"] == "protocol"
    port.send("ping", 2)
    assert port.until("pong", id=2)[1] == []


def test_shutdown_ends_runs_after_their_draws() -> None:
    with PortClient() as port:
        port.hello()
        start(port, 1, chains=2, draws=10**7, warmup=10, credit=UNLIMITED)
        port.until("draws", id=1)
        port.send("shutdown", 2)
        *draws, done = port.rest()
        assert {message.kind for message in draws} <= {"draws", "progress", "checkpoint"}
        assert (done.kind, done.body["status"]) == ("done", "cancelled")
        assert port.exit_status() == 0


def test_a_pilot_can_be_cancelled(port: PortClient) -> None:
    """The run is told to be compiled before its pilot, which goes on for no longer than a step of its chains."""
    normal = {"kind": "rv", "dist": "normal", "args": {"mu": 0, "sigma": 1}}
    nodes = [
        {"kind": "constant", "value": 0},
        {"kind": "constant", "value": 1},
        {**normal, "name": "scale"},
        {"kind": "call", "op": "exp", "args": [2], "opts": {}},
        {**normal, "name": "x", "args": {"mu": 0, "sigma": 3}, "shape": [200], "centered": "auto"},
    ]
    body = {"model": {"version": 1, "nodes": nodes}, "data": {}}
    start(port, 1, body, warmup=10**6, draws=10, credit=UNLIMITED, adaptation="windowed")
    compiled, _ = port.until("compiled", id=1)
    assert compiled.body["dimension"] == 201
    port.send("cancel", 1)
    done, before = port.until("done", id=1)
    assert (done.body["status"], before) == ("cancelled", [])
    assert idle(port)


def test_a_pilot_is_told_at_the_end(port: PortClient) -> None:
    normal = {"kind": "rv", "dist": "normal", "args": {"mu": 0, "sigma": 1}}
    nodes = [
        {"kind": "constant", "value": 0},
        {"kind": "constant", "value": 1},
        {**normal, "name": "x", "shape": [2], "centered": "auto"},
    ]
    start(port, 1, {"model": {"version": 1, "nodes": nodes}, "data": {}}, draws=10, credit=UNLIMITED)
    pilot = port.until("done", id=1)[0].body["pilot"]
    assert pilot["centering"]["x"].shape == (2,)
    assert pilot["gradients"] > 0
