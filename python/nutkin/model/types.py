"""Tensor types under Nx's names, and numpy's dtype for each.

`s`, `u`, `f`, `bf`, `c` with the size in bits (`s64`, `f32`, `bf16`, `c128`), and the two 8-bit floats `f8` (e5m2) and
`f8_e4m3fn`. Also here: which type comes of several (promotion), by Nx's rules with the two deviations of the model
language: an integer that becomes floating takes the model's precision, and a number written in the model takes the type
of what it meets.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, reduce

import ml_dtypes
import numpy as np

DTYPES: dict[str, np.dtype] = {
    name: np.dtype(dtype)
    for name, dtype in {
        "u2": ml_dtypes.uint2,
        "u4": ml_dtypes.uint4,
        "u8": np.uint8,
        "u16": np.uint16,
        "u32": np.uint32,
        "u64": np.uint64,
        "s2": ml_dtypes.int2,
        "s4": ml_dtypes.int4,
        "s8": np.int8,
        "s16": np.int16,
        "s32": np.int32,
        "s64": np.int64,
        "f8": ml_dtypes.float8_e5m2,
        "f8_e4m3fn": ml_dtypes.float8_e4m3fn,
        "bf16": ml_dtypes.bfloat16,
        "f16": np.float16,
        "f32": np.float32,
        "f64": np.float64,
        "c64": np.complex64,
        "c128": np.complex128,
    }.items()
}

NAMES: dict[np.dtype, str] = {dtype: name for name, dtype in DTYPES.items()}


@cache
def bits(name: str) -> int:
    """Bits of one element: 2 for `s2`, 128 for `c128`."""
    return int("".join(c for c in name.split("_")[0] if c.isdigit()))


@cache
def kind(name: str) -> str:
    """`u`, `s`, `f`, `bf` or `c`."""
    return name.split("_")[0].rstrip("0123456789")


def is_integer(name: str) -> bool:
    return kind(name) in ("u", "s")


def is_float(name: str) -> bool:
    return kind(name) in ("f", "bf")


def is_complex(name: str) -> bool:
    return kind(name) == "c"


@dataclass(frozen=True)
class Spec:
    """Shape and type of a tensor. `literal` is set for a number written in the model: it has no type of its own."""

    shape: tuple[int, ...]
    type: str
    literal: int | float | None = None

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def __str__(self) -> str:
        return f"{self.literal}" if self.literal is not None else f"{self.type} {show_shape(self.shape)}"


def show_shape(shape: tuple[int | None, ...]) -> str:
    """`{3, 4}`, `{}` for a scalar, as Nx prints shapes; `?` for a size that is free."""
    return "{" + ", ".join("?" if size is None else str(size) for size in shape) + "}"


def literal_spec(value: int | float, *, precision: str) -> Spec:
    """The spec of a number; its type is the one it takes where it meets no tensor."""
    return Spec((), precision if isinstance(value, float) else _integer_for(value, at_least=64), value)


def merge_types(left: str, right: str) -> str:
    """The type of a result of two tensors, by Nx's rules, not JAX's: `u64` with `s64` is `s64`."""
    if left == right:
        return left
    if kind(left) == kind(right):
        # The two 8-bit floats hold different values; f16 holds both.
        return "f16" if bits(left) == bits(right) else max(left, right, key=bits)
    low, high = sorted((left, right), key=lambda name: "usbfc".index(kind(name)[0]))
    if is_integer(high):
        return f"s{max(min(2 * bits(low), 64), bits(high))}"
    if kind(low) == "bf" and kind(high) == "f" and bits(high) < bits(low):
        return low
    if is_float(low) and kind(high) == "c":
        return f"c{max(2 * bits(low), bits(high), 64)}"
    return high


def merge(specs: Iterable[Spec], *, precision: str) -> str:
    """The type of a result of several tensors and literals.

    A literal integer keeps the others' type when its value fits, a literal float does when they are floating;
    a literal float among integers gives the model's precision.
    """
    specs = tuple(specs)
    strong = [spec.type for spec in specs if spec.literal is None]
    if not strong:
        return precision if any(is_float(spec.type) for spec in specs) else reduce(merge_types, (s.type for s in specs))
    merged = reduce(merge_types, strong)
    for literal in (spec.literal for spec in specs if spec.literal is not None):
        if is_integer(merged) and isinstance(literal, float):
            merged = precision
        elif is_integer(merged) and not fits(literal, merged):
            merged = merge_types(merged, _integer_for(literal, at_least=2))
    return merged


def to_floating(name: str, *, precision: str) -> str:
    """The type of `exp`, `divide`, `mean`, … of this type: floats stay, integers take the model's precision."""
    return precision if is_integer(name) else name


def narrow(name: str, *, precision: str) -> str:
    """The type in which a model holds a tensor: what is wider than its precision is narrowed to it."""
    if is_complex(name):
        return "c64" if precision == "f32" else name
    return precision if is_float(name) and bits(name) > bits(precision) else name


def complex_of(name: str, *, precision: str) -> str:
    """The complex type of numbers whose parts are of this type."""
    return name if is_complex(name) else f"c{2 * max(32, bits(to_floating(name, precision=precision)))}"


def real_of(name: str, *, precision: str) -> str:
    """The type of the parts of a complex number; that of others, as floats."""
    return f"f{bits(name) // 2}" if is_complex(name) else to_floating(name, precision=precision)


def fits(value: int, name: str) -> bool:
    """Whether the integer can be held by the integer type."""
    low, high = (0, 2 ** bits(name)) if kind(name) == "u" else (-(2 ** (bits(name) - 1)), 2 ** (bits(name) - 1))
    return low <= value < high


def _integer_for(value: int, *, at_least: int) -> str:
    kinds = ("s",) if value < 0 else ("s", "u") if at_least == 64 else ("u",)
    candidates = [f"{k}{b}" for k in kinds for b in (2, 4, 8, 16, 32, 64) if b >= at_least]
    return next(name for name in candidates if fits(value, name))
