"""The seven models of eXMC's benchmark, and the non-centred eight schools, as (model of the wire, data).

Their data are in tests/references/exmc/bench_data.json.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from engine.builder import Builder

REFERENCES = Path(__file__).parents[2] / "references" / "exmc"

ModelAndData = tuple[dict[str, Any], dict[str, np.ndarray]]


def reference(name: str) -> Any:
    """One of the reference files: `data`, `fixtures` (log densities) or `reference` (posterior means and sds)."""
    return json.loads((REFERENCES / f"bench_{name}.json").read_text())


def _data(model: str, *names: str) -> dict[str, np.ndarray]:
    values = reference("data")[model]
    return {name: np.asarray(values[name], np.float64) for name in names}


def simple() -> ModelAndData:
    b = Builder()
    mu = b.rv("mu", "normal", {"mu": 0, "sigma": 10})
    sigma = b.rv("sigma", "exponential", {"rate": 1})
    b.observe("obs", "normal", {"mu": mu, "sigma": sigma}, b.data("y"))
    return b.tree(), _data("simple", "y")


def medium() -> ModelAndData:
    b = Builder()
    mu = b.rv("mu_global", "normal", {"mu": 0, "sigma": 10})
    sigma = b.rv("sigma_global", "exponential", {"rate": 1})
    alpha = b.rv("alpha", "normal", {"mu": mu, "sigma": sigma})
    beta = b.rv("beta", "normal", {"mu": mu, "sigma": sigma})
    sigma_obs = b.rv("sigma_obs", "exponential", {"rate": 2})
    b.observe("obs_a", "normal", {"mu": alpha, "sigma": sigma_obs}, b.data("y_a"))
    b.observe("obs_b", "normal", {"mu": beta, "sigma": sigma_obs}, b.data("y_b"))
    return b.tree(), _data("medium", "y_a", "y_b")


def stress() -> ModelAndData:
    b = Builder()
    mu = b.rv("mu_pop", "normal", {"mu": 0, "sigma": 10})
    sigma = b.rv("sigma_pop", "exponential", {"rate": 0.5})
    groups = [b.rv(f"group_{j}", "normal", {"mu": mu, "sigma": sigma}) for j in (1, 2, 3)]
    noises = [b.rv(f"noise_{j}", "exponential", {"rate": 1}) for j in (1, 2, 3)]
    for j, group, noise in zip((1, 2, 3), groups, noises, strict=True):
        b.observe(f"obs_{j}", "normal", {"mu": group, "sigma": noise}, b.data(f"y_{j}"))
    return b.tree(), _data("stress", "y_1", "y_2", "y_3")


def eight_schools(*, centered: bool = True) -> ModelAndData:
    b = Builder()
    mu = b.rv("mu", "normal", {"mu": 0, "sigma": 5})
    tau = b.rv("tau", "half_normal", {"sigma": 5})
    theta = b.rv("theta", "normal", {"mu": mu, "sigma": tau}, shape=[8], centered=centered)
    b.observe("obs", "normal", {"mu": theta, "sigma": b.data("sigma")}, b.data("y"))
    return b.tree(), _data("eight_schools", "y", "sigma")


def eight_schools_noncentered() -> ModelAndData:
    return eight_schools(centered=False)


def funnel() -> ModelAndData:
    b = Builder()
    y = b.rv("y", "normal", {"mu": 0, "sigma": 3})
    b.rv("x", "normal", {"mu": 0, "sigma": b.call("exp", b.call("divide", y, 2))}, shape=[9])
    return b.tree(), {}


def logistic() -> ModelAndData:
    b = Builder()
    alpha = b.rv("alpha", "normal", {"mu": 0, "sigma": 10})
    beta = b.rv("beta", "normal", {"mu": 0, "sigma": 10}, shape=[20])
    eta = b.call("add", alpha, b.call("dot", b.data("X"), beta))
    b.observe("obs", "bernoulli_logit", {"logits": eta}, b.data("y"))
    return b.tree(), _data("logistic", "X", "y")


def sv() -> ModelAndData:
    b = Builder()
    sigma = b.rv("sigma", "exponential", {"rate": 50})
    nu = b.rv("nu", "exponential", {"rate": 0.1})
    s = b.rv("s", "gaussian_random_walk", {"sigma": sigma}, shape=[100])
    b.observe("obs", "student_t", {"nu": nu, "mu": 0, "sigma": b.call("exp", s)}, b.data("returns"))
    return b.tree(), _data("sv", "returns")


EXMC_MODELS: dict[str, Callable[[], ModelAndData]] = {
    model.__name__: model for model in (simple, medium, stress, eight_schools, funnel, logistic, sv)
}
