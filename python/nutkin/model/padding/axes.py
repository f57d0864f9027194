"""Which axes of a value grow with the data, found by what becomes of its shape at two lengths of the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Axis:
    """An axis of as many entries as the data have along `name`, and `surplus` more, which may be below 0."""

    name: str
    surplus: int = 0

    def __str__(self) -> str:
        return f"{self.name} {'+' if self.surplus > 0 else '-'} {abs(self.surplus)}" if self.surplus else self.name


Axes = Mapping[int, Axis]
"""The axes of a value that grow, by their places."""


@dataclass(frozen=True)
class Sizes:
    """Two sizes of each axis: `rooms`, in the program, and larger ones to compare with.

    The differences of the two are odd and below twice the smallest, so that no sum or multiple of them is another one.
    """

    rooms: Mapping[str, int]

    @cached_property
    def larger(self) -> dict[str, int]:
        step = 2 * len(self.rooms) + 1001
        return {name: size + step + 2 * place for place, (name, size) in enumerate(self.rooms.items())}

    @cached_property
    def _names(self) -> dict[int, str]:
        """By the difference of its two sizes, the axis."""
        return {self.larger[name] - size: name for name, size in self.rooms.items()}

    def of(self, shape: Sequence[int], larger: Sequence[int]) -> dict[int, Axis] | None:
        """The axes that grow of a value that has these two shapes; None if one of them does not grow by entries."""
        if len(shape) != len(larger):
            return None
        found = {}
        for place, (size, other) in enumerate(zip(shape, larger, strict=True)):
            if size == other:
                continue
            if (name := self._names.get(other - size)) is None:
                return None
            found[place] = Axis(name, size - self.rooms[name])
        return found


def show_growing(shape: Sequence[int], axes: Axes) -> str:
    """A shape in which the axes that grow have their names: `{rows, 3}`."""
    return "{" + ", ".join(str(axes.get(place, size)) for place, size in enumerate(shape)) + "}"
