"""Axes that grow with the data: a program is made for a number of rows in steps, and serves all numbers up to it.

Data slots that name one axis, in `grows`, have one length. A program for n rows runs on `room(n)`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from nutkin.errors import InvalidData, InvalidModel
from nutkin.model.ir import Data, Model
from nutkin.model.types import Spec, show_shape

SMALLEST = 128


def room(length: int) -> int:
    """The rows of the program that so many rows run on: the next power of two, at least SMALLEST."""
    return max(SMALLEST, 1 << (length - 1).bit_length())


def grows(model: Model) -> bool:
    """Whether there is a slot that grows."""
    return any(isinstance(node, Data) and node.grows is not None for node in model.nodes)


def rooms(model: Model, data: Mapping[str, Spec]) -> dict[str, int]:
    """The room of each axis that grows, by its name. Errors: those of `lengths`."""
    return {axis: room(length) for axis, length in lengths(model, data).items()}


def lengths(model: Model, data: Mapping[str, Spec]) -> dict[str, int]:
    """The length of each axis that grows, by its name, from the specs of all slots.

    Raises InvalidModel for a slot whose first size is fixed, InvalidData for a number, and for lengths that differ.
    """
    found: dict[str, tuple[int, str]] = {}
    for index, node in enumerate(model.nodes):
        if not isinstance(node, Data) or node.grows is None:
            continue
        if node.shape is not None and node.shape[:1] != (None,):
            raise InvalidModel(
                f"{node.name}: the first axis grows, and has a fixed size too",
                node=node.name,
                index=index,
                expected="a shape whose first size is free",
                found=show_shape(node.shape),
            )
        shape = data[node.name].shape
        if not shape:
            raise InvalidData(
                f"{node.name}: a number has no axis that could grow",
                node=node.name,
                index=index,
                expected=f"one entry or more along {node.grows}",
                found="{}",
            )
        length, first = found.setdefault(node.grows, (shape[0], node.name))
        if shape[0] != length:
            raise InvalidData(
                f"{node.name}: slots that grow along {node.grows} have one length",
                node=node.name,
                index=index,
                expected=f"{length} along {node.grows}, as {first} has",
                found=str(shape[0]),
            )
    return {axis: length for axis, (length, _) in found.items()}


def resized(model: Model, data: Mapping[str, Spec], sizes: Mapping[str, int]) -> dict[str, Spec]:
    """The specs of the slots if the axes that grow had these sizes."""
    axes = {node.name: node.grows for node in model.nodes if isinstance(node, Data) and node.grows is not None}
    return {
        name: replace(spec, shape=(sizes[axes[name]], *spec.shape[1:])) if name in axes else spec
        for name, spec in data.items()
    }
