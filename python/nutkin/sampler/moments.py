"""Means and squared deviations of a chain's draws, and of the gradients at them, over one window.

Rows are summed in blocks of fixed length from the start of the window, so the sums are the same to the last bit however
the window was cut into calls. Blocks are joined by the formula of Chan, Golub and LeVeque 1983
(https://doi.org/10.1080/00031305.1983.10483115).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

BLOCK = 128


@dataclass(frozen=True)
class Moments:
    """Of `count` rows, each a position and the gradient there (2 d): `mean` and `squares`, the sum of the squared
    deviations, (2 d,); `products`: that of the products of the positions' deviations (d, d), where it is wanted."""

    count: int
    mean: np.ndarray
    squares: np.ndarray
    products: np.ndarray | None = None

    @property
    def variances(self) -> tuple[np.ndarray, np.ndarray]:
        """Sample variances of the positions and of the gradients, (d,) each."""
        position, gradient = (self.squares / max(self.count - 1, 1)).reshape(2, -1)
        return position, gradient


def summed(rows: np.ndarray, *, dense: bool = False) -> Moments:
    """`rows` (n, 2 d)."""
    mean = rows.sum(0) / len(rows)
    deviation = rows - mean
    squares = np.einsum("ni,ni->i", deviation, deviation)
    positions = deviation[:, : len(mean) // 2]
    return Moments(len(rows), mean, squares, positions.T @ positions if dense else None)


def joined(parts: Sequence[Moments]) -> Moments:
    """The moments of all their rows together."""
    if len(parts) == 1:
        return parts[0]
    counts = np.array([part.count for part in parts], float)
    means = np.stack([part.mean for part in parts])
    mean = counts @ means / counts.sum()
    shifts = means - mean
    squares = sum(part.squares for part in parts) + counts @ (shifts * shifts)
    products = None
    if parts[0].products is not None:
        positions = shifts[:, : len(mean) // 2]
        products = sum(part.products for part in parts) + (positions.T * counts) @ positions
    return Moments(sum(part.count for part in parts), mean, squares, products)


class Collector:
    """Takes the rows of a window as they come, and holds no more than a block of them."""

    def __init__(self, *, dense: bool = False) -> None:
        self._dense = dense
        self._blocks: list[Moments] = []
        self._rest: list[np.ndarray] = []
        self._waiting = 0

    def add(self, rows: np.ndarray) -> None:
        """`rows` (n, 2 d), which are kept."""
        self._rest.append(rows)
        self._waiting += len(rows)
        if self._waiting >= BLOCK:
            rows = np.concatenate(self._rest)
            whole = len(rows) - len(rows) % BLOCK
            for first in range(0, whole, BLOCK):
                self._blocks = [joined([*self._blocks, summed(rows[first : first + BLOCK], dense=self._dense)])]
            self._rest = [rows[whole:].copy()]
            self._waiting = len(rows) - whole

    def moments(self) -> Moments:
        """Of all rows so far, at least one."""
        rest = [summed(np.concatenate(self._rest), dense=self._dense)] if self._waiting else []
        return joined([*self._blocks, *rest])
