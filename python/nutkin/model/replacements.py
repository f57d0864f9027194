"""Distributions of which one method, the log density, replaces NumPyro's.

By log odds or log rate, counts are exact also where the probability or the rate rounds to 0, 1 or infinity. NumPyro's
gradient is wrong at log odds of exactly 0, a common start; its Poisson needs the rate itself; its negative binomial is
good to 7 digits only, for the beta function in it; its random walk computes in f64 whatever its arguments.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from jax import Array
from jax.scipy.special import gammaln


@jax.custom_jvp
def softplus(x: Array) -> Array:
    """log(1 + exp(x)). Its derivative shares the one exponential with it."""
    return jnp.maximum(x, 0) + jnp.log1p(jnp.exp(-jnp.abs(x)))


@softplus.defjvp
def _softplus_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    (x,), (tangent,) = primals, tangents
    small = jnp.exp(-jnp.abs(x))
    return softplus(x), tangent * jnp.where(x >= 0, 1, small) / (1 + small)


class BernoulliLogit(dist.BernoulliLogits):
    """Bernoulli of its log odds."""

    def log_prob(self, value: Array) -> Array:
        return value * self.logits - softplus(self.logits)


class BinomialLogit(dist.BinomialLogits):
    """Binomial of n trials and the log odds of each."""

    def __init__(self, n: Array, logits: Array, **options: bool) -> None:
        super().__init__(logits, n, **options)

    def log_prob(self, value: Array) -> Array:
        n = self.total_count
        ways = gammaln(n + 1) - gammaln(value + 1) - gammaln(n - value + 1)
        return ways + value * self.logits - n * softplus(self.logits)


class PoissonLog(dist.Poisson):
    """Poisson of the logarithm of its rate."""

    def __init__(self, eta: Array, **options: bool) -> None:
        self.eta = eta
        super().__init__(jnp.exp(eta), **options)

    def log_prob(self, value: Array) -> Array:
        return value * self.eta - jnp.exp(self.eta) - gammaln(value + 1)


class NegBinomial(dist.GammaPoisson):
    """Negative binomial of mean mu and variance mu + mu^2 / alpha."""

    def __init__(self, mu: Array, alpha: Array, **options: bool) -> None:
        self.mu, self.alpha = mu, alpha
        super().__init__(alpha, alpha / mu, **options)

    def log_prob(self, value: Array) -> Array:
        ways = gammaln(value + self.alpha) - gammaln(value + 1) - gammaln(self.alpha)
        return ways - self.alpha * jnp.log1p(self.mu / self.alpha) - value * jnp.log1p(self.alpha / self.mu)


class RandomWalk(dist.GaussianRandomWalk):
    """Gaussian random walk from 0. The number of steps is that of the value."""

    def log_prob(self, value: Array) -> Array:
        steps = value[..., 1:] - value[..., :-1]
        squares = jnp.square(value[..., 0]) + jnp.sum(jnp.square(steps), axis=-1)
        # Divided twice: the square of a small f32 scale is 0.
        exponent = squares / self.scale / self.scale
        return -0.5 * exponent - value.shape[-1] * (jnp.log(self.scale) + 0.5 * math.log(2 * math.pi))
