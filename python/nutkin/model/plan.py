"""What is worked out about an operation before it runs: result, operand types, function; and the checks all share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from nutkin.errors import InvalidModel
from nutkin.model.supports import Support
from nutkin.model.types import DTYPES, Spec, bits, is_float, merge, show_shape, to_floating

SEVERAL = "several values"
"""What stands for the type of a step that gives a tuple, see `Plan.elements`."""


@dataclass(frozen=True)
class Plan:
    """`run` takes operands of the types `casts` and gives exactly `shape` and `type`.

    `supports`: the sets, by operand, in which values must lie that are known before the run, as numbers or data.
    `elements`: the specs of the values where `run` gives a tuple of them; the type is `SEVERAL` then.
    """

    shape: tuple[int, ...]
    type: str
    casts: tuple[str, ...]
    run: Callable[..., Array]
    supports: Mapping[int, Support] = field(default_factory=dict)
    elements: tuple[Spec, ...] = ()

    @classmethod
    def several(
        cls,
        elements: Sequence[Spec],
        casts: tuple[str, ...],
        run: Callable[..., tuple[Array, ...]],
        supports: Mapping[int, Support] | None = None,
    ) -> Plan:
        """What gives a tuple of values of these specs."""
        return cls((), SEVERAL, casts, run, supports or {}, tuple(elements))

    @property
    def spec(self) -> Spec:
        return Spec(self.shape, self.type)


@dataclass(frozen=True)
class Operands:
    """The specs of an operation's operands, its options (those that are given), and the model's precision."""

    specs: tuple[Spec, ...]
    options: Mapping[str, Any]
    precision: str

    @property
    def first(self) -> Spec:
        return self.specs[0]

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        return tuple(spec.shape for spec in self.specs)

    def merged(self) -> str:
        return merge(self.specs, precision=self.precision)

    def floating(self) -> str:
        return to_floating(self.merged(), precision=self.precision)

    def axes(self, option: str) -> tuple[int, ...] | None:
        """The axes of the first operand that an option names, None if it is absent."""
        axes = self.options.get(option)
        return None if axes is None else resolve_axes(axes, len(self.first.shape), option)


Planner = Callable[[Operands], Plan]

_LESS_THAN_A_BYTE = tuple(dtype for name, dtype in DTYPES.items() if bits(name) < 8)


def cast(x: Array | np.ndarray, type_name: str) -> Array:
    """Convert as `Nx.as_type/2`: floats are truncated towards zero, NaN becomes 0, infinities the extreme
    integers, complex numbers their real parts."""
    if type_name == SEVERAL:
        return x
    dtype = DTYPES[type_name]
    if x.dtype == dtype:
        return x
    if jnp.iscomplexobj(x) and dtype.kind != "c":
        x = lax.real(x)
    if x.dtype in _LESS_THAN_A_BYTE:  # of numbers, NumPy knows no way from one such type to another
        x = lax.convert_element_type(x, np.int64)
    return lax.convert_element_type(x, dtype)


def widened(planner: Planner) -> Planner:
    """Compute in f32 what has no function for floats of 8 and 16 bits, and round the results."""

    def plan(operands: Operands) -> Plan:
        narrow = planner(operands)
        casts = tuple("f32" if is_float(name) and bits(name) < 32 else name for name in narrow.casts)
        if casts == narrow.casts:
            return narrow

        def run(*values: Array) -> Array | tuple[Array, ...]:
            results = narrow.run(*values)
            if not narrow.elements:
                return cast(results, narrow.type)
            return tuple(cast(value, spec.type) for value, spec in zip(results, narrow.elements, strict=True))

        return replace(narrow, casts=casts, run=run)

    return plan


def broadcast_shapes(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The common shape, aligned at the right, where axes of size 1 stretch."""
    rank = max(len(shape) for shape in shapes)
    columns = zip(*((1,) * (rank - len(shape)) + shape for shape in shapes), strict=True)
    sizes = [set(column) - {1} for column in columns]
    if any(len(column) > 1 for column in sizes):
        raise InvalidModel(
            "the shapes do not broadcast",
            expected="axes, aligned at the right, that are equal or 1",
            found=" and ".join(show_shape(shape) for shape in shapes),
            hint="reshape an operand so that its axes line up",
        )
    return tuple(column.pop() if column else 1 for column in sizes)


def broadcasts_to(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """Whether a tensor of this shape stretches to the target without changing it."""
    if len(shape) > len(target):
        return False
    aligned = target[len(target) - len(shape) :]
    return all(size in (1, goal) for size, goal in zip(shape, aligned, strict=True))


def resolve_axis(axis: int, rank: int, option: str) -> int:
    """The axis counted from the front; negative ones count from the back."""
    if not -rank <= axis < rank:
        raise InvalidModel(
            f"{option} names an axis that the tensor does not have",
            expected=f"an axis from {-rank} to {rank - 1}" if rank else "no axis, for a scalar",
            found=str(axis),
        )
    return axis % rank


def resolve_axes(axes: Sequence[int], rank: int, option: str) -> tuple[int, ...]:
    resolved = tuple(resolve_axis(axis, rank, option) for axis in axes)
    if len(set(resolved)) != len(resolved):
        raise InvalidModel(f"{option} names an axis twice", expected="distinct axes", found=str(list(axes)))
    return resolved
