"""R-hat and effective sample sizes of many scalars at once.

Vehtari, Gelman, Simpson, Carpenter and Bürkner 2021 (https://doi.org/10.1214/20-BA1221): rank-normalised split R-hat,
the larger one of that of the draws and that of their distances from the median; the effective sample sizes of the bulk
and of the tails, from Geyer's initial positive and monotone sequences.
"""

from __future__ import annotations

import numpy as np

TAILS = (0.05, 0.95)


def r_hat(draws: np.ndarray) -> np.ndarray:
    """`draws` (chains, n, scalars), n >= 4 -> (scalars,). NaN for one that is not finite or never moves."""
    halves = _split(draws)
    folded = np.abs(halves - np.median(halves, axis=(0, 1)))
    return np.fmax(_scale_reduction(_normal_scores(halves)), _scale_reduction(_normal_scores(folded)))


def ess(draws: np.ndarray) -> np.ndarray:
    """The smaller one of the effective sample sizes of bulk and tails, of (chains, n, scalars), n >= 4 -> (scalars,).
    NaN for a scalar that is not finite."""
    parts = [_ess(_normal_scores(_split(draws)))]
    for quantile in np.quantile(draws, TAILS, axis=(0, 1)):
        parts.append(_ess(_split((draws <= quantile).astype(float))))
    smallest = np.minimum.reduce(parts)
    return np.where(np.isfinite(draws).all((0, 1)), smallest, np.nan)


def _split(draws: np.ndarray) -> np.ndarray:
    """Both halves of each chain; the middle draw of an odd number is left out."""
    half = draws.shape[1] // 2
    return np.concatenate([draws[:, :half], draws[:, draws.shape[1] - half :]])


def _normal_scores(draws: np.ndarray) -> np.ndarray:
    """The normal quantiles of the ranks, those of equal draws being their mean rank."""
    from scipy.special import ndtri  # comes with jax; its import takes a fifth of a second, which few runs need
    from scipy.stats import rankdata

    flat = draws.reshape(-1, draws.shape[-1])
    ranks = rankdata(flat, axis=0)
    return ndtri((ranks - 0.375) / (len(flat) + 0.25)).reshape(draws.shape)


def _scale_reduction(draws: np.ndarray) -> np.ndarray:
    length = draws.shape[1]
    within = draws.var(1, ddof=1).mean(0)
    between = draws.mean(1).var(0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.sqrt((length * between / within + length - 1) / length)


def _ess(draws: np.ndarray) -> np.ndarray:
    chains, length, _ = draws.shape
    total = chains * length
    covariance = _autocovariance(draws)
    within = covariance[0] * length / (length - 1)
    spread = covariance[0] + draws.mean(1).var(0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        correlation = 1.0 - (within - covariance) / spread
    correlation[0] = 1.0
    # Pairs of lags (0, 1), (2, 3), …, each positive and none larger than the one before it.
    count = max(1, (length - 1) // 2)
    even, odd = correlation[0 : 2 * count : 2], correlation[1 : 2 * count : 2]
    pairs = even + odd
    counted = np.cumprod(pairs > 0, axis=0, dtype=bool)
    counted[count - 1 :] = False  # the last one is looked at only
    sums = 2.0 * np.where(counted, np.minimum.accumulate(pairs, axis=0), 0.0).sum(0)
    # The even lag behind them improves the estimate even where its pair is not counted.
    behind = counted.sum(0)[None]
    last_even, last_pair = (np.take_along_axis(values, behind, 0)[0] for values in (even, pairs))
    sums += np.where((last_even > 0) | (last_pair >= 0), last_even, 0.0)
    result = total / np.maximum(sums - 1.0, 1.0 / np.log10(total))
    return np.where(np.ptp(draws, axis=(0, 1)) == 0, float(total), result)


def _autocovariance(draws: np.ndarray) -> np.ndarray:
    """The mean over the chains, by lag: (n, scalars)."""
    length = draws.shape[1]
    centred = draws - draws.mean(1, keepdims=True)
    spectrum = np.fft.rfft(centred, 2 * length, axis=1)
    products = np.fft.irfft(spectrum * spectrum.conj(), 2 * length, axis=1)[:, :length]
    return products.mean(0) / length
