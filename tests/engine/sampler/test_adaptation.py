import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nutkin.sampler import adaptation, schedule
from nutkin.sampler.adaptation import RUN, SEARCH, SEARCH_DOWN, SEARCH_UP, SEEK_POINT, Adapted, Moments, Step, Tuning

TUNING = Tuning(*map(jnp.float64, Tuning()))


def state(mode=RUN, step_size=0.5, dimension=3):
    zero = jnp.float64(0)
    step = adaptation._restarted(jnp.float64(step_size))
    moments = Moments(zero, jnp.zeros(dimension), jnp.zeros(dimension))
    return Adapted(jnp.int32(mode), jnp.ones(dimension), step, moments)


compiled_adapt = jax.jit(adaptation.adapt)


def adapt(s, *, found=True, position=(0.0, 0.0, 0.0), gradient=(1.0, 1.0, 1.0), acceptance=0.8, flags=0):
    return compiled_adapt(
        s,
        jnp.bool_(found),
        jnp.asarray(position, float),
        jnp.asarray(gradient, float),
        jnp.float64(acceptance),
        jnp.int32(schedule.entry(flags, 10)),
        TUNING,
    )


def test_moments_are_those_of_numpy():
    x = np.random.default_rng(0).normal(2, [0.1, 1, 10], (50, 3))
    moments = state().moments
    for row in x:
        moments = adaptation.add(moments, jnp.asarray(row))
    np.testing.assert_allclose(moments.mean, x.mean(0))
    np.testing.assert_allclose(moments.squares / 49, x.var(0, ddof=1))
    np.testing.assert_allclose(adaptation.shrunk_variance(moments), 50 / 55 * x.var(0, ddof=1) + 5 / 55 * 1e-3)


def test_first_metric_comes_from_the_gradient():
    s = adapt(state(SEEK_POINT), gradient=(4.0, -0.5, 0.0))
    assert s.mode == SEARCH
    np.testing.assert_allclose(s.inverse_mass, [0.25, 2.0, 1.0])  # a gradient of zero says nothing
    assert s.step.size == TUNING.first_step


def test_no_point_found_changes_nothing():
    before = state(SEEK_POINT)
    after = adapt(before, found=False)
    assert after.mode == SEEK_POINT
    np.testing.assert_array_equal(after.inverse_mass, before.inverse_mass)


@pytest.mark.parametrize(("acceptance", "factor", "direction"), [(0.95, 2.0, SEARCH_UP), (0.1, 0.5, SEARCH_DOWN)])
def test_search_moves_until_the_acceptance_crosses(acceptance, factor, direction):
    s = adapt(state(SEARCH), acceptance=acceptance)
    assert (int(s.mode), float(s.step.size)) == (direction, 0.5 * factor)
    s = adapt(s, acceptance=acceptance)
    assert (int(s.mode), float(s.step.size)) == (direction, 0.5 * factor**2)
    s = adapt(s, acceptance=1 - acceptance)
    assert (int(s.mode), float(s.step.size)) == (RUN, 0.5 * factor**2)
    np.testing.assert_allclose(s.step.log_centre, np.log(10 * 0.5 * factor**2))


def test_search_ends_at_a_tiny_step():
    s = adapt(state(SEARCH_DOWN, step_size=1e-11), acceptance=0.0)
    assert s.mode == RUN


def test_dual_averaging_finds_the_target():
    """Acceptance falls with the step size as for a Gaussian: 2 Phi(-c eps^2); the averaged step meets the target."""
    from scipy.special import ndtr, ndtri

    s = adapt(state(SEARCH), acceptance=0.9)
    s = adapt(s, acceptance=0.1)
    for _ in range(2000):
        s = adapt(s, acceptance=2 * ndtr(-(float(s.step.size) ** 2)), flags=schedule.TUNE_STEP)
    s = adapt(s, acceptance=2 * ndtr(-(float(s.step.size) ** 2)), flags=schedule.TUNE_STEP | schedule.FIX_STEP)
    assert float(s.step.size) == pytest.approx(np.sqrt(-ndtri(0.4)), rel=0.02)


def test_end_of_window_sets_the_metric_and_searches_again():
    s = state()
    x = np.random.default_rng(1).normal(0, [0.1, 1, 10], (100, 3))
    for row in x:
        s = adapt(s, position=row, flags=schedule.COLLECT)
    s = adapt(s, position=x[0], flags=schedule.COLLECT | schedule.SET_METRIC)
    np.testing.assert_allclose(s.inverse_mass, x.var(0), rtol=0.15)
    assert s.mode == SEARCH
    assert s.moments.count == 0


def test_a_metric_that_is_no_number_is_not_taken():
    s = adapt(state(), position=(np.nan, 1.0, 1.0), flags=schedule.COLLECT | schedule.SET_METRIC)
    assert np.isfinite(s.inverse_mass).all()


def test_sampling_leaves_everything_as_it_is():
    before = state()
    after = adapt(before, acceptance=0.1, position=(1.0, 2.0, 3.0))
    assert isinstance(after.step, Step)
    for a, b in zip(
        (*after.step, after.inverse_mass, after.mode), (*before.step, before.inverse_mass, before.mode), strict=True
    ):
        np.testing.assert_array_equal(a, b)
