"""The port program as a process: how it starts, what it prints, and every way in which it ends."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

import msgpack
import numpy as np
import pytest

from nutkin_port.limits import Limits
from port.models import schools, slow_to_compile
from port.port_client import DEADLINE, PortClient, environment
from port.printing_port import LONG_LINE


def test_hello() -> None:
    with PortClient() as port:
        hello = port.hello()
        check_descriptors(hello["pid"], port)
        assert hello["protocol"] == 1
        assert hello["versions"].keys() == {"nutkin", "python", "jax", "jaxlib", "numpy"}
        assert hello["versions"]["numpy"] == np.__version__
        assert hello["limits"] == {
            "frame": 16 * 2**20,
            "chunk": 2**20,
            "store": 2**30,
            "tensor": 2**32,
            "rank": 64,
            "elements": 2**31,
            "tensors": 2**34,
            "nesting": 64,
            "nodes": 100_000,
            "requests": 256,
            "runs": 64,
            "compile_seconds": 600,
            "abandoned_seconds": 10,
            "run_seconds": None,
            "resident": None,
        }
        assert hello["pid"] == port.process.pid
        port.send("ping", 2**64 - 1)
        pong, before = port.until("pong", id=2**64 - 1)
        assert before == []
        assert pong.body["requests"] == 0
        assert pong.body["blobs"] == {"count": 0, "bytes": 0}
        assert pong.body["resident"] > 2**20
        assert pong.body["devices"] == [{"platform": "cpu", "kind": "cpu"}]
        port.send("shutdown", 0)
        assert port.rest() == []
        assert port.exit_status() == 0


def check_descriptors(pid: int, port: PortClient) -> None:
    """The wire is not on fds 0 to 4, and closed in whatever the program starts."""
    wire = {os.fstat(descriptor).st_ino for descriptor in port.descriptors}
    found = set()
    for entry in Path(f"/proc/{pid}/fdinfo").iterdir():
        inode = os.stat(f"/proc/{pid}/fd/{entry.name}").st_ino
        if inode in wire:
            found.add(inode)
            flags = int(entry.read_text().split("flags:")[1].split()[0], 8)
            assert int(entry.name) > 4
            assert flags & os.O_CLOEXEC
    assert found == wire
    assert os.readlink(f"/proc/{pid}/fd/0") == "/dev/null"


def test_frames_on_standard_input_and_output() -> None:
    with PortClient(stdio=True) as port:
        assert port.hello()["protocol"] == 1
        port.send("ping", 1)
        port.until("pong", id=1)
        port.close_input()
        assert port.exit_status() == 0


def test_options_of_the_command_line(tmp_path: Path) -> None:
    with PortClient("--limit", "store=1000", "--cache-dir", str(tmp_path / "cache")) as port:
        assert port.hello()["limits"]["store"] == 1000
        port.send("compile", 1, slow_to_compile(terms=2))
        port.until("compiled", id=1)
        deadline = time.monotonic() + DEADLINE  # it is stored beside the run
        while not list(tmp_path.glob("cache/*.program")):
            assert time.monotonic() < deadline
            time.sleep(0.01)


def test_a_start_without_the_descriptors_says_what_is_missing() -> None:
    command = [sys.executable, "-m", "nutkin_port"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE, env=environment(), check=False)
    assert result.returncode == 64
    assert "fds 3 and 4" in result.stderr


def test_hello_does_not_wait_for_the_engine(tmp_path: Path) -> None:
    """jax here loads when the client says so, and what was sent before is answered after."""
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    (tmp_path / "jax.py").write_text(f"open({str(gate)!r}).read(); raise ImportError('the gate is open')")
    with PortClient(python_path=str(tmp_path)) as port:
        hello = port.hello()
        assert hello["versions"]["jax"] == version("jax")
        port.send("ping", 1)
        gate.write_text("")  # waits for its reader, which is the import
        *_, error = port.rest()
        assert "the gate is open" in error.body["message"]


def test_a_broken_installation_is_said_in_a_message(tmp_path: Path) -> None:
    (tmp_path / "jax.py").write_text("raise ImportError('jax is broken')")
    with PortClient(python_path=str(tmp_path)) as port:
        assert port.hello()["protocol"] == 1
        with contextlib.suppress(BrokenPipeError):  # it may have ended already
            port.send("ping", 1)
        *logs, error = port.rest()
        assert "jax is broken" in error.body["message"]
        assert (error.kind, error.id, error.body["code"]) == ("error", 0, "internal")
        assert any("Traceback" in log.body["text"] for log in logs)
        assert port.exit_status() == 70


def test_everything_printed_becomes_log_messages() -> None:
    with PortClient(module="port.printing_port") as port:
        port.hello()
        early, before = port.until("log")
        assert before == []
        assert early.body == {"level": "info", "source": "stdout", "text": "importing the engine"}
        port.send("ping", 1)
        assert port.until("pong", id=1)[1] == []  # the engine is loaded
        port.signal(signal.SIGUSR1)
        lines = {"stdout": [], "stderr": []}
        while len(lines["stdout"]) < 8 or len(lines["stderr"]) < 2:
            log, before = port.until("log")
            assert before == []
            assert len(log.body["text"].encode()) <= 4096
            lines[log.body["source"]].append(log.body["text"])
        python = ["from print", "from jax, 1.5", "from a program of jax, 2.5"]
        stdout = [*python, "from C", "\x00\x00\x00\x05 not \ufffd UTF-8"]
        assert sorted(lines["stdout"][:5]) == sorted(stdout)
        assert "".join(lines["stdout"][5:]) == LONG_LINE
        assert lines["stderr"] == ["from print to stderr", "no end of line"]
        port.signal(signal.SIGUSR1)
        port.send("shutdown", 0)
        last = [message.body["text"] for message in port.rest()]
        assert "no end of line" in last  # also what was printed just before the end
        assert port.exit_status() == 0


def test_a_flood_of_output_neither_fills_memory_nor_holds_anything_up() -> None:
    with PortClient(module="port.printing_port") as port:
        port.hello()
        port.send("ping", 1)
        before = port.until("pong", id=1)[0].body["resident"]
        port.signal(signal.SIGUSR2)
        lines, left_out, pings = 0, 0, 1
        while True:
            pings += 1
            port.send("ping", pings)
            pong, logs = port.until("pong", id=pings)
            assert pong.body["resident"] < before + 50 * 2**20
            texts = [log.body["text"] for log in logs]
            lines += len(texts)
            left_out += sum(int(text.split()[0]) for text in texts if "were left out" in text)
            if left_out > 20_000_000:
                break
            time.sleep(0.05)
        assert lines < 5000
        port.send("shutdown", 0)
        assert {message.kind for message in port.rest()} <= {"log"}
        assert port.exit_status() == 0


def test_sigterm_answers_open_requests_and_ends_the_program() -> None:
    with PortClient() as port:
        port.hello()
        port.send("compile", 5, schools())
        port.until("need", id=5)
        port.signal(signal.SIGTERM)
        error, _ = port.until("error", id=5)
        assert error.body["code"] == "cancelled"
        assert port.rest() == []
        assert port.exit_status() == 0


def test_shutdown_answers_open_requests() -> None:
    with PortClient() as port:
        port.hello()
        port.send("compile", 5, schools())
        port.send("sample", 6, schools())
        port.until("need", id=5)
        port.until("need", id=6)
        port.send("shutdown", 7)
        answers = {message.id: message for message in port.rest()}
        assert answers[5].body["code"] == "cancelled"
        assert answers[6].body == {
            "status": "cancelled",
            "chains": [],
            "pilot": None,
            "seconds": {"compile": 0.0, "warmup": 0.0, "sample": 0.0},
        }
        assert port.exit_status() == 0


def test_the_end_of_the_input_ends_a_compilation() -> None:
    with PortClient("--cache-dir", "off") as port:
        port.hello()
        port.send("compile", 1, slow_to_compile())
        port.send("ping", 2)
        port.until("pong", id=2)
        started = time.monotonic()
        port.close_input()
        status = port.exit_status()
        assert time.monotonic() - started < 0.5
        assert status == 0
        assert port.rest() == []  # so it was compiling


def test_the_end_of_the_input_within_a_frame() -> None:
    with PortClient() as port:
        port.hello()
        port.send_bytes((1000).to_bytes(4, "big") + b"\x93\xa4ping")
        port.close_input()
        assert port.exit_status() == 0
        assert port.rest() == []


def test_the_end_of_the_input_before_hello() -> None:
    with PortClient() as port:
        port.close_input()
        assert port.exit_status() == 0


def test_the_death_of_the_parent_ends_it_while_the_input_is_open() -> None:
    with PortClient(parent=True) as port:
        hello = port.hello()
        assert hello["pid"] != port.process.pid
        port.process.kill()
        assert port.rest() == []  # its end of the pipe is closed


@pytest.mark.parametrize(
    ("data", "code", "message"),
    [
        ((2**31).to_bytes(4, "big"), "limit", "a frame is too long"),
        ((Limits.frame + 1).to_bytes(4, "big") + bytes(10_000), "limit", "a frame is too long"),
        ((3).to_bytes(4, "big") + b"\xc1\xc1\xc1", "protocol", "not msgpack"),
        ((1).to_bytes(4, "big") + b"\x01", "protocol", "not [type, id, body]"),
    ],
)
def test_bytes_that_are_no_frames_end_it_with_an_error(data: bytes, code: str, message: str) -> None:
    with PortClient() as port:
        port.hello()
        port.send_bytes(data)
        (error,) = port.rest()
        assert (error.kind, error.id, error.body["code"]) == ("error", 0, code)
        assert message in error.body["message"]
        assert port.exit_status() == 65


def test_messages_that_are_wrong_are_answered_and_it_lives_on() -> None:
    wrong = [
        (["launch", 1, {}], 1, "protocol", "unknown type"),
        (["ping", 2, {"now": True}], 2, "protocol", "unknown field `now`"),
        (["sample", 3, {"model": {}, "data": {}, "options": {"chain": 3}}], 3, "invalid_option", "`chain`"),
        (["sample", 4, {"data": {}}], 4, "protocol", "`model`"),
        (
            ["compile", 5, {"model": {"version": 1, "nodes": []}, "data": {}, "options": {"precision": 1}}],
            5,
            "invalid_option",
            "got `int`",
        ),
        (["sample", 6, {"model": float("nan"), "data": {}}], 6, "protocol", "not finite"),
        (["log_density", 7, {"position": msgpack.ExtType(1, b"?")}], 7, "invalid_data", "tensor"),
        (["compile", 8, {"model": {"version": 1}, "data": {}}], 8, "invalid_model", "nodes"),
        (["compile", 0, {"model": {"version": 1}, "data": {}}], 0, "protocol", "id of a request"),
    ]
    with PortClient() as port:
        port.hello()
        for message, id, code, text in wrong:
            frame = msgpack.packb(message)
            port.send_bytes(len(frame).to_bytes(4, "big") + frame)
            error = port.receive()
            assert error is not None
            assert (error.kind, error.id, error.body["code"]) == ("error", id, code), error
            assert text in error.body["message"] + error.body.get("path", ""), error
        for kind, body in [("ack", {"chunks": 1}), ("cancel", {}), ("put", put_body())]:
            port.send(kind, 99, body)  # of a request that has ended: no answer
        port.send("ping", 10)
        pong, before = port.until("pong", id=10)
        assert before == []
        assert pong.body["requests"] == 0


def test_a_defect_in_a_request_is_its_answer_and_the_program_lives_on() -> None:
    with PortClient(module="port.defective_port") as port:
        port.hello()
        port.send("compile", 1, slow_to_compile(terms=1))
        error, logs = port.until("error", id=1)
        assert error.body["code"] == "internal"
        assert "ZeroDivisionError at defective_port.py:" in error.body["message"]
        assert logs[0].body == {"level": "error", "source": "nutkin", "text": "Traceback (most recent call last):"}
        assert logs[-1].body["text"] == "ZeroDivisionError: division by zero"
        port.send("ping", 2)
        assert port.until("pong", id=2)[0].body["requests"] == 0


def put_body() -> dict[str, object]:
    return {"blob": bytes(32), "encoding": "tensor", "size": 1, "offset": 0, "bytes": b"x"}
