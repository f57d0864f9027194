"""A small client of the port program: the real process, over pipes, as an Erlang port opens it (fds 3 and 4)."""

from __future__ import annotations

import fcntl
import hashlib
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

import msgpack
import numpy as np

from nutkin_port import codec, tensors
from nutkin_port.frames import FrameReader, FrameTooLong

DEADLINE = 30.0
LIMIT = 1 << 30
ROOT = Path(__file__).parents[2]
CACHE = tempfile.TemporaryDirectory(prefix="nutkin-cache-")  # one for all programs of a test session


class Message(NamedTuple):
    kind: str
    id: int
    body: dict[str, Any]


class PortClient:
    """Starts the program (`python -m nutkin_port`, or another module) and speaks frames with it."""

    def __init__(
        self,
        *arguments: str,
        module: str = "nutkin_port",
        stdio: bool = False,
        parent: bool = False,
        python_path: str = "",
    ) -> None:
        """`parent`: a shell stays between this process and the program. `python_path` precedes all other folders."""
        there_in, self._input = _pipe()
        self._output, there_out = _pipe()
        wire = (0, 1, "--stdio") if stdio else (3, 4, "")
        command = f'"$0" -m {module} {wire[2]} "$@" {wire[0]}<&{there_in} {wire[1]}>&{there_out}'
        closed = f"{there_in}<&- {there_out}>&-"
        command = f"{command} {closed} & exec {closed}; wait" if parent else f"exec {command} {closed}"
        self.process = subprocess.Popen(
            ["bash", "-c", command, sys.executable, *arguments],
            pass_fds=(there_in, there_out),
            env=environment(python_path),
            stdin=subprocess.DEVNULL,
        )
        os.close(there_in)
        os.close(there_out)
        self._messages: queue.Queue[Message | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> PortClient:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(DEADLINE)
        self.close_input()
        self._reader.join(DEADLINE)

    def _read(self) -> None:
        reader = FrameReader(self._output, LIMIT)
        while isinstance(frame := reader.read(), bytearray):
            self._messages.put(Message(*msgpack.unpackb(frame, ext_hook=lambda _, payload: tensors.decode(payload))))
        assert not isinstance(frame, FrameTooLong)
        os.close(self._output)
        self._messages.put(None)

    def send(self, kind: str, id: int, body: dict[str, Any] | None = None) -> None:
        frame = codec.pack(kind, id, body or {}, limit=LIMIT)
        self.send_bytes(len(frame).to_bytes(4, "big") + frame)

    def send_bytes(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._input, rest) :]

    def put(self, id: int, encoded: bytes, *, encoding: str = "tensor", chunk: int = 1 << 20) -> None:
        """Uploads one blob for a request."""
        blob = {"blob": address(encoded), "encoding": encoding, "size": len(encoded)}
        for offset in range(0, len(encoded), chunk):
            self.send("put", id, {**blob, "offset": offset, "bytes": encoded[offset : offset + chunk]})

    def receive(self, timeout: float = DEADLINE) -> Message | None:
        """The next message; None at the end of the output. queue.Empty after the timeout."""
        return self._messages.get(timeout=timeout)

    def until(self, *kinds: str, id: int | None = None) -> tuple[Message, list[Message]]:
        """The next message of one of these types, and those before it, but for `compiling`, which few care about."""
        before: list[Message] = []
        deadline = time.monotonic() + DEADLINE
        while True:
            message = self.receive(max(0.0, deadline - time.monotonic()))
            assert message is not None, f"the program ended while {kinds} was awaited, after {before}"
            if message.kind in kinds and id in (None, message.id):
                return message, before
            assert message.kind != "error", message
            if message.kind != "compiling":
                before.append(message)

    def check_idle(self) -> None:
        """Nothing has come unasked, and nothing is open."""
        self.send("ping", 10**6)
        pong, before = self.until("pong", id=10**6)
        assert before == []
        assert pong.body["requests"] == 0

    def rest(self) -> list[Message]:
        """All messages until the end of the output."""
        messages = []
        while (message := self.receive()) is not None:
            messages.append(message)
        return messages

    def hello(self) -> dict[str, Any]:
        message = self.receive()
        assert message is not None
        assert message.kind == "hello", message
        return message.body

    def close_input(self) -> None:
        if self._input >= 0:
            os.close(self._input)
            self._input = -1

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    @property
    def descriptors(self) -> tuple[int, int]:
        return self._input, self._output

    def exit_status(self, timeout: float = DEADLINE) -> int:
        return self.process.wait(timeout)


def environment(*python_path: str) -> dict[str, str]:
    """That of this process, with the packages of this repository."""
    folders = [*python_path, *(str(ROOT / name) for name in ("python", "bridge", "tests"))]
    path = os.pathsep.join(filter(None, [*folders, os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path, "JAX_PLATFORMS": "cpu", "NUTKIN_CACHE_DIR": CACHE.name}


def _pipe() -> tuple[int, int]:
    """A pipe whose ends are none of the numbers that the program is given its wire under."""
    ends = os.pipe()
    moved = tuple(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 20) for end in ends)
    for end in ends:
        os.close(end)
    return moved


def address(encoded: bytes) -> bytes:
    return hashlib.sha256(encoded).digest()


def encode(values: Any, dtype: str = "f8") -> bytes:
    return tensors.encode(np.asarray(values, dtype))
