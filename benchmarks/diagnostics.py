"""ESS, R-hat and errors of draws, all by arviz-stats, on the same scalars for every contestant."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from arviz_stats.base import array_stats

from benchmarks.references import Reference


def load(folder: Path, parameters: Sequence[str]) -> np.ndarray:
    """All elements of the parameters, in order: (scalars, chains, draws)."""
    arrays = [np.load(folder / f"{name}.npy") for name in parameters]
    flat = [array.reshape(*array.shape[:2], -1) for array in arrays]
    return np.moveaxis(np.concatenate(flat, axis=-1).astype(float), -1, 0)


@dataclass(frozen=True)
class Quality:
    """Of one run: the least ESS and the largest R-hat of its scalars."""

    ess_bulk: float
    ess_tail: float
    r_hat: float


def quality(draws: np.ndarray) -> Quality:
    """`draws` (scalars, chains, draws)."""
    return Quality(
        ess_bulk=float(min(array_stats.ess(scalar, method="bulk") for scalar in draws)),
        ess_tail=float(min(array_stats.ess(scalar, method="tail", prob=(0.05, 0.95)) for scalar in draws)),
        r_hat=float(max(array_stats.rhat(scalar) for scalar in draws)),
    )


def errors(runs: Iterable[np.ndarray], reference: Reference) -> np.ndarray:
    """How far the means of all runs are from the reference, in Monte Carlo standard errors of both: (scalars,)."""
    pooled = np.concatenate(list(runs), axis=1)
    mcse = np.array([array_stats.mcse(scalar, method="mean") for scalar in pooled])
    return np.abs(pooled.mean(axis=(1, 2)) - reference.mean) / np.sqrt(mcse**2 + reference.mcse**2)
