"""Erlang terms: there and back, as Elixir prints them, and bytes meant to hurt."""

from __future__ import annotations

import contextlib
import time
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nutkin.errors import InvalidData
from nutkin_port import terms
from nutkin_port.terms import Atom

LEAVES = st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.binary(max_size=20)
ATOMS = st.text(max_size=20).filter(lambda name: name not in ("true", "false")).map(Atom)
TERMS = st.recursive(
    LEAVES | ATOMS,
    lambda inner: st.lists(inner, max_size=5) | st.lists(inner, max_size=5).map(tuple),
    max_leaves=20,
)


@settings(max_examples=80, deadline=None)
@given(TERMS | st.dictionaries(LEAVES | ATOMS, TERMS, max_size=5))
def test_terms_survive(term: object) -> None:
    assert terms.read(terms.write(term), max_bytes=1 << 20) == term


@pytest.mark.parametrize(
    ("term", "text"),
    [
        (Atom("ok"), ":ok"),
        (Atom("nil"), "nil"),
        (Atom("Elixir.Nx.Tensor"), "Nx.Tensor"),
        (Atom("a b"), ':"a b"'),
        (b"kept \xc3\xa9", '"kept é"'),
        (b"\xff\x00", "<<255, 0>>"),
        ((Atom("t"), 1, [-2, 1.5]), "{:t, 1, [-2, 1.5]}"),
        ({b"a": Atom("true")}, '%{"a" => true}'),
    ],
)
def test_inspect(term: object, text: str) -> None:
    assert terms.inspect(term) == text


def test_special_atoms_are_atoms() -> None:
    term = [Atom("true"), Atom("false"), Atom("undefined"), Atom("nil")]
    assert terms.read(terms.write(term), max_bytes=1000) == term


def test_a_list_of_bytes_is_a_list() -> None:
    assert terms.read(b"\x83\x6b\x00\x03abc", max_bytes=1000) == [97, 98, 99]


def compressed(plain: bytes, announced: int | None = None) -> bytes:
    return b"\x50" + (len(plain) if announced is None else announced).to_bytes(4, "big") + zlib.compress(plain)


BOMB = compressed(b"\x6d" + (50_000_000).to_bytes(4, "big") + bytes(50_000_000))
INTEGERS = [b"\x61\x01", b"\x62\x00\x00\x00\x01"]


@pytest.mark.parametrize("integer", INTEGERS)
def test_a_compressed_term(integer: bytes) -> None:
    assert terms.read(b"\x83" + compressed(integer), max_bytes=1000) == 1


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "first byte"),
        (b"\x83", "first byte"),
        (b"\x00\x61\x01", "first byte"),
        (b"\x83" + BOMB, "at most 1000000"),
        (b"\x83\x68\x01" + BOMB, "tag 80"),  # erlang-py would inflate it, wherever it is
        (b"\x83" + compressed(b"\x61\x01", 500), "does not hold"),
        (b"\x83" + compressed(b"\x6d\x00\x00\x01\x00" + bytes(256), 6), "does not hold"),
        (b"\x83\x50\x00\x00\x00\x02garbage", "damaged"),
        (b"\x83\x50\x00", "within its header"),
        (b"\x83" + b"\x68\x01" * 100_000 + b"\x6a", "deep"),
        (b"\x83\x6f\x00\x08\x00\x00\x00" + bytes(1 << 19), "integer of"),
        (b"\x83\x6c\xff\xff\xff\xff" + b"\x61\x01" * 10, "ends within"),
        (b"\x83\x69\xff\xff\xff\xff", "ends within"),
        (b"\x83\x69\x00\x02\x00\x00" + b"\x6a" * 0x20000, "more than"),
        (b"\x83\x6d\xff\xff\xff\xff", "ends within"),
        (b"\x83\x61\x01\x61", "follow the term"),
        (b"\x83\x77\x02\xff\xff", "utf-8"),
        (b"\x83\x63" + b"x" * 31, "could not convert"),
        (b"\x83\x6c\x00\x00\x00\x01\x61\x01\x61\x02", "improper"),
        (b"\x83\x70\x00\x00\x00\x05", "tag 112"),  # a function
        (b"\x83\x79" + bytes(9), "tag 121"),
    ],
)
def test_hostile_terms(data: bytes, message: str) -> None:
    started = time.monotonic()
    with pytest.raises(InvalidData, match=message):
        terms.read(data, max_bytes=1_000_000)
    assert time.monotonic() - started < 1


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=80).map(lambda data: b"\x83" + data) | TERMS.map(terms.write).map(lambda data: data[:-1]))
def test_hostile_bytes_are_a_term_or_invalid(data: bytes) -> None:
    started = time.monotonic()
    with contextlib.suppress(InvalidData):
        terms.read(data, max_bytes=1000)
    assert time.monotonic() - started < 1
