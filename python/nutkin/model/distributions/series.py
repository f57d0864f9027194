"""Distributions of series, whose last axis is time, and of fields on the nodes of a graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from nutkin.errors import InvalidModel
from nutkin.model.distributions.family import ABOVE_0, VECTOR, Family, LogDensity, Parameter
from nutkin.model.distributions.vectors import half_log_determinant
from nutkin.model.native.elementary import log
from nutkin.model.special import HALF_LOG_2PI
from nutkin.model.supports import ADJACENCY, PROBABILITY, REAL, WHOLE, edges_below

_STEPS = ("steps",)


def _steps_density(residuals: Array, sigma: Array) -> Array:
    """Independent normal residuals {…, steps} of one scale. The whole density: their number is that of the value."""
    rate = (1 / sigma)[..., None]
    return -0.5 * jnp.sum(lax.square(residuals * rate), axis=-1) - residuals.shape[-1] * (log(sigma) + HALF_LOG_2PI)


def _walk_kernel(x: Array, sigma: Array) -> Array:
    rate = jnp.reshape(1 / sigma, (*jnp.shape(sigma), 1))
    squares = lax.square(x[..., :1] * rate), lax.square((x[..., 1:] - x[..., :-1]) * rate)
    distance = jnp.sum(squares[0], axis=-1) + jnp.sum(squares[1], axis=-1)
    return -0.5 * distance - x.shape[-1] * (log(sigma) + HALF_LOG_2PI)


_GAUSSIAN_RANDOM_WALK = LogDensity(kernel=_walk_kernel)


def _autoregression_kernel(x: Array, rho: Array, sigma: Array) -> Array:
    """x_t - sum of rho_i x_{t-i}, where the values before the first are 0."""
    none = [(0, 0, 0)] * (x.ndim - 1)
    residuals = x
    for lag in range(1, min(rho.shape[-1], x.shape[-1] - 1) + 1):
        earlier = lax.pad(x[..., :-lag], jnp.zeros((), x.dtype), [*none, (lag, 0, 0)])
        residuals = residuals - rho[..., lag - 1, None] * earlier
    return _steps_density(residuals, sigma)


_AR = LogDensity(kernel=_autoregression_kernel)


def _quadratic_form(x: Array, adjacency: Array, alpha: Array | float) -> Array:
    """x^T (D - alpha W) x with D the degrees."""
    degrees = jnp.sum(adjacency, axis=-1)
    neighbours = jnp.matmul(adjacency, x[..., None])[..., 0]
    return jnp.sum(x * (degrees * x - jnp.expand_dims(alpha, -1) * neighbours), axis=-1)


def _car_kernel(x: Array, mu: Array, adjacency: Array, alpha: Array, tau: Array) -> Array:
    return -0.5 * tau * _quadratic_form(x - mu, adjacency, alpha)


def _car_normalizer(mu: Array, adjacency: Array, alpha: Array, tau: Array) -> Array:
    size = adjacency.shape[-1]
    degrees = jnp.sum(adjacency, axis=-1)
    precision = jnp.eye(size, dtype=alpha.dtype) * degrees[..., None] - alpha[..., None, None] * adjacency
    return size * (HALF_LOG_2PI - 0.5 * log(tau)) - half_log_determinant(lax.linalg.cholesky(precision))


_CAR = LogDensity(kernel=_car_kernel, normalizer=_car_normalizer)


def _intrinsic(x: Array, sigma: Array, squares: Callable[[Array], Array]) -> Array:
    """Up to a constant: the density is improper but for the sum of the values, which is softly 0.

    Morris et al. 2019, https://doi.org/10.1016/j.sste.2019.100301; the sum is Normal(0, 0.001 k). `squares`: the sum of
    the squared differences of all neighbours.
    """
    size = x.shape[-1]
    scaled = x / sigma[..., None]
    total = jnp.sum(scaled, axis=-1) / (0.001 * size)
    return -0.5 * (squares(scaled) + lax.square(total)) - size * log(sigma)


def _icar_kernel(x: Array, adjacency: Array, sigma: Array) -> Array:
    return _intrinsic(x, sigma, lambda x: _quadratic_form(x, adjacency, 1.0))


def _icar_edges_kernel(x: Array, edges: Array, sigma: Array) -> Array:
    places = edges.astype(np.int32)

    def squares(x: Array) -> Array:
        batch = jnp.broadcast_shapes(x.shape[:-1], places.shape[:-2])
        x = jnp.broadcast_to(x, (*batch, x.shape[-1]))
        first, second = (
            jnp.take_along_axis(x, jnp.broadcast_to(ends, (*batch, ends.shape[-1])), axis=-1, mode="clip")
            for ends in (places[..., 0], places[..., 1])
        )
        return jnp.sum(lax.square(first - second), axis=-1)

    return _intrinsic(x, sigma, squares)


_ICAR, _ICAR_EDGES = LogDensity(kernel=_icar_kernel), LogDensity(kernel=_icar_edges_kernel)


def _edges_among(family: Family, sizes: Mapping[str, int]) -> Family:
    """The same for so many nodes."""
    if sizes["2"] != 2:
        raise InvalidModel("the edges are no pairs", expected="{…, m, 2}", found=f"rows of {sizes['2']}")
    if "k" not in sizes:
        return family
    edges = replace(family.parameters["edges"], support=edges_below(sizes["k"]))
    return replace(family, parameters={**family.parameters, "edges": edges})


_NODES = ("k",)
_ADJACENCY = Parameter(ADJACENCY, ("k", "k"))

FAMILIES: dict[str, Family] = {
    "gaussian_random_walk": Family({"sigma": ABOVE_0}, _GAUSSIAN_RANDOM_WALK, REAL, event=_STEPS),
    "ar": Family({"rho": Parameter(event=("lags",)), "sigma": ABOVE_0}, _AR, REAL, event=_STEPS),
    "car": Family(
        {"mu": VECTOR, "adjacency": _ADJACENCY, "alpha": Parameter(PROBABILITY), "tau": ABOVE_0},
        _CAR,
        REAL,
        event=_NODES,
    ),
    "icar": Family({"adjacency": _ADJACENCY, "sigma": ABOVE_0}, _ICAR, REAL, event=_NODES),
    "icar_edges": Family(
        {"edges": Parameter(WHOLE, ("m", "2")), "sigma": ABOVE_0}, _ICAR_EDGES, REAL, event=_NODES, sized=_edges_among
    ),
}
