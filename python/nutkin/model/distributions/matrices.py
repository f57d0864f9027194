"""Distributions of matrices: correlations, covariances, their Cholesky factors, and normal matrices."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from nutkin.model.distributions.family import ABOVE_0, COVARIANCE_MATRIX, Family, LogDensity, Parameter
from nutkin.model.distributions.vectors import half_log_determinant
from nutkin.model.native.elementary import log
from nutkin.model.native.gamma import lgamma
from nutkin.model.special import HALF_LOG_2PI, LOG_PI
from nutkin.model.supports import CHOLESKY, CORRELATION, CORRELATION_CHOLESKY, COVARIANCE, REAL, degrees_for

_SQUARE = ("k", "k")


def _solve(chol: Array, matrix: Array) -> Array:
    """chol^-1 matrix, where both broadcast."""
    batch = jnp.broadcast_shapes(chol.shape[:-2], matrix.shape[:-2])
    chol, matrix = (jnp.broadcast_to(x, (*batch, *x.shape[-2:])) for x in (chol, matrix))
    return lax.linalg.triangular_solve(chol, matrix, left_side=True, lower=True)


def _sum_of_squares(matrix: Array) -> Array:
    return jnp.sum(lax.square(matrix), axis=(-2, -1))


def _multivariate_lgamma(x: Array, size: int) -> Array:
    """log of the multivariate gamma function of order `size`."""
    shifts = (0.5 * np.arange(size)).astype(x.dtype)
    return jnp.sum(lgamma(x[..., None] - shifts), axis=-1) + 0.25 * size * (size - 1) * LOG_PI


def _lkj_log_volume(eta: Array, size: int) -> Array:
    """The normalizer of the density of correlation matrices: Lewandowski, Kurowicka and Joe 2009, formula 16."""
    last = size - 1
    total = _multivariate_lgamma(eta + 0.5 * (last - 1), last) - last * lgamma(eta + 0.5 * last)
    return total + 0.5 * last * LOG_PI


def _lkj_cholesky_kernel(x: Array, eta: Array) -> Array:
    """The density of a correlation matrix times the Jacobian of L -> L L^T."""
    size = x.shape[-1]
    powers = np.arange(size - 2, -1, -1).astype(x.dtype) + 2 * (eta[..., None] - 1)
    diagonal = jnp.diagonal(x, axis1=-2, axis2=-1)[..., 1:]
    return jnp.sum(powers * log(diagonal), axis=-1) - _lkj_log_volume(eta, size)


_LKJ_CHOLESKY = LogDensity(kernel=_lkj_cholesky_kernel)


def _lkj_corr_kernel(x: Array, eta: Array) -> Array:
    return 2 * (eta - 1) * half_log_determinant(lax.linalg.cholesky(x)) - _lkj_log_volume(eta, x.shape[-1])


_LKJ_CORR = LogDensity(kernel=_lkj_corr_kernel)


def _cholesky_scale(nu: Array, scale: Array) -> tuple[Array, Array]:
    return nu, lax.linalg.cholesky(scale)


def _wishart_kernel(x: Array, nu: Array, chol: Array) -> Array:
    factor = lax.linalg.cholesky(x)
    return (nu - x.shape[-1] - 1) * half_log_determinant(factor) - 0.5 * _sum_of_squares(_solve(chol, factor))


def _wishart_constant(nu: Array, size: int) -> Array:
    return 0.5 * size * math.log(2) * nu + _multivariate_lgamma(0.5 * nu, size)


_WISHART = LogDensity(
    kernel=_wishart_kernel,
    normalizer=lambda nu, chol: nu * half_log_determinant(chol) + _wishart_constant(nu, chol.shape[-1]),
    prepare=_cholesky_scale,
)


def _inv_wishart_kernel(x: Array, nu: Array, chol: Array) -> Array:
    factor = lax.linalg.cholesky(x)
    return -(nu + x.shape[-1] + 1) * half_log_determinant(factor) - 0.5 * _sum_of_squares(_solve(factor, chol))


_INV_WISHART = LogDensity(
    kernel=_inv_wishart_kernel,
    normalizer=lambda nu, chol: _wishart_constant(nu, chol.shape[-1]) - nu * half_log_determinant(chol),
    prepare=_cholesky_scale,
)


def _matrix_normal_kernel(x: Array, mu: Array, row_chol: Array, col_chol: Array) -> Array:
    by_rows = _solve(row_chol, x - mu)
    return -0.5 * _sum_of_squares(_solve(col_chol, jnp.swapaxes(by_rows, -1, -2)))


def _matrix_normal_normalizer(mu: Array, row_chol: Array, col_chol: Array) -> Array:
    rows, columns = row_chol.shape[-1], col_chol.shape[-1]
    volume = columns * half_log_determinant(row_chol) + rows * half_log_determinant(col_chol)
    return volume + rows * columns * HALF_LOG_2PI


_MATRIX_NORMAL = LogDensity(kernel=_matrix_normal_kernel, normalizer=_matrix_normal_normalizer)

_NU_SCALE = {"nu": ABOVE_0, "scale": COVARIANCE_MATRIX}


def _with_degrees(family: Family, sizes: Mapping[str, int]) -> Family:
    return replace(family, parameters={**family.parameters, "nu": Parameter(degrees_for(sizes["k"]))})


FAMILIES: dict[str, Family] = {
    "lkj_corr": Family({"eta": ABOVE_0}, _LKJ_CORR, CORRELATION, event=_SQUARE),
    "lkj_cholesky": Family({"eta": ABOVE_0}, _LKJ_CHOLESKY, CORRELATION_CHOLESKY, event=_SQUARE),
    "wishart": Family(_NU_SCALE, _WISHART, COVARIANCE, event=_SQUARE, sized=_with_degrees),
    "inv_wishart": Family(_NU_SCALE, _INV_WISHART, COVARIANCE, event=_SQUARE, sized=_with_degrees),
    "matrix_normal": Family(
        {
            "mu": Parameter(event=("rows", "columns")),
            "row_chol": Parameter(CHOLESKY, ("rows", "rows")),
            "col_chol": Parameter(CHOLESKY, ("columns", "columns")),
        },
        _MATRIX_NORMAL,
        REAL,
        event=("rows", "columns"),
    ),
}
