import numpy as np
import pytest

from nutkin.sampler import Options
from nutkin.sampler.adaptation import Step
from nutkin.sampler.metric import Metric
from nutkin.sampler.moments import summed
from nutkin.sampler.warmup import SAMPLE, WARMUP, Adaptation, Learned
from nutkin.sampler.windowed import Windowed, window_ends


def windows(**options):
    """All windows, each given rows of standard normals where it learns the metric; and how the chain is adapted after
    each."""
    scheme = Windowed(Options(adaptation="windowed", **options))
    window, found = scheme.first(), []
    adapted = Adaptation(Metric(np.ones(3)), Step(0.5, 0.0, 0.0, np.log(0.25), 9.0))
    rng = np.random.default_rng(0)
    while True:
        found.append((window, adapted))
        if window.phase == SAMPLE:
            return found
        moments = summed(rng.normal(size=(1, window.iterations, 6))) if window.learns_metric else None
        none = np.empty((1, 0))
        learned = Learned([adapted.metric], [adapted.step], window.iterations, 0, moments, none, none)
        (adapted,), window = scheme.next(learned)


def test_windows_of_a_thousand_iterations_are_stans():
    assert window_ends(1000) == (75, [100, 150, 250, 450, 950])


@pytest.mark.parametrize(
    ("iterations", "expected"),
    [
        (0, (0, [])),
        (19, (19, [])),
        (20, (3, [18])),
        (150, (75, [100])),
        (151, (75, [101])),
        (300, (75, [100, 150, 250])),
    ],
)
def test_short_warmups(iterations, expected):
    assert window_ends(iterations) == expected


@pytest.mark.parametrize("iterations", [1, 20, 149, 150, 777, 1000, 5000])
def test_windows_are_contiguous_and_every_iteration_tunes(iterations):
    found = [window for window, _ in windows(warmup=iterations, max_tree_depth=7)]
    warmup, sampling = found[:-1], found[-1]
    assert all(window.phase == WARMUP and window.tunes and window.depth_cap == 7 for window in warmup)
    stops = np.cumsum([window.iterations for window in warmup])
    assert stops[-1] == iterations
    _, ends = window_ends(iterations)
    assert [stop for stop, window in zip(stops, warmup, strict=True) if window.learns_metric] == ends
    assert [window.planned for window in warmup] == (iterations - stops).tolist()
    assert not any((sampling.tunes, sampling.learns_metric, sampling.tuning.jitter))


def test_sampling_follows_when_there_is_no_warmup():
    ((sampling, _),) = windows(warmup=0, draws=7, thin=3)
    assert (sampling.phase, sampling.iterations) == (SAMPLE, 21)


def test_the_end_of_a_window_sets_the_metric_and_searches_for_a_step():
    found = windows(warmup=150)
    initial, after_metric, after_step = (adapted for _, adapted in found[1:])
    assert not initial.searches
    assert (initial.metric.inverse_mass == 1).all()
    assert after_metric.searches
    rows = np.random.default_rng(0).normal(size=(25, 6))
    np.testing.assert_allclose(after_metric.metric.inverse_mass, rows[:, :3].var(0, ddof=1))
    assert after_metric.step.size == 0.5
    np.testing.assert_array_equal(after_step.metric.inverse_mass, after_metric.metric.inverse_mass)
    assert not after_step.searches
    assert after_step.step.size == pytest.approx(0.25)
