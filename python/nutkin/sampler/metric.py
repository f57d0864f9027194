"""The metric of a chain, as the host sees it, and how it is estimated from the rows of a window."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nutkin.sampler.adaptation import METRIC_RANGE
from nutkin.sampler.moments import Moments

_SHRINK_COUNT, _SHRINK_TO = 5.0, 1e-3


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
    """The sample variance of the positions, or their covariance if the moments have it, pulled towards 1e-3 times the
    unit matrix with the weight of five observations, as Stan's."""
    weight = _SHRINK_COUNT / (moments.count + _SHRINK_COUNT)
    variance = (1.0 - weight) * moments.variances[0] + weight * _SHRINK_TO
    if moments.products is None:
        return _diagonal(variance, old)
    covariance = (1.0 - weight) * moments.products / max(moments.count - 1, 1)
    np.fill_diagonal(covariance, variance)
    try:
        factor = np.linalg.cholesky(covariance)
    except np.linalg.LinAlgError:
        return _diagonal(variance, old)
    if not np.isfinite(factor).all():
        return _diagonal(variance, old)
    dtype = old.inverse_mass.dtype
    return Metric(np.ones(len(variance), dtype), factor.astype(dtype))


def _diagonal(variance: np.ndarray, old: Metric) -> Metric:
    """`variance` where it is a number that can be one, else what it was."""
    good = (variance > METRIC_RANGE[0]) & (variance < METRIC_RANGE[1])
    return Metric(np.where(good, variance, old.diagonal).astype(old.inverse_mass.dtype))
