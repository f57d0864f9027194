import numpy as np
import pytest

from nutkin.sampler.moments import BLOCK, Collector, joined, moments, summed


def rows(count, dimension=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(1e3, [0.1, 1.0, 10.0, 1.0, 2.0, 3.0][: 2 * dimension], (count, 2 * dimension))


def test_they_are_those_of_numpy():
    x = rows(50)
    moments = summed(x, dense=True)
    np.testing.assert_allclose(moments.mean, x.mean(0))
    np.testing.assert_allclose(np.concatenate(moments.variances), x.var(0, ddof=1))
    np.testing.assert_allclose(moments.products / 49, np.cov(x[:, :3].T))


def test_parts_join_to_the_whole():
    x = rows(100)
    whole = summed(x, dense=True)
    parts = joined([summed(part, dense=True) for part in np.split(x, [7, 8, 60])])
    assert_close(parts, whole)


def assert_close(found, expected):
    for name in ("count", "mean", "squares", "products"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-10, atol=1e-8)


@pytest.mark.parametrize("count", [50, 2 * BLOCK, 2 * BLOCK + 31])
def test_those_of_chains_are_those_of_each(count):
    x = rows(3 * count).reshape(3, count, -1)
    collectors = [Collector(dense=True) for _ in x]
    for collector, own in zip(collectors, x, strict=True):
        collector.add(own)
    found_moments = moments(collectors)
    for found, own in zip(found_moments.of_each_chain(), x, strict=True):
        assert_close(found, summed(own, dense=True))
    assert_close(found_moments.of_all_chains(), summed(x.reshape(3 * count, -1), dense=True))


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("cut", [1, 7, 100, BLOCK, 1000])
def test_how_rows_come_changes_no_bit(cut, dense):
    x = rows(2 * BLOCK + 31)
    at_once, in_parts = Collector(dense=dense), Collector(dense=dense)
    at_once.add(x)
    for first in range(0, len(x), cut):
        in_parts.add(x[first : first + cut])
    one, other = (moments([collector]).of_all_chains() for collector in (at_once, in_parts))
    np.testing.assert_array_equal(one.mean, other.mean)
    np.testing.assert_array_equal(one.squares, other.squares)
    np.testing.assert_array_equal(one.products, other.products)
    np.testing.assert_allclose(np.concatenate(one.variances), x.var(0, ddof=1))
