"""SIGTERM and SIGINT at any moment: the program ends, with a defined status; at a second one at once."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from port.models import gaussian, slow_to_compile
from port.port_client import DEADLINE, PortClient, address, encode

SIGNALS = (signal.SIGTERM, signal.SIGINT)
UPLOAD = encode(np.zeros(100_000))


@pytest.mark.parametrize("seconds", [0.0, 0.02, 0.05, 0.1])
def test_before_hello(seconds: float) -> None:
    """Until the program listens to signals, the system ends it."""
    with PortClient() as port:
        time.sleep(seconds)
        port.signal(signal.SIGTERM)
        assert [message.kind for message in port.rest()] in ([], ["hello"])
        assert port.exit_status() in (0, -signal.SIGTERM)


@pytest.mark.parametrize("number", SIGNALS)
def test_while_the_first_modules_load(tmp_path: Path, number: signal.Signals) -> None:
    """msgpack here does not load: no handler of Python's may be called, since imports may swallow what it raises."""
    reached = tmp_path / "reached"
    (tmp_path / "msgpack.py").write_text(
        f"open({str(reached)!r}, 'w').close()\nimport time\n"
        "while True:\n    try:\n        time.sleep(1)\n    except KeyboardInterrupt:\n        pass"
    )
    with PortClient(python_path=str(tmp_path)) as port:
        deadline = time.monotonic() + DEADLINE
        while not reached.exists():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        port.signal(number)
        assert port.exit_status(5.0) == -number


@pytest.mark.parametrize("number", SIGNALS)
def test_while_the_engine_loads(number: signal.Signals) -> None:
    """What was asked before the signal is answered."""
    with PortClient() as port:
        port.hello()
        port.send("ping", 1)
        time.sleep(0.2)  # the program has read it, and loads for longer
        port.signal(number)
        assert [message.kind for message in port.rest()] == ["pong"]
        assert port.exit_status() == 0


@pytest.mark.parametrize("second", SIGNALS)
def test_a_second_one_while_the_engine_loads(tmp_path: Path, second: signal.Signals) -> None:
    """jax here does not load: nothing else would end it."""
    (tmp_path / "jax.py").write_text("print('loading', flush=True)\nimport time\ntime.sleep(1000)")
    with PortClient(python_path=str(tmp_path)) as port:
        port.hello()
        port.until("log")
        port.signal(signal.SIGTERM)
        status = Path(f"/proc/{port.process.pid}/status")
        deadline = time.monotonic() + DEADLINE
        while caught(status, signal.SIGTERM):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        port.signal(second)
        assert port.exit_status(5.0) == -second


def caught(status: Path, number: signal.Signals) -> bool:
    """Whether the program has a handler for the signal."""
    mask = next(line for line in status.read_text().splitlines() if line.startswith("SigCgt:"))
    return bool(int(mask.split()[1], 16) & 1 << (number - 1))


def compile(port: PortClient) -> None:
    port.send("compile", 1, slow_to_compile())
    port.until("compiling", id=1)
    port.send("compile", 2, slow_to_compile(terms=300))


def sample(port: PortClient) -> None:
    port.send("sample", 1, {**gaussian(), "options": {"credit": 10**9, "draws": 10**8, "warmup": 10}})
    port.until("draws", id=1)


def park(port: PortClient) -> None:
    port.send("sample", 1, {**gaussian(), "options": {"credit": 1, "draws": 10**8, "warmup": 10}})
    port.until("draws", id=1)
    port.send("pause", 1)


def upload(port: PortClient) -> None:
    port.send("compile", 1, gaussian() | {"data": {"z": address(UPLOAD)}})
    port.until("need", id=1)
    part = UPLOAD[: len(UPLOAD) // 2]
    blob = {"blob": address(UPLOAD), "encoding": "tensor", "size": len(UPLOAD), "offset": 0, "bytes": part}
    port.send("put", 1, blob)


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize(
    ("begin", "answers"),
    [
        (compile, {1: "cancelled", 2: "cancelled"}),
        (sample, {1: "done"}),
        (park, {1: "done"}),
        (upload, {1: "cancelled"}),
    ],
)
def test_what_is_open_is_answered(
    number: signal.Signals, begin: Callable[[PortClient], None], answers: dict[int, str]
) -> None:
    with PortClient() as port:
        port.hello()
        begin(port)
        port.send("ping", 3)
        port.until("pong", id=3)
        port.signal(number)
        last = {m.id: m.body.get("code", m.kind) for m in port.rest() if m.kind in ("done", "error")}
        assert last == answers
        assert port.exit_status() == 0
