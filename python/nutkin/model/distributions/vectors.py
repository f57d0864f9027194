"""Distributions of vectors: simplexes, and correlated normal and t variables."""

from __future__ import annotations

import math

import jax.numpy as jnp
from jax import Array, lax

from nutkin.model.distributions.family import (
    ABOVE_0,
    CHOLESKY_FACTOR,
    COVARIANCE_MATRIX,
    VECTOR,
    Family,
    LogDensity,
    Parameter,
)
from nutkin.model.native.elementary import log, log1p
from nutkin.model.native.gamma import lgamma
from nutkin.model.special import HALF_LOG_2PI, LOG_PI, xlogy
from nutkin.model.supports import POSITIVE, REAL, SIMPLEX, UNIT_VECTOR, ZERO_SUM

_DIRICHLET = LogDensity(
    kernel=lambda x, alpha: jnp.sum(xlogy(alpha - 1, x), axis=-1),
    normalizer=lambda alpha: jnp.sum(lgamma(alpha), axis=-1) - lgamma(jnp.sum(alpha, axis=-1)),
)


def solve_rows(chol: Array, rows: Array) -> Array:
    """chol^-1 row for each row {…, k}; the factors {…, k, k} broadcast to the rows."""
    size = rows.shape[-1]
    if chol.ndim == 2:  # one matrix for all: one solve with many right-hand sides
        flat = rows.reshape(-1, size)
        return lax.linalg.triangular_solve(chol, flat, lower=True, transpose_a=True).reshape(rows.shape)
    batch = jnp.broadcast_shapes(rows.shape[:-1], chol.shape[:-2])
    rows = jnp.broadcast_to(rows, (*batch, size))[..., None, :]
    chol = jnp.broadcast_to(chol, (*batch, size, size))
    return lax.linalg.triangular_solve(chol, rows, lower=True, transpose_a=True)[..., 0, :]


def half_log_determinant(chol: Array) -> Array:
    """log |det chol| {…}."""
    return jnp.sum(log(lax.abs(jnp.diagonal(chol, axis1=-2, axis2=-1))), axis=-1)


def _square_distance(x: Array, mu: Array, chol: Array) -> Array:
    return jnp.sum(lax.square(solve_rows(chol, x - mu)), axis=-1)


_MV_NORMAL_CHOLESKY = LogDensity(
    kernel=lambda x, mu, chol: -0.5 * _square_distance(x, mu, chol),
    normalizer=lambda mu, chol: half_log_determinant(chol) + chol.shape[-1] * HALF_LOG_2PI,
)

_MV_NORMAL = LogDensity(
    kernel=_MV_NORMAL_CHOLESKY.kernel,
    normalizer=_MV_NORMAL_CHOLESKY.normalizer,
    prepare=lambda mu, cov: (mu, lax.linalg.cholesky(cov)),
)


def _product_rows(rows: Array, matrix: Array) -> Array:
    """row matrix for each row {…, k}."""
    return jnp.matmul(rows[..., None, :], matrix)[..., 0, :]


_MV_NORMAL_PRECISION = LogDensity(
    # With tau = L L^T the distance is |L^T (x - mu)|^2.
    kernel=lambda x, mu, chol: -0.5 * jnp.sum(lax.square(_product_rows(x - mu, chol)), axis=-1),
    normalizer=lambda mu, chol: chol.shape[-1] * HALF_LOG_2PI - half_log_determinant(chol),
    prepare=lambda mu, tau: (mu, lax.linalg.cholesky(tau)),
)


def _mv_student_t_kernel(x: Array, nu: Array, mu: Array, chol: Array) -> Array:
    return -0.5 * (nu + chol.shape[-1]) * log1p(_square_distance(x, mu, chol) / nu)


def _mv_student_t_normalizer(nu: Array, mu: Array, chol: Array) -> Array:
    size = chol.shape[-1]
    gammas = lgamma(0.5 * nu) - lgamma(0.5 * (nu + size))
    return gammas + 0.5 * size * (log(nu) + LOG_PI) + half_log_determinant(chol)


_MV_STUDENT_T_CHOLESKY = LogDensity(kernel=_mv_student_t_kernel, normalizer=_mv_student_t_normalizer)

