"""Random draws of counts and categories, as whole floats: the functions of `draws` by name."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.scipy.special import logsumexp

from nutkin.model.distributions.counts import log_ways
from nutkin.model.distributions.standard_counts import binomial, poisson
from nutkin.model.distributions.standard_draws import log_gamma, log_gammas, unit
from nutkin.model.native.elementary import exp, log, log1p


def multinomial(key: Array, n: Array, logits: Array, shape: tuple[int, ...]) -> Array:
    """One category after the other, each binomial given those before."""
    *batch, size = shape
    if size == 1:
        return jnp.broadcast_to(n[..., None], shape)
    logits = jnp.broadcast_to(logits, shape)
    rest = jnp.stack([logsumexp(logits[..., i:], axis=-1) for i in range(1, size)])
    # Of categories that are impossible from here on, the last one takes all that is left.
    odds = jnp.where(rest == -np.inf, np.inf, jnp.moveaxis(logits, -1, 0)[:-1] - rest)

    def step(left: Array, given: tuple[Array, Array]) -> tuple[Array, Array]:
        key, logit = given
        count = binomial(key, left, logit, tuple(batch))
        return left - count, count

    left, counts = lax.scan(step, jnp.broadcast_to(n, batch), (jax.random.split(key, size - 1), odds))
    return jnp.concatenate([jnp.moveaxis(counts, 0, -1), left[..., None]], axis=-1)


def _hypergeometric(key: Array, parameters: tuple[Array, ...], shape: tuple[int, ...]) -> Array:
    """By inversion from the mode outwards, on both sides by the ratio of neighbouring masses."""
    population, k, n = (jnp.broadcast_to(parameter, shape) for parameter in parameters)
    first, last = jnp.maximum(0, n + k - population), jnp.minimum(n, k)
    mode = jnp.clip(lax.floor((n + 1) * (k + 1) / (population + 2)), first, last)
    log_mass = log_ways(mode, k) + log_ways(n - mode, population - k) - log_ways(n, population)
    mass = exp(log_mass)
    u = jax.random.uniform(key, shape, k.dtype)

    def step(carry: tuple[Array, ...]) -> tuple[Array, ...]:
        u, low, high, low_mass, high_mass, drawn = carry
        low_mass = low_mass * low * (population - k - n + low) / ((k - low + 1) * (n - low + 1))
        high_mass = high_mass * (k - high) * (n - high) / ((high + 1) * (population - k - n + high + 1))
        low, high = low - 1, high + 1
        low_mass, high_mass = jnp.where(low < first, 0, low_mass), jnp.where(high > last, 0, high_mass)
        is_open, above = u >= 0, u - low_mass
        drawn = jnp.where(is_open & (u < low_mass), low, jnp.where(is_open & (above < high_mass), high, drawn))
        is_found = (u < low_mass) | (above < high_mass)
        return jnp.where(is_open & ~is_found, above - high_mass, -1), low, high, low_mass, high_mass, drawn

    def goes_on(carry: tuple[Array, ...]) -> Array:
        u, _, _, low_mass, high_mass, _ = carry
        # What rounding leaves of the probability goes to the mode.
        return jnp.any((u >= 0) & (low_mass + high_mass > 0))

    start = (jnp.where(u < mass, -1, u - mass), mode, mode, mass, mass, mode)
    return lax.while_loop(goes_on, step, start)[-1]


def _bernoulli(key: Array, parameters: tuple[Array, ...], shape: tuple[int, ...]) -> Array:
    (p,) = parameters
    return (jax.random.uniform(key, shape, p.dtype) < p).astype(p.dtype)


def _bernoulli_logit(key: Array, parameters: tuple[Array, ...], shape: tuple[int, ...]) -> Array:
    (logits,) = parameters
    return (jax.random.logistic(key, shape, logits.dtype) < logits).astype(logits.dtype)


def _binomial(key: Array, parameters: tuple[Array, ...], shape: tuple[int, ...]) -> Array:
    n, p = parameters
    return binomial(key, n, log(p) - log1p(-p), shape)


def _beta_binomial(key: Array, parameters: tuple[Array, ...], shape: tuple[int, ...]) -> Array:
    n, alpha, beta = parameters
    of_odds, of_count = jax.random.split(key)
    of_alpha, of_beta = log_gammas(of_odds, (alpha, beta), shape)
    return binomial(of_count, n, of_alpha - of_beta, shape)


def _neg_binomial_log(key: Array, parameters: tuple[Array, ...], shape: tuple[int, ...]) -> Array:
    """A Poisson variable whose mean is a gamma variable."""
    eta, alpha = parameters
    of_mean, of_count = jax.random.split(key)
    return poisson(of_count, exp(eta - log(alpha) + log_gamma(of_mean, alpha, shape)), shape)


def _beta_neg_binomial(key: Array, parameters: tuple[Array, ...], shape: tuple[int, ...]) -> Array:
    of_mean, of_count = jax.random.split(key)
    of_r, of_alpha, of_beta = log_gammas(of_mean, parameters, shape)
    return poisson(of_count, exp(of_r - of_alpha + of_beta), shape)


def _geometric(key: Array, parameters: tuple[Array, ...], shape: tuple[int, ...]) -> Array:
    (p,) = parameters
    u = unit(key, shape, p.dtype)
    return jnp.maximum(lax.ceil(log(u) / log1p(-p)), 1)


def _discrete_uniform(key: Array, parameters: tuple[Array, ...], shape: tuple[int, ...]) -> Array:
    lower, upper = parameters
    steps = lax.floor(jax.random.uniform(key, shape, lower.dtype) * (upper - lower + 1))
    return jnp.clip(lower + steps, lower, upper)


def _categorical_logit(key: Array, parameters: tuple[Array, ...], shape: tuple[int, ...]) -> Array:
    (logits,) = parameters
    logits = jnp.broadcast_to(logits, (*shape, logits.shape[-1]))
    return jax.random.categorical(key, logits, axis=-1).astype(logits.dtype)


def _ordered(latent: Array, cutpoints: Array) -> Array:
    """The number of cutpoints below."""
    return jnp.sum(cutpoints < latent[..., None], axis=-1).astype(latent.dtype)


def _ordered_logistic(key: Array, parameters: tuple[Array, ...], shape: tuple[int, ...]) -> Array:
    eta, cutpoints = parameters
    return _ordered(eta + jax.random.logistic(key, shape, eta.dtype), cutpoints)


def _ordered_probit(key: Array, parameters: tuple[Array, ...], shape: tuple[int, ...]) -> Array:
    eta, cutpoints = parameters
    return _ordered(eta + jax.random.normal(key, shape, eta.dtype), cutpoints)


def _dirichlet_multinomial(key: Array, parameters: tuple[Array, ...], shape: tuple[int, ...]) -> Array:
    n, alpha = parameters
    of_share, of_count = jax.random.split(key)
    return multinomial(of_count, n, log_gamma(of_share, alpha, shape), shape)


COUNT_DRAWS = {
    "bernoulli": _bernoulli,
    "bernoulli_logit": _bernoulli_logit,
    "binomial": _binomial,
    "binomial_logit": lambda key, parameters, shape: binomial(key, *parameters, shape),
    "beta_binomial": _beta_binomial,
    "poisson": lambda key, parameters, shape: poisson(key, parameters[0], shape),
    "poisson_log": lambda key, parameters, shape: poisson(key, exp(parameters[0]), shape),
    "neg_binomial": lambda key, parameters, shape: _neg_binomial_log(key, (log(parameters[0]), parameters[1]), shape),
    "neg_binomial_log": _neg_binomial_log,
    "beta_neg_binomial": _beta_neg_binomial,
    "geometric": _geometric,
    "discrete_uniform": _discrete_uniform,
    "hypergeometric": _hypergeometric,
    "categorical": lambda key, parameters, shape: _categorical_logit(key, (log(parameters[0]),), shape),
    "categorical_logit": _categorical_logit,
    "ordered_logistic": _ordered_logistic,
    "ordered_probit": _ordered_probit,
    "multinomial": lambda key, parameters, shape: multinomial(key, parameters[0], log(parameters[1]), shape),
    "multinomial_logit": lambda key, parameters, shape: multinomial(key, *parameters, shape),
    "dirichlet_multinomial": _dirichlet_multinomial,
}
