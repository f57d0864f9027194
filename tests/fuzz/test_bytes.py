"""Bytes at random, and damaged ones: every decoder gives a value or one of the documented errors, in bounded time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import msgpack
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzz.bounds import bounded
from fuzz.damage import damage_bytes, damage_tree
from fuzz.targets import fuzz_frame, fuzz_nx_file, fuzz_payload, fuzz_term
from nutkin.model.types import DTYPES
from nutkin_port import nx_serialize, tensors, terms

ROOT = Path(__file__).parents[2]
FRAMES = [path.read_bytes() for path in sorted((ROOT / "bridge" / "golden").glob("*.frame"))]
FILES = [path.read_bytes() for path in sorted((ROOT / "tests" / "nx_golden").glob("*.nx"))]
PAYLOADS = [tensors.encode(np.array([[0, 1, 1], [1, 0, 1]], np.uint8).astype(dtype)) for dtype in DTYPES.values()]
TERMS = [
    terms.write([terms.Atom("a"), (1, -(2**70), 1.5), {b"k": [b"v"]}, [*range(300)]]),
    *(file[nx_serialize.PREFIX_BYTES :] for file in FILES if file[:2] == nx_serialize.MAGIC),
]


@pytest.mark.parametrize(
    ("target", "seeds"),
    [(fuzz_frame, FRAMES), (fuzz_nx_file, FILES), (fuzz_term, TERMS), (fuzz_payload, PAYLOADS)],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_damaged_bytes(target: Callable[[bytes], None], seeds: list[bytes]) -> None:
    for seed in range(1500):
        random = Random(seed)
        data = damage_bytes(random.choice(seeds), random)
        with bounded(seconds=10, mebibytes=512):
            target(data)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=100))
def test_any_bytes(data: bytes) -> None:
    for target in (fuzz_frame, fuzz_nx_file, fuzz_term, fuzz_payload):
        target(data)
    fuzz_term(b"\x83" + data)
    fuzz_nx_file(b"nx\x01\x00" + len(data).to_bytes(8, "big") + b"\x83" + data)


def test_damaged_messages() -> None:
    """What is msgpack still, and comes further."""
    for seed in range(1500):
        random = Random(seed)
        message = msgpack.unpackb(random.choice(FRAMES), strict_map_key=False)
        damage_tree(message, random)
        try:
            frame = msgpack.packb(message)
        except (OverflowError, TypeError):
            continue  # an integer of more than 64 bits
        with bounded(seconds=10, mebibytes=512):
            fuzz_frame(frame)
