"""The benchmark models in NumPyro: functions of their data."""

from __future__ import annotations

import jax.numpy as jnp
import numpyro
from numpyro import distributions as dist
from numpyro import sample


def eight_schools(y, sigma):
    mu = sample("mu", dist.Normal(0, 5))
    tau = sample("tau", dist.HalfCauchy(5))
    z = sample("z", dist.Normal(0, 1).expand([8]))
    theta = numpyro.deterministic("theta", mu + tau * z)
    sample("obs", dist.Normal(theta, sigma), obs=y)


def logistic(X, y):
    alpha = sample("alpha", dist.Normal(0, 1))
    beta = sample("beta", dist.Normal(0, 1).expand([X.shape[1]]))
    sample("obs", dist.Bernoulli(logits=alpha + X @ beta), obs=y)


def radon(county, x, y):
    mu = sample("mu", dist.Normal(0, 5))
    tau = sample("tau", dist.HalfNormal(1))
    b = sample("b", dist.Normal(0, 5))
    sigma = sample("sigma", dist.HalfNormal(1))
    z = sample("z", dist.Normal(0, 1).expand([85]))
    alpha = numpyro.deterministic("alpha", mu + tau * z)
    sample("obs", dist.Normal(alpha[county] + b * x, sigma), obs=y)


def stochastic_volatility(y):
    sigma = sample("sigma", dist.Exponential(10))
    nu = sample("nu", dist.Exponential(0.1))
    z = sample("z", dist.Normal(0, 1).expand([100]))
    sample("obs", dist.StudentT(nu, 0, jnp.exp(sigma * jnp.cumsum(z))), obs=y)


def funnel():
    y = sample("y", dist.Normal(0, 3))
    z = sample("z", dist.Normal(0, 1).expand([9]))
    numpyro.deterministic("x", jnp.exp(y / 2) * z)


def exmc_simple(y):
    mu = sample("mu", dist.Normal(0, 10))
    sigma = sample("sigma", dist.Exponential(1))
    sample("obs", dist.Normal(mu, sigma), obs=y)


def exmc_medium(y_a, y_b):
    mu = sample("mu_global", dist.Normal(0, 10))
    sigma = sample("sigma_global", dist.Exponential(1))
    alpha = sample("alpha", dist.Normal(mu, sigma))
    beta = sample("beta", dist.Normal(mu, sigma))
    sigma_obs = sample("sigma_obs", dist.Exponential(2))
    sample("obs_a", dist.Normal(alpha, sigma_obs), obs=y_a)
    sample("obs_b", dist.Normal(beta, sigma_obs), obs=y_b)


def exmc_stress(y_1, y_2, y_3):
    mu = sample("mu_pop", dist.Normal(0, 10))
    sigma = sample("sigma_pop", dist.Exponential(0.5))
    for j, y in enumerate((y_1, y_2, y_3), start=1):
        group = sample(f"group_{j}", dist.Normal(mu, sigma))
        noise = sample(f"noise_{j}", dist.Exponential(1))
        sample(f"obs_{j}", dist.Normal(group, noise), obs=y)


def exmc_eight_schools(y, sigma):
    mu = sample("mu", dist.Normal(0, 5))
    tau = sample("tau", dist.HalfNormal(5))
    theta = sample("theta", dist.Normal(mu, tau).expand([8]))
    sample("obs", dist.Normal(theta, sigma), obs=y)


def exmc_funnel():
    y = sample("y", dist.Normal(0, 3))
    sample("x", dist.Normal(0, jnp.exp(y / 2)).expand([9]))


def exmc_logistic(X, y):
    alpha = sample("alpha", dist.Normal(0, 10))
    beta = sample("beta", dist.Normal(0, 10).expand([20]))
    sample("obs", dist.Bernoulli(logits=alpha + X @ beta), obs=y)


def exmc_sv(returns):
    sigma = sample("sigma", dist.Exponential(50))
    nu = sample("nu", dist.Exponential(0.1))
    s = sample("s", dist.GaussianRandomWalk(sigma, 100))
    sample("obs", dist.StudentT(nu, 0, jnp.exp(s)), obs=returns)


def diamonds(X, y):
    b = sample("b", dist.Normal(0, 1).expand([24]))
    intercept = sample("Intercept", dist.StudentT(3, 8, 10))
    sigma = sample("sigma", dist.TruncatedDistribution(dist.StudentT(3, 0, 10), low=0))
    sample("obs", dist.Normal(intercept + X @ b, sigma), obs=y)


def ar5(lags, y):
    alpha = sample("alpha", dist.Normal(0, 10))
    beta = sample("beta", dist.Normal(0, 10).expand([5]))
    sigma = sample("sigma", dist.HalfCauchy(2.5))
    sample("obs", dist.Normal(alpha + lags @ beta, sigma), obs=y)


def blr(X, y):
    beta = sample("beta", dist.Normal(0, 10).expand([5]))
    sigma = sample("sigma", dist.HalfNormal(10))
    sample("obs", dist.Normal(X @ beta, sigma), obs=y)


MODELS = {
    model.__name__: model
    for model in (
        eight_schools,
        logistic,
        radon,
        stochastic_volatility,
        funnel,
        exmc_simple,
        exmc_medium,
        exmc_stress,
        exmc_eight_schools,
        exmc_funnel,
        exmc_logistic,
        exmc_sv,
        diamonds,
        ar5,
        blr,
    )
}
MODELS["logistic_large"] = logistic
