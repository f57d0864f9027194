"""The metric of a chain, as the host sees it, and how it is estimated from the rows of a window."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nutkin.sampler.adaptation import METRIC_RANGE
from nutkin.sampler.moments import Moments

_SHRINK_COUNT = 5.0


@dataclass(frozen=True)
class Metric:
    """The inverse mass matrix F diag(inverse_mass) F^T: `inverse_mass` (d,); `factor` F (d, d), lower triangular, of a
    dense metric, None for the unit matrix."""

    inverse_mass: np.ndarray
    factor: np.ndarray | None = None

    @property
    def diagonal(self) -> np.ndarray:
        """(d,), a copy."""
        if self.factor is None:
            return self.inverse_mass.copy()
        return (self.factor**2 @ self.inverse_mass).astype(self.inverse_mass.dtype)

    @cached_property
    def inverse_factor(self) -> np.ndarray | None:
        return None if self.factor is None else np.linalg.inv(self.factor)

    @cached_property
    def log_scale(self) -> float:
        """The logarithm of the geometric mean of its scales."""
        logs = 0.5 * np.log(self.inverse_mass).sum()
        if self.factor is not None:
            logs += np.log(self.factor.diagonal()).sum()
        return float(logs) / len(self.inverse_mass)


def from_gradients(moments: Moments, old: Metric) -> Metric:
    """sqrt(var position / var gradient): the scales of a Gaussian from few draws, as nutpie estimates them
    (https://pymc-devs.github.io/nutpie/)."""
    position, gradient = moments.variances
    with np.errstate(divide="ignore", invalid="ignore"):
        return _diagonal(np.sqrt(position / gradient), old)


def from_positions(moments: Moments, old: Metric) -> Metric:
    """The sample variance of the positions; or, if the moments have it, their covariance, pulled towards its diagonal
    with the weight of five observations. (Stan pulls towards 1e-3 times the unit matrix, which makes the metric of
    parameters with smaller scales.)"""
    variance = moments.variances[0]
    if moments.products is None:
        return _diagonal(variance, old)
    weight = _SHRINK_COUNT / (moments.count + _SHRINK_COUNT)
    scale = np.sqrt(variance)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        # The correlations, so that scales of any range have a factor.
        correlation = (1.0 - weight) * moments.products / max(moments.count - 1, 1) / scale[:, None] / scale
    np.fill_diagonal(correlation, 1.0)
    try:
        factor = scale[:, None] * np.linalg.cholesky(correlation)
    except np.linalg.LinAlgError:
        return _diagonal(variance, old)
    if not (np.isfinite(factor).all() and _is_usable(variance).all()):
        return _diagonal(variance, old)
    dtype = old.inverse_mass.dtype
    return Metric(np.ones(len(variance), dtype), factor.astype(dtype))


def _diagonal(variance: np.ndarray, old: Metric) -> Metric:
    """`variance` where it is a number that can be one, else what it was."""
    return Metric(np.where(_is_usable(variance), variance, old.diagonal).astype(old.inverse_mass.dtype))


def _is_usable(variance: np.ndarray) -> np.ndarray:
    return (variance > METRIC_RANGE[0]) & (variance < METRIC_RANGE[1])
