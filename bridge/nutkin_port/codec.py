"""msgpack to plain data and back, within limits; extension type 1 is a numpy array."""

from __future__ import annotations

import math
from typing import Any

import msgpack
import numpy as np

from nutkin.errors import InvalidCheckpoint, InvalidData, LimitExceeded, NutkinError, ProtocolError
from nutkin_port import tensors

TENSOR = 1
MAX_DEPTH = 64
MAX_LENGTH = 2**20
"""Of a list; and how many maps, lists and tensors a message may hold. Each takes some hundred bytes of memory, and as
little as one of the frame: a model of all the nodes that are allowed has not as many."""
MAX_ID = 2**64 - 1

_CONTAINERS = {dict, list}
_LEAVES = {str, bytes, int, float, bool, type(None), np.ndarray}


def pack(kind: str, id: int, body: dict[str, Any], *, limit: int) -> bytes:
    """The frame of one message. LimitExceeded when it is larger than `limit` bytes."""
    frame = msgpack.packb([kind, id, body], default=_encode)
    if len(frame) > limit:
        raise LimitExceeded(
            f"a `{kind}` message does not fit into a frame",
            expected=f"at most {limit} bytes",
            found=f"{len(frame)} bytes",
            hint="ask for fewer variables",
        )
    return frame


def unpack(frame: bytes | bytearray) -> tuple[str, int, dict[str, Any]]:
    """The `[type, id, body]` of a frame. ProtocolError, LimitExceeded: the stream cannot be trusted any more.

    The body is not checked yet: see `check`.
    """
    size, hooks = len(frame), _Hooks()
    try:
        message = msgpack.unpackb(
            frame,
            raw=False,
            strict_map_key=True,
            max_str_len=size,
            max_bin_len=size,
            max_array_len=min(size, MAX_LENGTH),
            max_map_len=size,
            max_ext_len=size,
            list_hook=hooks.count,
            object_hook=hooks.count,
            ext_hook=hooks.decode,
        )
    except (ValueError, MemoryError) as error:
        reason = str(error) or type(error).__name__
        raise ProtocolError("a frame is not msgpack", expected="one msgpack value", found=reason) from error
    match message:
        case [str(kind), int(id), dict(body)] if not isinstance(id, bool) and 0 <= id <= MAX_ID:
            return kind, id, body
    raise ProtocolError(
        "a message is not [type, id, body]",
        expected="an array of a string, an unsigned integer and a map",
        found=_describe(message),
    )


def pack_tree(tree: dict[str, Any]) -> bytes:
    """The bytes of plain data, in which arrays are tensors."""
    return msgpack.packb(tree, default=_encode)


def unpack_tree(content: bytes | memoryview) -> dict[str, Any]:
    """What `pack_tree` has written. InvalidCheckpoint."""
    try:
        _, _, tree = unpack(b"\x93\xa4tree\x00" + bytes(content))
        check(tree)
    except (ProtocolError, InvalidData, LimitExceeded) as error:
        raise InvalidCheckpoint("the bytes of a checkpoint cannot be read", found=str(error)) from error
    return tree


def check(body: dict[str, Any], nesting: int = MAX_DEPTH) -> None:
    """Checks what msgpack allows and messages do not: nesting deeper than `nesting`, keys that are not strings, other
    extension types, floats that are not finite. ProtocolError; of an unreadable tensor InvalidData, LimitExceeded.
    """
    level: list[Any] = [body]
    for _ in range(nesting - 1):  # the message itself is the first level
        level = [child for container in level for child in _children(container)]
        if not level:
            return
    raise ProtocolError("a message is nested too deeply", expected=f"at most {nesting} levels")


def _children(container: dict[str, Any] | list[Any]) -> list[Any]:
    """The containers in a container, whose keys and other values are checked."""
    values: Any = container
    if type(container) is dict:
        for key in container:
            if type(key) is not str:
                raise ProtocolError("a map has a key that is not a string", found=repr(key)[:100])
        values = container.values()
    types = set(map(type, values))
    for unknown in types - _LEAVES - _CONTAINERS:
        value = next(value for value in values if type(value) is unknown)
        if isinstance(value, NutkinError):
            raise value
        raise ProtocolError(
            "a message holds an unknown extension type",
            expected=f"extension type {TENSOR}, a tensor",
            found=f"extension type {value.code}" if unknown is msgpack.ExtType else unknown.__name__,
        )
    if float in types and not all(math.isfinite(value) for value in values if type(value) is float):
        raise ProtocolError("a number is not finite", hint="send values that may be NaN or infinite as a tensor")
    return [value for value in values if type(value) in _CONTAINERS] if types & _CONTAINERS else []


def _encode(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return msgpack.ExtType(TENSOR, tensors.encode(value))
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} has no form on the wire")


class _Hooks:
    """What msgpack calls for each value of one frame that may take more memory than it has bytes."""

    def __init__(self) -> None:
        self._left = MAX_LENGTH
        self._error: NutkinError | None = None

    def count(self, value: Any) -> Any:
        self._left -= 1
        if self._left < 0:
            expected = f"at most {MAX_LENGTH} maps, lists and tensors"
            raise LimitExceeded("a message holds too many values", expected=expected, found="more")
        return value

    def decode(self, code: int, payload: bytes) -> Any:
        self.count(payload)
        if code != TENSOR:
            return msgpack.ExtType(code, payload)
        if self._error is not None:
            return self._error
        try:
            return tensors.decode(payload).copy()  # aligned, and independent of the frame
        except (InvalidData, LimitExceeded) as error:
            self._error = error  # in the tensor's place, until `check` raises it: by then the message's id is known
            return error


def _describe(message: Any) -> str:
    if isinstance(message, list):
        return "an array of " + (", ".join(type(item).__name__ for item in message[:4]) or "nothing")
    return type(message).__name__
