"""Means and squared deviations of chains' draws, and of the gradients at them, over one window.

Rows are summed in blocks of fixed length from the start of the window, so the sums are the same to the last bit however
the window was cut into calls. Sums are joined by the formula of Chan, Golub and LeVeque 1983
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
    deviations, (..., 2 d); `products`: that of the products of the positions' deviations (..., d, d), where it is
    wanted. The leading axis, if there is one, is that of chains with `count` rows each."""

    count: int
    mean: np.ndarray
    squares: np.ndarray
    products: np.ndarray | None = None

    @property
    def variances(self) -> tuple[np.ndarray, np.ndarray]:
        """Sample variances of the positions and of the gradients, (..., d) each."""
        variances, dimension = self.squares / max(self.count - 1, 1), self.squares.shape[-1] // 2
        return variances[..., :dimension], variances[..., dimension:]

    def of_each_chain(self) -> list[Moments]:
        products = self.products if self.products is not None else [None] * len(self.mean)
        return [Moments(self.count, *of_one) for of_one in zip(self.mean, self.squares, products, strict=True)]

    def of_all_chains(self) -> Moments:
        """Those of the rows of all chains together, without their axis."""
        return _joined([self.count] * len(self.mean), self.mean, self.squares, self.products)


@dataclass(frozen=True)
class Collected:
    """What a `Collector` holds: the moments of whole blocks, and the rows behind them."""

    whole: Moments | None
    rest: tuple[np.ndarray, ...]


def summed(rows: np.ndarray, *, dense: bool = False) -> Moments:
    """`rows` (..., n, 2 d)."""
    count, width = rows.shape[-2:]
    mean = rows.sum(-2) / count
    deviation = rows - mean[..., None, :]
    positions = deviation[..., : width // 2]
    products = positions.swapaxes(-2, -1) @ positions if dense else None
    return Moments(count, mean, (deviation * deviation).sum(-2), products)


def joined(parts: Sequence[Moments]) -> Moments:
    """The moments of all their rows together, chain by chain."""
    return parts[0] if len(parts) == 1 else _joined([part.count for part in parts], *_stacked(parts))


def _joined(counts: Sequence[int], means: np.ndarray, squares: np.ndarray, products: np.ndarray | None) -> Moments:
    """The parts lie along the first axis."""
    weights = np.array(counts, float).reshape(-1, *[1] * (means.ndim - 1))
    mean = (weights * means).sum(0) / sum(counts)
    shifts = means - mean
    weighted = weights * shifts
    if products is not None:
        dimension = means.shape[-1] // 2
        products = products.sum(0) + np.einsum("p...i,p...j", weighted[..., :dimension], shifts[..., :dimension])
    return Moments(sum(counts), mean, squares.sum(0) + (weighted * shifts).sum(0), products)


def _stacked(moments: Sequence[Moments]) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """-> mean, squares, products, with a first axis for the `moments`."""
    products = None if moments[0].products is None else np.stack([one.products for one in moments])
    return np.stack([one.mean for one in moments]), np.stack([one.squares for one in moments]), products


class Collector:
    """Takes the rows of one chain's window as they come, and holds no more than a block of them."""

    def __init__(self, *, dense: bool = False) -> None:
        self._dense = dense
        self._whole: Moments | None = None  # of all whole blocks
        self._rest: list[np.ndarray] = []
        self._waiting = 0

    def collected(self) -> Collected:
        """What it holds now."""
        return Collected(self._whole, (*self._rest,))

    def go_on(self, collected: Collected) -> None:
        """Holds this instead."""
        self._whole, self._rest = collected.whole, [*collected.rest]
        self._waiting = sum(map(len, self._rest))

    def add(self, rows: np.ndarray) -> None:
        """`rows` (n, 2 d)."""
        self._rest.append(rows.copy())  # they are a part of all that a call wrote
        self._waiting += len(rows)
        if self._waiting >= BLOCK:
            rows = np.concatenate(self._rest)
            rest = len(rows) - len(rows) % BLOCK
            for first in range(0, rest, BLOCK):
                block = summed(rows[first : first + BLOCK], dense=self._dense)
                self._whole = block if self._whole is None else joined([self._whole, block])
            self._rest = [rows[rest:]]
            self._waiting = len(rows) - rest


def moments(collectors: Sequence[Collector]) -> Moments:
    """Those of the window of each chain, along a first axis. All have taken equally many rows, at least one."""
    parts, one = [], collectors[0]
    if one._whole is not None:
        parts.append(Moments(one._whole.count, *_stacked([collector._whole for collector in collectors])))
    if one._waiting:
        rest = np.stack([np.concatenate(collector._rest) for collector in collectors])
        parts.append(summed(rest, dense=one._dense))
    return joined(parts)
