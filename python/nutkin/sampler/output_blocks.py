"""The outputs of a draw, joined: one array a type leaves the program, and is taken apart on the host.

Every array that a program returns costs each call of it about 10 us.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from nutkin.model import OutputValue, Parameter
from nutkin.model.types import DTYPES, bits


class _Place(NamedTuple):
    type: str
    start: int
    stop: int
    room: tuple[int, ...]
    shape: tuple[int, ...]


class OutputBlocks:
    """Where each output lies in the block of its type. `sizes`: elements of a draw, by type; `nbytes`: of a draw.

    `outputs`: as the program gives them; `shapes`: of those of which only the first entries are wanted.
    """

    def __init__(
        self, outputs: Sequence[Parameter | OutputValue], shapes: Mapping[str, tuple[int, ...]] | None = None
    ) -> None:
        self.sizes: dict[str, int] = {}
        self._places: dict[str, _Place] = {}
        for output in outputs:
            start = self.sizes.get(output.type, 0)
            stop = start + math.prod(output.shape)
            room = tuple(output.shape)
            shape = room if shapes is None else shapes.get(output.name, room)
            self._places[output.name] = _Place(output.type, start, stop, room, shape)
            self.sizes[output.type] = stop
        self.nbytes = sum(size * bits(name) // 8 for name, size in self.sizes.items())

    def empty(self, rows: int) -> dict[str, jax.Array]:
        return {name: jnp.zeros((rows, size), DTYPES[name]) for name, size in self.sizes.items()}

    def joined(self, values: Mapping[str, jax.Array]) -> dict[str, jax.Array]:
        """The outputs of one draw by name -> a vector a type."""
        parts: dict[str, list[jax.Array]] = {name: [] for name in self.sizes}
        for name, place in self._places.items():
            parts[place.type].append(values[name].astype(DTYPES[place.type]).reshape(-1))
        return {name: jnp.concatenate(vectors) for name, vectors in parts.items()}

    def split(
        self, blocks: Mapping[str, np.ndarray], rows: slice, names: Sequence[str] | None
    ) -> dict[str, np.ndarray]:
        """The values (count, ...) of the outputs `names`, None for all, in these rows of the blocks."""
        values = {}
        for name in self._places if names is None else names:
            place = self._places[name]
            part = blocks[place.type][rows, place.start : place.stop]
            part = part.reshape(len(part), *place.room)[(slice(None), *map(slice, place.shape))]
            values[name] = part.copy()  # the block is larger than what is kept
        return values
