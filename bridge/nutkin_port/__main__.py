"""`python -m nutkin_port`: the program that an Erlang port runs. Frames come in on fd 3 and go out on fd 4.

The wire is secured and the input is watched before anything large is imported: whatever numpy, jax and XLA do or print
while they start, they cannot spoil the stream, and the program ends as soon as its client does. `hello` is said
before that too: what the client sends meanwhile waits in the inbox.
"""

from __future__ import annotations

import signal

if __name__ == "__main__":  # while Python imports, its own handler may be called where the interrupt is lost
    signal.signal(signal.SIGINT, signal.SIG_DFL)

import argparse
import faulthandler
import gc
import os
import sys
import threading
from typing import Any

import msgpack

from nutkin_port import descriptors
from nutkin_port.frames import FrameReader, FrameTooLong, FrameWriter, Inbox, drain
from nutkin_port.hello import hello
from nutkin_port.limits import Limits
from nutkin_port.logs import Logs

EXIT_USAGE = 64
EXIT_PROTOCOL = 65
EXIT_SOFTWARE = 70
EXIT_REPLACE = 75  # a compilation had to be ended, and everything else with it
INBOX_FRAMES = 4  # of the largest size, that may wait to be handled
SIGNALS = (signal.SIGTERM, signal.SIGINT)  # to end the program

_SHUTDOWN = object()


def main(arguments: list[str] | None = None) -> None:
    """Never returns."""
    options = _options(arguments)
    descriptors.die_with_parent()
    try:
        wire = descriptors.claim(stdio=options.stdio)
    except OSError:
        print("nutkin_port talks to the program that opens it, on fds 3 and 4: see --help", file=sys.stderr)
        sys.exit(EXIT_USAGE)
    faulthandler.enable(os.fdopen(wire.terminal, "w"))
    limits = options.limits
    inbox = Inbox(INBOX_FRAMES * limits.frame)
    reader = FrameReader(wire.frames_in, limits.frame)
    threading.Thread(target=drain, args=(reader, inbox, _end), name="reader", daemon=True).start()
    for number in SIGNALS:
        signal.signal(number, lambda *_: _shut_down(inbox))
    if options.cache_dir is not None:
        os.environ["NUTKIN_CACHE_DIR"] = options.cache_dir
    sys.stdout.reconfigure(line_buffering=True)
    logs = Logs(wire.stdout, wire.stderr)
    writer = FrameWriter(wire.frames_out, _end)
    status = _serve(inbox, writer, logs, limits)
    logs.close()
    os._exit(status)  # threads may still be compiling


def _serve(inbox: Inbox, writer: FrameWriter, logs: Logs, limits: Limits) -> int:
    """Says `hello`, loads the engine, and handles messages until the end: the exit status."""

    def send(kind: str, id: int, body: dict[str, Any]) -> None:
        writer.write(msgpack.packb([kind, id, body]))

    send("hello", 0, hello(limits))
    logs.open(send)
    try:
        from nutkin.errors import LimitExceeded, ProtocolError
        from nutkin_port.requests import Requests

        gc.freeze()  # what was imported stays: collections need not look through it
    except Exception as error:  # a broken installation: said in a message, since the client sees nothing else
        logs.emit_traceback(error)
        send("error", 0, {"code": "internal", "message": f"the engine cannot start: {type(error).__name__}: {error}"})
        return EXIT_SOFTWARE

    def replace(reason: str) -> None:
        logs.emit("warning", "nutkin", f"the program ends: {reason}")
        os._exit(EXIT_REPLACE)

    requests = Requests(writer, logs, limits, replace)
    try:
        while True:
            match inbox.get():
                case FrameTooLong(length, limit):
                    expected, found = f"at most {limit} bytes", f"{length} bytes"
                    raise LimitExceeded("a frame is too long", expected=expected, found=found)
                case bytearray() as frame:
                    if not requests.handle(frame):
                        return 0
                case _:  # a signal
                    requests.shutdown()
                    return 0
    except (ProtocolError, LimitExceeded) as error:
        send("error", 0, error.body())
        return EXIT_PROTOCOL


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m nutkin_port", description=__doc__)
    parser.add_argument("--stdio", action="store_true", help="frames on fds 0 and 1 instead of 3 and 4")
    parser.add_argument(
        "--limit",
        action="append",
        default=[],
        dest="limits",
        metavar="NAME=VALUE",
        help="one of the limits that `hello` reports, such as runs=8; may be given again for others",
    )
    parser.add_argument(
        "--cache-dir",
        metavar="DIR",
        help="folder of compiled programs; `off` for none (default: nutkin/xla in the user's cache folder)",
    )
    options = parser.parse_args(arguments)
    try:
        options.limits = Limits.parse(options.limits)
    except ValueError as error:
        parser.error(str(error))
    return options


def _shut_down(inbox: Inbox) -> None:
    for number in SIGNALS:  # a second one, of either kind, does not wait
        signal.signal(number, signal.SIG_DFL)
    inbox.interrupt(_SHUTDOWN)


def _end() -> None:
    os._exit(0)


if __name__ == "__main__":
    main()
