"""Nx.serialize bytes for tests: where the files of real Nx are, and version-1 files put together by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nutkin_port import terms
from nutkin_port.terms import Atom

GOLDEN = Path(__file__).parents[1] / "nx_golden"


def version_1(header: Any, buffers: bytes = b"", *, endianness: int = 0) -> bytes:
    """A file with this header term."""
    term = terms.write(header)
    return b"nx\x01" + bytes([endianness]) + len(term).to_bytes(8, "big") + term + buffers


def tensor_term(**changes: Any) -> tuple[Any, ...]:
    """The header term of a tensor, f32 {2} at offset 0 but for the changes."""
    fields = {
        "tag": Atom("t"),
        "shape": (2,),
        "type": (Atom("f"), 32),
        "names": [Atom("nil")],
        "axes": [],
        "offset": 0,
        "size": 8,
    }
    return tuple((fields | changes).values())
