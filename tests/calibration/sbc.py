"""Simulation-based calibration: parameters from the prior, data from the parameters, and the rank of each parameter
among its posterior draws, which is uniform if model, gradient and sampler are right.

Method: Talts, Betancourt, Simpson, Vehtari and Gelman 2018, https://arxiv.org/abs/1804.06788. `make calibrate` runs it;
it takes minutes, so it is no part of the test suite. It ends with status 1 if the ranks of a parameter are not uniform.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

import nutkin
from engine.builder import Builder

RANKS = 100  # a rank among 99 posterior draws
BINS = 20
LEVEL = 0.01  # of the whole run: shared out among all ranks that are tested

Values = dict[str, np.ndarray]


@dataclass(frozen=True)
class Experiment:
    """A model, and how its parameters and data come about. `simulate(rng)` gives (parameters, data)."""

    model: Builder
    simulate: Callable[[np.random.Generator], tuple[Values, Values]]


def hierarchical() -> Experiment:
    """Varying intercepts and a common slope under a Normal likelihood."""
    groups, rows = 8, 60
    tree = Builder()
    y, x, g = tree.data("y"), tree.data("x"), tree.data("g")
    mu = tree.rv("mu", "normal", {"mu": 0, "sigma": 2})
    tau = tree.rv("tau", "half_normal", {"sigma": 1})
    a = tree.rv("a", "normal", {"mu": mu, "sigma": tau}, shape=[groups], centered=False)
    b = tree.rv("b", "normal", {"mu": 0, "sigma": 1})
    sigma = tree.rv("sigma", "half_normal", {"sigma": 1})
    mean = tree.call("add", tree.call("take", a, g), tree.call("multiply", b, x))
    tree.observe("obs", "normal", {"mu": mean, "sigma": sigma}, y)

    def simulate(rng: np.random.Generator) -> tuple[Values, Values]:
        p = {"mu": 2 * rng.normal(), "tau": abs(rng.normal()), "b": rng.normal(), "sigma": abs(rng.normal())}
        p["a"] = p["mu"] + p["tau"] * rng.normal(size=groups)
        x, g = rng.normal(size=rows), rng.integers(groups, size=rows)
        return p, {"x": x, "g": g, "y": p["a"][g] + p["b"] * x + p["sigma"] * rng.normal(size=rows)}

    return Experiment(tree, simulate)


def logistic() -> Experiment:
    """A Bernoulli likelihood by log odds: coefficients and group effects."""
    groups, rows, columns = 6, 100, 4
    tree = Builder()
    y, X, g = tree.data("y"), tree.data("X"), tree.data("g")
    alpha = tree.rv("alpha", "normal", {"mu": 0, "sigma": 1})
    beta = tree.rv("beta", "normal", {"mu": 0, "sigma": 1}, shape=[columns])
    tau = tree.rv("tau", "half_normal", {"sigma": 1})
    u = tree.rv("u", "normal", {"mu": 0, "sigma": tau}, shape=[groups], centered=False)
    logits = tree.call("add", tree.call("add", alpha, tree.call("dot", X, beta)), tree.call("take", u, g))
    tree.observe("obs", "bernoulli_logit", {"logits": logits}, y)

    def simulate(rng: np.random.Generator) -> tuple[Values, Values]:
        p = {"alpha": rng.normal(), "beta": rng.normal(size=columns), "tau": abs(rng.normal())}
        p["u"] = p["tau"] * rng.normal(size=groups)
        X, g = rng.normal(size=(rows, columns)), rng.integers(groups, size=rows)
        eta = p["alpha"] + X @ p["beta"] + p["u"][g]
        return p, {"X": X, "g": g, "y": (rng.uniform(size=rows) < 1 / (1 + np.exp(-eta))).astype(np.int64)}

    return Experiment(tree, simulate)


EXPERIMENTS = {"hierarchical": hierarchical, "logistic": logistic}


def ranks(experiment: Experiment, replications: int, seed: int, **options: Any) -> dict[str, np.ndarray]:
    """-> for each scalar parameter, its ranks (replications,) in 0 … RANKS - 1."""
    found: dict[str, list[int]] = {}
    for replication in range(replications):
        rng = np.random.default_rng([seed, replication])
        truth, data = experiment.simulate(rng)
        draws = nutkin.sample(experiment.model.tree(), data, draws=500, seed=replication, **options)
        for name, value in truth.items():
            posterior = draws.variables[name].reshape(-1, np.size(value))
            thinned = posterior[np.linspace(0, len(posterior) - 1, RANKS - 1).astype(int)]
            for i, below in enumerate(np.sum(thinned < np.ravel(value), axis=0)):
                found.setdefault(f"{name}[{i}]" if np.ndim(value) else name, []).append(int(below))
    return {name: np.array(values) for name, values in found.items()}


def p_value(found: np.ndarray) -> float:
    """Of a chi-square test of uniform ranks."""
    counts = np.bincount(found * BINS // RANKS, minlength=BINS)
    return float(stats.chisquare(counts).pvalue)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replications", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--experiments", nargs="*", choices=list(EXPERIMENTS), default=list(EXPERIMENTS))
    arguments = parser.parse_args()

    results = {}
    for name in arguments.experiments:
        for rewrites in (True, False):
            options = {} if rewrites else {"rewrites": []}
            for parameter, found in ranks(
                EXPERIMENTS[name](), arguments.replications, arguments.seed, **options
            ).items():
                results[name, "on" if rewrites else "off", parameter] = p_value(found)

    threshold = LEVEL / len(results)
    failed = [key for key, p in results.items() if p < threshold]
    for (name, rewrites, parameter), p in results.items():
        print(f"{name:14} rewrites {rewrites:4} {parameter:10} p = {p:.4f}{'  NOT UNIFORM' if p < threshold else ''}")
    print(f"{arguments.replications} replications, {len(results)} ranks, {len(failed)} rejected (p < {threshold:.1e})")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
