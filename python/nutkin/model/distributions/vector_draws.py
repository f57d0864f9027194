"""Random draws of vectors, matrices and series: the functions of `draws` by name."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from nutkin.model.distributions.categories import logsumexp
from nutkin.model.distributions.standard_draws import log_gamma, log_gammas
from nutkin.model.native.elementary import exp, log
from nutkin.model.special import softplus

Parameters = tuple[Array, ...]
Shape = tuple[int, ...]


def _apply(matrix: Array, rows: Array) -> Array:
    """matrix row for each row {…, k}."""
    return jnp.matmul(matrix, rows[..., None])[..., 0]


def _solve(chol: Array, right: Array, transpose: bool = False) -> Array:
    """chol^-1 right or chol^-T right, where both {…, k, n} broadcast."""
    batch = jnp.broadcast_shapes(chol.shape[:-2], right.shape[:-2])
    chol, right = (jnp.broadcast_to(x, (*batch, *x.shape[-2:])) for x in (chol, right))
    return lax.linalg.triangular_solve(chol, right, left_side=True, lower=True, transpose_a=transpose)


def _dirichlet(key: Array, parameters: Parameters, shape: Shape) -> Array:
    (alpha,) = parameters
    logits = log_gamma(key, alpha, shape)
    return jnp.maximum(exp(logits - logsumexp(logits)[..., None]), jnp.finfo(alpha.dtype).tiny)


def _mv_normal_cholesky(key: Array, parameters: Parameters, shape: Shape) -> Array:
    mu, chol = parameters
    return mu + _apply(chol, jax.random.normal(key, shape, mu.dtype))


def _mv_normal(key: Array, parameters: Parameters, shape: Shape) -> Array:
    mu, cov = parameters
    return _mv_normal_cholesky(key, (mu, lax.linalg.cholesky(cov)), shape)


def _mv_normal_precision(key: Array, parameters: Parameters, shape: Shape) -> Array:
    mu, tau = parameters
    z = jax.random.normal(key, shape, mu.dtype)
    return mu + _solve(lax.linalg.cholesky(tau), z[..., None], transpose=True)[..., 0]


def _mv_normal_low_rank(key: Array, parameters: Parameters, shape: Shape) -> Array:
    mu, factor, diag = parameters
    of_factors, of_residuals = jax.random.split(key)
    common = jax.random.normal(of_factors, (*shape[:-1], factor.shape[-1]), mu.dtype)
    return mu + _apply(factor, common) + lax.sqrt(diag) * jax.random.normal(of_residuals, shape, mu.dtype)


def _mv_student_t_cholesky(key: Array, parameters: Parameters, shape: Shape) -> Array:
    nu, mu, chol = parameters
    of_normal, of_scale = jax.random.split(key)
    scale = exp(0.5 * (log(0.5 * nu) - log_gamma(of_scale, 0.5 * nu, shape[:-1])))
    return mu + scale[..., None] * _apply(chol, jax.random.normal(of_normal, shape, mu.dtype))


def _mv_student_t(key: Array, parameters: Parameters, shape: Shape) -> Array:
    nu, mu, cov = parameters
    return _mv_student_t_cholesky(key, (nu, mu, lax.linalg.cholesky(cov)), shape)


def _zero_sum_normal(key: Array, parameters: Parameters, shape: Shape) -> Array:
    (sigma,) = parameters
    z = jax.random.normal(key, shape, sigma.dtype)
    return sigma[..., None] * (z - jnp.mean(z, axis=-1, keepdims=True))


def _uniform_on_sphere(key: Array, parameters: Parameters, shape: Shape) -> Array:
    """Without parameters, of the default type."""
    return _directions(jax.random.normal(key, shape))


def _directions(rows: Array) -> Array:
    return rows / lax.sqrt(jnp.sum(lax.square(rows), axis=-1, keepdims=True))


def _lkj_cholesky(key: Array, parameters: Parameters, shape: Shape) -> Array:
    """Row by row: Lewandowski, Kurowicka and Joe 2009, section 3.2.

    Left of the diagonal the m-th row has a uniform direction and a length whose square is a beta variable of shapes
    m / 2 and eta + (k - 1 - m) / 2.
    """
    (eta,) = parameters
    *batch, size, _ = shape
    of_rows, of_lengths = jax.random.split(key)
    m = np.arange(1, size).astype(eta.dtype)
    above, below = log_gammas(of_lengths, (0.5 * m, eta[..., None] + 0.5 * (size - 1 - m)), (*batch, size - 1))
    log_odds = above - below
    length, diagonal = exp(-0.5 * softplus(-log_odds)), exp(-0.5 * softplus(log_odds))
    is_below = np.tri(size - 1, size - 1, dtype=bool)
    entries = jnp.where(is_below, jax.random.normal(of_rows, (*batch, size - 1, size - 1), eta.dtype), 0)
    rest = _pad_column(length[..., None] * _directions(entries)) + _diagonal(diagonal, 1)
    first = jnp.broadcast_to(np.eye(1, size, dtype=eta.dtype), (*batch, 1, size))
    return jnp.concatenate([first, rest], axis=-2)


def _pad_column(matrix: Array) -> Array:
    return jnp.concatenate([matrix, jnp.zeros((*matrix.shape[:-1], 1), matrix.dtype)], axis=-1)


def _diagonal(entries: Array, column: int = 0) -> Array:
    """A matrix {…, k, k + column} with these entries {…, k} on the diagonal that starts in this column."""
    size = entries.shape[-1]
    return entries[..., None] * np.eye(size, size + column, column, dtype=entries.dtype)


def _lkj_corr(key: Array, parameters: Parameters, shape: Shape) -> Array:
    chol = _lkj_cholesky(key, parameters, shape)
    corr = jnp.matmul(chol, jnp.swapaxes(chol, -1, -2))
    return jnp.where(np.eye(shape[-1], dtype=bool), 1, corr)


def _bartlett(key: Array, nu: Array, shape: Shape) -> Array:
    """The lower factor of a Wishart matrix of unit scale: chi variables on, normal ones below the diagonal."""
    of_diagonal, of_below = jax.random.split(key)
    freedom = 0.5 * (nu[..., None] - np.arange(shape[-1]).astype(nu.dtype))
    chi = exp(0.5 * (log_gamma(of_diagonal, freedom, shape[:-1]) + math.log(2)))
    is_below = np.tri(shape[-1], k=-1, dtype=bool)
    return jnp.where(is_below, jax.random.normal(of_below, shape, nu.dtype), 0) + _diagonal(chi)


def _wishart(key: Array, parameters: Parameters, shape: Shape) -> Array:
    nu, scale = parameters
    factor = jnp.matmul(lax.linalg.cholesky(scale), _bartlett(key, nu, shape))
    return jnp.matmul(factor, jnp.swapaxes(factor, -1, -2))


def _inv_wishart(key: Array, parameters: Parameters, shape: Shape) -> Array:
    """With scale C C^T and a Wishart matrix A A^T of unit scale, C (A A^T)^-1 C^T."""
    nu, scale = parameters
    factor = _solve(_bartlett(key, nu, shape), jnp.swapaxes(lax.linalg.cholesky(scale), -1, -2))
    return jnp.matmul(jnp.swapaxes(factor, -1, -2), factor)


def _matrix_normal(key: Array, parameters: Parameters, shape: Shape) -> Array:
    mu, row_chol, col_chol = parameters
    z = jax.random.normal(key, shape, mu.dtype)
    return mu + jnp.matmul(jnp.matmul(row_chol, z), jnp.swapaxes(col_chol, -1, -2))


def _gaussian_random_walk(key: Array, parameters: Parameters, shape: Shape) -> Array:
    (sigma,) = parameters
    return jnp.cumsum(sigma[..., None] * jax.random.normal(key, shape, sigma.dtype), axis=-1)


def _ar(key: Array, parameters: Parameters, shape: Shape) -> Array:
    rho, sigma = parameters
    residuals = sigma[..., None] * jax.random.normal(key, shape, sigma.dtype)

    def step(latest: Array, residual: Array) -> tuple[Array, Array]:
        value = residual + jnp.sum(rho * latest, axis=-1)
        return jnp.concatenate([value[..., None], latest], axis=-1)[..., :-1], value

    before = jnp.zeros((*shape[:-1], rho.shape[-1]), sigma.dtype)
    return jnp.moveaxis(lax.scan(step, before, jnp.moveaxis(residuals, -1, 0))[1], 0, -1)


def _car(key: Array, parameters: Parameters, shape: Shape) -> Array:
    mu, adjacency, alpha, tau = parameters
    precision = _diagonal(jnp.sum(adjacency, axis=-1)) - alpha[..., None, None] * adjacency
    return _mv_normal_precision(key, (mu, tau[..., None, None] * precision), shape)


VECTOR_DRAWS = {
    "dirichlet": _dirichlet,
    "mv_normal": _mv_normal,
    "mv_normal_cholesky": _mv_normal_cholesky,
    "mv_normal_precision": _mv_normal_precision,
    "mv_normal_low_rank": _mv_normal_low_rank,
    "mv_student_t": _mv_student_t,
    "mv_student_t_cholesky": _mv_student_t_cholesky,
    "zero_sum_normal": _zero_sum_normal,
    "uniform_on_sphere": _uniform_on_sphere,
    "lkj_corr": _lkj_corr,
    "lkj_cholesky": _lkj_cholesky,
    "wishart": _wishart,
    "inv_wishart": _inv_wishart,
    "matrix_normal": _matrix_normal,
    "gaussian_random_walk": _gaussian_random_walk,
    "ar": _ar,
    "car": _car,
}
