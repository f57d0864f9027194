"""`log` messages: what the program itself has to say, and every line that arrives on the pipes behind fds 1 and 2.

Whoever prints without end must neither flood the client nor be held up, since it may be a chain that prints: the pipes
are always read, and beyond a number of lines in a second the rest is counted only.
"""

from __future__ import annotations

import collections
import os
import selectors
import sys
import threading
import time
import traceback
from collections.abc import Callable

from nutkin_port import descriptors

MAX_LINE = 4096
KEPT_BEFORE_HELLO = 1000
BURST, LINES_PER_SECOND = 1000, 100
QUIET_SECONDS = 0.2  # after which a line without its end is sent as it is

Send = Callable[[str, int, dict], None]


class Logs:
    """Reads the two pipes from the start; sends once `open` was called, since `hello` is the first frame."""

    def __init__(self, stdout: int, stderr: int) -> None:
        self._lock = threading.Lock()
        self._send: Send | None = None
        self._held: collections.deque[dict] = collections.deque(maxlen=KEPT_BEFORE_HELLO)
        self._allowance, self._allowed_at = float(BURST), time.monotonic()
        self._left_out = 0
        self._pipes = {stdout: "stdout", stderr: "stderr"}
        self._thread = threading.Thread(target=self._pump, name="logs", daemon=True)
        self._thread.start()

    def open(self, send: Send) -> None:
        """From now on messages are sent, those held first."""
        with self._lock:
            self._send = send
            while self._held:
                send("log", 0, self._held.popleft())

    def close(self) -> None:
        """Sends what the pipes still hold. Later output is lost."""
        sys.stdout.flush()
        sys.stderr.flush()
        descriptors.release_output()
        self._thread.join(timeout=1.0)  # a child process may keep a pipe open
        with self._lock:
            self._say_what_was_left_out()

    def emit(self, level: str, source: str, text: str) -> None:
        """One message a line; longer lines are cut."""
        for line in text.splitlines():
            for piece in _pieces(line):
                with self._lock:
                    if self._may_say_more(1):
                        self._allowance -= 1
                        self._say_what_was_left_out()
                        self._deliver({"level": level, "source": source, "text": piece})

    def _may_say_more(self, lines: int) -> bool:
        """Whether one line may be said; if not, so many are left out."""
        now = time.monotonic()
        earned = LINES_PER_SECOND * (now - self._allowed_at)
        self._allowance, self._allowed_at = min(BURST, self._allowance + earned), now
        if self._allowance < 1:
            self._left_out += lines
        return self._allowance >= 1

    def _say_what_was_left_out(self) -> None:
        if self._left_out:
            text = f"{self._left_out} lines that came too fast were left out"
            self._left_out = 0
            self._deliver({"level": "warning", "source": "nutkin", "text": text})

    def _deliver(self, body: dict) -> None:
        if self._send is None:
            self._held.append(body)
        else:
            self._send("log", 0, body)

    def emit_traceback(self, error: BaseException) -> None:
        self.emit("error", "nutkin", "".join(traceback.format_exception(error)))

    def _pump(self) -> None:
        with selectors.DefaultSelector() as selector:
            partial = {}
            for descriptor in self._pipes:
                selector.register(descriptor, selectors.EVENT_READ)
                partial[descriptor] = b""
            while selector.get_map():
                ready = selector.select(QUIET_SECONDS if any(partial.values()) else None)
                for key, _ in ready:
                    data = os.read(key.fd, 65536)
                    *lines, rest = (partial[key.fd] + data).split(b"\n")
                    if not data:
                        selector.unregister(key.fd)
                    if not data or len(rest) >= MAX_LINE:
                        lines, rest = [*lines, rest], b""
                    partial[key.fd] = rest
                    self._emit_lines(key.fd, lines)
                if not ready:
                    for descriptor, rest in partial.items():
                        partial[descriptor] = b""
                        self._emit_lines(descriptor, [rest])

    def _emit_lines(self, descriptor: int, lines: list[bytes]) -> None:
        with self._lock:
            if lines and not self._may_say_more(len(lines)):
                return  # not even decoded: whoever prints so much is slowed down as little as can be
        source = self._pipes[descriptor]
        level = "info" if source == "stdout" else "warning"
        for line in lines:
            self.emit(level, source, line.decode("utf-8", "replace"))


def _pieces(line: str) -> list[str]:
    """The line in pieces of at most MAX_LINE bytes of UTF-8, cut between characters."""
    pieces = []
    data = line.encode("utf-8", "replace")
    while data:
        piece = data[:MAX_LINE].decode("utf-8", "ignore")
        pieces.append(piece)
        data = data[len(piece.encode("utf-8")) :]
    return pieces
