"""The engine inside a Python that erlport runs, for applications that have one: the same messages, and no port of ours.

`call` takes the frames of one request and returns those of its answers. `serve` makes the process take frames as
erlport messages, `{Pid, Frame}`, and send the answers to that process as `{nutkin, Frame}`, while it computes: with
credit, cancelling and everything else that PROTOCOL.md says. A frame is one message, `[type, id, body]` in msgpack.

erlport's own package has to run on this Python, and is on the path of the process that it starts.
"""

from __future__ import annotations

import logging
import queue
import threading
import traceback
from collections.abc import Callable
from functools import cache
from typing import Any

import msgpack

from nutkin_port import codec
from nutkin_port.hello import hello
from nutkin_port.limits import Limits
from nutkin_port.requests import Requests

_LAST = frozenset(("done", "value", "diagnosis", "shapes", "evaluated", "pong", "error"))
_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}

_logger = logging.getLogger("nutkin")
_one_at_a_time = threading.Lock()


class _Outlet:
    """Where the frames of a `Requests` go."""

    def __init__(self, deliver: Callable[[bytes], None]) -> None:
        self.write = deliver


class _Log:
    """What the engine has to say goes to Python's logging: the output of the process belongs to the application."""

    def emit(self, level: str, _source: str, text: str) -> None:
        _logger.log(_LEVELS[level], "%s", text)

    def emit_traceback(self, error: BaseException) -> None:
        self.emit("error", "nutkin", "".join(traceback.format_exception(error)))


def call(frames: bytes | list[bytes]) -> list[bytes]:
    """The answers to one request, up to its last one.

    `frames`: the request, and behind it the `put`s of the blobs that it may need; which of them are needed, is found
    out here. Draws come without credit. One call is answered at a time, and those that follow wait. The frames of an
    `error` among the answers say what was wrong; ProtocolError for what is no frame.
    """
    request, *puts = [frames] if isinstance(frames, bytes) else [bytes(frame) for frame in frames]
    kind, id, _ = codec.unpack(request)
    contents = [(codec.unpack(put)[2].get("blob"), put) for put in puts]
    with _one_at_a_time:
        requests, answers = _engine()
        requests.handle(request)
        collected = []
        while True:
            frame = answers.get()
            answer, of, body = codec.unpack(frame)
            if of not in (id, 0):
                continue  # of a request that was given up
            if answer == "need":
                for blob in body["blobs"]:
                    _supply(requests, id, blob, contents)
                continue
            collected.append(frame)
            if answer == "draws":
                requests.handle(msgpack.packb(["ack", id, {"chunks": 1}]))
            if answer in _LAST or (answer == "compiled" and kind == "compile"):
                return collected


def _supply(requests: Requests, id: int, blob: bytes, contents: list[tuple[bytes, bytes]]) -> None:
    """Hands over the puts of a blob; without them the request is cancelled, which answers it."""
    found = [put for address, put in contents if address == blob]
    for put in found or [msgpack.packb(["cancel", id, {}])]:
        requests.handle(put)


@cache
def _engine() -> tuple[Requests, queue.SimpleQueue[bytes]]:
    answers: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    return Requests(_Outlet(answers.put), _Log(), Limits()), answers


def serve() -> bytes:
    """Takes erlport's messages from now on: the frame of `hello`. Each process that sends has requests of its own."""
    from erlport import Atom, erlang

    tag = Atom(b"nutkin")
    clients: dict[Any, Requests] = {}

    def handle(message: Any) -> None:
        pid, frame = message
        if pid not in clients:
            clients[pid] = Requests(_Outlet(lambda answer: erlang.cast(pid, (tag, answer))), _Log(), Limits())
        if not clients[pid].handle(frame):
            del clients[pid]

    erlang.set_message_handler(handle)
    return msgpack.packb(["hello", 0, hello(Limits())])
