"""What a file of tensors or frames holds, for a person to read or as JSON.

Reads what `Nx.serialize/2` wrote, a tensor payload, one recorded frame (msgpack without its length), or a recorded
stream of frames (each with its length).
"""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np

from nutkin.errors import InvalidData, ProtocolError
from nutkin.model.types import NAMES
from nutkin_port import codec, nx_serialize, tensors, terms
from nutkin_port.frames import HEADER_BYTES
from nutkin_port.limits import Limits

Message = tuple[str, int, dict[str, Any]]
Contents = nx_serialize.Node | list[Message]


def read(data: bytes) -> Contents:
    """A tensor or container, or messages. InvalidData when the bytes are none of the four."""
    if nx_serialize.is_nx(data):
        return nx_serialize.read(data, max_bytes=Limits.tensor)
    reasons = []
    for name, reader in (("a frame", _one_frame), ("a stream of frames", _stream), ("a tensor payload", _payload)):
        try:
            return reader(data)
        except (ProtocolError, InvalidData) as error:
            reasons.append(f"as {name}: {error}")
    raise InvalidData(
        "the bytes are nothing that Nutkin reads",
        expected="Nx.serialize bytes, a tensor payload, a frame, or a stream of frames",
        found=f"{data[:8].hex(' ') or 'nothing'} ({'; '.join(reasons)})",
    )


def to_json(contents: Contents) -> Any:
    """Plain data for JSON: the tree of tensors, or a list of `{"type", "id", "body"}`.

    Within a body a tensor is `{"$tensor": {"type", "shape", "hex"}}` and bytes are `{"$hex": "..."}`.
    """
    if isinstance(contents, list):
        return [{"type": kind, "id": id, "body": _plain(body)} for kind, id, body in contents]
    return contents.to_json()


def to_text(contents: Contents) -> str:
    """Readable lines: type, shape with the names of its axes, and values as numpy prints them."""
    if isinstance(contents, list):
        return "\n".join(f"{_word(kind)} {id}\n{_indent(_body_text(body))}" for kind, id, body in contents)
    return _node_text(contents)


def _one_frame(data: bytes) -> list[Message]:
    kind, id, body = codec.unpack(data)
    codec.check(body)
    return [(kind, id, body)]


def _stream(data: bytes) -> list[Message]:
    messages: list[Message] = []
    while data or not messages:
        length = int.from_bytes(data[:HEADER_BYTES], "big")
        frame, data = data[HEADER_BYTES : HEADER_BYTES + length], data[HEADER_BYTES + length :]
        messages += _one_frame(frame)
    return messages


def _payload(data: bytes) -> nx_serialize.Tensor:
    return nx_serialize.tensor(tensors.decode(data))


def _plain(value: Any) -> Any:
    match value:
        case dict():
            return {key: _plain(item) for key, item in value.items()}
        case list():
            return [_plain(item) for item in value]
        case bytes():
            return {"$hex": value.hex()}
        case np.ndarray():
            elements = bytes(tensors.to_bytes(value)).hex()
            return {"$tensor": {"type": NAMES[value.dtype], "shape": list(value.shape), "hex": elements}}
    return value


def _node_text(node: nx_serialize.Node) -> str:
    match node:
        case nx_serialize.Tensor():
            axes = [f"{name}: {size}" for name, size in node.vectorized_axes]
            sizes = [
                f"{name}: {size}" if name else str(size) for name, size in zip(node.names, node.shape, strict=True)
            ]
            vectorized = f" vectorized[{', '.join(axes)}]" if axes else ""
            values = np.array2string(node.array, separator=", ")
            return f"{node.type}[{', '.join(sizes)}]{vectorized}\n{_indent(values)}"
        case nx_serialize.Tuple():
            children = [(str(index), item) for index, item in enumerate(node.items)]
            title = f"tuple of {len(children)}"
        case nx_serialize.Map():
            children = [(terms.inspect(key), item) for key, item in node.items]
            title = f"map of {len(children)}"
        case nx_serialize.Struct():
            children = [(name, item) for name, item in node.items]
            kept = [f"{name}={terms.inspect(value)}" for name, value in node.keep]
            title = " ".join(["struct", node.module.removeprefix("Elixir."), *kept])
    return "\n".join([title, *(_indent(f"{key}: {_node_text(item)}") for key, item in children)])


def _body_text(body: dict[str, Any]) -> str:
    return "\n".join(f"{_word(key)}: {_value_text(value)}" for key, value in body.items())


def _word(text: str) -> str:
    """A word from outside, without what could steer a terminal."""
    return text if text.isprintable() else repr(text)


def _value_text(value: Any) -> str:
    match value:
        case np.ndarray():
            return _node_text(nx_serialize.tensor(value))
        case dict() if value:
            return "\n" + _indent(_body_text(value))
        case list() if any(isinstance(item, (dict, np.ndarray)) for item in value):
            return "\n" + "\n".join(_indent(f"- {_value_text(item).strip()}") for item in value)
        case bytes():
            return f"{len(value)} bytes {value[:32].hex()}{'...' if len(value) > 32 else ''}"
    return repr(value)


def _indent(text: str) -> str:
    return textwrap.indent(text, "  ")
