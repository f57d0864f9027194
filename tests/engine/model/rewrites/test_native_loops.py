"""The passes segment_sum and cumulative_sum, and what all rewrites are for: gradients inside of native loops."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import numpy as np
import pytest
from jax import lax

from engine.builder import Builder
from engine.model.native.hoisting import stepwise_loops
from engine.model.rewrites.agreement import assert_agree, bound
from engine.model.rewrites.regressions import Regression

RANDOM = np.random.default_rng(5)


def taken(shape: tuple[int, ...], index: np.ndarray, **options: int) -> tuple[Builder, dict[str, np.ndarray]]:
    """A factor that is not linear in the elements taken."""
    b = Builder()
    x = b.rv("x", "normal", {"mu": 0, "sigma": 1}, shape=list(shape))
    values = b.call("take", b.call("exp", x), b.data("index"), **options)
    b.factor("f", b.call("multiply", values, b.call("cos", values)))
    return b, {"index": index}


@pytest.mark.parametrize("shape", [(1,), (6,), (6, 3)])
@pytest.mark.parametrize("index_shape", [(1,), (50,), (8, 5)])
@pytest.mark.parametrize("precision", ["f64", "f32"])
def test_take(shape: tuple[int, ...], index_shape: tuple[int, ...], precision: str) -> None:
    builder, data = taken(shape, RANDOM.integers(max(shape[0] - 1, 1), size=index_shape))
    relative = 1e-10 if precision == "f64" else 1e-4
    assert_agree(builder, data, expected=["segment_sum"], precision=precision, relative=relative)


@pytest.mark.parametrize("type_name", [np.uint8, np.int16, np.uint64])
def test_indices_of_other_types(type_name: type) -> None:
    builder, data = taken((6,), RANDOM.integers(6, size=20).astype(type_name))
    assert_agree(builder, data, expected=["segment_sum"])


def test_computed_indices() -> None:
    b = Builder()
    x = b.rv("x", "normal", {"mu": 0, "sigma": 1}, shape=[5])
    values = b.call("take", x, b.call("subtract", b.data("index"), 3))
    b.factor("f", b.call("pow", values, 2))
    assert_agree(b, {"index": np.array([3, 7, 3, 5, 6, 7, 7])}, expected=["segment_sum"])


def test_takes_that_are_left_alone() -> None:
    builder, data = taken((3, 6), RANDOM.integers(6, size=7), axis=1)
    assert bound(builder, data).rewrites == ()
    b = Builder()
    x = b.rv("x", "normal", {"mu": 0, "sigma": 1}, shape=[6])
    b.factor("computed", b.call("take", x, b.call("as_type", b.call("exp", x), type="s64")))
    b.factor("number", b.call("take", x, 2))
    b.deterministic("sent", b.call("take", x, b.data("index")))
    assert bound(b, data).rewrites == ()


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("n", [1, 2, 100, 1500])
@pytest.mark.parametrize("precision", ["f64", "f32"])
def test_cumulative_sum(reverse: bool, n: int, precision: str) -> None:
    b = Builder()
    x = b.rv("x", "normal", {"mu": 0, "sigma": 1}, shape=[n])
    b.factor("f", b.call("cos", b.call("cumulative_sum", x, reverse=reverse)))
    relative = 1e-10 if precision == "f64" else 2e-3
    assert_agree(b, {}, expected=["cumulative_sum"], precision=precision, relative=relative)


def test_cumulative_sums_that_are_left_alone() -> None:
    b = Builder()
    x = b.rv("x", "normal", {"mu": 0, "sigma": 1}, shape=[3, 4])
    b.factor("f", b.call("cumulative_sum", b.call("exp", x)))
    b.factor("g", b.call("multiply", b.call("cumulative_sum", b.data("y")), b.rv("a", "normal", {"mu": 0, "sigma": 1})))
    assert bound(b, {"y": np.ones(9)}).rewrites == ()


def loops_around_the_gradient(builder: Builder, data: dict[str, np.ndarray], rewrites: Sequence[str]) -> list[str]:
    """The loops that XLA runs step by step, of one that follows the gradient, as a sampler does."""
    target = bound(builder, data, rewrites=rewrites)

    def climb(position, arguments):
        gradient = jax.grad(target.log_density)
        return lax.fori_loop(0, 10, lambda _, q: q + 1e-3 * gradient(q, arguments), position)

    return stepwise_loops(jax.jit(climb).lower(np.zeros(target.dimension), target.arguments).compile())


@pytest.mark.parametrize("rewrite", ["normal_sufficient_statistics", "generalized_linear", "segment_sum"])
def test_group_effects_become_part_of_a_native_loop(rewrite: str) -> None:
    model = Regression(300)
    mean = model.sum([model.term(name) for name in ("intercept", "slope", "group")])
    y = model.slot(model.random.normal(size=model.n))
    model.builder.observe("obs", "normal", {"mu": mean, "sigma": model.tau}, y)
    assert loops_around_the_gradient(model.builder, model.data, [rewrite]) == []
    assert loops_around_the_gradient(model.builder, model.data, []) != []
