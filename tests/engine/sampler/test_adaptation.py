import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nutkin.sampler import adaptation
from nutkin.sampler.adaptation import RUN, SEARCH, SEARCH_DOWN, SEARCH_UP, SEEK_POINT, Adapted, Step, Tuning

TUNING = Tuning(*map(jnp.float64, Tuning()))


def state(mode=RUN, step_size=0.5, dimension=3):
    return Adapted(jnp.int32(mode), jnp.ones(dimension), adaptation._restarted(jnp.float64(step_size)))


compiled_adapt = jax.jit(adaptation.adapt)


def adapt(s, *, found=True, gradient=(1.0, 1.0, 1.0), acceptance=0.8, tune=False):
    return compiled_adapt(
        s, jnp.bool_(found), jnp.asarray(gradient, float), jnp.float64(acceptance), jnp.bool_(tune), TUNING
    )


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
        s = adapt(s, acceptance=2 * ndtr(-(float(s.step.size) ** 2)), tune=True)
    assert float(jnp.exp(s.step.log_average)) == pytest.approx(np.sqrt(-ndtri(0.4)), rel=0.02)


def test_sampling_leaves_everything_as_it_is():
    before = state()
    after = adapt(before, acceptance=0.1)
    assert isinstance(after.step, Step)
    for a, b in zip(
        (*after.step, after.inverse_mass, after.mode), (*before.step, before.inverse_mass, before.mode), strict=True
    ):
        np.testing.assert_array_equal(a, b)
