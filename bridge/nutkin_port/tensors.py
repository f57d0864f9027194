"""Tensor payloads: type name, shape, then the elements, row-major and little-endian.

`decode` returns an array that aliases the bytes it was given, read-only, wherever the elements need no conversion
(all types of whole bytes in little-endian order); sub-byte types are unpacked into an array of their own.
"""

from __future__ import annotations

import dataclasses
import math
import struct
from functools import cache

import numpy as np

from nutkin.errors import InvalidData, LimitExceeded
from nutkin.model.types import DTYPES, NAMES, bits, kind
from nutkin_port.limits import Limits

MAX_RANK = Limits.rank

Buffer = bytes | bytearray | memoryview


@dataclasses.dataclass(frozen=True)
class Header:
    """What precedes the elements; `bytes` is its length, so where the elements begin."""

    type: str
    shape: tuple[int, ...]
    bytes: int


def header(data: Buffer) -> Header | None:
    """Reads the header at the start of `data`; None when there are too few bytes to hold it."""
    view = memoryview(data)
    if not view:
        return None
    name_end = 1 + view[0]
    if len(view) < name_end + 1:
        return None
    type_name = bytes(view[1:name_end]).decode("ascii", "replace")
    if type_name not in DTYPES:
        raise InvalidData("a tensor has an unknown type", expected=f"one of {' '.join(DTYPES)}", found=type_name[:40])
    rank = view[name_end]
    if rank > MAX_RANK:
        raise InvalidData("a tensor has too many axes", expected=f"at most {MAX_RANK}", found=str(rank))
    end = name_end + 1 + 8 * rank
    if len(view) < end:
        return None
    return Header(type_name, struct.unpack(f"<{rank}Q", view[name_end + 1 : end]), end)


def decode(data: Buffer) -> np.ndarray:
    """The array of a payload. InvalidData when the bytes do not hold what the header announces."""
    head = header(data)
    if head is None:
        raise InvalidData("a tensor ends within its header", found=f"{len(data)} bytes")
    return from_bytes(memoryview(data)[head.bytes :], head.type, head.shape)


def encode(array: np.ndarray) -> bytes:
    """The payload of an array, whose dtype is one of Nx's."""
    name = _type(array.dtype).encode("ascii")
    head = struct.pack(f"<B{len(name)}sB{array.ndim}Q", len(name), name, array.ndim, *array.shape)
    return b"".join([head, to_bytes(array)])


def size_in_bytes(type_name: str, shape: tuple[int, ...]) -> int:
    """Bytes of the elements; sub-byte types are packed, the last byte filled up with zeros."""
    return (math.prod(shape) * bits(type_name) + 7) // 8


def from_bytes(data: Buffer, type_name: str, shape: tuple[int, ...], *, big_endian: bool = False) -> np.ndarray:
    """The read-only array whose elements are exactly `data`; big-endian elements are swapped in a copy."""
    expected = size_in_bytes(type_name, shape)
    if len(data) != expected:
        raise InvalidData(
            "a tensor's bytes do not fit its shape",
            expected=f"{expected} bytes for {type_name}{list(shape)}",
            found=f"{len(data)} bytes",
        )
    # Elements of less than a byte take one in an array; and NumPy knows no larger axes, not even beside one of size 0.
    if math.prod(size or 1 for size in shape) > Limits.tensor:
        expected = f"at most {Limits.tensor} elements"
        raise LimitExceeded("a tensor is too large", expected=expected, found=str(list(shape)))
    raw = np.frombuffer(data, np.uint8)
    if bits(type_name) < 8:
        array = _unpack(raw, type_name, math.prod(shape))
    else:
        array = (_swapped(raw, type_name) if big_endian else raw).view(DTYPES[type_name])
    array = array.reshape(shape)
    array.flags.writeable = False
    return array


def to_bytes(array: np.ndarray) -> bytes | memoryview:
    """The elements row-major and little-endian; aliases the array where no conversion is needed."""
    type_name = _type(array.dtype)
    if bits(type_name) < 8:
        return _pack(array, type_name)
    little = np.ascontiguousarray(array, _little_endian(array.dtype))
    return memoryview(little.reshape(-1).view(np.uint8))


@cache
def _type(dtype: np.dtype) -> str:
    return NAMES[dtype.newbyteorder("=")]


@cache
def _little_endian(dtype: np.dtype) -> np.dtype:
    return dtype.newbyteorder("<")


def _swapped(raw: np.ndarray, type_name: str) -> np.ndarray:
    width = bits(type_name) // (16 if kind(type_name) == "c" else 8)  # a complex number is two
    return raw.view(f"u{width}").byteswap().view(np.uint8)


def _unpack(raw: np.ndarray, type_name: str, count: int) -> np.ndarray:
    width = bits(type_name)
    shifts = np.arange(8 - width, -1, -width, dtype=np.uint8)
    values = ((raw[:, None] >> shifts) & (2**width - 1)).reshape(-1)[:count]
    if kind(type_name) == "s":
        sign = np.uint8(2 ** (width - 1))
        values = (values ^ sign).astype(np.int8) - np.int8(sign)
    return values.astype(DTYPES[type_name])


def _pack(array: np.ndarray, type_name: str) -> bytes:
    width = bits(type_name)
    per_byte = 8 // width
    values = array.reshape(-1).astype(np.int8).view(np.uint8) & (2**width - 1)
    padded = np.zeros(-(-values.size // per_byte) * per_byte, np.uint8)
    padded[: values.size] = values
    shifts = np.arange(8 - width, -1, -width, dtype=np.uint8)
    return np.bitwise_or.reduce(padded.reshape(-1, per_byte) << shifts, axis=1).astype(np.uint8).tobytes()
