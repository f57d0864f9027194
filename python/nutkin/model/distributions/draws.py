"""Random draws of every proper distribution: draw(key, parameters, shape) by name.

`shape` is that of the whole value, event axes included; the parameters broadcast against the batch as in the log
density. All are of one floating type, and so are the draws, counts too. No loop waits for parameters that are infinite
or undefined.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from nutkin.model.distributions.count_draws import COUNT_DRAWS
from nutkin.model.distributions.standard_draws import accepted, log_gamma, log_gammas, unit
from nutkin.model.distributions.vector_draws import VECTOR_DRAWS
from nutkin.model.native.elementary import exp, log, log1p
from nutkin.model.special import softplus

Draw = Callable[[Array, tuple[Array, ...], tuple[int, ...]], Array]
_LOG_2 = math.log(2)


def _in_range(log_x: Array) -> Array:
    """exp(log_x) as a positive finite number."""
    limits = jnp.finfo(log_x.dtype)
    return jnp.clip(exp(log_x), limits.tiny, limits.max)


def _inside_unit(x: Array) -> Array:
    limits = jnp.finfo(x.dtype)
    return jnp.clip(x, limits.tiny, 1 - limits.epsneg)


def _by_normal(function: Callable[..., Array]) -> Draw:
    """A function of a standard normal draw and the parameters."""
    return lambda key, parameters, shape: function(jax.random.normal(key, shape, parameters[0].dtype), *parameters)


def _by_exponential(function: Callable[..., Array]) -> Draw:
    """A function of a standard exponential draw and the parameters."""
    return lambda key, parameters, shape: function(-log(unit(key, shape, parameters[0].dtype)), *parameters)


def _by_uniform(function: Callable[..., Array]) -> Draw:
    """A function of a draw from [0, 1) and the parameters."""
    return lambda key, parameters, shape: function(jax.random.uniform(key, shape, parameters[0].dtype), *parameters)


def _by_logistic(function: Callable[..., Array]) -> Draw:
    return lambda key, parameters, shape: function(jax.random.logistic(key, shape, parameters[0].dtype), *parameters)


def _by_log_gamma(function: Callable[..., Array], half: bool = False) -> Draw:
    """A function of the logarithm of a gamma variable whose shape is the first parameter, or half of it."""

    def draw(key: Array, parameters: tuple[Array, ...], shape: tuple[int, ...]) -> Array:
        alpha = 0.5 * parameters[0] if half else parameters[0]
        return _in_range(function(log_gamma(key, alpha, shape), *parameters))

    return draw


def _standard_t(key: Array, nu: Array, shape: tuple[int, ...]) -> Array:
    of_normal, of_gamma = jax.random.split(key)
    log_scale = 0.5 * (log(0.5 * nu) - log_gamma(of_gamma, 0.5 * nu, shape))
    return jax.random.normal(of_normal, shape, nu.dtype) * _in_range(log_scale)


def _student_t(key: Array, parameters: tuple[Array, ...], shape: tuple[int, ...]) -> Array:
    nu, mu, sigma = parameters
    return mu + sigma * _standard_t(key, nu, shape)


def _half_student_t(key: Array, parameters: tuple[Array, ...], shape: tuple[int, ...]) -> Array:
    nu, sigma = parameters
    return sigma * lax.abs(_standard_t(key, nu, shape))


def _soft_laplace(key: Array, parameters: tuple[Array, ...], shape: tuple[int, ...]) -> Array:
    """Its quantiles are log(tan(pi u / 2)); of one side, so that both tails are as fine."""
    mu, sigma = parameters
    of_size, of_sign = jax.random.split(key)
    size = -log(lax.tan(0.25 * np.pi * unit(of_size, shape, mu.dtype)))
    return mu + sigma * size * jax.random.rademacher(of_sign, shape, mu.dtype)


def _exponentials_apart(key: Array, shape: tuple[int, ...], right_rate: Array, left_rate: Array) -> Array:
    """The difference of two exponential variables."""
    of_right, of_left = jax.random.split(key)
    right, left = (jax.random.exponential(k, shape, right_rate.dtype) for k in (of_right, of_left))
    return right / right_rate - left / left_rate


def _asymmetric_laplace(key: Array, parameters: tuple[Array, ...], shape: tuple[int, ...]) -> Array:
    mu, sigma, kappa = parameters
    return mu + sigma * _exponentials_apart(key, shape, kappa, 1 / kappa)


def _skew_double_exponential(key: Array, parameters: tuple[Array, ...], shape: tuple[int, ...]) -> Array:
    mu, sigma, tau = parameters
    return mu + sigma * _exponentials_apart(key, shape, 2 * tau, 2 * (1 - tau))


def _skew_normal(key: Array, parameters: tuple[Array, ...], shape: tuple[int, ...]) -> Array:
    """Azzalini 1986: delta |Z_1| + sqrt(1 - delta^2) Z_2 with delta = alpha / sqrt(1 + alpha^2)."""
    xi, omega, alpha = parameters
    first, second = jax.random.normal(key, (2, *shape), xi.dtype)
    return xi + omega * (alpha * lax.abs(first) + second) / lax.sqrt(1 + lax.square(alpha))


def _exp_mod_normal(key: Array, parameters: tuple[Array, ...], shape: tuple[int, ...]) -> Array:
    mu, sigma, rate = parameters
    of_normal, of_exponential = jax.random.split(key)
    late = jax.random.exponential(of_exponential, shape, mu.dtype) / rate
    return mu + sigma * jax.random.normal(of_normal, shape, mu.dtype) + late


def _von_mises(key: Array, parameters: tuple[Array, ...], shape: tuple[int, ...]) -> Array:
    """By rejection from a wrapped Cauchy variable: Best and Fisher 1979, https://doi.org/10.2307/2346732.

    In terms of w = 1 - cos(angle), which keeps its digits for large kappa.
    """
    mu, kappa = parameters
    kappa = jnp.broadcast_to(kappa, shape)
    root = lax.sqrt(1 + 4 * lax.square(kappa))
    tau = lax.sqrt(1 + root)
    rho = 2 * kappa * tau / ((tau + math.sqrt(2)) * (1 + root))
    excess = lax.square(1 - rho) / (2 * rho)

    def propose(key: Array) -> tuple[Array, Array]:
        of_angle, of_test = jax.random.split(key)
        half_angle = 0.5 * np.pi * jax.random.uniform(of_angle, shape, kappa.dtype)
        rise = 2 * lax.square(lax.sin(half_angle))
        proposal = excess * rise / (excess + 2 - rise)
        c = kappa * (excess + proposal)
        return proposal, log(c / unit(of_test, shape, kappa.dtype)) + 1 - c >= 0

    of_rounds, of_sign = jax.random.split(key)
    w = accepted(of_rounds, propose, jnp.zeros_like(kappa), ~jnp.isfinite(excess))
    angle = 2 * lax.asin(lax.sqrt(jnp.clip(0.5 * w, 0, 1))) * jax.random.rademacher(of_sign, shape, mu.dtype)
    turned = mu + angle
    pi = np.asarray(np.pi, mu.dtype)
    return jnp.clip(turned - 2 * pi * lax.round(turned / (2 * pi)), -pi, pi)


def _wald(key: Array, parameters: tuple[Array, ...], shape: tuple[int, ...]) -> Array:
    """Michael, Schucany and Haas 1976, https://doi.org/10.2307/2683801: one of the two roots, whose product is mu^2."""
    mu, lambda_ = parameters
    of_normal, of_root = jax.random.split(key)
    w = 0.5 * mu / lambda_ * lax.square(jax.random.normal(of_normal, shape, mu.dtype))
    ratio = 1 / (1 + w + lax.sqrt(w) * lax.sqrt(2 + w))
    is_smaller = jax.random.uniform(of_root, shape, mu.dtype) * (1 + ratio) <= 1
    return _in_range(log(mu) + jnp.where(is_smaller, log(ratio), -log(ratio)))


