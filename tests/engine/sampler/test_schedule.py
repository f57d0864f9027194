import numpy as np
import pytest

from nutkin.sampler import schedule


def test_windows_of_a_thousand_iterations_are_stans():
    assert schedule.window_ends(1000) == (75, [100, 150, 250, 450, 950])


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
    assert schedule.window_ends(iterations) == expected


@pytest.mark.parametrize("iterations", [1, 20, 149, 150, 777, 1000, 5000])
def test_windows_are_contiguous_and_every_iteration_tunes(iterations):
    entries = schedule.windowed_warmup(iterations, 7).entries(0, iterations)
    assert (entries & schedule.TUNE_STEP).all()
    assert (schedule.depth_cap(entries) == 7).all()
    first, ends = schedule.window_ends(iterations)
    collected = np.flatnonzero(entries & schedule.COLLECT)
    assert collected.tolist() == (list(range(first, ends[-1])) if ends else [])
    assert np.flatnonzero(entries & schedule.SET_METRIC).tolist() == [end - 1 for end in ends]
    assert np.flatnonzero(entries & schedule.FIX_STEP).tolist() == [iterations - 1]


def test_sampling_does_nothing_but_sample():
    assert (schedule.sampling(5, 10).entries(0, 5) == schedule.entry(0, 10)).all()


def test_entries_of_a_part_are_those_of_the_whole():
    warmup = schedule.windowed_warmup(10**9, 10)
    whole = schedule.windowed_warmup(1000, 10)
    assert whole.entries(240, 30).tolist() == whole.entries(0, 1000)[240:270].tolist()
    assert warmup.entries(10**9 - 1, 1)[0] == schedule.entry(schedule.TUNE_STEP | schedule.FIX_STEP, 10)
