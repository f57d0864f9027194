"""The ways from unconstrained coordinates to correlation and covariance matrices, and back.

The coordinates are the entries below the diagonal (of covariances: with it), row by row. The scheme is Stan's
(Reference Manual, "Cholesky factors of correlation matrices", "Correlation matrices", "Covariance matrices").
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from nutkin.model.special import softplus


def below_diagonal(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of the coordinates of correlation matrices of this shape."""
    return (*shape[:-2], shape[-1] * (shape[-1] - 1) // 2)


def with_diagonal(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of the coordinates of covariance matrices of this shape."""
    return (*shape[:-2], shape[-1] * (shape[-1] + 1) // 2)


def correlation_cholesky(x: Array) -> Array:
    """Row by row: each coordinate says by its tanh how much of what is left of the row's length 1 its entry takes."""
    strict = _triangle(x, range(_size(x) + 1))
    left = lax.cumsum(_log_sech(strict), axis=strict.ndim - 1)
    none = [(0, 0, 0)] * (strict.ndim - 1)
    scale = lax.exp(lax.pad(left, jnp.zeros((), x.dtype), [*none, (1, -1, 0)]))
    is_diagonal = np.eye(strict.shape[-1], dtype=bool)
    return jnp.where(is_diagonal, scale, lax.tanh(strict) * scale)


def from_correlation_cholesky(chol: Array) -> Array:
    square = lax.square(chol)
    left = 1 - (lax.cumsum(square, axis=square.ndim - 1) - square)
    size = chol.shape[-1]
    is_below = np.tri(size, k=-1, dtype=bool)
    return _rows(lax.atanh(jnp.where(is_below, chol * lax.rsqrt(jnp.where(is_below, left, 1)), 0)), range(size))


def correlation_cholesky_slopes(x: Array) -> Array:
    row, column = np.tril_indices(_size(x) + 1, -1)
    return (1 + row - column).astype(x.dtype) * _log_sech(x)


def correlation(x: Array) -> Array:
    chol = correlation_cholesky(x)
    return jnp.matmul(chol, jnp.swapaxes(chol, -1, -2))


def from_correlation(matrix: Array) -> Array:
    return from_correlation_cholesky(lax.linalg.cholesky(matrix))


def correlation_slopes(x: Array) -> Array:
    """Those of the factor L, and of L -> L L^T: the product of L_ii^(k - 1 - i)."""
    size = _size(x) + 1
    _, column = np.tril_indices(size, -1)
    return (size - column).astype(x.dtype) * _log_sech(x)


def covariance(x: Array) -> Array:
    """L L^T, where the coordinates are the entries of L, those of the diagonal by their logarithms."""
    size = _size(x)
    lower = _triangle(x, range(1, size + 1))
    chol = jnp.where(np.eye(size, dtype=bool), lax.exp(lower), lower)
    return jnp.matmul(chol, jnp.swapaxes(chol, -1, -2))


def from_covariance(matrix: Array) -> Array:
    chol, size = lax.linalg.cholesky(matrix), matrix.shape[-1]
    is_diagonal = np.eye(size, dtype=bool)
    return _rows(jnp.where(is_diagonal, lax.log(jnp.where(is_diagonal, chol, 1)), chol), range(1, size + 1))


def covariance_slopes(x: Array) -> Array:
    """Of the diagonal alone: exp, and the product of 2 L_ii^(k - i) of L -> L L^T."""
    size = _size(x)
    row = np.arange(size)
    diagonal = row * (row + 3) // 2
    weights, constants = np.zeros(x.shape[-1]), np.zeros(x.shape[-1])
    weights[diagonal], constants[diagonal] = size - row + 1, math.log(2)
    return weights.astype(x.dtype) * x + constants.astype(x.dtype)


def _size(x: Array) -> int:
    """How many rows with 1, 2, … coordinates there are."""
    return (math.isqrt(8 * x.shape[-1] + 1) - 1) // 2


def _triangle(x: Array, lengths: Sequence[int]) -> Array:
    """The matrix whose rows begin with so many of the coordinates each, and go on with zeros."""
    zero, none = jnp.zeros((), x.dtype), [(0, 0, 0)] * (x.ndim - 1)
    # The gradient of one split is one concatenation.
    rows = lax.split(x, list(lengths), axis=x.ndim - 1)
    return jnp.stack([lax.pad(row, zero, [*none, (0, len(lengths) - row.shape[-1], 0)]) for row in rows], axis=-2)


def _rows(matrix: Array, lengths: Sequence[int]) -> Array:
    """The first so many entries of each row, one after the other."""
    return jnp.concatenate([matrix[..., i, :n] for i, n in enumerate(lengths)], axis=-1)


def _log_sech(x: Array) -> Array:
    """log(1 / cosh(x)), without overflow."""
    size = lax.abs(x)
    return math.log(2) - size - softplus(-2 * size)
