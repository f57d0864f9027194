"""Tensors by content: their upload in chunks, and a bounded store of them, least recently used dropped first.

An upload is written into one buffer, placed so that the tensor's elements begin at a multiple of 64 bytes: XLA takes
such memory as it is. Only big-endian, sub-byte and old-format tensors are converted, into a second buffer.
"""

from __future__ import annotations

import collections
import hashlib
import threading

import numpy as np

from nutkin.errors import InvalidData, LimitExceeded, ProtocolError
from nutkin_port import nx_serialize, tensors

ALIGNMENT = 64


class Upload:
    """One blob on its way: its chunks in order, without gaps."""

    def __init__(self, address: bytes, encoding: str, size: int, *, limit: int) -> None:
        """LimitExceeded when `size`, in bytes, is above `limit` or cannot be allocated."""
        if size > limit:
            raise LimitExceeded("a tensor is too large", expected=f"at most {limit} bytes", found=f"{size} bytes")
        self.size = size
        self._address = address
        self._encoding = encoding
        self._size = size
        self._limit = limit
        self._received = 0
        self._hash = hashlib.sha256()
        self._head = bytearray()
        self._buffer: np.ndarray | None = None

    def add(self, encoding: str, size: int, offset: int, chunk: bytes) -> np.ndarray | None:
        """The next chunk; the read-only, aligned array once all are there."""
        if (encoding, size) != (self._encoding, self._size):
            raise ProtocolError(
                "the chunks of a blob contradict each other",
                expected=f"encoding {self._encoding}, size {self._size}",
                found=f"encoding {encoding}, size {size}",
            )
        if offset != self._received or offset + len(chunk) > self._size or not chunk:
            raise ProtocolError(
                "the chunks of a blob are not in order",
                expected=f"from 1 to {self._size - self._received} bytes at offset {self._received}",
                found=f"{len(chunk)} bytes at offset {offset}",
            )
        self._received += len(chunk)
        self._hash.update(chunk)
        self._write(offset, chunk)
        return self._finish() if self._received == self._size else None

    def _write(self, offset: int, chunk: bytes) -> None:
        if self._buffer is None:
            self._head += chunk
            start = _elements_offset(self._encoding, self._head)
            if start is None and self._received < self._size:
                return
            self._buffer = _aligned_buffer(self._size, start or 0)
            offset, chunk = 0, self._head
        self._buffer[offset : offset + len(chunk)] = np.frombuffer(chunk, np.uint8)

    def _finish(self) -> np.ndarray:
        if self._hash.digest() != self._address:
            raise InvalidData(
                "the bytes of a blob do not match its address",
                expected=self._address.hex(),
                found=self._hash.hexdigest(),
                hint="the address is the SHA-256 of all encoded bytes",
            )
        data = memoryview(self._buffer)
        is_nx = self._encoding == "nx"
        array = nx_serialize.read_tensor(data, max_bytes=self._limit).array if is_nx else tensors.decode(data)
        return _aligned(array)


class Store:
    """Blobs by address, at most `limit` bytes of elements. Thread-safe; arrays given out outlive their eviction."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._arrays: collections.OrderedDict[bytes, np.ndarray] = collections.OrderedDict()
        self._bytes = 0

    def get(self, address: bytes) -> np.ndarray | None:
        with self._lock:
            array = self._arrays.get(address)
            if array is not None:
                self._arrays.move_to_end(address)
            return array

    def put(self, address: bytes, array: np.ndarray) -> None:
        with self._lock:
            if address in self._arrays or array.nbytes > self._limit:
                return
            self._arrays[address] = array
            self._bytes += array.nbytes
            while self._bytes > self._limit:
                _, dropped = self._arrays.popitem(last=False)
                self._bytes -= dropped.nbytes

    def clear(self) -> None:
        with self._lock:
            self._arrays.clear()
            self._bytes = 0

    def usage(self) -> dict[str, int]:
        with self._lock:
            return {"count": len(self._arrays), "bytes": self._bytes}


def _elements_offset(encoding: str, head: bytearray) -> int | None:
    if encoding == "nx":
        return nx_serialize.buffers_offset(head)
    header = tensors.header(head)
    return None if header is None else header.bytes


def _aligned_buffer(size: int, offset: int) -> np.ndarray:
    """`size` bytes, of which the one at `offset` lies at a multiple of ALIGNMENT."""
    try:
        raw = np.empty(size + ALIGNMENT, np.uint8)
    except MemoryError as error:
        raise LimitExceeded("there is no memory for a tensor", found=f"{size} bytes") from error
    start = -(raw.ctypes.data + offset) % ALIGNMENT
    return raw[start : start + size]


def _aligned(array: np.ndarray) -> np.ndarray:
    if array.ctypes.data % ALIGNMENT == 0:
        return array
    copy = _aligned_buffer(array.nbytes, 0).view(array.dtype).reshape(array.shape)
    copy[...] = array
    copy.flags.writeable = False
    return copy