_MV_STUDENT_T = LogDensity(
    kernel=_mv_student_t_kernel,
    normalizer=_mv_student_t_normalizer,
    prepare=lambda nu, mu, cov: (nu, mu, lax.linalg.cholesky(cov)),
)


def _low_rank(mu: Array, factor: Array, diag: Array) -> tuple[Array, Array, Array, Array]:
    """mu, 1 / sqrt(diag), the scaled factor, and the Cholesky factor of 1 + F^T D^-1 F."""
    inverse = 1 / lax.sqrt(diag)
    scaled = factor * inverse[..., None]
    inner = jnp.matmul(jnp.swapaxes(scaled, -1, -2), scaled) + jnp.eye(factor.shape[-1], dtype=factor.dtype)
    return mu, inverse, scaled, lax.linalg.cholesky(inner)


def _low_rank_kernel(x: Array, mu: Array, inverse: Array, scaled: Array, chol: Array) -> Array:
    """By the matrix inversion lemma."""
    rows = (x - mu) * inverse
    explained = solve_rows(chol, _product_rows(rows, scaled))
    return -0.5 * (jnp.sum(lax.square(rows), axis=-1) - jnp.sum(lax.square(explained), axis=-1))


def _low_rank_normalizer(mu: Array, inverse: Array, scaled: Array, chol: Array) -> Array:
    return half_log_determinant(chol) - jnp.sum(log(inverse), axis=-1) + inverse.shape[-1] * HALF_LOG_2PI


_MV_NORMAL_LOW_RANK = LogDensity(kernel=_low_rank_kernel, normalizer=_low_rank_normalizer, prepare=_low_rank)


def _zero_sum_kernel(x: Array, sigma: Array) -> Array:
    """The density on the space of k - 1 dimensions in which the values lie."""
    rate = (1 / sigma)[..., None]
    return -0.5 * jnp.sum(lax.square(x * rate), axis=-1) - (x.shape[-1] - 1) * (log(sigma) + HALF_LOG_2PI)


_ZERO_SUM_NORMAL = LogDensity(kernel=_zero_sum_kernel)


def _sphere_kernel(x: Array) -> Array:
    """Minus the logarithm of the area of the sphere in which the values lie."""
    half = 0.5 * x.shape[-1]
    return jnp.full(x.shape[:-1], math.lgamma(half) - math.log(2) - half * math.log(math.pi), x.dtype)


_UNIFORM_ON_SPHERE = LogDensity(kernel=_sphere_kernel)

_EVENT = ("k",)

FAMILIES: dict[str, Family] = {
    "dirichlet": Family({"alpha": Parameter(POSITIVE, _EVENT)}, _DIRICHLET, SIMPLEX, event=_EVENT),
    "mv_normal": Family({"mu": VECTOR, "cov": COVARIANCE_MATRIX}, _MV_NORMAL, REAL, event=_EVENT),
    "mv_normal_cholesky": Family({"mu": VECTOR, "chol": CHOLESKY_FACTOR}, _MV_NORMAL_CHOLESKY, REAL, event=_EVENT),
    "mv_normal_precision": Family({"mu": VECTOR, "tau": COVARIANCE_MATRIX}, _MV_NORMAL_PRECISION, REAL, event=_EVENT),
    "mv_normal_low_rank": Family(
        {"mu": VECTOR, "factor": Parameter(event=("k", "r")), "diag": Parameter(POSITIVE, _EVENT)},
        _MV_NORMAL_LOW_RANK,
        REAL,
        event=_EVENT,
    ),
    "mv_student_t": Family({"nu": ABOVE_0, "mu": VECTOR, "cov": COVARIANCE_MATRIX}, _MV_STUDENT_T, REAL, event=_EVENT),
    "mv_student_t_cholesky": Family(
        {"nu": ABOVE_0, "mu": VECTOR, "chol": CHOLESKY_FACTOR}, _MV_STUDENT_T_CHOLESKY, REAL, event=_EVENT
    ),
    "zero_sum_normal": Family({"sigma": ABOVE_0}, _ZERO_SUM_NORMAL, ZERO_SUM, event=_EVENT),
    "uniform_on_sphere": Family({}, _UNIFORM_ON_SPHERE, UNIT_VECTOR, event=_EVENT),
}
