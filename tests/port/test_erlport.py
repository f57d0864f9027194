"""The adapter for erlport: against a stand-in with its calling convention, in a process of its own."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

from port.port_client import environment

STAND_IN = '''
import queue, sys, threading, types

import msgpack
import numpy as np

package, erlang = types.ModuleType("erlport"), types.ModuleType("erlport.erlang")


class Atom(bytes):
    """As erlport has atoms."""


sent = queue.Queue()
handlers = []
package.Atom, package.erlang = Atom, erlang
erlang.cast = lambda pid, message: sent.put((pid, message))
erlang.set_message_handler = handlers.append
sys.modules.update({"erlport": package, "erlport.erlang": erlang})


def incoming_call(module, function, args):
    """As a call of Erlang reaches Python: by name, with binaries as bytes, and the result must be such a term."""
    result = getattr(__import__(module, {}, {}, [function]), function)(*args)
    frames = result if isinstance(result, list) else [result]
    assert all(type(frame) is bytes for frame in frames)
    return result


def read(frame):
    return msgpack.unpackb(frame, ext_hook=lambda code, data: tensors.decode(data))


def until(pid, kind):
    while True:
        to, (tag, frame) = sent.get(timeout=60)
        assert (to, tag, type(tag)) == (pid, b"nutkin", Atom)
        message = read(frame)
        if message[0] == kind:
            return message


from nutkin_port import tensors
from port.models import gaussian, put_schools, schools, SCHOOLS_SIGMA, SCHOOLS_Y
from port.port_client import address


def puts(id):
    for encoded in (SCHOOLS_Y, SCHOOLS_SIGMA):
        body = {"blob": address(encoded), "encoding": "tensor", "size": len(encoded), "offset": 0, "bytes": encoded}
        yield msgpack.packb(["put", id, body])


def frame(kind, id, body=None):
    return msgpack.packb([kind, id, body or {}])

'''


def run(program: str) -> str:
    """The last line that a program prints after the stand-in."""
    text = STAND_IN + textwrap.dedent(program) + "\nprint('done')\n"
    result = subprocess.run(
        [sys.executable, "-c", text], env=environment("tests"), capture_output=True, text=True, timeout=120, check=False
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines()[-1]


def test_a_call_is_answered_with_all_frames() -> None:
    ended = run(
        """
        options = {"chains": 2, "draws": 20_000, "warmup": 200, "credit": 1}
        request = frame("sample", 1, {**schools(), "options": options})
        frames = incoming_call("nutkin_port.erlport", "call", [[request, *puts(1)]])
        answers = [read(frame) for frame in frames]
        assert [a[0] for a in answers if a[0] != "compiling"][0] == "compiled" and answers[-1][0] == "done", answers[-1]
        draws = [body for kind, _, body in answers if kind == "draws"]
        assert sum(body["count"] for body in draws) == 40_000 and len(draws) > 2
        assert answers[-1][2]["status"] == "complete"
        (pong,) = incoming_call("nutkin_port.erlport", "call", [frame("ping", 1)])
        assert read(pong)[2]["blobs"]["count"] == 2
        """
    )
    assert ended == "done"


def test_what_is_missing_or_wrong_is_an_answer() -> None:
    ended = run(
        """
        answers = incoming_call("nutkin_port.erlport", "call", [[frame("compile", 1, schools())]])
        assert read(answers[-1])[0] == "error" and read(answers[-1])[2]["code"] == "cancelled"
        (answer,) = incoming_call("nutkin_port.erlport", "call", [frame("compile", 2, {"model": 1, "data": {}})])
        assert read(answer)[2]["code"] == "invalid_model", read(answer)
        (answer,) = incoming_call("nutkin_port.erlport", "call", [frame("guess", 3)])
        assert read(answer)[2]["code"] == "protocol"
        """
    )
    assert ended == "done"


def test_messages_are_answered_while_the_engine_computes() -> None:
    ended = run(
        """
        kind, id, body = read(incoming_call("nutkin_port.erlport", "serve", []))
        assert (kind, id, body["protocol"]) == ("hello", 0, 1)
        (handle,) = handlers
        options = {"chains": 1, "draws": 10**8, "warmup": 100, "credit": 1}
        handle(("<0.1.0>", frame("sample", 7, {**gaussian(), "options": options})))
        until("<0.1.0>", "compiled")
        until("<0.1.0>", "draws")
        handle(("<0.2.0>", frame("ping", 7)))  # another process, which counts its requests itself
        assert until("<0.2.0>", "pong")[2]["requests"] == 0
        handle(("<0.1.0>", frame("ack", 7, {"chunks": 1})))
        until("<0.1.0>", "draws")
        handle(("<0.1.0>", frame("cancel", 7)))
        assert until("<0.1.0>", "done")[2]["status"] == "cancelled"
        handle(("<0.1.0>", frame("shutdown", 0)))
        """
    )
    assert ended == "done"


def test_what_is_no_frame_raises() -> None:
    with pytest.raises(AssertionError, match="ProtocolError"):
        run('incoming_call("nutkin_port.erlport", "call", [b"no frame"])')
