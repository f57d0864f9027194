"""The pass generalized_linear: what it recognises, and that both forms of the likelihood agree."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

from engine.model.rewrites.agreement import assert_agree, bound
from engine.model.rewrites.regressions import TERMS, Regression, covering, named
from nutkin.compile import compilations
from nutkin.model.rewrites.generalized_linear import MIN_ROWS, NAME

FAMILIES = (
    "normal",
    "bernoulli_logit",
    "bernoulli",
    "binomial_logit",
    "binomial",
    "poisson_log",
    "poisson",
    "neg_binomial",
)


def observe(
    model: Regression, family: str, names: list[str], *, trials: np.ndarray | int = 5, **fields: object
) -> None:
    call, random, n = model.builder.call, model.random, model.n
    eta = model.sum([model.term(name) for name in names])
    link = {"bernoulli": "sigmoid", "binomial": "sigmoid", "poisson": "exp", "neg_binomial": "exp"}.get(family)
    predictor = eta if link is None else call(link, eta)
    slot = model.slot(trials) if isinstance(trials, np.ndarray) else trials
    args = {
        "normal": {"mu": predictor, "sigma": model.tau},
        "bernoulli_logit": {"logits": predictor},
        "bernoulli": {"p": predictor},
        "binomial_logit": {"n": slot, "logits": predictor},
        "binomial": {"n": slot, "p": predictor},
        "poisson_log": {"eta": predictor},
        "poisson": {"mu": predictor},
        "neg_binomial": {"mu": predictor, "alpha": model.tau},
    }[family]
    y = {
        "normal": lambda: random.normal(size=n),
        "bernoulli_logit": lambda: random.integers(2, size=n),
        "bernoulli": lambda: random.integers(2, size=n),
        "binomial_logit": lambda: random.binomial(trials, 0.4, size=n),
        "binomial": lambda: random.binomial(trials, 0.4, size=n),
    }.get(family, lambda: random.poisson(2, size=n))()
    model.builder.observe("obs", family, args, model.slot(y), **fields)


def regression(family: str, *names: str, n: int = 97, **options: int) -> Regression:
    model = Regression(n, **options)
    observe(model, family, list(names))
    return model


@pytest.mark.parametrize("family", FAMILIES)
def test_each_family(family: str) -> None:
    model = regression(family, "intercept", "design", "group")
    target = assert_agree(model.builder, model.data, rewrites=[NAME], expected=[NAME])
    assert target.rewrites[0].node == "obs"


@pytest.mark.parametrize("name", [name for name in TERMS if name not in ("intercept", "offset")])
def test_each_term(name: str) -> None:
    model = regression("bernoulli_logit", name)
    assert_agree(model.builder, model.data, expected=[NAME])


RANDOM_SUMS = covering(
    5,
    family=FAMILIES,
    weighted=(False, True),
    masked=(False, True),
    mean=(False, True),
    groups=(1, 7),
    precision=("f64", "f32"),
    n=(MIN_ROWS, 300),
)


@pytest.mark.parametrize("kinds", RANDOM_SUMS, ids=named)
def test_random_sums_of_terms(kinds: dict[str, Any]) -> None:
    family, precision, n, seed = (kinds[name] for name in ("family", "precision", "n", "seed"))
    model = Regression(n, seed=seed, groups=kinds["groups"])
    options = model.options(weighted=kinds["weighted"], masked=kinds["masked"], mean=kinds["mean"])
    trials = model.random.integers(9, size=n)
    # Of the intercept and the offset alone there would be one row.
    observe(model, family, [*kinds["terms"], "slope"], trials=trials, **options)
    relative = 1e-10 if precision == "f64" else 2e-3
    # By probabilities the original form loses digits where they are close to 0 or 1.
    spread = 0.2 if family in ("bernoulli", "binomial") else 1.0
    assert_agree(
        model.builder,
        model.data,
        rewrites=[NAME],
        expected=[NAME],
        precision=precision,
        relative=relative,
        spread=spread,
        seed=seed,
    )


@pytest.mark.parametrize("family", ["poisson_log", "neg_binomial"])
def test_masked_rows_may_have_infinite_means(family: str) -> None:
    """exp(eta) is infinite there, and infinity times a weight of 0 is no number."""
    model = Regression(60)
    kept = np.arange(60) % 3 > 0
    observe(model, family, ["slope"], mask=model.slot(kept.astype(np.uint8)))
    for name, array in model.data.items():
        if array.dtype == np.float64 and array.shape == (60,) and not np.isin(array, (0, 1)).all():
            model.data[name] = np.where(kept, array, 1e6 * np.sign(array))
    target = bound(model.builder, model.data)
    assert [rewrite.name for rewrite in target.rewrites] == [NAME]
    value, gradient = target.value_and_gradient(np.full(target.dimension, 0.3))
    assert np.isfinite(value)
    assert np.isfinite(gradient).all()


@pytest.mark.parametrize("family", ["poisson_log", "binomial_logit", "neg_binomial"])
def test_masked_values_may_be_anything(family: str) -> None:
    model = Regression(60)
    kept = np.arange(60) % 3 > 0
    observe(model, family, ["slope"], mask=model.slot(kept.astype(np.uint8)))
    name = next(reversed(model.data))
    model.data[name] = np.where(kept, model.data[name], -3)
    assert_agree(model.builder, model.data, expected=[NAME])


@pytest.mark.parametrize("case", ["few_rows", "same_for_all", "curved", "computed_trials", "vector_alpha", "log_link"])
def test_what_is_not_recognised_is_left_alone(case: str) -> None:
    model = Regression(MIN_ROWS - 1 if case == "few_rows" else 50)
    call, build = model.builder.call, model.builder
    ones = model.slot(np.ones(model.n))
    counts = model.slot(model.random.integers(3, size=model.n))
    match case:
        case "few_rows":
            observe(model, "poisson_log", ["slope"])
        case "same_for_all":
            observe(model, "poisson_log", ["intercept"])
        case "curved":
            build.observe("obs", "poisson_log", {"eta": call("sin", call("multiply", model.rv(), ones))}, counts)
        case "computed_trials":
            trials = call("multiply", call("round", model.tau), ones)
            build.observe("obs", "binomial_logit", {"n": trials, "logits": model.term("slope")}, counts)
        case "vector_alpha":
            args = {"mu": call("exp", model.term("slope")), "alpha": call("multiply", model.tau, ones)}
            build.observe("obs", "neg_binomial", args, counts)
        case "log_link":
            build.observe("obs", "poisson", {"mu": call("pow", model.term("slope"), 2)}, counts)
    assert bound(model.builder, model.data, rewrites=[NAME]).rewrites == ()


def test_the_matrix_has_one_copy_only() -> None:
    model = regression("bernoulli_logit", "intercept", "design", n=6400, columns=9)
    target = bound(model.builder, model.data)
    sizes = sorted(array.size for array in jax.tree.leaves(target.arguments))
    assert sizes[-1] == 6400 * 10
    assert sizes[-2] <= 6400


def test_fresh_data_of_the_same_shapes_compile_nothing() -> None:
    models = [regression("neg_binomial", "intercept", "design", "group", seed=seed) for seed in (1, 2)]
    position = np.linspace(-1, 1, bound(models[0].builder, models[0].data).dimension)
    values = []
    for model, count in zip(models, (1, 0), strict=True):
        before = compilations()
        values.append(float(bound(model.builder, model.data).value_and_gradient(position)[0]))
        assert compilations() - before == count
    assert values[0] != values[1]
