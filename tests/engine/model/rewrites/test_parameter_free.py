"""The pass parameter_free: values of data are computed once for a data set, where that is worth a program."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from engine.builder import Builder
from engine.model.rewrites.agreement import assert_agree, bound
from nutkin.compile import compilations
from nutkin.model.rewrites.parameter_free import MIN_ELEMENTS, NAME
from nutkin.sampler import compile_sampler, has_programs

RANDOM = np.random.default_rng(1)
N = MIN_ELEMENTS


def standardized() -> Builder:
    """A factor over a standardised column, which is sent with the draws too."""
    b = Builder()
    x = b.data("x")
    z = b.call("divide", b.call("subtract", x, b.call("mean", x)), 2.0)
    a = b.rv("a", "normal", {"mu": 0, "sigma": 1})
    b.factor("penalty", b.call("negate", b.call("mean", b.call("pow", b.call("subtract", z, a), 4))))
    b.deterministic("first", b.call("multiply", a, b.call("slice", z, starts=[0], lengths=[1])))
    return b


def test_values_of_data() -> None:
    x = RANDOM.normal(size=N)
    target = assert_agree(standardized(), {"x": x}, expected=[NAME])
    assert target.rewrites[0].node == "divide"
    (z,) = target.arguments.values()
    np.testing.assert_allclose(z, (x - x.mean()) / 2, rtol=1e-12)
    position = np.array([0.5])
    np.testing.assert_allclose(target.outputs(position, target.arguments)["first"], 0.5 * z[:1])


def test_a_sum_over_many_is_work_though_it_is_small() -> None:
    b = Builder()
    a = b.rv("a", "normal", {"mu": 0, "sigma": 1})
    b.factor("f", b.call("multiply", a, b.call("sum", b.call("log", b.data("x")))))
    target = assert_agree(b, {"x": RANDOM.uniform(size=N)}, expected=[NAME])
    assert [array.size for array in target.arguments.values()] == [1]


def test_little_work_stays_in_the_program() -> None:
    target = bound(standardized(), {"x": RANDOM.normal(size=N - 1)})
    assert target.rewrites == ()
    before = compilations()
    assert len(jax.tree.leaves(target.arguments)) == 1
    assert compilations() == before


def test_nothing_larger_than_its_inputs_is_kept() -> None:
    """Only the logarithms of a row are: their repetition in every row is not stored."""
    b = Builder()
    row = b.call("log", b.data("row"))
    table = b.call("add", b.call("broadcast", row, shape=[3, N]), 1.0)
    b.factor("f", b.call("multiply", table, b.rv("a", "normal", {"mu": 0, "sigma": 1})))
    target = assert_agree(b, {"row": RANDOM.uniform(size=N)}, expected=[NAME])
    assert [array.size for array in target.arguments.values()] == [N]


def counts(dist: str, args: dict, **fields: object) -> Builder:
    b = Builder()
    args = {
        name: b.rv(name, "gamma", {"alpha": 2, "beta": 1}) if value is None else value for name, value in args.items()
    }
    optional = {name: b.data(name) for name in fields}
    b.observe("obs", dist, args, b.data("y"), **optional)
    return b


WEIGHT = RANDOM.uniform(size=N)
MASK = RANDOM.integers(2, size=N).astype(np.uint8)


@pytest.mark.parametrize("fields", [{}, {"weight": WEIGHT}, {"mask": MASK}, {"weight": WEIGHT, "mask": MASK}])
@pytest.mark.parametrize("precision", ["f64", "f32"])
def test_carriers(fields: dict[str, np.ndarray], precision: str) -> None:
    b = counts("poisson", {"mu": None}, **fields)
    data = {"y": RANDOM.poisson(3, size=N), **fields}
    if "mask" in fields:
        data["y"] = np.where(MASK, data["y"], -7)
    relative = 1e-10 if precision == "f64" else 1e-4
    target = assert_agree(b, data, expected=[NAME], precision=precision, relative=relative)
    assert target.rewrites[0].node == "obs"


def test_normalizers_of_data_and_the_mean() -> None:
    b = Builder()
    mu = b.rv("mu", "normal", {"mu": 0, "sigma": 1})
    b.observe("obs", "student_t", {"nu": 3, "mu": mu, "sigma": b.data("sigma")}, b.data("y"), reduce="mean")
    data = {"sigma": RANDOM.uniform(1, 2, size=N), "y": RANDOM.normal(size=N)}
    assert_agree(b, data, expected=[NAME])


def test_an_observation_of_data_alone() -> None:
    b = Builder()
    b.rv("mu", "normal", {"mu": 0, "sigma": 1})
    b.observe("obs", "normal", {"mu": b.data("m"), "sigma": b.data("s")}, b.data("y"))
    data = {"m": RANDOM.normal(size=N), "s": RANDOM.uniform(1, 2, size=N), "y": RANDOM.normal(size=N)}
    target = assert_agree(b, data, expected=[NAME], rewrites=[NAME])
    assert [array.size for array in target.arguments.values()] == [1]


def test_a_bound_that_is_a_parameter_stays() -> None:
    """n is part of the carrier of a binomial."""
    b = counts("binomial_logit", {"n": 9, "logits": None})
    assert_agree(b, {"y": RANDOM.integers(10, size=N)}, expected=[NAME])
    b = Builder()
    n = b.call("round", b.call("exp", b.rv("n", "normal", {"mu": 3, "sigma": 0.1})))
    b.observe("obs", "binomial_logit", {"n": n, "logits": 0.5}, b.data("y"))
    assert bound(b, {"y": RANDOM.integers(3, size=N)}, rewrites=[NAME]).rewrites == ()


def test_values_outside_the_support_stay_outside() -> None:
    """A value that depends on a parameter is tested at run time."""
    b = Builder()
    mu = b.rv("mu", "gamma", {"alpha": 2, "beta": 1})
    shift = b.call("as_type", mu, type="s64")
    b.observe("obs", "poisson", {"mu": mu}, b.call("subtract", b.data("y"), shift))
    for first, outside in ((0, True), (1, False)):
        y = np.concatenate([[first], np.ones(N - 1, np.int64)])
        value, _ = bound(b, {"y": y}).value_and_gradient(np.zeros(1))
        assert np.isneginf(value) == outside


def test_the_program_of_the_data_is_compiled_with_the_others() -> None:
    b = standardized()
    b.deterministic("unlike_any_other_test", b.call("negate", 7.25))

    def target(seed: int):
        return bound(b, {"x": np.random.default_rng(seed).normal(size=N)})

    before = compilations()
    first = target(0)
    assert compilations() == before
    assert not has_programs(first)
    assert not compile_sampler(first).cached
    assert compilations() - before == 2
    second = target(1)
    assert has_programs(second)
    sampler = compile_sampler(second)
    assert sampler.cached
    second.arguments  # noqa: B018
    assert compilations() - before == 2
    assert not np.array_equal(*(jax.tree.leaves(each.arguments)[0] for each in (first, second)))
