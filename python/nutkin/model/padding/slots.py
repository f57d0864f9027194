"""The data slots that padding adds to a model, and what is in them for a data set: masks, lengths, padded data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from nutkin.model.padding.axes import Axis


@dataclass(frozen=True)
class Mask:
    """1 for each entry of the axis that is there, 0 behind them: u8."""

    axis: Axis
    size: int

    def value(self, lengths: Mapping[str, int], _data: Mapping[str, np.ndarray]) -> np.ndarray:
        return (np.arange(self.size) < lengths[self.axis.name] + self.axis.surplus).astype(np.uint8)


@dataclass(frozen=True)
class Length:
    """How many entries of the axis are there: s64, a scalar."""

    axis: Axis

    def value(self, lengths: Mapping[str, int], _data: Mapping[str, np.ndarray]) -> np.ndarray:
        return np.asarray(lengths[self.axis.name] + self.axis.surplus, np.int64)


@dataclass(frozen=True)
class Zeroed:
    """A slot of the model with zeros behind it, for its use as a mask."""

    slot: str
    size: int

    def value(self, _lengths: Mapping[str, int], data: Mapping[str, np.ndarray]) -> np.ndarray:
        array = data[self.slot]
        return np.concatenate([array, np.zeros((self.size - len(array), *array.shape[1:]), array.dtype)])


Slot = Mask | Length | Zeroed


def repeated(array: np.ndarray, size: int) -> np.ndarray:
    """The array with its last entry repeated up to a first axis of this size."""
    behind = size - len(array)
    return np.concatenate([array, np.repeat(array[-1:], behind, axis=0)]) if behind else array
