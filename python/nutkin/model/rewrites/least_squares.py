"""A weighted sum of squares of many rows as a sum of few: an orthogonal reduction, on the host, once for a data set.

    sum_r w_r (y_r - a_r . c - sum_i s_ri c_i[group_r])^2

The columns of the group effects are orthogonalised first, within each group (Gram-Schmidt), then what is left of the
dense columns (Golub and Van Loan, Matrix Computations, 5.2 and 5.3). With Q orthogonal the sum is

    sum_l |R_l. d_l. + B_l d - b_l|^2 + |R d - q|^2 + rest,    d = c - shift

where `shift` fits y roughly, so that b, q and rest are small and nothing cancels when y or a column is far from 0: a
sum of squares, not a difference of large numbers. The matrix of all columns is never formed; rows are read in pieces.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import numpy as np

_PIECE_BYTES = 1 << 21
_SHIFT_ROWS = 16_384  # as many rows tell the shift well enough
_DEPENDENT = 1e-10  # a column of which no more is left after the others depends on them
_LARGEST_TERM = 10.0  # of the shift, in units of the length of y
_WELL_CONDITIONED = 1e4


class Matrix(Protocol):
    """Anything whose rows can be read."""

    def __getitem__(self, which: slice | np.ndarray) -> np.ndarray: ...


@dataclass(frozen=True)
class _Thinned:
    matrix: Matrix
    kept: np.ndarray

    def __getitem__(self, which: slice | np.ndarray) -> np.ndarray:
        return self.matrix[self.kept[which]]


@dataclass(frozen=True)
class Rows:
    """n rows of a design. All floats are f64.

    `dense` are the dense columns, (n, k), read by slices or arrays of indices of rows; `group` (n,) is the group of
    each row, below `groups`, and `scales` (m, n) are the columns of group effects; m may be 0.
    """

    y: np.ndarray
    weight: np.ndarray
    k: int
    dense: Matrix
    group: np.ndarray
    groups: int
    scales: np.ndarray

    def pieces(self) -> Iterator[slice]:
        length = max(256, self.groups, _PIECE_BYTES // (8 * (self.k + 1)))
        return (slice(at, min(at + length, self.y.size)) for at in range(0, self.y.size, length))

    def thinned(self, limit: int) -> Rows:
        """At most `limit` of the rows, evenly spaced."""
        step = -(-self.y.size // limit)
        if step == 1:
            return self
        kept = np.arange(0, self.y.size, step)
        return replace(
            self,
            y=self.y[kept],
            weight=self.weight[kept],
            dense=_Thinned(self.dense, kept),
            group=self.group[kept],
            scales=self.scales[:, kept],
        )


class Reduced(NamedTuple):
    """m columns of group effects over J groups, k dense columns. Zero where a group or a column is empty."""

    triangle: np.ndarray  # (m, m, J): R, upper triangular in the first two axes
    across: np.ndarray  # (m, J, k): B
    group_target: np.ndarray  # (m, J): b
    dense: np.ndarray  # (k, k): R
    dense_target: np.ndarray  # (k,): q
    rest: np.ndarray  # ()
    group_shift: np.ndarray  # (m, J)
    dense_shift: np.ndarray  # (k,)


# What overflows, or comes of an infinite predictor, is not finite: it is the model as written that says where.
@np.errstate(over="ignore", invalid="ignore")
def reduce_rows(rows: Rows, dtype: np.dtype) -> Reduced:
    """The reduction of all rows. The shift is exact in `dtype`, in which the coefficients will be."""
    some = rows.thinned(max(_SHIFT_ROWS, 8 * (rows.k + len(rows.scales))))
    group_shift, dense_shift = (rough.astype(dtype).astype(np.float64) for rough in _shift(_reduce(some, some.y)))
    residual = rows.y.copy()
    for piece in rows.pieces():
        residual[piece] -= rows.dense[piece] @ dense_shift
    for scale, shift in zip(rows.scales, group_shift, strict=True):
        residual -= scale * shift[rows.group]
    return _reduce(rows, residual)._replace(group_shift=group_shift, dense_shift=dense_shift)


def _reduce(rows: Rows, y: np.ndarray) -> Reduced:
    root = np.sqrt(rows.weight)
    basis, triangle = _orthogonal_groups(rows, root)
    m, groups, k = len(basis), rows.groups, rows.k
    across = np.zeros((m, groups, k + 1))

    def columns(piece: slice) -> np.ndarray:
        return np.column_stack([rows.dense[piece], y[piece]]) * root[piece, None]

    if m:
        for piece in rows.pieces():
            found, group = columns(piece), rows.group[piece]
            for i in range(m):
                for j in range(k + 1):
                    across[i, :, j] += np.bincount(group, basis[i, piece] * found[:, j], groups)

    def remainders() -> Iterator[np.ndarray]:
        for piece in rows.pieces():
            found, group = columns(piece), rows.group[piece]
            for i in range(m):
                found -= basis[i, piece, None] * across[i, group]
            yield found

    products = sum((found.T @ found for found in remainders()), start=np.zeros((k + 1, k + 1)))
    factor = _well_conditioned_factor(products[:k, :k])
    if factor is None:
        augmented = np.zeros((0, k + 1))
        for found in remainders():
            for at in range(0, len(found), 1024):
                augmented = np.linalg.qr(np.concatenate([augmented, found[at : at + 1024]]), mode="r")
        augmented = np.concatenate([augmented, np.zeros((k + 1 - len(augmented), k + 1))])
        factor, target, rest = augmented[:k, :k], augmented[:k, k], augmented[k, k] ** 2
    else:
        target = np.linalg.solve(factor.T, products[:k, k])
        rest = max(products[k, k] - target @ target, 0.0)
    zeros = np.zeros((m, groups)), np.zeros(k)
    return Reduced(triangle, across[..., :k], across[..., k], factor, target, np.float64(rest), *zeros)


def _orthogonal_groups(rows: Rows, root: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """-> (Q (m, n), R (m, m, J)): in each group, the columns of group effects are Q R, and Q is orthonormal."""
    basis = rows.scales * root
    triangle = np.zeros((len(basis), len(basis), rows.groups))

    def sums(x: np.ndarray) -> np.ndarray:
        return np.bincount(rows.group, x, rows.groups)

    for i, column in enumerate(basis):
        before = np.sqrt(sums(column**2))
        for _ in range(2):  # the second time removes what rounding left
            for earlier in range(i):
                overlap = sums(basis[earlier] * column)
                triangle[earlier, i] += overlap
                column -= basis[earlier] * overlap[rows.group]
        norm = np.sqrt(sums(column**2))
        norm[norm <= _DEPENDENT * before] = 0.0
        triangle[i, i] = norm
        column *= np.divide(1.0, norm, out=np.zeros_like(norm), where=norm > 0)[rows.group]
    return basis, triangle


def _well_conditioned_factor(gram: np.ndarray) -> np.ndarray | None:
    """The Cholesky factor R, R'R = gram, unless forming the gram matrix has lost digits that QR would keep."""
    scale = np.sqrt(np.diag(gram))
    if not np.all(np.isfinite(gram)) or not np.all(scale > 0):
        return None
    spectrum = np.linalg.eigvalsh(gram / scale[:, None] / scale)
    if len(gram) and not spectrum[-1] < _WELL_CONDITIONED * spectrum[0]:
        return None
    return np.linalg.cholesky(gram).T


