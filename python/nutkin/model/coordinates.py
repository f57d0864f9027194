"""The flat vector of unconstrained coordinates: those of the parameters in the order of their nodes, each row-major."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence

import jax.numpy as jnp
from jax import Array, lax

from nutkin.model.steps import Variable


class Layout:
    """Where the coordinates of each parameter are. `offsets`: by the index of its node."""

    def __init__(self, variables: Mapping[int, Variable]) -> None:
        self.shapes = {index: variable.unconstrained_shape for index, variable in variables.items()}
        sizes = [math.prod(shape) for shape in self.shapes.values()]
        ends = list(itertools.accumulate(sizes, initial=0))
        self.dimension = ends[-1]
        self.offsets = dict(zip(self.shapes, ends, strict=False))
        # Neighbours whose values stand in one step are one piece.
        runs = itertools.groupby(variables, key=lambda index: variables[index].of[:1] if variables[index].of else index)
        self._pieces = [tuple(run) for _, run in runs]

    def size(self, index: int) -> int:
        return math.prod(self.shapes[index])

    def split(self, position: Array) -> Coordinates:
        # The gradient of one split is one concatenation; that of many slices is a sum of as many padded vectors.
        sizes = [sum(map(self.size, piece)) for piece in self._pieces]
        parts = lax.split(position, sizes) if sizes else []
        return Coordinates(self, dict(zip(self._pieces, parts, strict=True)))


class Coordinates(Mapping[int, Array]):
    """The coordinates of each parameter, in their shape, by the index of its node: taken out of a vector when asked."""

    def __init__(self, layout: Layout, parts: Mapping[tuple[int, ...], Array]) -> None:
        self._layout = layout
        self._parts = parts
        self._places = {index: piece for piece in parts for index in piece}

    def __iter__(self) -> Iterator[int]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, index: int) -> Array:
        piece, shape = self._places[index], self._layout.shapes[index]
        part = self._parts[piece]
        if len(piece) > 1:
            start = self._layout.offsets[index] - self._layout.offsets[piece[0]]
            part = part[start : start + self._layout.size(index)]
        return part.reshape(shape)

    def stacked(self, members: Sequence[int]) -> Array:
        """Those of parameters of one shape, stacked along a first axis."""
        shape = (len(members), *self._layout.shapes[members[0]])
        pieces = list(dict.fromkeys(self._places[index] for index in members))
        if tuple(itertools.chain(*pieces)) == tuple(members):
            parts = [self._parts[piece] for piece in pieces]
            return (parts[0] if len(parts) == 1 else jnp.concatenate(parts)).reshape(shape)
        return jnp.stack([self[index] for index in members])
