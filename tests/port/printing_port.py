"""The port program, in a process that prints: while the engine is imported, and at every SIGUSR1; without end from
SIGUSR2 on, FLOOD bytes in all."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
from importlib.abc import MetaPathFinder

from nutkin_port.__main__ import main

LONG_LINE = "é" * 5000
FLOOD = 10**9


class PrintingFinder(MetaPathFinder):
    """Finds nothing, and prints when the engine is looked for."""

    def find_spec(self, name: str, path: object, target: object = None) -> None:
        if name == "nutkin":
            print("importing the engine")


def shout(*_: object) -> None:
    import jax  # only now: the program takes its descriptors before anything large is imported

    print("from print")
    jax.debug.print("from jax, {}", 1.5)
    jax.jit(lambda x: jax.debug.print("from a program of jax, {}", x))(2.5)
    print("from print to stderr", file=sys.stderr)
    ctypes.CDLL(None).puts(b"from C")
    ctypes.CDLL(None).fflush(None)
    os.write(1, b"\x00\x00\x00\x05 not \xff UTF-8\n")
    os.write(1, LONG_LINE.encode() + b"\n")
    os.write(2, b"no end of line")


def flood(*_: object) -> None:
    lines = b"a line of some words, again and again and again\n" * 20_000

    def write() -> None:
        for _ in range(FLOOD // len(lines)):
            rest = memoryview(lines)
            while rest:
                rest = rest[os.write(1, rest) :]
        os.write(1, b"the last line\n")

    threading.Thread(target=write, daemon=True).start()


if __name__ == "__main__":
    signal.signal(signal.SIGUSR2, flood)
    sys.meta_path.insert(0, PrintingFinder())
    signal.signal(signal.SIGUSR1, shout)
    main()
