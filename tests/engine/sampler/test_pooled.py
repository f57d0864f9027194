"""The pooled scheme, fed with rows that are made up, against what its rules say written with numpy alone."""

import numpy as np
import pytest
from scipy.special import ndtr

from nutkin.sampler import Options
from nutkin.sampler.adaptation import Step
from nutkin.sampler.metric import Metric
from nutkin.sampler.moments import summed
from nutkin.sampler.pooled import Pooled, fitted_step, r_hat
from nutkin.sampler.warmup import SAMPLE, WARMUP, Learned

DIMENSION = 3
SCALES = np.array([0.1, 1.0, 10.0])


def gaussian_rows(rng, count, centre=0.0):
    """Independent draws of a Gaussian with SCALES, and the gradients of its log density there."""
    positions = centre + rng.normal(size=(count, DIMENSION)) * SCALES
    return np.hstack([positions, (centre - positions) / SCALES**2])


class Chains:
    """A scheme and the chains that it leads. Each chain's rows are drawn around its centre."""

    def __init__(self, chains=4, centres=None, divergences=0, **options):
        self.scheme = Pooled(Options(chains=chains, **options))
        self.window = self.scheme.first()
        self.centres = np.zeros(chains) if centres is None else np.asarray(centres, float)
        self.divergences = np.broadcast_to(divergences, chains)  # of each chain in each window
        self.metrics = [Metric(np.full(DIMENSION, 0.5 + chain)) for chain in range(chains)]
        self.steps = [Step(0.3, 0.0, 0.0, np.log(0.2 + 0.1 * chain), 9.0) for chain in range(chains)]
        self.rng = np.random.default_rng(0)
        self.lengths = []

    def end_window(self):
        """-> the rows of each chain in the window that ends."""
        count = self.window.iterations
        rows = [gaussian_rows(self.rng, count, centre) for centre in self.centres]
        sizes = (
            np.exp(self.rng.normal(-1.0, 0.2, (len(rows), count)))
            if self.window.learns_step
            else np.empty((len(rows), 0))
        )
        learned = Learned(
            self.metrics,
            self.steps,
            count,
            int(self.divergences.sum()),
            summed(np.stack(rows)) if self.window.learns_metric else None,
            sizes,
            2 * ndtr(-2.0 * sizes**2),
        )
        self.lengths.append(count)
        adaptations, self.window = self.scheme.next(learned)
        self.metrics = [adaptation.metric for adaptation in adaptations]
        self.steps = [adaptation.step for adaptation in adaptations]
        assert not any(adaptation.searches for adaptation in adaptations)
        return rows

    def finish(self):
        while self.window.phase == WARMUP:
            self.end_window()
        return self


def test_windows_when_the_chains_agree():
    chains = Chains(max_tree_depth=9, draws=7, thin=3)
    windows = [chains.window]
    while chains.window.phase == WARMUP:
        chains.end_window()
        windows.append(chains.window)
    assert [window.iterations for window in windows] == [10, 20, 40, 80, 40, 21]
    assert [window.depth_cap for window in windows] == [6, 7, 8, 9, 9, 9]
    assert [window.planned for window in windows] == [180, 160, 120, 40, 0, 0]
    assert [window.tuning.gamma for window in windows[:5]] == [0.05, 0.05, 0.05, 0.1, 0.2]
    assert [window.tuning.jitter for window in windows] == [0, 0, 0, 0, 0, 0.1]
    assert [window.tunes for window in windows] == [True] * 5 + [False]
    assert [window.learns_metric for window in windows] == [True] * 4 + [False] * 2
    assert [window.learns_step for window in windows] == [False] * 4 + [True, False]


def test_a_single_chain_has_windows_twice_as_long():
    assert Chains(1).finish().lengths == [20, 40, 80, 160, 80]


@pytest.mark.parametrize("chains", [1, 4])
@pytest.mark.parametrize("warmup", [0, 1, 7, 20, 100, 189])
def test_a_short_warmup_shortens_all_windows(chains, warmup):
    lengths = Chains(chains, warmup=warmup).finish().lengths
    assert sum(lengths) == warmup
    assert lengths == sorted(lengths[:-1]) + lengths[-1:]
    assert len(lengths) == 5 or warmup < 38


def test_the_metric_is_that_of_all_rows_together():
    chains = Chains()
    for by_gradient in (True, True, True, False):
        rows = np.concatenate(chains.end_window())
        position, gradient = np.split(rows.var(0, ddof=1), 2)
        for metric in chains.metrics:
            np.testing.assert_allclose(
                metric.inverse_mass, np.sqrt(position / gradient) if by_gradient else position, rtol=1e-12
            )


