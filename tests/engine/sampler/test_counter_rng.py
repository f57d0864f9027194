import jax.numpy as jnp
import numpy as np
from jax.extend.random import threefry_2x32

from nutkin.sampler import counter_rng


def words(count, seed=0):
    return jnp.asarray(np.random.default_rng(seed).integers(0, 2**32, count, dtype=np.uint32))


def test_threefry_is_jax_threefry():
    key, counts = words(2), words(2000, seed=1)
    high, low = counter_rng.threefry((key[0], key[1]), (counts[:1000], counts[1000:]))
    np.testing.assert_array_equal(jnp.concatenate([high, low]), threefry_2x32(key, counts))


def test_uniforms_stay_inside_the_open_interval():
    edges = jnp.asarray([0, 2**32 - 1], jnp.uint32)
    for u in (counter_rng.uniform(edges), counter_rng.uniform_fine(edges, edges)):
        assert float(u[0]) > 0.0
        assert float(u[1]) < 1.0


def test_logarithm_is_exact_to_rounding():
    u = np.concatenate([np.random.default_rng(0).uniform(size=10_000), 2.0 ** -np.arange(1.0, 53), [1 - 2.0**-53]])
    np.testing.assert_allclose(counter_rng.log_uniform(jnp.asarray(u)), np.log(u), rtol=4e-16, atol=1e-17)


def test_sine_and_cosine_are_exact_to_rounding():
    u = np.concatenate([np.random.default_rng(0).uniform(size=10_000), np.arange(1, 16) / 16])
    sine, cosine = counter_rng.sin_cos_turn(jnp.asarray(u))
    np.testing.assert_allclose(sine, np.sin(2 * np.pi * u), atol=1e-15)
    np.testing.assert_allclose(cosine, np.cos(2 * np.pi * u), atol=1e-15)


def test_normals_have_normal_moments_and_tails():
    count = 200_001
    pairs = 2 * ((count + 1) // 2)
    u = counter_rng.uniform_fine(words(pairs, seed=2), words(pairs, seed=3))
    z = np.asarray(counter_rng.normals(u, count))
    assert z.shape == (count,)
    for power, moment, variance in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96)):
        assert abs((z**power).mean() - moment) < 4 * np.sqrt(variance / count)
    expected = count * 2.6998e-3  # beyond three standard deviations
    assert abs((np.abs(z) > 3).sum() - expected) < 4 * np.sqrt(expected)
