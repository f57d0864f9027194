"""The nodes of the padded model, as they are written: copies of those of the model, masks, and their uses."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from nutkin.model.ir import Call, Constant, Data, Node, references
from nutkin.model.padding.axes import Axes, Axis
from nutkin.model.padding.slots import Length, Mask, Slot, Zeroed


class NoMasks(Exception):
    """A mask is needed where there can be none."""


class Writer:
    """`sizes`: of each axis that grows, in the padded model. Places are those in `nodes`."""

    def __init__(self, sizes: Mapping[str, int], taken: Iterable[str] = ()) -> None:
        self.nodes: list[Node] = []
        self.slots: dict[str, Slot] = {}
        self._sizes = sizes
        self._taken = set(taken)
        self._places: dict[Hashable, int] = {}

    def append(self, node: Node) -> int:
        self.nodes.append(node)
        return len(self.nodes) - 1

    def copy(self, node: Node, places: Sequence[int], **changes: Any) -> int:
        """The node, whose references are to the nodes at `places`."""
        return self.append(msgspec.structs.replace(moved(node, places), **changes))

    def call(self, op: str, *args: int, **opts: Any) -> int:
        return self.append(Call(op=op, args=args, opts=opts))

    def number(self, value: int | float) -> int:
        key = (value, type(value))
        if key not in self._places:
            self._places[key] = self.append(Constant(value=value))
        return self._places[key]

    def mask(self, axis: Axis) -> int:
        """A vector: 1 where an entry of the axis is there."""
        size = self._sizes[axis.name] + axis.surplus
        return self._slot(Mask(axis, size), f"{axis}: mask", (size,))

    def length(self, axis: Axis) -> int:
        return self._slot(Length(axis), f"{axis}: length", ())

    def zeroed(self, slot: str, shape: tuple[int, ...]) -> int:
        """A slot of the model, in this shape, with zeros behind its entries."""
        return self._slot(Zeroed(slot, shape[0]), f"{slot}: mask", shape)

    def _slot(self, slot: Slot, name: str, shape: tuple[int, ...]) -> int:
        if slot not in self._places:
            while name in self._taken:
                name += "'"
            self._taken.add(name)
            self.slots[name] = slot
            self._places[slot] = self.append(Data(name=name, shape=shape))
        return self._places[slot]

    def present(self, shape: Sequence[int], axes: Axes) -> int:
        """1 for the elements of a value of this shape that are there along all of these axes."""
        masks = [
            self.call("broadcast", self.mask(axis), shape=tuple(shape), axes=(place,)) for place, axis in axes.items()
        ]
        result = masks[0]
        for mask in masks[1:]:
            result = self.call("logical_and", result, mask)
        return result

    def filled(self, x: int, shape: Sequence[int], axes: Axes, value: int) -> int:
        """x with the scalar `value`, a node, behind its entries along these axes."""
        return self.call("select", self.present(shape, axes), x, value) if axes else x

    def repeating(self, x: int, shape: Sequence[int], axes: Axes) -> int:
        """x with its last entry behind its entries along each of these axes."""
        for place, axis in axes.items():
            last = self.call("take", x, self.length(Axis(axis.name, axis.surplus - 1)), axis=place)
            last = self.call("new_axis", last, axis=place)
            x = self.call("select", self.present(shape, {place: axis}), x, last)
        return x

    def count(self, shape: Sequence[int], axes: Axes, places: Iterable[int]) -> int:
        """How many elements are there along these places of a shape: a scalar."""
        fixed, result = 1, None
        for place in places:
            if place in axes:
                length = self.length(axes[place])
                result = length if result is None else self.call("multiply", result, length)
            else:
                fixed *= shape[place]
        if result is None or fixed == 1:
            return self.number(fixed) if result is None else result
        return self.call("multiply", result, self.number(fixed))


class BodyWriter(Writer):
    """Of a body, which holds no data: it can be copied where no mask is needed."""

    def _slot(self, slot: Slot, name: str, shape: tuple[int, ...]) -> int:
        raise NoMasks


def moved(node: Node, places: Sequence[int]) -> Node:
    """The node with each reference i replaced by `places[i]`."""
    changes: dict[str, Any] = {}
    for path, reference in references(node).items():
        field, _, key = path.partition(".")
        field, is_listed, _ = field.partition("[")
        if key:
            changes.setdefault(field, {})[key] = places[reference]
        elif is_listed:
            changes[field] = (*changes.get(field, ()), places[reference])
        else:
            changes[field] = places[reference]
    return msgspec.structs.replace(node, **changes)
