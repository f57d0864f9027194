"""The benchmark models in PyMC: functions of their data."""

from __future__ import annotations

import pymc as pm
import pytensor.tensor as pt


def eight_schools(y, sigma):
    mu = pm.Normal("mu", 0, 5)
    tau = pm.HalfCauchy("tau", 5)
    z = pm.Normal("z", 0, 1, shape=8)
    theta = pm.Deterministic("theta", mu + tau * z)
    pm.Normal("obs", theta, sigma, observed=y)


def logistic(X, y):
    alpha = pm.Normal("alpha", 0, 1)
    beta = pm.Normal("beta", 0, 1, shape=X.shape[1])
    pm.Bernoulli("obs", logit_p=alpha + pt.dot(X, beta), observed=y)


def radon(county, x, y):
    mu = pm.Normal("mu", 0, 5)
    tau = pm.HalfNormal("tau", 1)
    b = pm.Normal("b", 0, 5)
    sigma = pm.HalfNormal("sigma", 1)
    z = pm.Normal("z", 0, 1, shape=85)
    alpha = pm.Deterministic("alpha", mu + tau * z)
    pm.Normal("obs", alpha[county] + b * x, sigma, observed=y)


def stochastic_volatility(y):
    sigma = pm.Exponential("sigma", 10)
    nu = pm.Exponential("nu", 0.1)
    z = pm.Normal("z", 0, 1, shape=100)
    pm.StudentT("obs", nu=nu, mu=0, sigma=pt.exp(sigma * pt.cumsum(z)), observed=y)


def funnel():
    y = pm.Normal("y", 0, 3)
    z = pm.Normal("z", 0, 1, shape=9)
    pm.Deterministic("x", pt.exp(y / 2) * z)


def exmc_simple(y):
    mu = pm.Normal("mu", 0, 10)
    sigma = pm.Exponential("sigma", 1)
    pm.Normal("obs", mu, sigma, observed=y)


def exmc_medium(y_a, y_b):
    mu = pm.Normal("mu_global", 0, 10)
    sigma = pm.Exponential("sigma_global", 1)
    alpha = pm.Normal("alpha", mu, sigma)
    beta = pm.Normal("beta", mu, sigma)
    sigma_obs = pm.Exponential("sigma_obs", 2)
    pm.Normal("obs_a", alpha, sigma_obs, observed=y_a)
    pm.Normal("obs_b", beta, sigma_obs, observed=y_b)


def exmc_stress(y_1, y_2, y_3):
    mu = pm.Normal("mu_pop", 0, 10)
    sigma = pm.Exponential("sigma_pop", 0.5)
    for j, y in enumerate((y_1, y_2, y_3), start=1):
        group = pm.Normal(f"group_{j}", mu, sigma)
        noise = pm.Exponential(f"noise_{j}", 1)
        pm.Normal(f"obs_{j}", group, noise, observed=y)


def exmc_eight_schools(y, sigma):
    mu = pm.Normal("mu", 0, 5)
    tau = pm.HalfNormal("tau", 5)
    theta = pm.Normal("theta", mu, tau, shape=8)
    pm.Normal("obs", theta, sigma, observed=y)


def exmc_funnel():
    y = pm.Normal("y", 0, 3)
    pm.Normal("x", 0, pt.exp(y / 2), shape=9)


def exmc_logistic(X, y):
    alpha = pm.Normal("alpha", 0, 10)
    beta = pm.Normal("beta", 0, 10, shape=20)
    pm.Bernoulli("obs", logit_p=alpha + pt.dot(X, beta), observed=y)


def exmc_sv(returns):
    sigma = pm.Exponential("sigma", 50)
    nu = pm.Exponential("nu", 0.1)
    s = pm.GaussianRandomWalk("s", sigma=sigma, init_dist=pm.Normal.dist(0, sigma), shape=100)
    pm.StudentT("obs", nu=nu, mu=0, sigma=pt.exp(s), observed=returns)


def diamonds(X, y):
    b = pm.Normal("b", 0, 1, shape=24)
    intercept = pm.StudentT("Intercept", nu=3, mu=8, sigma=10)
    sigma = pm.HalfStudentT("sigma", nu=3, sigma=10)
    pm.Normal("obs", intercept + pt.dot(X, b), sigma, observed=y)


def ar5(lags, y):
    alpha = pm.Normal("alpha", 0, 10)
    beta = pm.Normal("beta", 0, 10, shape=5)
    sigma = pm.HalfCauchy("sigma", 2.5)
    pm.Normal("obs", alpha + pt.dot(lags, beta), sigma, observed=y)


def blr(X, y):
    beta = pm.Normal("beta", 0, 10, shape=5)
    sigma = pm.HalfNormal("sigma", 10)
    pm.Normal("obs", pt.dot(X, beta), sigma, observed=y)


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
