"""The sum over a batch is that of the parts repeated in full, whatever shapes parts, weights and masks have."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nutkin.model.sums import batch_sum

# Few, since each shape is compiled.
SIZES = st.lists(st.integers(1, 3), max_size=3).map(tuple)


def smaller(shape: tuple[int, ...]) -> st.SearchStrategy[tuple[int, ...]]:
    """Shapes that broadcast to this one."""
    axes = st.tuples(*(st.sampled_from((1, size)) for size in shape))
    return st.tuples(axes, st.integers(0, len(shape))).map(lambda drawn: shape_without_leading_ones(*drawn))


def shape_without_leading_ones(axes: tuple[int, ...], most: int) -> tuple[int, ...]:
    dropped = 0
    while dropped < min(most, len(axes)) and axes[dropped] == 1:
        dropped += 1
    return axes[dropped:]


@st.composite
def sums(draw):
    shape = draw(SIZES)
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    parts = [rng.normal(size=draw(smaller(shape))) for _ in range(draw(st.integers(1, 4)))]
    weight = rng.normal(size=draw(smaller(shape))) if draw(st.booleans()) else None
    unmasked = rng.random(draw(smaller(shape))) < 0.6 if draw(st.booleans()) else None
    return shape, parts, weight, unmasked


@given(sums())
@settings(deadline=None, max_examples=200)
def test_equals_the_sum_of_repeated_parts(case) -> None:
    shape, parts, weight, unmasked = case
    each = sum(np.broadcast_to(part, shape) for part in parts)
    each = each * (1 if weight is None else weight) * (1 if unmasked is None else unmasked)
    with jax.disable_jit():
        found = batch_sum(parts, shape, weight=weight, unmasked=unmasked)
    assert np.shape(found) == ()
    assert float(found) == pytest.approx(each.sum(), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("impossible", [np.nan, np.inf, -np.inf])
def test_masked_elements_count_nothing(impossible: float) -> None:
    rows = np.array([[1.0, 2.0, impossible], [impossible] * 3])
    columns = np.array([[3.0], [impossible]])
    unmasked = np.array([[True, True, False], [False] * 3])
    weight = np.array([0.5, 2.0, impossible])
    found = jax.jit(lambda *parts: batch_sum(parts, (2, 3), weight=weight, unmasked=unmasked))(rows, columns)
    assert float(found) == 0.5 * (1 + 3) + 2 * (2 + 3)


def test_a_scalar_is_multiplied_not_repeated() -> None:
    traced = str(jax.make_jaxpr(lambda rows, scalar: batch_sum([rows, scalar], (5,)))(np.ones(5), 1.0))
    assert "broadcast" not in traced
    assert traced.count("reduce_sum") == 2


def test_parts_of_one_shape_share_a_loop() -> None:
    traced = str(jax.make_jaxpr(lambda *parts: batch_sum(parts, (5,)))(np.ones(5), np.ones(5), np.ones(5)))
    assert traced.count("reduce_sum") == 1


def test_a_scalar_meets_the_sum_of_the_weights() -> None:
    traced = str(jax.make_jaxpr(lambda scalar, w: batch_sum([scalar], (3, 5), weight=w))(1.0, np.ones(5)))
    assert "f64[] = mul" in traced or "f64[1,1] = mul" in traced
    assert "5] = mul" not in traced
    assert float(batch_sum([np.float64(2)], (3, 5), weight=np.arange(5.0))) == 2 * 3 * 10
