"""What `Nx.serialize/2` writes: reader of all its versions, and writer of version 1.

Version 1 is "nx", a version and an endianness byte, the length of a header term, the term, and all buffers one after
another. Before Nx 0.6 it was one term with the buffers inside. Tensors of little-endian files alias the bytes given.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from nutkin.errors import InvalidData
from nutkin.model.types import DTYPES, NAMES, bits, kind
from nutkin_port import tensors, terms
from nutkin_port.terms import Atom

MAGIC = b"nx"
FORMAT_VERSION = 1
PREFIX_BYTES = 12
MAX_HEADER_BYTES = 1 << 20

_TUPLE = Atom("Elixir.Nx.Container.Tuple")
_MAP = Atom("Elixir.Nx.Container.Map")
_OK = Atom("ok")
_NIL = Atom("nil")


@dataclasses.dataclass(frozen=True, eq=False)
class Tensor:
    """`array` has the vectorized axes first, then the axes of `shape`."""

    type: str
    shape: tuple[int, ...]
    names: tuple[str | None, ...]
    vectorized_axes: tuple[tuple[str, int], ...]
    array: np.ndarray

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": "tensor",
            "type": self.type,
            "shape": list(self.shape),
            "names": list(self.names),
            "vectorized_axes": [list(axis) for axis in self.vectorized_axes],
            "values": _values(self.array, self.type),
        }


@dataclasses.dataclass(frozen=True, eq=False)
class Tuple:
    items: tuple[Node, ...]

    def to_json(self) -> dict[str, Any]:
        return {"kind": "tuple", "items": [item.to_json() for item in self.items]}


@dataclasses.dataclass(frozen=True, eq=False)
class Map:
    """Keys are any terms, in the order of the file."""

    items: tuple[tuple[Any, Node], ...]

    def to_json(self) -> dict[str, Any]:
        return {"kind": "map", "items": [[_key(key), item.to_json()] for key, item in self.items]}


@dataclasses.dataclass(frozen=True, eq=False)
class Struct:
    """`keep`: the fields that are no tensors."""

    module: str
    items: tuple[tuple[str, Node], ...]
    keep: tuple[tuple[str, Any], ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": "struct",
            "module": self.module,
            "items": [[name, item.to_json()] for name, item in self.items],
            "keep": {name: terms.inspect(value) for name, value in self.keep},
        }


Node = Tensor | Tuple | Map | Struct


def is_nx(data: bytes | bytearray | memoryview) -> bool:
    """Whether the bytes begin as one of the formats does."""
    return bytes(data[:2]) == MAGIC or bytes(data[:1]) == bytes([terms.VERSION])


def buffers_offset(data: bytes | bytearray | memoryview) -> int | None:
    """Where the buffers of a version-1 file begin, of which `data` is the start; 0 for the older format, whose buffers
    are not at a known place; None when there are too few bytes to tell.
    """
    if len(data) >= 1 and data[0] == terms.VERSION:
        return 0
    if len(data) < PREFIX_BYTES:
        return None
    return PREFIX_BYTES + int.from_bytes(data[4:PREFIX_BYTES], "big")


def read(data: bytes | bytearray | memoryview, *, max_bytes: int) -> Node:
    """The tensor or container that the bytes hold, its tensors of at most `max_bytes` in all. InvalidData.

    An old compressed file may inflate to `max_bytes`.
    """
    view = memoryview(data).toreadonly()
    if bytes(view[:2]) == MAGIC:
        term, buffers, big_endian = _read_version_1(view, max_bytes)
        return _node(term, buffers, big_endian=big_endian)
    if is_nx(view):
        return _read_legacy(terms.read(view, max_bytes=max_bytes))
    raise _invalid("its first bytes", expected="`nx`, or the byte 131 of the older format", found=_hex(view[:4]))


def read_tensor(data: bytes | bytearray | memoryview, *, max_bytes: int) -> Tensor:
    """The same of one tensor, which is no more than the file; a container is refused. InvalidData."""
    # The tensors of a container may share one buffer, and so be more than the file: none of them is converted.
    size = len(data) if bytes(data[:2]) == MAGIC else max_bytes
    node = read(data, max_bytes=size)
    if isinstance(node, Tensor):
        return node
    raise InvalidData("a blob holds a container", expected="one tensor", found=type(node).__name__.lower())


def write(node: Node) -> bytes:
    """The bytes of version 1, little-endian, as `Nx.deserialize/1` reads them."""
    buffers: list[bytes | memoryview] = []
    header = terms.write(_header_term(node, buffers))
    prefix = MAGIC + bytes([FORMAT_VERSION, 0]) + len(header).to_bytes(8, "big")
    return b"".join([prefix, header, *buffers])


def tensor(array: np.ndarray, names: tuple[str | None, ...] | None = None) -> Tensor:
    """An array as a tensor without vectorized axes."""
    type_name = NAMES[array.dtype.newbyteorder("=")]
    return Tensor(type_name, array.shape, names or (None,) * array.ndim, (), array)


def _read_version_1(view: memoryview, max_bytes: int) -> tuple[Any, memoryview, bool]:
    """-> the term of the header, the buffers, and whether they are big-endian."""
    if len(view) < PREFIX_BYTES:
        raise _invalid("its length", expected=f"at least {PREFIX_BYTES} bytes", found=f"{len(view)} bytes")
    version, endianness = view[2], view[3]
    if version != FORMAT_VERSION:
        raise _invalid("its version", expected=str(FORMAT_VERSION), found=str(version))
    if endianness > 1:
        raise _invalid("its endianness byte", expected="0 or 1", found=str(endianness))
    end = buffers_offset(view)
    header_bytes = end - PREFIX_BYTES
    if header_bytes > MAX_HEADER_BYTES or end > len(view):
        at_most = min(MAX_HEADER_BYTES, len(view) - PREFIX_BYTES)
        raise _invalid("the length of its header", expected=f"at most {at_most} bytes", found=f"{header_bytes} bytes")
    term = terms.read(view[PREFIX_BYTES:end], max_bytes=MAX_HEADER_BYTES)
    if (used := _bytes_used(term)) > max_bytes:
        raise _invalid("the size of its tensors", expected=f"at most {max_bytes} bytes in all", found=f"{used} bytes")
    return term, view[end:], endianness == 1


def _bytes_used(term: Any) -> int:
    """Of the buffers, by the tensors of a header: they may share them, but are converted one by one."""
    match term:
        case (Atom(), list(items), _):
            return sum(_bytes_used(child) for _, child in _pairs(items))
        case (Atom("t"), _, _, _, _, _, int(size)):
            return max(size, 0)
    return 0


def _node(term: Any, buffers: memoryview, *, big_endian: bool) -> Node:
    match term:
        case (Atom("t"), tuple(shape), type_term, list(names), list(axes), int(offset), int(size)):
            if not 0 <= offset <= offset + size <= len(buffers):
                raise _invalid(
                    "the place of a buffer",
                    expected=f"within the {len(buffers)} bytes of buffers",
                    found=f"bytes {offset} to {offset + size}",
                )
            data = buffers[offset : offset + size]
            return _tensor(shape, type_term, names, axes, data, big_endian=big_endian)
        case (Atom() as module, list(items), keep):
            children = [(key, _node(child, buffers, big_endian=big_endian)) for key, child in _pairs(items)]
            return _container(module, children, keep)
    raise _invalid("a node of its header", expected="a tensor or a container", found=terms.inspect(term)[:100])


def _read_legacy(term: Any) -> Node:
    match term:
        case (1, Atom("little" | "big" as endianness), node):
            return _legacy_node(node, big_endian=endianness == "big")
    raise _invalid("its term", expected="{1, endianness, tensor or container}", found=terms.inspect(term)[:100])


def _legacy_node(term: Any, *, big_endian: bool) -> Node:
    match term:
        case (Atom("tensor"), tuple(shape), type_term, list(names), bytes(data)):
            return _tensor(shape, type_term, names, [], memoryview(data), big_endian=big_endian)
        case (Atom("container"), tuple(items)):
            return Tuple(tuple(_legacy_node(item, big_endian=big_endian) for item in items))
        case (Atom("container"), dict(items)):
            return Map(tuple((key, _legacy_node(item, big_endian=big_endian)) for key, item in items.items()))
        case (Atom() as module, list(items), keep):
            children = [(key, _legacy_node(child, big_endian=big_endian)) for key, child in _pairs(items)]
            return _container(module, children, keep)
    raise _invalid("a node of its term", expected="a tensor or a container", found=terms.inspect(term)[:100])


def _container(module: Atom, children: list[tuple[Any, Node]], keep: Any) -> Node:
    if module == _TUPLE:
        return Tuple(tuple(child for _, child in children))
    if module == _MAP:
        return Map(tuple(children))
    kept = _pairs(keep)
    for key, _ in [*children, *kept]:
        if not isinstance(key, Atom):
            raise _invalid("a field of a struct", expected="an atom", found=terms.inspect(key)[:100])
    return Struct(
        module.name,
        tuple((key.name, child) for key, child in children),
        tuple((key.name, value) for key, value in kept),
    )


def _pairs(items: Any) -> list[tuple[Any, Any]]:
    if isinstance(items, list) and all(isinstance(item, tuple) and len(item) == 2 for item in items):
        return items
    raise _invalid("the items of a container", expected="a list of pairs", found=terms.inspect(items)[:100])


def _tensor(
    flat_shape: tuple[Any, ...],
    type_term: Any,
    names: list[Any],
    axes: list[Any],
    data: memoryview,
    *,
    big_endian: bool,
) -> Tensor:
    if len(flat_shape) > tensors.MAX_RANK:
        raise _invalid("the rank of a tensor", expected=f"at most {tensors.MAX_RANK}", found=str(len(flat_shape)))
    if not all(isinstance(size, int) and size >= 0 for size in flat_shape):
        raise _invalid("the shape of a tensor", expected="sizes", found=terms.inspect(flat_shape)[:100])
    if len(names) != len(flat_shape) or not all(isinstance(name, Atom) for name in names):
        raise _invalid("the names of the axes", expected="an atom for each axis", found=terms.inspect(names)[:100])
    vectorized = _pairs(axes)
    count = len(vectorized)
    if [size for _, size in vectorized] != list(flat_shape[:count]):
        raise _invalid("the vectorized axes", expected="the first sizes of the shape", found=terms.inspect(axes)[:100])
    type_name = _type_name(type_term)
    return Tensor(
        type_name,
        tuple(flat_shape[count:]),
        tuple(None if name == _NIL else name.name for name in names[count:]),
        tuple((name.name, size) for name, size in zip(names, flat_shape, strict=True))[:count],
        tensors.from_bytes(data, type_name, flat_shape, big_endian=big_endian),
    )


def _type_name(term: Any) -> str:
    """`{:f, 64}` is `f64`; Nx writes the second 8-bit float as `{:f8_e4m3fn, 8}`."""
    match term:
        case (Atom(name), int(size)):
            for candidate in (f"{name}{size}", name):
                if candidate in DTYPES and bits(candidate) == size:
                    return candidate
    raise _invalid("the type of a tensor", expected=f"one of {' '.join(DTYPES)}", found=terms.inspect(term)[:40])


def _header_term(node: Node, buffers: list[bytes | memoryview]) -> Any:
    match node:
        case Tensor():
            offset = sum(map(len, buffers))
            data = tensors.to_bytes(node.array)
            names = [name for name, _ in node.vectorized_axes] + list(node.names)
            axes = [(Atom(name), size) for name, size in node.vectorized_axes]
            type_term = (Atom("f8_e4m3fn" if node.type == "f8_e4m3fn" else kind(node.type)), bits(node.type))
            buffers.append(data)
            atoms = [_NIL if name is None else Atom(name) for name in names]
            return (Atom("t"), node.array.shape, type_term, atoms, axes, offset, len(data))
        case Tuple():
            return (_TUPLE, [([], _header_term(item, buffers)) for item in node.items], _OK)
        case Map():
            return (_MAP, [(key, _header_term(item, buffers)) for key, item in node.items], _OK)
        case Struct():
            fields = [(Atom(name), _header_term(item, buffers)) for name, item in node.items]
            return (Atom(node.module), fields, [(Atom(name), value) for name, value in node.keep])


def _values(array: np.ndarray, type_name: str) -> list[Any]:
    flat = array.reshape(-1)
    if kind(type_name) == "c":
        return [[_number(value.real), _number(value.imag)] for value in flat.tolist()]
    if kind(type_name) in ("f", "bf"):
        return [_number(float(value)) for value in flat]
    return [int(value) for value in flat]


def _number(value: float) -> float | str:
    """JSON has no spelling for these four."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Inf" if value > 0 else "-Inf"
    return "-0.0" if value == 0 and math.copysign(1, value) < 0 else value


def _key(key: Any) -> dict[str, Any]:
    match key:
        case Atom(name):
            return {"atom": name}
        case bytes() if (text := terms.string(key)) is not None:
            return {"string": text}
        case int():
            return {"int": key}
    return {"inspect": terms.inspect(key)}


def _hex(data: memoryview) -> str:
    return bytes(data).hex(" ") or "nothing"


def _invalid(what: str, *, expected: str, found: str) -> InvalidData:
    return InvalidData(f"Nx.serialize bytes cannot be read: {what}", expected=expected, found=found)