def test_the_step_goes_as_far_in_the_new_metric():
    """Each chain's averaged step size, times the mean change of its scales; their geometric mean."""
    chains = Chains()
    old, steps = chains.metrics, chains.steps
    for centre, count in ((10.0, 0.0), (3.0, 0.0), (1.0, 5.0), (1.0, 10.0)):
        chains.end_window()
        new = chains.metrics[0].inverse_mass
        sizes = [
            (step.log_average if step.count > 5 else np.log(step.size)) + 0.5 * np.log(metric.inverse_mass / new).mean()
            for step, metric in zip(steps, old, strict=True)
        ]
        size = np.mean(sizes)
        for step in chains.steps:
            np.testing.assert_allclose(step, (np.exp(size), size + np.log(centre), 0.0, size, count), rtol=1e-12)
        old, steps = chains.metrics, chains.steps


def test_a_step_size_without_an_average_counts_as_it_is():
    chains = Chains(1)
    chains.steps = [Step(0.3, 0.0, 0.0, np.log(77.0), 5.0)]
    chains.end_window()
    scale = np.sqrt(0.5 / chains.metrics[0].inverse_mass).prod() ** (1 / 3)
    np.testing.assert_allclose(chains.steps[0].size, 0.3 * scale)


def test_chains_in_different_places_adapt_alone_and_repeat_the_window():
    chains = Chains(centres=[0, 0, 0, 1000])
    assert [chains.end_window() and chains.window.iterations for _ in range(2)] == [20, 20]  # not the first one
    rows = chains.end_window()
    assert chains.window.iterations == 20
    for metric, own in zip(chains.metrics, rows, strict=True):
        position, gradient = np.split(own.var(0, ddof=1), 2)
        np.testing.assert_allclose(metric.inverse_mass, np.sqrt(position / gradient), rtol=1e-12)
    assert len({step.size for step in chains.steps}) == 4
    chains.centres[:] = 0
    chains.end_window()
    assert chains.window.iterations == 40
    assert len({step.size for step in chains.steps}) == 1


def test_chains_that_stay_apart_come_to_an_end():
    chains = Chains(centres=[0, 0, 0, 1000]).finish()
    assert sum(chains.lengths) <= 1000
    assert max(chains.lengths) > 80


def test_a_last_window_over_which_chains_have_not_mixed_is_followed_by_longer_ones():
    mixed = Chains()
    apart = Chains(centres=np.array([0, 0, 0, 1.2]) * SCALES[0], warmup=500)
    for _ in range(3):
        mixed.end_window()
        apart.end_window()
    mixed.end_window()
    assert mixed.window.learns_step
    apart.end_window()
    assert (apart.window.iterations, apart.window.planned) == (120, 40)
    apart.finish()
    assert apart.lengths == [10, 20, 40, 80, 120, 180, 40]  # 270 more would be too many


@pytest.mark.parametrize(
    ("divergences", "target", "expected"),
    [(0, 0.8, 0.8), (1, 0.8, 0.9), (7, 0.8, 0.95), (7, 0.97, 0.97), (1, 0.6, 0.9)],
)
def test_divergences_raise_the_target(divergences, target, expected):
    """Of each chain in each window: 1 is 1.7 % of the last two windows' iterations, 7 are 11.7 %."""
    chains = Chains(divergences=divergences, target_accept=target).finish()
    assert chains.window.phase == SAMPLE
    for step in chains.steps:
        assert 2 * ndtr(-2.0 * step.size**2) == pytest.approx(expected, rel=1e-4)


def test_few_divergences_raise_nothing():
    """Of 16 chains one has 3 in each window: 0.3 %."""
    chains = Chains(16, divergences=[3] + 15 * [0]).finish()
    assert 2 * ndtr(-2.0 * chains.steps[0].size ** 2) == pytest.approx(0.8, rel=1e-4)


def test_the_step_size_is_fitted_to_the_acceptance():
    rng = np.random.default_rng(1)
    sizes = np.exp(rng.normal(-3.0, 0.3, 200))
    acceptances = 2 * ndtr(-300.0 * sizes**2)
    size = fitted_step(sizes, acceptances, 0.7)
    assert 2 * ndtr(-300.0 * size**2) == pytest.approx(0.7, abs=1e-4)
    noisy = np.clip(acceptances + rng.normal(0, 0.1, 200), 0, 1)
    assert fitted_step(sizes, noisy, 0.7) == pytest.approx(size, rel=0.1)
    assert fitted_step(sizes, np.ones(200), 0.8) == pytest.approx(np.median(sizes) * np.exp(1.5), rel=1e-3)


def r_hat_of(rows):
    moments = summed(rows)
    return r_hat(moments, moments.of_all_chains())


def test_r_hat_is_the_largest_over_the_coordinates():
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(4, 50, 6)) + rng.normal(size=(4, 1, 6))
    within, between = rows.var(1, ddof=1).mean(0), rows.mean(1).var(0, ddof=1)
    expected = np.sqrt(1 + (between / within)[:3].max())
    assert r_hat_of(rows) == pytest.approx(expected)
    assert r_hat_of(rows[:1]) == 1.0


def test_chains_that_did_not_move_say_nothing_of_their_place():
    rows = np.zeros((10, 6))
    assert r_hat_of(np.stack([rows, rows])) == 1.0
    assert r_hat_of(np.stack([rows, rows + 1])) == np.inf
