"""The memory of the program, and what is done where it is above its limit."""

from __future__ import annotations

import os

import nutkin.compile
from nutkin.errors import LimitExceeded
from nutkin_port.limits import Limits
from nutkin_port.store import Store


def check(limits: Limits, store: Store) -> None:
    """Empties the store above `limits.resident`; LimitExceeded where that does not help."""
    most = limits.resident
    if most is None or resident() <= most:
        return
    store.clear()
    nutkin.compile.return_free_memory()
    if (found := resident()) > most:
        raise LimitExceeded(
            "the program has no memory for another request",
            expected=f"at most {most} bytes",
            found=f"{found} bytes",
            hint="wait for others to end, or raise the limit resident",
        )


def resident() -> int:
    """Bytes."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
