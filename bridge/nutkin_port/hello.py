"""The first message: what this program is. It is said before the engine is imported, so that its client can send
requests and data while jax loads."""

from __future__ import annotations

import dataclasses
import os
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from nutkin_port.limits import Limits

PROTOCOL = 1


def hello(limits: Limits) -> dict[str, Any]:
    """The body of the message."""
    return {
        "protocol": PROTOCOL,
        "versions": _versions(),
        "limits": dataclasses.asdict(limits),
        "pid": os.getpid(),
    }


def _versions() -> dict[str, str]:
    """Of Python and of the packages that are installed; one that runs from its sources has no version here."""
    found = {"python": platform.python_version()}
    for package in ("nutkin", "jax", "jaxlib", "numpy"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
