"""Distribution functions of the distributions of one number: logarithms of both tails, by name.

Not here: the improper ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from nutkin.model.distributions.categories import entry, logsumexp
from nutkin.model.distributions.family import Cumulative
from nutkin.model.distributions.normal_mixtures import normal_and_mills_tails, skew_normal_tails
from nutkin.model.distributions.real import STUDENT_T, standardized
from nutkin.model.distributions.summed_tails import beta_binomial_tails, beta_neg_binomial_tails, hypergeometric_tails
from nutkin.model.distributions.tails import (
    above_0,
    by_log_cumulative_hazard,
    complement,
    in_unit,
    log_or_end,
    logaddexp,
    on_line,
    reverse,
    shares,
    symmetric,
    within_pi,
)
from nutkin.model.distributions.von_mises_tails import von_mises_tails
from nutkin.model.incomplete import Tails, at_the_ends, beta_tails, gamma_tails
from nutkin.model.native.elementary import exp, log, log1p
from nutkin.model.special import LOG_PI, log1mexp, log_erfcx, softplus

_LOG_2 = math.log(2)
_ROOT_HALF = math.sqrt(0.5)


def _normal(z: Array) -> Tails:
    return symmetric(z, lambda z: log_erfcx(z * _ROOT_HALF) - 0.5 * lax.square(z) - _LOG_2)


def _logistic(z: Array) -> Tails:
    return -softplus(-z), -softplus(z)


@jax.custom_jvp
def _half_student_t(t: Array, nu: Array) -> Tails:
    """Of |T|, at t >= 0."""
    return _half_student_t_by_ratio(t, nu)


def _half_student_t_by_ratio(t: Array, nu: Array) -> Tails:
    is_start = t <= 0
    log_ratio = log(nu) - 2 * log(jnp.where(is_start, 1, t))
    return reverse(beta_tails(0.5 * nu, jnp.full_like(nu, 0.5), jnp.where(is_start, np.inf, log_ratio)))


@_half_student_t.defjvp
def _half_student_t_jvp(primals: tuple[Array, Array], tangents: tuple[Array, Array]) -> tuple[Tails, Tails]:
    """At 0 too there is a density, though not of the ratio that the beta function takes."""
    (t, nu), (t_tangent, nu_tangent) = primals, tangents
    tails, by_nu = jax.jvp(lambda nu: _half_student_t_by_ratio(t, nu), (nu,), (jnp.ones_like(nu),))
    lower, upper = tails
    log_density = STUDENT_T.kernel(t, nu, 0, 1) - STUDENT_T.normalizer(nu, 0, jnp.ones_like(nu)) + _LOG_2
    by_t = jnp.where(t > 0, exp(log_density - jnp.where(t > 0, lower, 0)), 0), -exp(log_density - upper)
    return tails, tuple(by_nu * nu_tangent + by_t * t_tangent for by_nu, by_t in zip(by_nu, by_t, strict=True))


def _student_t(x: Array, nu: Array, mu: Array, sigma: Array) -> Tails:
    z, nu = jnp.broadcast_arrays(standardized(x, mu, sigma), nu)
    return symmetric(z, lambda z: _half_student_t(z, nu)[1] - _LOG_2)


def _two_exponentials(z: Array, log_left: Array, left_rate: Array, log_right: Array, right_rate: Array) -> Tails:
    """Of log masses left and right of 0, exponentially distributed on their sides."""

    def tail(z: Array, log_left: Array, left_rate: Array, log_right: Array, right_rate: Array) -> Array:
        is_left = z <= 0
        right = jnp.where(is_left, 1, right_rate * z)
        beyond = complement(log_right - right, logaddexp(log_left, log_right + log1mexp(right)))
        return jnp.where(is_left, log_left + left_rate * z, beyond)

    return tail(z, log_left, left_rate, log_right, right_rate), tail(-z, log_right, right_rate, log_left, left_rate)


def _laplace(x: Array, mu: Array, sigma: Array) -> Tails:
    return symmetric(standardized(x, mu, sigma), lambda z: -z - _LOG_2)


def _asymmetric_laplace(x: Array, mu: Array, sigma: Array, kappa: Array) -> Tails:
    log_odds = 2 * log(kappa)
    return _two_exponentials(standardized(x, mu, sigma), -softplus(-log_odds), 1 / kappa, -softplus(log_odds), kappa)


def _skew_double_exponential(x: Array, mu: Array, sigma: Array, tau: Array) -> Tails:
    return _two_exponentials(standardized(x, mu, sigma), log(tau), 2 * (1 - tau), log1p(-tau), 2 * tau)


def _cauchy(x: Array, mu: Array, sigma: Array) -> Tails:
    return symmetric(standardized(x, mu, sigma), lambda z: log(lax.atan2(jnp.ones_like(z), z)) - LOG_PI)


def _soft_laplace_upper(z: Array) -> Array:
    is_far = z > 30
    near = log(lax.atan(exp(-jnp.where(is_far, 0, z))))
    return jnp.where(is_far, -z, near) + (_LOG_2 - LOG_PI)


def _exp_mod_normal(x: Array, mu: Array, sigma: Array, rate: Array) -> Tails:
    return reverse(normal_and_mills_tails(-standardized(x, mu, sigma), rate * sigma))


def _half_normal(z: Array) -> Tails:
    is_near = z < 1
    near = log(lax.erf(jnp.where(is_near, z, 1) * _ROOT_HALF))
    upper = log_erfcx(z * _ROOT_HALF) - 0.5 * lax.square(z)
    return jnp.where(is_near, near, log1mexp(-jnp.where(is_near, -1, upper))), upper


def _half_cauchy(x: Array, sigma: Array) -> Tails:
    return shares(lax.atan(x / sigma), lax.atan(sigma / x))


def _chi_square(x: Array, nu: Array) -> Tails:
    return gamma_tails(0.5 * nu, log(x) - _LOG_2)


def _weibull(x: Array, alpha: Array, sigma: Array) -> Tails:
    return by_log_cumulative_hazard(alpha * log(x / sigma))


def _frechet(x: Array, alpha: Array, sigma: Array) -> Tails:
    return reverse(by_log_cumulative_hazard(-alpha * log(x / sigma)))


def _wald(x: Array, mu: Array, lambda_: Array) -> Tails:
    root = lax.sqrt(lambda_ / x)
    return normal_and_mills_tails(root * ((x - mu) / mu), 2 * root)


def _gompertz(x: Array, alpha: Array, beta: Array) -> Tails:
    return by_log_cumulative_hazard(log(alpha) + beta * x + log1mexp(beta * x))


@above_0
def _lomax(distance: Array, scale: Array, alpha: Array) -> Tails:
    log_upper = -alpha * log1p(distance / scale)
    return log1mexp(-log_upper), log_upper


@above_0
def _levy(distance: Array, sigma: Array) -> Tails:
    return reverse(_half_normal(lax.sqrt(sigma / distance)))


def _logit(x: Array) -> Array:
    return log(x) - log1p(-x)


def _kumaraswamy(x: Array, alpha: Array, beta: Array) -> Tails:
    """The hazard -beta log(1 - x^alpha); where that power is small, it is the power."""
    log_power = alpha * log(x)
    is_small = log_power < jnp.log(jnp.finfo(log_power.dtype).eps)
    log_hazard = log(-log1mexp(-jnp.where(is_small, -1, log_power)))
    return by_log_cumulative_hazard(log(beta) + jnp.where(is_small, log_power, log_hazard))


@above_0
def _log_uniform(x: Array, lower: Array, upper: Array) -> Tails:
    return shares(log(x / lower), log(upper / x))


def _uniform(x: Array, lower: Array, upper: Array) -> Tails:
    x = lax.clamp(*jnp.broadcast_arrays(lower, x, upper))
    return shares(x - lower, upper - x)


def _triangular(x: Array, lower: Array, c: Array, upper: Array) -> Tails:
    """The areas of a triangle and of the rest: of the triangle between x and its end, whose other side x is on."""
    x = lax.clamp(*jnp.broadcast_arrays(lower, x, upper))
    left, right = c - lower, upper - c
    to_the_left, to_the_right = x - lower, upper - x
    rising = lax.square(to_the_left), left * right + (c - x) * (to_the_left + left)
    falling = left * right + (x - c) * (to_the_right + right), lax.square(to_the_right)
    return shares(*(jnp.where(x < c, *pair) for pair in zip(rising, falling, strict=True)))


def _bernoulli(x: Array, p: Array) -> Tails:
    return at_the_ends((log_or_end(1 - p), log_or_end(p)), x < 0, x >= 1)


def _binomial(x: Array, n: Array, logit: Array) -> Tails:
    """P(X <= k) is that of a beta variable of shapes n - k and k + 1 below 1 - p."""
    k = lax.floor(x)
    is_start, is_end = k < 0, k >= n
    is_outside = is_start | is_end
    tails = beta_tails(jnp.where(is_outside, 1, n - k), jnp.where(is_outside, 1, k + 1), -logit)
    return at_the_ends(tails, is_start, is_end)


def _log_odds(p: Array) -> Array:
    """Infinite for 0 and 1, where the derivative is 0."""
    return log_or_end(p) - log_or_end(1 - p)


def _poisson(x: Array, eta: Array) -> Tails:
    """P(X <= k) is that of a gamma variable of shape k + 1 above the mean."""
    k = lax.floor(x)
    is_start = k < 0
    is_end = k == np.inf
    tails = reverse(gamma_tails(jnp.where(is_start | is_end, 0, k) + 1, eta))
    return at_the_ends(tails, is_start, is_end)


def _neg_binomial(x: Array, eta: Array, alpha: Array) -> Tails:
    """P(X <= k) is that of a beta variable of shapes alpha and k + 1 below alpha / (alpha + mu)."""
    k = lax.floor(x)
    is_start, is_end = k < 0, k == np.inf
    tails = beta_tails(alpha, jnp.where(is_start | is_end, 0, k) + 1, log(alpha) - eta)
    return at_the_ends(tails, is_start, is_end)


def _geometric(x: Array, p: Array) -> Tails:
    k = lax.floor(x)
    is_start, is_end = k < 1, (k >= 1) & ((p >= 1) | (k == np.inf))
    upper = jnp.where(is_start | is_end, 1, k) * log1p(-jnp.where(p >= 1, 0.5, p))
    return at_the_ends((log1mexp(-upper), upper), is_start, is_end)


def _discrete_uniform(x: Array, lower: Array, upper: Array) -> Tails:
    k = lax.clamp(*jnp.broadcast_arrays(lower - 1, lax.floor(x), upper))
    return shares(k - lower + 1, upper - k)


def _categorical(x: Array, p: Array) -> Tails:
    is_below = _is_at_most(x, p.shape[-1])
    return shares(jnp.sum(jnp.where(is_below, p, 0), axis=-1), jnp.sum(jnp.where(is_below, 0, p), axis=-1))


def _categorical_logit(x: Array, logits: Array) -> Tails:
    is_start, is_end = x < 0, x >= logits.shape[-1] - 1
    is_below = _is_at_most(jnp.where(is_start | is_end, 0, x), logits.shape[-1])
    lower, upper = (logsumexp(jnp.where(chosen, logits, -np.inf)) for chosen in (is_below, ~is_below))
    return at_the_ends(_logistic(lower - upper), is_start, is_end)


def _is_at_most(x: Array, size: int) -> Array:
    """Whether each of the categories is at most x: {…, size}."""
    return np.arange(size).astype(x.dtype) <= x[..., None]


def _ordered(x: Array, eta: Array, cutpoints: Array, standard: Callable[[Array], Tails]) -> Tails:
    is_start, is_end = x < 0, x >= cutpoints.shape[-1]
    k = lax.floor(jnp.where(is_start | is_end, 0, x))
    return at_the_ends(standard(entry(k, cutpoints) - eta), is_start, is_end)


CUMULATIVES: dict[str, Cumulative] = {
    name: Cumulative(tails)
    for name, tails in {
        "normal": on_line(lambda x, mu, sigma: _normal(standardized(x, mu, sigma))),
        "student_t": on_line(_student_t),
        "cauchy": on_line(_cauchy),
        "laplace": on_line(_laplace),
        "soft_laplace": on_line(lambda x, mu, sigma: symmetric(standardized(x, mu, sigma), _soft_laplace_upper)),
        "asymmetric_laplace": on_line(_asymmetric_laplace),
        "skew_double_exponential": on_line(_skew_double_exponential),
        "logistic": on_line(lambda x, mu, sigma: _logistic(standardized(x, mu, sigma))),
        "gumbel": on_line(lambda x, mu, beta: reverse(by_log_cumulative_hazard(-standardized(x, mu, beta)))),
        "skew_normal": on_line(lambda x, xi, omega, alpha: skew_normal_tails(standardized(x, xi, omega), alpha)),
        "exp_mod_normal": on_line(_exp_mod_normal),
        "von_mises": within_pi(lambda x, mu, kappa: von_mises_tails(*jnp.broadcast_arrays(x, mu, kappa))),
        "half_normal": above_0(lambda x, sigma: _half_normal(x / sigma)),
        "half_cauchy": above_0(_half_cauchy),
        "half_student_t": above_0(lambda x, nu, sigma: _half_student_t(*jnp.broadcast_arrays(x / sigma, nu))),
        "lognormal": above_0(lambda x, mu, sigma: _normal(standardized(log(x), mu, sigma))),
        "exponential": above_0(lambda x, rate: (log1mexp(rate * x), -rate * x)),
        "gamma": above_0(lambda x, alpha, beta: gamma_tails(alpha, log(x) + log(beta))),
        "chi_square": above_0(_chi_square),
        "inverse_gamma": above_0(lambda x, alpha, beta: reverse(gamma_tails(alpha, log(beta) - log(x)))),
        "inv_chi_square": above_0(lambda x, nu: reverse(gamma_tails(0.5 * nu, -log(x) - _LOG_2))),
        "scaled_inv_chi_square": above_0(
            lambda x, nu, sigma: reverse(gamma_tails(0.5 * nu, log(0.5 * nu) + 2 * log(sigma) - log(x)))
        ),
        "rayleigh": above_0(lambda x, sigma: by_log_cumulative_hazard(2 * log(x / sigma) - _LOG_2)),
        "weibull": above_0(_weibull),
        "frechet": above_0(_frechet),
        "wald": above_0(_wald),
        "loglogistic": above_0(lambda x, alpha, beta: _logistic(beta * log(x / alpha))),
        "gompertz": above_0(_gompertz),
        "pareto": lambda x, y_min, alpha: _lomax(x - y_min, y_min, alpha),
        "pareto_type_2": lambda x, mu, lambda_, alpha: _lomax(x - mu, lambda_, alpha),
        "levy": lambda x, mu, sigma: _levy(x - mu, sigma),
        "beta": in_unit(lambda x, alpha, beta: beta_tails(alpha, beta, _logit(x))),
        "beta_proportion": in_unit(lambda x, mu, kappa: beta_tails(mu * kappa, (1 - mu) * kappa, _logit(x))),
        "logit_normal": in_unit(lambda x, mu, sigma: _normal(standardized(_logit(x), mu, sigma))),
        "kumaraswamy": in_unit(_kumaraswamy),
        "uniform": _uniform,
        "log_uniform": _log_uniform,
        "triangular": _triangular,
        "bernoulli": _bernoulli,
        "bernoulli_logit": lambda x, logits: at_the_ends(_logistic(-logits), x < 0, x >= 1),
        "binomial": lambda x, n, p: _binomial(x, n, _log_odds(p)),
        "binomial_logit": _binomial,
        "beta_binomial": beta_binomial_tails,
        "poisson": lambda x, mu: _poisson(x, log_or_end(mu)),
        "poisson_log": _poisson,
        "neg_binomial": lambda x, mu, alpha: _neg_binomial(x, log(mu), alpha),
        "neg_binomial_log": _neg_binomial,
        "beta_neg_binomial": beta_neg_binomial_tails,
        "geometric": _geometric,
        "discrete_uniform": _discrete_uniform,
        "hypergeometric": hypergeometric_tails,
        "categorical": _categorical,
        "categorical_logit": _categorical_logit,
        "ordered_logistic": lambda x, eta, cutpoints: _ordered(x, eta, cutpoints, _logistic),
        "ordered_probit": lambda x, eta, cutpoints: _ordered(x, eta, cutpoints, _normal),
    }.items()
}
