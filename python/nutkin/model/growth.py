"""Axes that grow with the data: a program is made for a number of rows in steps, and serves all numbers up to it.

Data slots that name one axis, in `grows`, have one length. The steps are powers of two. Where values are computed from
the data alone, XLA compiles a program for these too: then the steps are twice as long, for as many programs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from nutkin.errors import InvalidData, InvalidModel
from nutkin.model.ir import SINKS, Constant, Data, Model, RandomVariable, references
from nutkin.model.types import Spec, show_shape

SMALLEST = 128
STEP, LONG_STEP = 2, 4


def room(length: int, step: int = STEP) -> int:
    """The rows of the program that so many rows run on: the next of SMALLEST, SMALLEST x step, …."""
    size = SMALLEST
    while size < length:
        size *= step
    return size


def grows(model: Model) -> bool:
    """Whether there is a slot that grows."""
    return any(isinstance(node, Data) and node.grows is not None for node in model.nodes)


def rooms(model: Model, data: Mapping[str, Spec]) -> dict[str, int]:
    """The room of each axis that grows, by its name. Errors: those of `lengths`."""
    step = LONG_STEP if _computes(model) else STEP
    return {axis: room(length, step) for axis, length in lengths(model, data).items()}


def _computes(model: Model) -> bool:
    """Whether something is computed from data that grow, and from nothing else."""
    growing: dict[int, bool] = {}  # of the nodes that depend on no parameter
    for index, node in enumerate(model.nodes):
        operands = references(node).values()
        if isinstance(node, Data):
            growing[index] = node.grows is not None
        elif isinstance(node, Constant):
            growing[index] = False
        elif not isinstance(node, (RandomVariable, *SINKS)) and growing.keys() >= set(operands):
            growing[index] = any(growing[operand] for operand in operands)
            if growing[index]:
                return True
    return False


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
