import numpy as np
import pytest

from nutkin.sampler.metric import Metric, from_gradients, from_positions
from nutkin.sampler.moments import summed

OLD = Metric(np.array([1.0, 2.0, 3.0]))
RNG = np.random.default_rng(0)


def gaussian(count):
    """-> the covariance of a Gaussian, and rows drawn from it with the gradients of its log density."""
    factor = RNG.normal(size=(3, 3))
    covariance = factor @ factor.T
    positions = RNG.normal(size=(count, 3)) @ factor.T
    return covariance, np.hstack([positions, -positions @ np.linalg.inv(covariance)])


def test_gradients_and_positions_give_the_scales_of_a_gaussian():
    scales = np.array([1e-4, 1.0, 1e4])
    positions = RNG.normal(size=(20, 3)) * scales
    rows = np.hstack([positions, -positions / scales**2])
    np.testing.assert_allclose(from_gradients(summed(rows), OLD).inverse_mass, scales**2)


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_positions_give_their_variance(scale):
    _, rows = gaussian(20)
    rows = rows * scale
    np.testing.assert_allclose(from_positions(summed(rows), OLD).inverse_mass, rows[:, :3].var(0, ddof=1))


@pytest.mark.parametrize("count", [3, 20])
@pytest.mark.parametrize("scales", [(1.0, 1.0, 1.0), (1e-6, 1.0, 1e6)])
def test_a_dense_metric_is_the_covariance_with_smaller_correlations(count, scales):
    _, rows = gaussian(count)
    rows = rows * np.tile(scales, 2)
    metric = from_positions(summed(rows, dense=True), OLD)
    covariance = np.cov(rows[:, :3].T)
    expected = count / (count + 5) * covariance + 5 / (count + 5) * np.diag(covariance.diagonal())
    np.testing.assert_allclose(metric.factor @ metric.factor.T, expected, rtol=1e-9)
    np.testing.assert_allclose(metric.diagonal, expected.diagonal())
    assert (metric.inverse_mass == 1).all()
    np.testing.assert_allclose(metric.log_scale, np.linalg.slogdet(expected)[1] / 6)


def test_the_scale_of_a_diagonal_metric():
    assert np.isclose(OLD.log_scale, np.log(6) / 6)
    assert OLD.diagonal is not OLD.inverse_mass


def test_what_is_no_metric_is_not_taken():
    rows = np.array([[0.0, 1.0, np.nan, 0.0, 0.0, 1.0], [0.0, 3.0, 1.0, 1.0, 0.0, 2.0]])
    np.testing.assert_array_equal(from_gradients(summed(rows), OLD).inverse_mass, OLD.inverse_mass)
    dense = from_positions(summed(rows, dense=True), OLD)
    assert dense.factor is None
    assert dense.inverse_mass[2] == 3.0


def test_the_type_stays():
    old = Metric(np.ones(3, np.float32))
    _, rows = gaussian(20)
    for metric in (from_gradients(summed(rows), old), from_positions(summed(rows, dense=True), old)):
        assert metric.inverse_mass.dtype == np.float32
    assert metric.factor.dtype == np.float32
    assert metric.diagonal.dtype == np.float32
