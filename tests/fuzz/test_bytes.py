"""Bytes at random, and damaged ones: every decoder gives a value or one of the documented errors, in bounded time."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzz.bounds import bounded
from fuzz.damage import damage_bytes, damage_tree
from fuzz.examples import FILES, FRAMES, PAYLOADS, TERMS
from fuzz.targets import fuzz_frame, fuzz_nx_file, fuzz_payload, fuzz_term


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