def _log_ratio(key: Array, alpha: Array, beta: Array, shape: tuple[int, ...]) -> Array:
    """The logarithm of the odds of a beta variable."""
    of_alpha, of_beta = log_gammas(key, (alpha, beta), shape)
    return of_alpha - of_beta


def _sigmoid(logit: Array) -> Array:
    return _inside_unit(exp(-softplus(-logit)))


def _beta(key: Array, parameters: tuple[Array, ...], shape: tuple[int, ...]) -> Array:
    return _sigmoid(_log_ratio(key, *parameters, shape))


def _beta_proportion(key: Array, parameters: tuple[Array, ...], shape: tuple[int, ...]) -> Array:
    mu, kappa = parameters
    return _sigmoid(_log_ratio(key, mu * kappa, (1 - mu) * kappa, shape))


def _triangular(u: Array, lower: Array, c: Array, upper: Array) -> Array:
    width = upper - lower
    rising = lower + lax.sqrt(u * width * (c - lower))
    return jnp.where(u * width < c - lower, rising, upper - lax.sqrt((1 - u) * width * (upper - c)))


def _log_uniform(u: Array, lower: Array, upper: Array) -> Array:
    return jnp.clip(lower * exp(u * log(upper / lower)), lower, upper)


_NUMBER_DRAWS: dict[str, Draw] = {
    "normal": _by_normal(lambda z, mu, sigma: mu + sigma * z),
    "student_t": _student_t,
    "cauchy": _by_uniform(lambda u, mu, sigma: mu + sigma * lax.tan(np.pi * (u - 0.5))),
    "laplace": lambda key, p, shape: p[0] + p[1] * jax.random.laplace(key, shape, p[0].dtype),
    "soft_laplace": _soft_laplace,
    "asymmetric_laplace": _asymmetric_laplace,
    "skew_double_exponential": _skew_double_exponential,
    "logistic": _by_logistic(lambda z, mu, sigma: mu + sigma * z),
    "gumbel": _by_exponential(lambda z, mu, beta: mu - beta * log(jnp.maximum(z, jnp.finfo(z.dtype).tiny))),
    "skew_normal": _skew_normal,
    "exp_mod_normal": _exp_mod_normal,
    "von_mises": _von_mises,
    "half_normal": _by_normal(lambda z, sigma: sigma * lax.abs(z)),
    "half_cauchy": _by_uniform(lambda u, sigma: sigma * lax.tan(0.5 * np.pi * u)),
    "half_student_t": _half_student_t,
    "lognormal": _by_normal(lambda z, mu, sigma: _in_range(mu + sigma * z)),
    "exponential": _by_exponential(lambda z, rate: z / rate),
    "gamma": _by_log_gamma(lambda log_x, alpha, beta: log_x - log(beta)),
    "chi_square": _by_log_gamma(lambda log_x, nu: log_x + _LOG_2, half=True),
    "inverse_gamma": _by_log_gamma(lambda log_x, alpha, beta: log(beta) - log_x),
    "inv_chi_square": _by_log_gamma(lambda log_x, nu: -_LOG_2 - log_x, half=True),
    "scaled_inv_chi_square": _by_log_gamma(lambda log_x, nu, sigma: log(0.5 * nu) + 2 * log(sigma) - log_x, half=True),
    "rayleigh": _by_exponential(lambda z, sigma: _in_range(log(sigma) + 0.5 * log(2 * z))),
    "weibull": _by_exponential(lambda z, alpha, sigma: _in_range(log(sigma) + log(z) / alpha)),
    "frechet": _by_exponential(lambda z, alpha, sigma: _in_range(log(sigma) - log(z) / alpha)),
    "wald": _wald,
    "loglogistic": _by_logistic(lambda z, alpha, beta: _in_range(log(alpha) + z / beta)),
    "gompertz": _by_exponential(lambda z, alpha, beta: log1p(z / alpha) / beta),
    "pareto": _by_exponential(lambda z, y_min, alpha: y_min * exp(z / alpha)),
    "pareto_type_2": _by_exponential(lambda z, mu, lambda_, alpha: mu + lambda_ * lax.expm1(z / alpha)),
    "levy": _by_normal(lambda z, mu, sigma: mu + sigma / jnp.maximum(lax.square(z), jnp.finfo(z.dtype).tiny)),
    "beta": _beta,
    "beta_proportion": _beta_proportion,
    "logit_normal": _by_normal(lambda z, mu, sigma: _sigmoid(mu + sigma * z)),
    "kumaraswamy": _by_exponential(lambda z, alpha, beta: _inside_unit(exp(log(-lax.expm1(-z / beta)) / alpha))),
    "uniform": _by_uniform(lambda u, lower, upper: jnp.clip(lower + (upper - lower) * u, lower, upper)),
    "log_uniform": _by_uniform(_log_uniform),
    "triangular": _by_uniform(_triangular),
}

DRAWS: dict[str, Draw] = {**_NUMBER_DRAWS, **COUNT_DRAWS, **VECTOR_DRAWS}
