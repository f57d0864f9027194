"""Promotion against Nx's rules, spelled out."""

from __future__ import annotations

import pytest

from nutkin.model.types import DTYPES, Spec, bits, fits, literal_spec, merge, merge_types, narrow, to_floating

REAL_TYPES = [name for name in DTYPES if not name.startswith("c")]

MERGED = [
    ("s32", "s64", "s64"),
    ("u8", "u16", "u16"),
    ("u8", "s8", "s16"),
    ("u32", "s32", "s64"),
    ("u64", "s64", "s64"),
    ("u64", "s8", "s64"),
    ("u4", "s2", "s8"),
    ("s64", "f32", "f32"),
    ("f16", "s64", "f16"),
    ("u8", "bf16", "bf16"),
    ("bf16", "f16", "f16"),
    ("bf16", "f32", "f32"),
    ("f32", "f64", "f64"),
    ("f8", "bf16", "bf16"),
    ("f8", "f8_e4m3fn", "f16"),
    ("f8", "s64", "f8"),
]


@pytest.mark.parametrize(("left", "right", "expected"), MERGED)
def test_merge_types(left: str, right: str, expected: str) -> None:
    assert merge_types(left, right) == expected
    assert merge_types(right, left) == expected


def test_merging_is_idempotent_and_never_narrows() -> None:
    for left in REAL_TYPES:
        assert merge_types(left, left) == left
        for right in REAL_TYPES:
            merged = merge_types(left, right)
            assert merged in REAL_TYPES
            if left[0] == right[0]:
                assert bits(merged) >= max(bits(left), bits(right))


WEAK = [
    ("u8", 255, "u8"),
    ("u8", 300, "u16"),
    ("u8", -1, "s16"),
    ("s8", 100, "s8"),
    ("s8", 200, "s16"),
    ("s2", 1, "s2"),
    ("s64", 1, "s64"),
    ("u64", 2**64 - 1, "u64"),
    ("f16", 1.5, "f16"),
    ("f32", 0.1, "f32"),
    ("f32", 3, "f32"),
    ("f64", 0.1, "f64"),
    ("u8", 1.5, "f64"),
    ("s32", 2.0, "f64"),
]


@pytest.mark.parametrize(("strong", "literal", "expected"), WEAK)
def test_literals_take_the_type_of_what_they_meet(strong: str, literal: float, expected: str) -> None:
    pair = (Spec((3,), strong), literal_spec(literal, precision="f64"))
    assert merge(pair, precision="f64") == expected
    assert merge(reversed(pair), precision="f64") == expected


def test_a_literal_float_among_integers_takes_the_precision() -> None:
    assert merge((Spec((), "s64"), literal_spec(0.5, precision="f32")), precision="f32") == "f32"


def test_literals_alone() -> None:
    one, half = literal_spec(1, precision="f64"), literal_spec(0.5, precision="f64")
    assert (one.type, half.type) == ("s64", "f64")
    assert literal_spec(2**63, precision="f64").type == "u64"
    assert merge((one, one), precision="f64") == "s64"
    assert merge((one, half), precision="f64") == "f64"


def test_to_floating_and_narrow() -> None:
    assert to_floating("s32", precision="f64") == "f64"
    assert to_floating("u8", precision="f32") == "f32"
    assert to_floating("bf16", precision="f64") == "bf16"
    assert narrow("f64", precision="f32") == "f32"
    assert narrow("f32", precision="f64") == "f32"
    assert narrow("s64", precision="f32") == "s64"


def test_fits() -> None:
    assert fits(-128, "s8")
    assert not fits(128, "s8")
    assert fits(3, "u2")
    assert not fits(-1, "u64")
