"""What comes out of padding: the padded model, and how data are put into it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from nutkin.errors import InvalidModel
from nutkin.model.checking import located
from nutkin.model.growth import lengths
from nutkin.model.ir import Data, Model
from nutkin.model.padding.axes import Axes, show_growing
from nutkin.model.padding.slots import Slot, repeated
from nutkin.model.program import Program
from nutkin.model.types import Spec, show_shape


@dataclass(frozen=True)
class Padding:
    """The padded model of a written one, of whose nodes `places` are the places in it, `shapes` the padded shapes, and
    `axes` the axes that grow. `slots`: those that the padded model has of its own; `sizes`: of the axes that grow."""

    written: Model
    model: Model
    places: tuple[int, ...]
    shapes: tuple[tuple[int, ...], ...]
    axes: tuple[Axes, ...]
    slots: Mapping[str, Slot]
    sizes: Mapping[str, int]

    def data(self, data: Mapping[str, np.ndarray], specs: Mapping[str, Spec]) -> dict[str, np.ndarray]:
        """What is in the slots of the padded model: from the data of the written one, and their specs."""
        known = lengths(self.written, specs)
        grows = {node.name: node.grows for node in self.written.nodes if isinstance(node, Data)}
        padded = {
            name: array if grows[name] is None else repeated(array, self.sizes[grows[name]])
            for name, array in data.items()
        }
        return padded | {name: slot.value(known, data) for name, slot in self.slots.items()}

    def check(self, program: Program, specs: Mapping[str, Spec]) -> None:
        """Check that the shapes of the written model, for data of these specs, are the padded ones cut to the lengths.

        They are not where an axis of one entry is dropped or stretched. Raises InvalidModel.
        """
        known = lengths(self.written, specs)
        for index, (step, shape, axes) in enumerate(zip(program.steps, self.shapes, self.axes, strict=True)):
            sizes = {place: known[axis.name] + axis.surplus for place, axis in axes.items()}
            if step.spec.shape == tuple(sizes.get(place, size) for place, size in enumerate(shape)):
                continue
            with located(self.written, index):
                raise InvalidModel(
                    "an axis that grows is taken for one of size 1 where it has one entry",
                    expected=f"{show_growing(shape, axes)}, as for more entries",
                    found=show_shape(step.spec.shape),
                    hint="name the axes that are meant, as in squeeze(x, axes: [1])",
                )
