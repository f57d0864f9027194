"""The pass normal_sufficient_statistics: what it recognises, and that both forms of the likelihood agree."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine.builder import Builder, Node
from engine.model.rewrites.agreement import assert_agree, bound, evaluation
from engine.model.rewrites.regressions import TERMS, Regression, covering, named
from nutkin.compile import compilations
from nutkin.model.rewrites.normal_sufficient_statistics import NAME


def observe(model: Regression, terms: list[Node], sigma: Node | float | None = None, **fields: object) -> None:
    sigma = model.rv("half_normal") if sigma is None else sigma
    y = model.slot(model.random.normal(size=model.n))
    model.builder.observe("obs", "normal", {"mu": model.sum(terms), "sigma": sigma}, y, **fields)


def regression(*names: str, n: int = 500, **options: int) -> Regression:
    model = Regression(n, **options)
    observe(model, [model.term(name) for name in names])
    return model


@pytest.mark.parametrize("name", TERMS)
def test_each_term(name: str) -> None:
    model = regression(name)
    assert_agree(model.builder, model.data, expected=[NAME])


RANDOM_SUMS = covering(
    5,
    weighted=(False, True),
    masked=(False, True),
    mean=(False, True),
    groups=(1, 7),
    precision=("f64", "f32"),
    n=(300, 1025),
)


@pytest.mark.parametrize("kinds", RANDOM_SUMS, ids=named)
def test_random_sums_of_terms(kinds: dict[str, Any]) -> None:
    precision, seed = kinds["precision"], kinds["seed"]
    model = Regression(kinds["n"], seed=seed, groups=kinds["groups"])
    options = model.options(weighted=kinds["weighted"], masked=kinds["masked"], mean=kinds["mean"])
    observe(model, [model.term(name) for name in kinds["terms"]], **options)
    relative = 1e-10 if precision == "f64" else 2e-3
    assert_agree(
        model.builder, model.data, rewrites=[NAME], expected=[NAME], precision=precision, relative=relative, seed=seed
    )


def test_rows_beyond_those_that_tell_the_shift_and_several_pieces() -> None:
    model = regression("intercept", "design", "group", "slopes", n=40_001, groups=3000, columns=20)
    assert_agree(model.builder, model.data, expected=[NAME])


def test_a_scalar_mean_and_a_known_scale() -> None:
    model = Regression(100)
    observe(model, [model.term("intercept")], sigma=2.5)
    assert_agree(model.builder, model.data, expected=[NAME])


def test_data_alone() -> None:
    model = Regression(100)
    observe(model, [model.term("offset")])
    assert_agree(model.builder, model.data, expected=[NAME])


@pytest.mark.parametrize(
    ("x_offset", "y_offset", "relative"), [(0, 1e6, 1e-11), (1e6, 1e6, 1e-9), (1e6, -1e9, 1e-8), (-1e9, 1e9, 1e-6)]
)
def test_data_far_from_zero_keep_their_digits_near_the_fit(x_offset: float, y_offset: float, relative: float) -> None:
    """The bounds are the rounding of one product of an offset. A difference of raw moments would be off by y_offset^2
    times that."""
    n = 1000
    random = np.random.default_rng(3)
    x, g = x_offset + random.normal(size=n), random.integers(5, size=n)
    y = y_offset + 0.5 * (x - x_offset) + random.normal(size=n)
    b = Builder()
    a, u = b.rv("a", "normal", {"mu": 0, "sigma": 1e6}), b.rv("u", "normal", {"mu": 0, "sigma": 1}, shape=[5])
    slope = b.rv("slope", "normal", {"mu": 0, "sigma": 1})
    mean = b.call("add", a, b.call("multiply", slope, b.data("x")))
    mean = b.call("add", mean, b.call("take", u, b.data("g")))
    b.observe("obs", "normal", {"mu": mean, "sigma": 1}, b.data("y"))
    data = {"x": x, "g": g, "y": y}
    target = bound(b, data)
    assert [applied.name for applied in target.rewrites] == [NAME]
    # The coefficients are whole multiples of powers of 2, so that the reference has no rounding of its own.
    position = np.array([y_offset - 0.5 * x_offset, 0.25, 0, 0.5, -0.5, 1.0, 0.5])
    found = float(target.density.terms(position, {**target.inlined, **target.arguments})["obs"])
    long = np.longdouble
    residual = y.astype(long) - long(position[0]) - position[6] * x.astype(long) - position[1:6][g].astype(long)
    exact = float(-0.5 * np.sum(residual**2) - n * long(0.5) * np.log(2 * long(np.pi)))
    assert found == pytest.approx(exact, rel=relative)
    assert abs(exact) < 2 * n


def test_columns_that_depend_on_each_other() -> None:
    model = Regression(300)
    x = model.slot(model.random.normal(size=300))
    call = model.builder.call
    slopes = [call("multiply", model.rv(), x) for _ in range(2)]
    effects = [call("take", model.rv(shape=(7,)), model.index()) for _ in range(2)]
    observe(model, [model.rv(), *slopes, *effects])
    assert_agree(model.builder, model.data, expected=[NAME])


def test_a_perfect_fit() -> None:
    model = regression("intercept", "slope")
    model.data[next(reversed(model.data))] = 2 - 3 * model.data["data_0"]
    target = assert_agree(model.builder, model.data, expected=[NAME])
    # sigma is the last coordinate: near 0 the residuals decide.
    value, _ = evaluation(target)(np.array([0.0, 2.0, -3.0, -10.0]))
    assert value > 500 * 9


def test_masked_values_may_be_anything() -> None:
    model = Regression(200)
    mask = model.slot((np.arange(200) % 3 > 0).astype(np.uint8))
    observe(model, [model.term("intercept"), model.term("group")], mask=mask)
    name = next(reversed(model.data))
    model.data[name] = np.where(np.arange(200) % 3 > 0, model.data[name], np.inf)
    assert_agree(model.builder, model.data, expected=[NAME])


def test_a_node_that_others_use_too() -> None:
    """The mean is also a deterministic value, and the effects have a second observation of their own."""
    model = Regression(60)
    effects = model.rv(shape=(7,))
    mean = model.builder.call("take", effects, model.index())
    observe(model, [mean])
    model.builder.deterministic("mean", mean)
    model.builder.observe("effects", "student_t", {"nu": 3, "mu": effects, "sigma": 1}, model.slot(np.ones(7)))
    target = assert_agree(model.builder, model.data, expected=[NAME])
    position = np.arange(target.dimension) / 10
    outputs = target.outputs(position, target.arguments)
    effects_at = position[1:8]
    np.testing.assert_allclose(outputs["mean"], effects_at[model.data["data_0"]])


def scaled_by_rows(model: Regression) -> Node:
    return model.slot(np.linspace(1, 2, model.n))


@pytest.mark.parametrize(
    "case", ["curved", "vector_sigma", "computed_index", "computed_value", "more_effects_than_rows"]
)
def test_what_is_not_linear_is_left_alone(case: str) -> None:
    n = 50
    model = Regression(n)
    call = model.builder.call
    match case:
        case "curved":
            observe(model, [call("exp", call("multiply", model.rv(), model.slot(np.ones(n))))])
        case "vector_sigma":
            observe(model, [model.term("group")], sigma=call("multiply", model.tau, scaled_by_rows(model)))
        case "computed_index":
            index = call("as_type", call("multiply", model.tau, scaled_by_rows(model)), type="s64")
            observe(model, [call("take", model.rv(shape=(7,)), index)])
        case "computed_value":
            value = call("multiply", model.tau, scaled_by_rows(model))
            model.builder.observe("obs", "normal", {"mu": model.term("group"), "sigma": 1}, value)
        case "more_effects_than_rows":
            observe(model, [call("take", model.rv(shape=(4 * n,)), model.slot(np.arange(n))), model.term("design")])
    assert bound(model.builder, model.data, rewrites=[NAME]).rewrites == ()


def test_the_matrix_itself_is_no_argument() -> None:
    model = regression("design")
    target = bound(model.builder, model.data)
    sizes = [array.size for array in jax_leaves(target.arguments)]
    assert max(sizes) < model.n


def jax_leaves(tree: object) -> list:
    import jax

    return jax.tree.leaves(tree)


def test_fresh_data_of_the_same_shapes_compile_nothing() -> None:
    first, second = (regression("design", "group", "slope", seed=seed) for seed in (1, 2))
    position = np.linspace(-1, 1, bound(first.builder, first.data).dimension)
    values = []
    for model, count in ((first, 1), (second, 0)):
        before = compilations()
        values.append(float(bound(model.builder, model.data).value_and_gradient(position)[0]))
        assert compilations() - before == count
    assert values[0] != values[1]


@pytest.mark.parametrize("term", ["slope", "slopes"])
def test_predictors_that_are_infinite_or_overflow_give_no_warning(term: str) -> None:
    for wrong in (np.inf, 1e200):
        model = regression("intercept", term)
        predictor = next(x for x in model.data.values() if x.dtype.kind == "f")
        predictor[3] = wrong
        target = bound(model.builder, model.data)
        assert [applied.name for applied in target.rewrites] == [NAME]
        assert target.arguments
