"""The row kernels of generalised linear models against plain formulas, in value and in every gradient."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from engine.model.native.hoisting import native_loops, stepwise_loops
from engine.model.native.regressions import (
    FAMILIES,
    WITH_EXTRA,
    Regression,
    assert_equal_with_gradients,
    plain_log_likelihood,
    regression,
)
from nutkin.model.native import glm

SHAPES = {
    "one row": {"rows": 1, "columns": 1},
    "no design": {"rows": 60, "groups": ((5, False),)},
    "whole blocks": {"rows": 128, "columns": 8},
    "a group of one": {"rows": 70, "columns": 2, "groups": ((1, False),)},
    "varying slopes": {"rows": 150, "columns": 3, "groups": ((4, True), (9, False))},
    "empty groups": {"rows": 65, "groups": ((400, False),)},
    "everything, more columns than one chunk": {
        "rows": 211,
        "columns": 21,
        "groups": ((6, True), (3, False)),
        "offset": True,
        "weighted": True,
    },
}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
def test_value_and_gradients_equal_the_plain_formula(family, shape):
    r = regression(family, **shape)
    point = r.point(np.random.default_rng(2))
    assert_equal_with_gradients(r.kernel(), r.formula(), [point], 1e-12)


@pytest.mark.parametrize("family", FAMILIES)
def test_float32_agrees_to_its_precision(family):
    r = regression(
        family,
        8000,
        5,
        groups=((4, True), (9, False)),
        offset=True,
        weighted=family != "bernoulli_logit",
        dtype="float32",
    )
    point = r.point(np.random.default_rng(3), 0.2)
    assert_equal_with_gradients(r.kernel(), r.formula(), [point], 2e-5)


@pytest.mark.parametrize("family", ["bernoulli_logit", "binomial_logit", "neg_binomial"])
def test_extreme_linear_predictors(family):
    r = regression(family, 70, 2)
    extra = np.float64(1.7) if family in WITH_EXTRA else None
    points = [(np.float64(eta), np.zeros(2), (), extra) for eta in (-800.0, -40.0, 40.0, 800.0)]
    assert_equal_with_gradients(r.kernel(), r.formula(), points, 1e-10)


def test_a_poisson_rate_of_zero_and_one_beyond_range():
    r = regression("poisson_log", 70, 2)
    assert_equal_with_gradients(r.kernel(), r.formula(), [(np.float64(-800.0), np.zeros(2), (), None)], 1e-12)
    assert r.kernel()((np.float64(800.0), np.zeros(2), (), None)) == -np.inf


def test_certain_responses_cost_nothing():
    """y eta - log(1 + exp(eta)) is exactly 0 where y = 1 and eta is large: the sum must not cancel."""
    r = Regression("bernoulli_logit", np.ones(500))
    assert r.kernel()((np.float64(800.0), np.zeros(0), (), None)) == 0.0


@pytest.mark.parametrize(("dtype", "rows", "tolerance"), [("float64", 70_000, 1e-12), ("float32", 17_000, 2e-5)])
@pytest.mark.parametrize("intercept", [0.0, 1.0])
def test_products_of_many_rows_do_not_overflow(dtype, rows, tolerance, intercept):
    r = regression("bernoulli_logit", rows, dtype=dtype)
    assert r.layout.blocks > {"float64": 1000, "float32": 120}[dtype]
    point = (np.asarray(intercept, dtype), np.zeros(0, dtype), (), None)
    assert_equal_with_gradients(r.kernel(), r.formula(), [point], tolerance)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_response_of_weight_zero_may_be_any_number(family):
    r = regression(family, 90, 2, weighted=True)
    point = r.point(np.random.default_rng(5))
    masked = r.weight == 0
    assert masked.any()
    evaluate = jax.jit(jax.value_and_grad(lambda point, prepared: glm.log_likelihood(r.layout, prepared, *point)))
    expected = evaluate(point, r.prepared())
    y = np.where(masked, np.where(np.arange(90) % 2, np.nan, -7.0), r.y)
    actual = evaluate(point, dataclasses.replace(r, y=y).prepared())
    jax.tree.map(np.testing.assert_array_equal, actual, expected)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_likelihood_is_linear_in_the_weights(family):
    r = regression(family, 90, 2)
    point = r.point(np.random.default_rng(6))
    twice = dataclasses.replace(r, weight=np.full(90, 2.0)).kernel()(point)
    np.testing.assert_allclose(twice, 2 * r.kernel()(point), rtol=1e-12)


def test_the_cotangent_scales_every_gradient():
    r = regression("neg_binomial", 90, 2, groups=((3, False),))
    point = r.point(np.random.default_rng(7))
    once, thrice = jax.grad(r.kernel())(point), jax.grad(lambda p: 3 * r.kernel()(p))(point)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(b, 3 * a, rtol=1e-14), once, thrice)


@pytest.mark.parametrize("family", FAMILIES)
def test_other_data_of_the_same_shape_compiles_nothing(family):
    layout = regression(family, 100, 3, groups=((5, False),), weighted=True).layout
    traces = []

    @jax.jit
    def value(prepared, point):
        traces.append(None)
        return glm.log_likelihood(layout, prepared, *point)

    for seed in (1, 2):
        r = regression(family, 100, 3, groups=((5, False),), weighted=True, seed=seed)
        point = r.point(np.random.default_rng(seed))
        np.testing.assert_allclose(value(r.prepared(), point), plain_log_likelihood(r, *point), rtol=1e-12)
    assert len(traces) == 1


def _iterated(function):
    """A program like the sampler's: a loop whose body has the gradient at one place."""

    def program(point, data):
        def step(_, point):
            gradient = jax.grad(lambda p: function(p, data))(point)
            return jax.tree.map(lambda p, g: p + 1e-3 * g, point, gradient)

        return lax.fori_loop(0, 10, step, point)

    return program


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("rows", [40, 5000])
def test_a_loop_around_the_gradient_is_one_native_function(family, rows):
    r = regression(family, rows, 12, groups=((5, False), (7, True)), offset=True, weighted=True)
    layout, point = r.layout, r.point(np.random.default_rng(8))
    program = _iterated(lambda p, prepared: glm.log_likelihood(layout, prepared, *p))
    compiled = jax.jit(program).lower(point, r.prepared()).compile()
    assert stepwise_loops(compiled) == []
    assert native_loops(compiled) == 1


def test_a_loop_around_a_scatter_is_seen_to_run_step_by_step():
    """The check above can fail: the same effects by `take` and its own gradient keep the loop from being native."""
    r = regression("poisson_log", 200, groups=((5, False),))
    index = jnp.asarray(r.indices[0])
    program = _iterated(lambda p, y: jnp.sum(y * p[index] - jnp.exp(p[index])))
    compiled = jax.jit(program).lower(np.zeros(5), r.y).compile()
    assert len(stepwise_loops(compiled)) == 1
