"""Uploads in chunks, where their bytes come to lie, and what the store keeps."""

from __future__ import annotations

import numpy as np
import pytest

from nutkin.errors import InvalidData, LimitExceeded, ProtocolError
from nutkin.model.types import DTYPES
from nutkin_port import nx_serialize, tensors
from nutkin_port.store import ALIGNMENT, Store, Upload
from port.nx_files import tensor_term, version_1
from port.port_client import address

LIMIT = 1 << 24
ARRAY = np.arange(1000, dtype=np.float64).reshape(10, 100)
LEGACY = nx_serialize.terms.write(
    (
        1,
        nx_serialize.Atom("little"),
        (
            nx_serialize.Atom("tensor"),
            (10, 100),
            (nx_serialize.Atom("f"), 64),
            [nx_serialize.Atom("nil")] * 2,
            ARRAY.tobytes(),
        ),
    )
)
ENCODED = {
    "tensor": tensors.encode(ARRAY),
    "nx": nx_serialize.write(nx_serialize.tensor(ARRAY)),
    "nx_legacy": LEGACY,
    "nx_big_endian": version_1(
        tensor_term(
            shape=(10, 100), type=(nx_serialize.Atom("f"), 64), names=[nx_serialize.Atom("nil")] * 2, size=8000
        ),
        ARRAY.astype(">f8").tobytes(),
        endianness=1,
    ),
}


def upload(encoded: bytes, encoding: str, *, chunk: int = LIMIT, limit: int = LIMIT) -> np.ndarray:
    assembly = Upload(address(encoded), encoding, len(encoded), limit=limit)
    for offset in range(0, len(encoded), chunk):
        array = assembly.add(encoding, len(encoded), offset, encoded[offset : offset + chunk])
    assert array is not None
    return array


@pytest.mark.parametrize("chunk", [1, 7, 20, 64, 4096, LIMIT])
@pytest.mark.parametrize("name", ENCODED)
def test_elements_are_aligned_whatever_the_chunks(name: str, chunk: int) -> None:
    array = upload(ENCODED[name], name.split("_")[0], chunk=chunk)
    np.testing.assert_array_equal(array, ARRAY)
    assert array.ctypes.data % ALIGNMENT == 0
    assert not array.flags.writeable


@pytest.mark.parametrize("name", ["tensor", "nx"])
def test_little_endian_elements_stay_where_they_were_written(name: str) -> None:
    array = upload(ENCODED[name], name)
    owner = array
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    assert isinstance(owner.base, memoryview)  # of the buffer that the chunks were written to
    assert owner.base.obj.nbytes == len(ENCODED[name])


@pytest.mark.parametrize("name", DTYPES)
def test_every_type(name: str) -> None:
    array = np.array([[0, 1], [1, 1]], np.uint8).astype(DTYPES[name])
    for encoded, encoding in [
        (tensors.encode(array), "tensor"),
        (nx_serialize.write(nx_serialize.tensor(array)), "nx"),
    ]:
        found = upload(encoded, encoding)
        assert (found.dtype, found.shape, found.tobytes()) == (array.dtype, array.shape, array.tobytes())


def test_chunks_that_are_not_in_order() -> None:
    encoded = ENCODED["tensor"]
    assembly = Upload(address(encoded), "tensor", len(encoded), limit=LIMIT)
    assembly.add("tensor", len(encoded), 0, encoded[:100])
    for offset, chunk in [(0, encoded[:100]), (99, b"x"), (101, b"x"), (100, b""), (100, encoded)]:
        with pytest.raises(ProtocolError, match="not in order"):
            assembly.add("tensor", len(encoded), offset, chunk)
    with pytest.raises(ProtocolError, match="contradict"):
        assembly.add("nx", len(encoded), 100, encoded[100:])


def test_bytes_that_do_not_match_their_address() -> None:
    encoded = ENCODED["tensor"]
    with pytest.raises(InvalidData, match="do not match its address"):
        Upload(bytes(32), "tensor", len(encoded), limit=LIMIT).add("tensor", len(encoded), 0, encoded)


@pytest.mark.parametrize(
    ("encoded", "encoding", "message"),
    [
        (b"\x03f64\x01", "tensor", "within its header"),
        (b"\x03f99\x00", "tensor", "unknown type"),
        (b"nx\x01", "nx", "its length"),
        (b"nx\x01\x00" + b"\xff" * 8 + b"abc", "nx", "length of its header"),
        (nx_serialize.write(nx_serialize.Tuple(())), "nx", "expected one tensor; found tuple"),
        (ENCODED["tensor"], "nx", "first bytes"),
    ],
)
def test_bytes_that_hold_no_tensor(encoded: bytes, encoding: str, message: str) -> None:
    with pytest.raises(InvalidData, match=message):
        upload(encoded, encoding, chunk=len(encoded))


def test_the_limit_of_a_tensor() -> None:
    with pytest.raises(LimitExceeded, match="at most 100 bytes"):
        Upload(bytes(32), "tensor", 101, limit=100)


def test_the_store_drops_what_was_not_used_for_longest() -> None:
    store = Store(limit=300)
    arrays = {bytes([number]) * 32: np.full(100, number, np.uint8) for number in range(4)}
    first, second, third, fourth = arrays
    for key in (first, second, third):
        store.put(key, arrays[key])
    assert store.get(first) is arrays[first]
    store.put(fourth, arrays[fourth])
    assert store.get(second) is None
    assert [store.get(key) is arrays[key] for key in (first, third, fourth)] == [True] * 3
    assert store.usage() == {"count": 3, "bytes": 300}
    store.put(first, arrays[first])
    assert store.usage() == {"count": 3, "bytes": 300}


def test_an_array_larger_than_the_store_is_not_kept() -> None:
    store = Store(limit=300)
    store.put(bytes(32), np.zeros(301, np.uint8))
    assert store.usage() == {"count": 0, "bytes": 0}


def test_a_blob_larger_than_the_store_drops_nothing() -> None:
    store = Store(100)
    store.put(b"small", np.zeros(10))
    store.put(b"large", np.zeros(100))
    assert store.get(b"small") is not None
    assert store.get(b"large") is None
