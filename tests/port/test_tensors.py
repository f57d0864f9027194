"""The tensor payload: every type there and back, and bytes that hold no tensor."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy

from nutkin.errors import InvalidData, LimitExceeded
from nutkin.model.types import DTYPES, bits
from nutkin_port import tensors

SHAPES = st_numpy.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5)


@pytest.mark.parametrize("name", DTYPES)
@settings(max_examples=30, deadline=None)
@given(st.data())
def test_every_type_survives(name: str, data: st.DataObject) -> None:
    shape = data.draw(SHAPES)
    raw = data.draw(st.binary(min_size=tensors.size_in_bytes(name, shape), max_size=tensors.size_in_bytes(name, shape)))
    array = tensors.from_bytes(raw, name, shape)
    payload = tensors.encode(array)
    again = tensors.decode(payload)
    assert (again.dtype, again.shape) == (DTYPES[name], shape)
    assert again.tobytes() == array.tobytes()
    if bits(name) >= 8:
        assert payload.endswith(raw)


def test_payload_is_the_documented_bytes() -> None:
    payload = bytes([3]) + b"s16" + bytes([2]) + bytes([2, 0, 0, 0, 0, 0, 0, 0]) + bytes([1, 0, 0, 0, 0, 0, 0, 0])
    payload += bytes([0xFE, 0xFF, 0x01, 0x00])
    array = np.array([[-2], [1]], np.int16)
    assert tensors.encode(array) == payload
    assert tensors.encode(array.astype(">i2")) == payload
    assert tensors.encode(np.array([[-2, 9], [1, 9]], np.int16)[:, :1]) == payload
    np.testing.assert_array_equal(tensors.decode(payload), array)


def test_sub_byte_elements_are_packed_from_the_top() -> None:
    assert bytes(tensors.to_bytes(np.array([0, 1, 1, 0]).astype(DTYPES["s2"]))) == b"\x14"
    assert bytes(tensors.to_bytes(np.array([-2, -1, 0, 1, 1]).astype(DTYPES["s2"]))) == b"\xb1\x40"
    assert tensors.from_bytes(b"\xf7\x80", "s4", (3,)).astype(int).tolist() == [-1, 7, -8]


def test_decode_aliases_the_bytes_and_is_read_only() -> None:
    payload = bytearray(tensors.encode(np.zeros(4)))
    array = tensors.decode(payload)
    payload[-1] = 0x40
    assert array[3] == 2.0
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 1


def test_big_endian_elements_are_swapped_in_a_copy() -> None:
    values = np.array([1 + 2j, -3.5j], ">c16")
    raw = bytearray(values.tobytes())
    np.testing.assert_array_equal(tensors.from_bytes(raw, "c128", (2,), big_endian=True), values)
    assert raw == values.tobytes()


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        (b"", "within its header"),
        (b"\x03f6", "within its header"),
        (b"\x03f64\x01\x00", "within its header"),
        (b"\x03f63\x00", "unknown type"),
        (b"\x02\xff\xfe\x00", "unknown type"),
        (b"\x00\x00", "unknown type"),
        (b"\x02u8\x41" + bytes(8 * 65), "too many axes"),
        (b"\x03f64\x00" + bytes(7), "do not fit"),
        (b"\x03f64\x00" + bytes(9), "do not fit"),
        (b"\x02u8\x40" + b"\xff" * 512, "do not fit"),
    ],
)
def test_wrong_payloads(payload: bytes, message: str) -> None:
    with pytest.raises(InvalidData, match=message):
        tensors.decode(payload)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=64))
def test_hostile_payloads_are_refused_or_read(payload: bytes) -> None:
    try:
        array = tensors.decode(payload)
    except (InvalidData, LimitExceeded):
        return
    assert len(tensors.encode(array)) == len(payload)


@pytest.mark.parametrize("shape", [(0, 2**63), (2**40, 0), (2**63, 2, 0)])
def test_an_axis_that_there_can_be_none_of(shape: tuple[int, ...]) -> None:
    payload = b"\x03f64" + bytes([len(shape)]) + b"".join(size.to_bytes(8, "little") for size in shape)
    with pytest.raises(LimitExceeded, match="a tensor is too large; expected at most 4294967296 elements"):
        tensors.decode(payload)
