"""External Term Format: bounded reading of Erlang terms, and printing them as Elixir does.

erlang-py reads the terms; it would inflate any compressed part and recurse as deep as the bytes say, so the bytes are
walked first and only plain data (numbers, atoms, binaries, tuples, lists, maps) within limits is handed to it.

Terms as Python values: `Atom`, int, float, bytes (a binary), list, tuple, dict.
"""

from __future__ import annotations

import dataclasses
import json
import re
import zlib
from typing import Any

import erlang

from nutkin.errors import InvalidData

VERSION = 131
COMPRESSED = 80
MAX_DEPTH = 64
MAX_TERMS = 100_000
MAX_INTEGER_BYTES = 64

# tag: (bytes of the length, bytes that follow besides it, what the length counts)
_TAGS: dict[int, tuple[int, int, str]] = {
    97: (0, 1, "bytes"),  # SMALL_INTEGER
    98: (0, 4, "bytes"),  # INTEGER
    110: (1, 1, "integer"),  # SMALL_BIG
    111: (4, 1, "integer"),  # LARGE_BIG
    70: (0, 8, "bytes"),  # NEW_FLOAT
    99: (0, 31, "bytes"),  # FLOAT
    100: (2, 0, "bytes"),  # ATOM
    115: (1, 0, "bytes"),  # SMALL_ATOM
    118: (2, 0, "bytes"),  # ATOM_UTF8
    119: (1, 0, "bytes"),  # SMALL_ATOM_UTF8
    109: (4, 0, "bytes"),  # BINARY
    107: (2, 0, "bytes"),  # STRING
    106: (0, 0, "bytes"),  # NIL
    104: (1, 0, "terms"),  # SMALL_TUPLE
    105: (4, 0, "terms"),  # LARGE_TUPLE
    108: (4, 0, "list"),  # LIST, whose tail is one more term
    116: (4, 0, "map"),  # MAP
}


@dataclasses.dataclass(frozen=True)
class Atom:
    """An atom: its name, never one of a running system's atoms."""

    name: str


def read(data: bytes | memoryview, *, max_bytes: int) -> Any:
    """The term of `data`, which begins with the version byte. InvalidData, also above `max_bytes` of plain term."""
    if len(data) < 2 or data[0] != VERSION:
        raise _invalid(f"the first byte is not {VERSION}")
    compressed = data[1] == COMPRESSED
    plain = bytes([VERSION]) + _inflate(memoryview(data)[2:], max_bytes) if compressed else bytes(data)
    if len(plain) > max_bytes:
        raise _invalid(f"{len(plain)} bytes where at most {max_bytes} are read")
    _check(plain)
    try:
        return _plain(erlang.binary_to_term(plain))
    except (erlang.ParseException, ValueError, TypeError) as error:
        raise _invalid(str(error)) from error


def write(term: Any) -> bytes:
    """The term's bytes, version byte first."""
    return erlang.term_to_binary(_erlang(term))


def inspect(term: Any) -> str:
    """The term as Elixir's `inspect` prints it."""
    match term:
        case Atom(name):
            return _inspect_atom(name)
        case bytes():
            text = string(term)
            return "<<" + ", ".join(map(str, term)) + ">>" if text is None else json.dumps(text, ensure_ascii=False)
        case list():
            return "[" + ", ".join(map(inspect, term)) + "]"
        case tuple():
            return "{" + ", ".join(map(inspect, term)) + "}"
        case dict():
            return "%{" + ", ".join(f"{inspect(key)} => {inspect(value)}" for key, value in term.items()) + "}"
    return str(term)


def string(binary: bytes) -> str | None:
    """The text of a binary, None where it is not UTF-8."""
    try:
        return binary.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _inspect_atom(name: str) -> str:
    if name in ("nil", "true", "false"):
        return name
    if name.startswith("Elixir."):
        return name.removeprefix("Elixir.")
    return f":{name}" if re.fullmatch(r"[a-zA-Z_][\w@]*[?!]?", name) else ":" + json.dumps(name, ensure_ascii=False)


def _inflate(data: memoryview, max_bytes: int) -> bytes:
    if len(data) < 4:
        raise _invalid("the compressed term ends within its header")
    announced = int.from_bytes(data[:4], "big")
    if announced >= max_bytes:
        raise _invalid(f"a compressed term of {announced} bytes where at most {max_bytes} are read")
    inflater = zlib.decompressobj()
    try:
        plain = inflater.decompress(data[4:], announced + 1)
    except zlib.error as error:
        raise _invalid(f"the compressed term is damaged: {error}") from error
    if len(plain) != announced or not inflater.eof or inflater.unused_data:
        raise _invalid(f"the compressed term does not hold the {announced} bytes that it announces")
    return plain


def _check(data: bytes) -> None:
    """Walks the tags: known ones only, all bytes there, none left over, within the limits of depth and number."""
    position, terms = 1, 0
    open_terms = [1]  # how many terms are still to come, at each depth
    while open_terms:
        if open_terms[-1] == 0:
            open_terms.pop()
            continue
        open_terms[-1] -= 1
        terms += 1
        if terms > MAX_TERMS:
            raise _invalid(f"more than {MAX_TERMS} terms")
        if position >= len(data):
            raise _invalid("it ends within a term")
        tag = data[position]
        if tag not in _TAGS:
            raise _invalid(f"tag {tag} at byte {position} is not plain data")
        length_bytes, more, counts = _TAGS[tag]
        length = int.from_bytes(data[position + 1 : position + 1 + length_bytes], "big")
        position += 1 + length_bytes + more
        if counts in ("bytes", "integer"):
            if counts == "integer" and length > MAX_INTEGER_BYTES:
                raise _invalid(f"an integer of {length} bytes")
            position += length
        else:
            open_terms.append({"terms": length, "list": length + 1, "map": 2 * length}[counts])
            if len(open_terms) > MAX_DEPTH:
                raise _invalid(f"terms nested more than {MAX_DEPTH} deep")
        if position > len(data):
            raise _invalid("it ends within a term")
    if position != len(data):
        raise _invalid(f"{len(data) - position} bytes follow the term")


def _plain(value: Any) -> Any:
    """erlang-py's values as ours. Its None, True and False are the atoms `undefined`, `true` and `false`."""
    match value:
        case erlang.OtpErlangAtom():
            name = value.value
            return Atom(name if isinstance(name, str) else name.decode("latin-1"))
        case None:
            return Atom("undefined")
        case bool():
            return Atom("true" if value else "false")
        case erlang.OtpErlangBinary():
            return value.value
        case bytes():  # STRING_EXT: how a list of bytes is written
            return list(value)
        case erlang.OtpErlangList():
            if value.improper:
                raise _invalid("an improper list")
            return [_plain(item) for item in value.value]
        case list():
            return [_plain(item) for item in value]
        case tuple():
            return tuple(_plain(item) for item in value)
        case dict():
            return {_plain(key): _plain(item) for key, item in value.items()}
    return value


def _erlang(term: Any) -> Any:
    match term:
        case Atom(name):
            return erlang.OtpErlangAtom(name)
        case bytes():
            return erlang.OtpErlangBinary(term)
        case list():
            return [_erlang(item) for item in term]
        case tuple():
            return tuple(_erlang(item) for item in term)
        case dict():
            return {_erlang(key): _erlang(value) for key, value in term.items()}
    return term


def _invalid(reason: str) -> InvalidData:
    return InvalidData("an Erlang term cannot be read", found=reason)