def _shift(reduced: Reduced) -> tuple[np.ndarray, np.ndarray]:
    """-> (group (m, J), dense (k,)): coefficients that nearly minimise the sum of squares.

    What both dense columns and group effects can fit is given to the dense columns, as hierarchical priors do: then the
    shift is near the posterior. Directions in which almost nothing is left of the columns would need terms far larger
    than y, whose rounding would outweigh what they fit: they are left out.
    """
    if not all(np.all(np.isfinite(part)) for part in reduced):
        return reduced.group_shift, reduced.dense_shift
    k = len(reduced.dense)
    everything = np.concatenate([reduced.across.reshape(reduced.group_target.size, k), reduced.dense])
    targets = np.concatenate([reduced.group_target.ravel(), reduced.dense_target])
    limit = _LARGEST_TERM * np.sqrt(np.sum(targets**2) + reduced.rest)
    length = np.sqrt(np.sum(everything**2, axis=0))
    length[length == 0] = 1.0

    def quotient(target: np.ndarray, divisor: np.ndarray, length: np.ndarray | float = 1.0) -> np.ndarray:
        is_small = (divisor > _DEPENDENT * length) & (np.abs(target) * length <= limit * divisor)
        return np.divide(target, divisor, out=np.zeros_like(target), where=is_small)

    def fit(matrix: np.ndarray, target: np.ndarray) -> np.ndarray:
        if not k:  # numpy decomposes no empty matrix
            return np.zeros(0)
        left, singular, right = np.linalg.svd(matrix / length, full_matrices=False)
        return right.T @ quotient(left.T @ target, singular) / length

    dense = fit(everything, targets)
    dense += fit(reduced.dense, reduced.dense_target - reduced.dense @ dense)
    group = np.zeros_like(reduced.group_target)
    for i in reversed(range(len(group))):
        target = reduced.group_target[i] - reduced.across[i] @ dense
        target -= np.sum(reduced.triangle[i, i + 1 :] * group[i + 1 :], axis=0)
        group[i] = quotient(target, reduced.triangle[i, i], np.sqrt(np.sum(reduced.triangle[:, i] ** 2, axis=0)))
    return group, dense
