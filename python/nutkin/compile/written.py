"""A model and its data as they were given, beside what is compiled, which may be padded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nutkin.model.evaluator import Evaluator


@dataclass(frozen=True)
class Written:
    """`arrays`: those of the inputs of the density; `places`: where each of its nodes is in what is compiled."""

    density: Evaluator
    arrays: Mapping[int, np.ndarray]
    places: Sequence[int]

    @property
    def checked(self) -> tuple[int, ...]:
        """The nodes of what is compiled whose values `check` needs."""
        return tuple(self.places[index] for index in self.density.checked)

    def check(self, computed: Mapping[int, np.ndarray]) -> None:
        """Check the values that were computed from the inputs. Raises InvalidData."""
        steps = self.density.program.steps
        cut = {index: _cut(computed[self.places[index]], steps[index].spec.shape) for index in self.density.checked}
        self.density.check_computed_values({**self.arrays, **cut})

    def index(self, name: str) -> int | None:
        """The node of this name."""
        nodes = self.density.program.model.nodes
        return next((index for index, node in enumerate(nodes) if node.name == name), None)


def _cut(array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    return np.asarray(array)[tuple(slice(size) for size in shape)]
