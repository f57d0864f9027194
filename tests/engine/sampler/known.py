"""Distributions whose moments are known exactly, as models, and the comparison of draws with them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from arviz_stats.base import array_stats

import nutkin
from engine.builder import Builder


@dataclass(frozen=True)
class Known:
    """A model with one parameter `x`, and the exact mean and variance of each of its elements."""

    tree: Builder
    mean: np.ndarray
    variance: np.ndarray


def univariate(dist: str, args: dict[str, float], mean: float, variance: float) -> Known:
    tree = Builder()
    tree.rv("x", dist, args)
    return Known(tree, np.array([mean]), np.array([variance]))


def correlated_gaussian(dimension: int = 50, correlation: float = 0.8) -> Known:
    """An autoregressive covariance over scales from 0.1 to 10, around means from -3 to 3."""
    scale = np.logspace(-1, 1, dimension)
    lags = np.abs(np.subtract.outer(np.arange(dimension), np.arange(dimension)))
    covariance = correlation**lags * np.outer(scale, scale)
    mean = np.linspace(-3, 3, dimension)
    tree = Builder()
    tree.rv("x", "mv_normal_cholesky", {"mu": mean, "chol": np.linalg.cholesky(covariance)})
    return Known(tree, mean, np.diag(covariance))


KNOWN = {
    "normal": univariate("normal", {"mu": 0, "sigma": 1}, 0.0, 1.0),
    "student_t": univariate("student_t", {"nu": 8, "mu": 1, "sigma": 2}, 1.0, 4 * 8 / 6),
    "half_normal": univariate("half_normal", {"sigma": 1}, math.sqrt(2 / math.pi), 1 - 2 / math.pi),
    "exponential": univariate("exponential", {"rate": 2}, 0.5, 0.25),
    "gamma": univariate("gamma", {"alpha": 3, "beta": 2}, 1.5, 0.75),
    "correlated_gaussian": correlated_gaussian(),
}


def worst_error(known: Known, *, draws: int = 4000, seed: int = 1, **options: Any) -> float:
    """The largest error of a mean, or of a mean squared deviation from the true mean, in standard errors."""
    fit = nutkin.sample(known.tree.tree(), tensors=known.tree.tensors, draws=draws, seed=seed, **options)
    x = fit.variables["x"].reshape(*fit.variables["x"].shape[:2], -1)
    errors = []
    for i, (mean, variance) in enumerate(zip(known.mean, known.variance, strict=True)):
        for values, expected in ((x[..., i], mean), ((x[..., i] - mean) ** 2, variance)):
            standard_error = array_stats.mcse(values, chain_axis=0, draw_axis=1)
            # Draws that never move have no standard error, and no excuse.
            errors.append(abs(values.mean() - expected) / standard_error if standard_error > 0 else np.inf)
    return float(max(errors))
