import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nutkin.sampler.lane_sum import lane_sum


@pytest.mark.parametrize("length", [0, 1, 31, 32, 33, 63, 89, 127, 128, 255, 256, 1000, 5000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_is_the_sum(length, dtype):
    """Of integers, which add up exactly in any order: each counts once."""
    x = np.random.default_rng(length).integers(-1000, 1000, length).astype(dtype)
    found = jax.jit(lane_sum)(jnp.asarray(x))
    assert found.dtype == dtype
    assert found == x.sum()


def test_keeps_what_is_not_finite():
    x = np.ones(100)
    for bad in (np.inf, -np.inf, np.nan):
        x[77] = bad
        np.testing.assert_equal(float(lane_sum(jnp.asarray(x))), bad)
