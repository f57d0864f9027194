"""Distributions of counts."""

from __future__ import annotations

from jax import Array

from nutkin.model.distributions.family import (
    A_COUNT,
    A_PROBABILITY,
    ABOVE_0,
    ANY,
    AT_LEAST_0,
    Family,
    LogDensity,
    Parameter,
)
from nutkin.model.native.elementary import exp, log, log1p
from nutkin.model.native.gamma import lgamma
from nutkin.model.special import log_beta, softplus, xlog1py, xlogy
from nutkin.model.supports import (
    BINARY,
    COUNT,
    COUNT_TO_N,
    HYPERGEOMETRIC,
    POSITIVE_COUNT,
    POSITIVE_PROBABILITY,
    WHOLE,
    WHOLE_INTERVAL,
)

_BERNOULLI = LogDensity(kernel=lambda x, p: xlogy(x, p) + xlog1py(1 - x, -p))

_BERNOULLI_LOGIT = LogDensity(
    kernel=lambda x, logits: x * logits,
    normalizer=softplus,
)


def log_ways(x: Array, n: Array) -> Array:
    """log of the binomial coefficient."""
    return lgamma(n + 1) - lgamma(x + 1) - lgamma(n - x + 1)


_BINOMIAL = LogDensity(
    kernel=lambda x, n, p: xlogy(x, p) + xlog1py(n - x, -p),
    carrier=log_ways,
)

_BINOMIAL_LOGIT = LogDensity(
    kernel=lambda x, n, logits: x * logits,
    normalizer=lambda n, logits: n * softplus(logits),
    carrier=log_ways,
)

BETA_BINOMIAL = LogDensity(
    kernel=lambda x, n, alpha, beta: log_beta(x + alpha, n - x + beta) - log_beta(alpha, beta),
    carrier=log_ways,
)


def _minus_log_factorial(x: Array) -> Array:
    return -lgamma(x + 1)


_POISSON = LogDensity(
    kernel=xlogy,
    normalizer=lambda mu: mu,
    carrier=_minus_log_factorial,
)

_POISSON_LOG = LogDensity(
    kernel=lambda x, eta: x * eta,
    normalizer=exp,
    carrier=_minus_log_factorial,
)

_NEG_BINOMIAL = LogDensity(
    kernel=lambda x, mu, alpha: lgamma(x + alpha) - lgamma(alpha) - x * log1p(alpha / mu),
    normalizer=lambda mu, alpha: alpha * log1p(mu / alpha),
    carrier=_minus_log_factorial,
)

_NEG_BINOMIAL_LOG = LogDensity(
    kernel=lambda x, eta, alpha: lgamma(x + alpha) - lgamma(alpha) - x * softplus(log(alpha) - eta),
    normalizer=lambda eta, alpha: alpha * softplus(eta - log(alpha)),
    carrier=_minus_log_factorial,
)

_GEOMETRIC = LogDensity(
    kernel=lambda x, p: xlog1py(x - 1, -p),
    normalizer=lambda p: -log(p),
)

_DISCRETE_UNIFORM = LogDensity(normalizer=lambda lower, upper: log(upper - lower + 1))


def hypergeometric_kernel(x: Array, population: Array, k: Array, n: Array) -> Array:
    return log_ways(x, k) + log_ways(n - x, population - k) - log_ways(n, population)


_HYPERGEOMETRIC = LogDensity(kernel=hypergeometric_kernel)


def _beta_neg_binomial_kernel(x: Array, r: Array, alpha: Array, beta: Array) -> Array:
    return log_beta(x + r, alpha + beta) - log_beta(r, alpha) + lgamma(x + beta) - lgamma(beta)


BETA_NEG_BINOMIAL = LogDensity(kernel=_beta_neg_binomial_kernel, carrier=_minus_log_factorial)

FAMILIES: dict[str, Family] = {
    "bernoulli": Family({"p": A_PROBABILITY}, _BERNOULLI, BINARY),
    "bernoulli_logit": Family({"logits": ANY}, _BERNOULLI_LOGIT, BINARY),
    "binomial": Family({"n": A_COUNT, "p": A_PROBABILITY}, _BINOMIAL, COUNT_TO_N),
    "binomial_logit": Family({"n": A_COUNT, "logits": ANY}, _BINOMIAL_LOGIT, COUNT_TO_N),
    "beta_binomial": Family({"n": A_COUNT, "alpha": ABOVE_0, "beta": ABOVE_0}, BETA_BINOMIAL, COUNT_TO_N),
    "poisson": Family({"mu": AT_LEAST_0}, _POISSON, COUNT),
    "poisson_log": Family({"eta": ANY}, _POISSON_LOG, COUNT),
    "neg_binomial": Family({"mu": ABOVE_0, "alpha": ABOVE_0}, _NEG_BINOMIAL, COUNT),
    "neg_binomial_log": Family({"eta": ANY, "alpha": ABOVE_0}, _NEG_BINOMIAL_LOG, COUNT),
    "beta_neg_binomial": Family({"r": ABOVE_0, "alpha": ABOVE_0, "beta": ABOVE_0}, BETA_NEG_BINOMIAL, COUNT),
    "geometric": Family({"p": Parameter(POSITIVE_PROBABILITY)}, _GEOMETRIC, POSITIVE_COUNT),
    "discrete_uniform": Family(
        {"lower": Parameter(WHOLE), "upper": Parameter(WHOLE)}, _DISCRETE_UNIFORM, WHOLE_INTERVAL
    ),
    "hypergeometric": Family({"population": A_COUNT, "k": A_COUNT, "n": A_COUNT}, _HYPERGEOMETRIC, HYPERGEOMETRIC),
}
