"""Takes and cumulative sums with native gradients, against JAX's own; and that loops around them are native."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from engine.model.native.hoisting import native_loops, stepwise_loops
from nutkin.model.native import loops

RNG = np.random.default_rng(11)
TAKES = {
    "vector": ((7,), (100,)),
    "one coefficient": ((1,), (5,)),
    "one index": ((7,), (1,)),
    "a scalar index": ((7,), ()),
    "no index": ((7,), (0,)),
    "matrix": ((7, 3), (41,)),
    "two axes of indices": ((7, 3), (5, 6)),
}


@pytest.mark.parametrize(("shape", "indices"), TAKES.values(), ids=TAKES.keys())
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_take_equals_indexing(shape, indices, dtype):
    x, index = RNG.normal(size=shape).astype(dtype), RNG.integers(0, shape[0], indices).astype(np.int32)
    cotangent = RNG.normal(size=indices + shape[1:]).astype(dtype)
    value, pullback = jax.vjp(lambda x: loops.take(x, index), x)
    expected, expected_pullback = jax.vjp(lambda x: x[index], x)
    np.testing.assert_array_equal(value, expected)
    (gradient,), (expected_gradient,) = pullback(cotangent), expected_pullback(cotangent)
    assert gradient.dtype == dtype
    np.testing.assert_allclose(gradient, expected_gradient, rtol=1e-5 if dtype == "float32" else 1e-13, atol=1e-6)


@pytest.mark.parametrize("size", [0, 1, 2, 100, 512, 513, 1500])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("reverse", [False, True])
def test_cumulative_sums_and_their_gradients(size, dtype, reverse):
    x, cotangent = RNG.normal(size=size).astype(dtype), RNG.normal(size=size).astype(dtype)
    value, pullback = jax.vjp(lambda x: loops.cumulative_sum(x, reverse), x)
    tolerance = {"rtol": 0, "atol": 1e-12 if dtype == "float64" else 2e-4}
    expected = np.cumsum(x.astype(float)[::-1])[::-1] if reverse else np.cumsum(x.astype(float))
    np.testing.assert_allclose(value, expected, **tolerance)
    (gradient,) = pullback(cotangent)
    turned = np.cumsum(cotangent.astype(float)) if reverse else np.cumsum(cotangent.astype(float)[::-1])[::-1]
    np.testing.assert_allclose(gradient, turned, **tolerance)
    assert gradient.dtype == dtype


def test_repeat_counts_from_its_start():
    assert loops.repeat(7, lambda i, total: total + i.astype(jnp.int32), jnp.int32(0), 3) == 3 + 4 + 5 + 6


@pytest.mark.parametrize(
    "function",
    [
        lambda x: jnp.sum(loops.take(x, jnp.asarray(np.arange(900, dtype=np.int32) % 40)) ** 2),
        lambda x: jnp.sum(loops.cumulative_sum(x) ** 2),
        lambda x: jnp.sum(loops.cumulative_sum(jnp.tile(x, 30)) ** 2),
    ],
    ids=["take", "a short cumulative sum", "a long cumulative sum"],
)
def test_a_loop_around_the_gradient_is_one_native_function(function):
    program = jax.jit(lambda x: lax.fori_loop(0, 10, lambda _, x: x - 1e-6 * jax.grad(function)(x), x))
    compiled = program.lower(np.ones(40)).compile()
    assert stepwise_loops(compiled) == []
    assert native_loops(compiled) == 1
