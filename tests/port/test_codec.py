"""msgpack: messages there and back, and bytes that are no messages."""

from __future__ import annotations

import math
import time

import msgpack
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nutkin.errors import InvalidData, LimitExceeded, ProtocolError
from nutkin_port import codec

LIMIT = 1 << 20
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=40)
    | st.binary(max_size=40)
)
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=8), inner), max_leaves=12
)
BODIES = st.dictionaries(st.text(max_size=8), VALUES, max_size=8)


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=20), st.integers(0, 2**64 - 1), BODIES)
def test_messages_survive(kind: str, id: int, body: dict) -> None:
    frame = codec.pack(kind, id, body, limit=LIMIT)
    assert codec.unpack(frame) == (kind, id, body)
    codec.check(body)


def test_tensors_are_aligned_copies() -> None:
    frame = codec.pack("x", 1, {"a": np.arange(6.0).reshape(2, 3), "b": [np.float32(2), np.int64(3)]}, limit=LIMIT)
    _, _, body = codec.unpack(frame)
    np.testing.assert_array_equal(body["a"], np.arange(6.0).reshape(2, 3))
    assert body["a"].flags.aligned
    assert body["b"] == [2.0, 3]


def test_a_message_above_the_limit() -> None:
    with pytest.raises(LimitExceeded, match="`draws` message"):
        codec.pack("draws", 1, {"x": np.zeros(10)}, limit=50)


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        b"\xc1",
        b"\x93\xa1x\x01\x80\xc0",  # one byte too many
        b"\x93\xa1x\x01",  # one value too few
        b"\x93\xa1\xff\x01\x80",  # not UTF-8
        b"\xdd\xff\xff\xff\xff",  # four billion values announced
        b"\xdf\xff\xff\xff\xff",
        b"\xc6\xff\xff\xff\xff",
        b"\x93\xa1x\x01\x81\x01\x01",  # a key that is a number
        b"\x91" * 100_000,
        msgpack.packb({"type": "ping"}),
        msgpack.packb(["ping", 1]),
        msgpack.packb(["ping", 1, {}, 1]),
        msgpack.packb([b"ping", 1, {}]),
        msgpack.packb(["ping", -1, {}]),
        msgpack.packb(["ping", True, {}]),
        msgpack.packb(["ping", 1.0, {}]),
        msgpack.packb(["ping", 1, []]),
    ],
)
def test_frames_that_are_no_messages(frame: bytes) -> None:
    with pytest.raises(ProtocolError):
        codec.unpack(frame)


def nested(levels: int) -> dict:
    body: dict = {}
    for _ in range(levels - 2):
        body = {"a": body}
    return body


def test_nesting() -> None:
    codec.check(codec.unpack(msgpack.packb(["x", 1, nested(64)]))[2])
    _, _, body = codec.unpack(msgpack.packb(["x", 1, nested(65)]))
    with pytest.raises(ProtocolError, match="too deeply"):
        codec.check(body)


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_numbers_are_finite(number: float) -> None:
    _, _, body = codec.unpack(msgpack.packb(["x", 1, {"a": [[1.0, number]]}]))
    with pytest.raises(ProtocolError, match="not finite"):
        codec.check(body)


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (msgpack.ExtType(1, b"\x03f64"), InvalidData, "within its header"),
        (msgpack.ExtType(1, b"\x02u8\x02" + bytes(8) + b"\xff" * 8), LimitExceeded, "too large"),
        (msgpack.ExtType(2, b"abcd"), ProtocolError, "extension type 2"),
        (msgpack.Timestamp(0), ProtocolError, "extension type"),
        ({b"key": 1}, ProtocolError, "not a string"),
    ],
)
def test_values_that_messages_do_not_have(value: object, error: type[Exception], message: str) -> None:
    _, id, body = codec.unpack(msgpack.packb(["x", 7, {"a": [value]}]))
    assert id == 7  # so the error can be an answer
    with pytest.raises(error, match=message):
        codec.check(body)


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=200) | BODIES.map(lambda body: msgpack.packb(["x", 1, body])[:-1]))
def test_hostile_frames_end_in_a_message_or_an_error(frame: bytes) -> None:
    try:
        _, _, body = codec.unpack(frame)
        codec.check(body)
    except (ProtocolError, InvalidData, LimitExceeded):
        pass


def listed(value: bytes, count: int) -> bytes:
    """A message with lists of so many values in all, none longer than 1000."""
    lists = [b"\xdc\x03\xe8" + value * 1000] * (count // 1000)
    return b"\x93\xa1x\x01\x81\xa1a\xdd" + len(lists).to_bytes(4, "big") + b"".join(lists)


@pytest.mark.parametrize("value", [b"\x90", b"\x80", b"\xd4\x01\x00"])
def test_a_message_is_not_much_larger_in_memory(value: bytes) -> None:
    with pytest.raises(LimitExceeded, match="too many values; expected at most 1048576 maps, lists and tensors"):
        codec.unpack(listed(value, 1_100_000))


def test_unreadable_tensors_are_told_once() -> None:
    _, _, body = codec.unpack(listed(b"\xd4\x01\x00", 100_000))
    assert len({id(error) for inner in body["a"] for error in inner}) == 1
    with pytest.raises(InvalidData, match="within its header"):
        codec.check(body)


def test_a_list_is_no_longer_than_the_limit() -> None:
    with pytest.raises(ProtocolError, match="exceeds max_array_len"):
        codec.unpack(b"\x93\xa1x\x01\x81\xa1a\xdd\x00\x10\x00\x01" + b"\x00" * (2**20 + 1))


def test_hostile_frames_take_no_time() -> None:
    frames = [
        b"\x93\xa1x\x01\xdd\x00\xff\xff\xff" + b"\xdd\x00\xff\xff\xff" * 900,
        b"\x93\xa1x\x01\x81\xa1a" + b"\x91" * 2**20,
    ]
    started = time.monotonic()
    for frame in frames:
        with pytest.raises(ProtocolError):
            codec.unpack(frame)
    assert time.monotonic() - started < 2
