"""Posteriors on which a sampler goes wrong in silence: scales far apart, and a density that overflows."""

import numpy as np
import pytest
from arviz_stats.base import array_stats

import nutkin
from engine.builder import Builder

SCALES = np.array([1e-6, 1e-3, 1.0, 1e3, 1e6])


@pytest.mark.statistical
@pytest.mark.parametrize(
    "options", [{}, {"adaptation": "windowed"}, {"mass_matrix": "dense"}], ids=["pooled", "windowed", "dense"]
)
def test_parameters_of_very_different_scales(options):
    tree = Builder()
    tree.rv("x", "normal", {"mu": 0, "sigma": tree.constant(SCALES)}, shape=[5])
    x = nutkin.sample(tree.tree(), tensors=tree.tensors, seed=1, **options).variables["x"]
    for i in range(5):
        assert array_stats.rhat(x[..., i]) < 1.01
        assert array_stats.ess(x[..., i]) > 1500


@pytest.mark.parametrize(
    ("alpha", "options"),
    [(0.5, {"precision": "f32"}), (0.1, {"precision": "f32"}), (0.1, {}), (0.3, {"adaptation": "windowed"})],
)
def test_a_density_of_infinity_is_not_entered(alpha, options):
    """exp(q) rounds to 0 in the far tail, where the density of a gamma with a small alpha would be infinite."""
    tree = Builder()
    tree.rv("x", "gamma", {"alpha": alpha, "beta": 2})
    for seed in range(4):
        draws = nutkin.sample(tree.tree(), seed=seed, **options)
        assert np.isfinite(draws.stats["lp"]).all()
        assert (draws.variables["x"] > 0).all()
