"""How the rows of a regression lie in memory: blocks of L rows, columns outside, rows inside.

The design matrix is (blocks, columns, L), so that the linear predictor of a block and its share of the gradient both
vectorise over rows, in one pass, without a transpose and without reordering sums. Its first column is 1 for a row and 0
for padding: a padded row has a linear predictor of 0, and so has one of weight 0, whose own may be so large that its
mean is infinite. Everything is made once per data set, on the host, by `prepare`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

_LANE_STEP = 16
_LANES = 64  # below about 48, XLA unrolls the loops over rows completely and they no longer vectorise
_COPY_ROWS = 1 << 14

WITH_TRIALS = frozenset({"binomial_logit"})
WITH_COUNTS = frozenset({"neg_binomial"})


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Shapes and structure of a regression; nothing here depends on values, so new data compiles nothing.

    `groups` holds (number of coefficients, whether they are multiplied by a data vector) for each group effect."""

    family: str
    rows: int
    columns: int
    groups: tuple[tuple[int, bool], ...] = ()
    offset: bool = False
    weighted: bool = False
    dtype: str = "float64"

    @property
    def blocks(self) -> int:
        return 1 if 2 * self.rows <= 3 * _LANES else -(-self.rows // _LANES)

    @property
    def lanes(self) -> int:
        """L: rows of a block, a multiple of 16."""
        return max(1, -(-self.rows // (self.blocks * _LANE_STEP))) * _LANE_STEP

    @property
    def padding(self) -> int:
        return self.blocks * self.lanes - self.rows

    @property
    def has_weights(self) -> bool:
        """A padded row of the negative binomial is not constant: there it needs weight 0."""
        return self.weighted or self.family in WITH_COUNTS

    @property
    def fields(self) -> dict[str, tuple[tuple[int, ...], np.dtype]]:
        """Name, shape and type of each prepared array, in order."""
        dtype, integer = np.dtype(self.dtype), np.dtype(np.int32)
        by_row = (self.blocks, self.lanes)
        present = {
            "design": ((self.blocks, self.columns + 1, self.lanes), dtype),
            "response": (by_row, dtype),
            "trials": (by_row, dtype) if self.family in WITH_TRIALS else None,
            "offset": (by_row, dtype) if self.offset else None,
            "weight": (by_row, dtype) if self.has_weights else None,
            "total_weight": ((), dtype),
        }
        for g, (_, scaled) in enumerate(self.groups):
            present[f"index_{g}"] = (by_row, integer)
            present[f"scale_{g}"] = (by_row, dtype) if scaled else None
        if self.family in WITH_COUNTS:
            present |= {"count": (by_row, dtype), "multiplicity": (by_row, dtype), "count_blocks": ((), integer)}
        return {name: field for name, field in present.items() if field is not None}


def prepare(
    layout: Layout,
    y: np.ndarray,
    X: np.ndarray | None = None,
    *,
    indices: Sequence[np.ndarray] = (),
    scales: Sequence[np.ndarray | None] = (),
    offset: np.ndarray | None = None,
    weight: np.ndarray | None = None,
    trials: np.ndarray | None = None,
) -> tuple[np.ndarray, ...]:
    """The arrays of `layout.fields`. y, offset, weight, trials, scales and indices are (n,), X is (n, k).

    Indices beyond the ends are moved to them, as `take` does. A row of weight 0 may hold any numbers. Beside its
    result, about one block of 16384 rows of X is held at a time."""
    dtype = np.dtype(layout.dtype)
    weights = np.ones(layout.rows, dtype) if weight is None else np.asarray(weight, dtype)
    used = weights != 0
    response = np.where(used, y, 0).astype(dtype)
    prepared = {
        "design": _design(layout, X, used),
        "response": _by_row(layout, response),
        "trials": None if trials is None else _by_row(layout, np.where(used, trials, 0)),
        "offset": None if offset is None else _by_row(layout, np.where(used, offset, 0)),
        "weight": _by_row(layout, weights),
        "total_weight": np.asarray(weights.sum(dtype=np.float64), dtype),
    }
    scales = scales or (None,) * len(layout.groups)
    for g, ((size, _), index, scale) in enumerate(zip(layout.groups, indices, scales, strict=True)):
        places = np.where(used, np.clip(index, 0, size - 1), size)
        prepared[f"index_{g}"] = _by_row(layout, places, np.int32, fill=size)
        prepared[f"scale_{g}"] = None if scale is None else _by_row(layout, np.where(used, scale, 0))
    if layout.family in WITH_COUNTS:
        count, at = np.unique(response[used], return_inverse=True)
        multiplicity = np.bincount(at, weights[used], count.size)
        prepared["count"] = _by_row(layout, count, fill=1)
        prepared["multiplicity"] = _by_row(layout, multiplicity)
        prepared["count_blocks"] = np.asarray(-(-count.size // layout.lanes), np.int32)
    return tuple(prepared[name] for name in layout.fields)


def _by_row(layout: Layout, values: np.ndarray, dtype: np.dtype | None = None, fill: float = 0) -> np.ndarray:
    """(m,), m at most n -> (blocks, lanes), padded."""
    padded = np.full(layout.blocks * layout.lanes, fill, dtype or layout.dtype)
    padded[: len(values)] = values
    return padded.reshape(layout.blocks, layout.lanes)


def _design(layout: Layout, X: np.ndarray | None, used: np.ndarray) -> np.ndarray:
    design = np.zeros((layout.blocks, layout.columns + 1, layout.lanes), layout.dtype)
    for blocks, rows, lanes in _pieces(layout):
        design[blocks, 0, :lanes] = used[rows].reshape(-1, lanes)
        if X is not None:
            piece = np.asarray(X[rows])
            if not used[rows].all():
                piece = np.where(used[rows, None], piece, 0)
            piece = piece.reshape(-1, lanes, layout.columns)
            design[blocks, 1:, :lanes] = piece.transpose(0, 2, 1)
    return design


def _pieces(layout: Layout) -> Iterator[tuple[slice, slice, int]]:
    """(blocks, rows, rows a block) of pieces that are whole blocks, then of the last block if it is not full."""
    full, rest = divmod(layout.rows, layout.lanes)
    step = max(1, _COPY_ROWS // layout.lanes)
    for first in range(0, full, step):
        last = min(first + step, full)
        yield slice(first, last), slice(first * layout.lanes, last * layout.lanes), layout.lanes
    if rest:
        yield slice(full, full + 1), slice(full * layout.lanes, layout.rows), rest
