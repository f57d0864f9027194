"""What the benchmarks say of draws: the worst scalar counts, and errors are in standard errors."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import diagnostics
from benchmarks.references import Reference


def _independent(scalars: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(scalars, 4, 1000))


def test_all_elements_of_the_parameters_are_loaded_in_order(tmp_path):
    theta = np.arange(4 * 10 * 3, dtype=float).reshape(4, 10, 3)
    mu = np.full((4, 10), -1.0)
    np.save(tmp_path / "theta.npy", theta)
    np.save(tmp_path / "mu.npy", mu)
    np.save(tmp_path / "z.npy", mu)
    draws = diagnostics.load(tmp_path, ("mu", "theta"))
    assert draws.shape == (4, 4, 10)
    assert np.array_equal(draws[0], mu)
    assert np.array_equal(draws[2], theta[:, :, 1])


def test_the_worst_scalar_decides():
    draws = _independent(3)
    good = diagnostics.quality(draws)
    assert good.ess_bulk > 3000
    assert good.ess_tail > 3000
    assert good.r_hat < 1.01
    stuck = draws.copy()
    stuck[1] = np.repeat(stuck[1, :, :50], 20, axis=1)
    stuck[1, 0] += 1.0
    bad = diagnostics.quality(stuck)
    assert bad.ess_bulk < 300
    assert bad.ess_tail < 300
    assert bad.r_hat > 1.05


def test_errors_are_in_standard_errors_of_both_sides():
    draws = [_independent(2, seed) for seed in (1, 2)]
    # 8000 independent draws: a standard error of 0.0112.
    exact = diagnostics.errors(draws, Reference(np.array([0.0, 0.112]), np.zeros(2)))
    assert exact[0] < 4
    assert exact[1] == pytest.approx(10, abs=4)
    vague = diagnostics.errors(draws, Reference(np.array([0.0, 0.112]), np.full(2, 0.112)))
    assert vague[1] == pytest.approx(1, abs=0.4)
