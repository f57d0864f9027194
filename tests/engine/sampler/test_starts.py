"""Chains that start far from the typical set reach it, and starts that lead nowhere are tried again."""

from __future__ import annotations

import numpy as np
import pytest
from arviz_stats.base import array_stats

import nutkin
from engine.builder import Builder
from engine.model.exmc_models import stress
from engine.schools import DATA, eight_schools
from nutkin.sampler import Init


def hierarchy():
    """Like radon: 30 groups, non-centred, and a slope."""
    rng = np.random.default_rng(5)
    group = np.concatenate([np.arange(30), rng.integers(0, 30, 270)])
    x = (rng.uniform(size=300) < 0.2).astype(float)
    y = 1.5 + 0.4 * rng.normal(size=30)[group] - 0.6 * x + 0.7 * rng.normal(size=300)
    tree = Builder()
    mu = tree.rv("mu", "normal", {"mu": 0, "sigma": 10})
    tau = tree.rv("tau", "half_normal", {"sigma": 1})
    alpha = tree.rv("alpha", "normal", {"mu": mu, "sigma": tau}, shape=[30], centered=False)
    slope = tree.rv("slope", "normal", {"mu": 0, "sigma": 10})
    sigma = tree.rv("sigma", "half_normal", {"sigma": 1})
    mean = tree.call("add", tree.call("take", alpha, tree.data("group")), tree.call("multiply", slope, tree.data("x")))
    tree.observe("obs", "normal", {"mu": mean, "sigma": sigma}, tree.data("y"))
    return tree.tree(), {"group": group.astype(np.int32), "x": x, "y": y}


def volatility():
    """Stochastic volatility, non-centred: far from its centre exp(walk) overflows."""
    rng = np.random.default_rng(6)
    y = np.exp(np.cumsum(0.2 * rng.normal(size=40))) * rng.normal(size=40)
    tree = Builder()
    sigma = tree.rv("sigma", "half_normal", {"sigma": 0.3})
    walk = tree.rv("walk", "gaussian_random_walk", {"sigma": 1}, shape=[40])
    scale = tree.call("exp", tree.call("multiply", sigma, walk))
    tree.observe("obs", "normal", {"mu": 0, "sigma": scale}, tree.data("y"))
    return tree.tree(), {"y": y}


MODELS = {
    "eight_schools": lambda: (eight_schools().tree(), DATA),
    "stress": stress,
    "hierarchy": hierarchy,
    "volatility": volatility,
}


@pytest.mark.statistical
@pytest.mark.parametrize("name", MODELS)
def test_far_starts_reach_the_typical_set(name):
    model, data = MODELS[name]()
    fit = nutkin.sample(model, data, init=Init(radius=10.0), draws=2000, seed=1)
    assert all(chain.warmup <= 1000 for chain in fit.chains)
    for values in fit.variables.values():
        for scalar in np.moveaxis(values.reshape(*values.shape[:2], -1), -1, 0):
            assert array_stats.rhat(scalar, chain_axis=0, draw_axis=1) < 1.01


def cliff():
    """A standard normal whose log density falls off as -1e-6 exp(x^2): absurd, but finite, for |x| from 9 to 26."""
    tree = Builder()
    x = tree.rv("x", "normal", {"mu": 0, "sigma": 1})
    tree.factor("cliff", tree.call("multiply", -1e-6, tree.call("exp", tree.call("multiply", x, x))))
    return tree.tree()


def test_a_start_from_which_no_step_is_small_enough_is_not_taken():
    fit = nutkin.sample(cliff(), chains=8, draws=200, init=Init(radius=25.0), seed=3)
    assert np.abs(fit.variables["x"]).max() < 5


def test_starts_come_closer_where_far_ones_fail():
    """Only |x| < 0.05 has a density: one of 400 far starts."""
    tree = Builder()
    x = tree.rv("x", "normal", {"mu": 0, "sigma": 1})
    tree.factor("slit", tree.call("log", tree.call("subtract", 0.0025, tree.call("multiply", x, x))))
    fit = nutkin.sample(tree.tree(), chains=8, draws=100, init=Init(radius=20.0))
    assert np.abs(fit.variables["x"]).max() < 0.05
