"""What this installation consists of, for reports and for keys of caches."""

from __future__ import annotations

import platform
from functools import cache
from importlib.metadata import version

import jax

__version__ = "0.1.0"


@cache
def versions() -> dict[str, str]:
    """Version of Nutkin, of Python, and of every package whose change may change a draw."""
    packages = ("jax", "jaxlib", "numpy", "diffrax", "equinox")
    return {"nutkin": __version__, "python": platform.python_version(), **{name: version(name) for name in packages}}


def devices() -> list[dict[str, str]]:
    """XLA's devices: platform (`cpu`, `gpu`) and kind."""
    return [{"platform": device.platform, "kind": device.device_kind} for device in jax.devices()]
