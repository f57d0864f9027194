"""Checks of concrete data: NaN, impossible observations and parameters, and how little memory they need."""

from __future__ import annotations

import threading
import tracemalloc
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from engine.builder import Builder
from engine.model.densities import bind, outputs
from nutkin.compile import bind as target_of
from nutkin.errors import InvalidData
from nutkin.model import read


def observe(dist: str, args: dict[str, Any], y: Any, *, mask: Any = None):
    """A model that observes slot y under parameters that are numbers or, if arrays, slots of their own."""
    b = Builder()
    data = {"y": np.asarray(y)}
    slot = b.data("y")
    data |= {name: value for name, value in args.items() if isinstance(value, np.ndarray)}
    nodes = {name: b.data(name) if isinstance(value, np.ndarray) else value for name, value in args.items()}
    fields = {}
    if mask is not None:
        data["mask"] = np.asarray(mask)
        fields["mask"] = b.data("mask")
    b.observe("obs", dist, nodes, slot, **fields)
    return bind(b.tree(), data)


IMPOSSIBLE = [
    ("poisson", {"mu": 1}, [0, 3, -1, -2], "at least 0", "-1 at [2]", "2 values are"),
    ("poisson", {"mu": 1}, [0.0, 1.5], "whole", "1.5 at [1]", "1 value is"),
    ("bernoulli", {"p": 0.5}, [[0, 1], [2, 1]], "0 or 1", "2 at [1, 0]", "1 value is"),
    ("bernoulli_logit", {"logits": 0}, np.array([0, 255], np.uint8), "0 or 1", "255 at [1]", "1 value is"),
    ("binomial", {"n": np.array([3, 2]), "p": 0.5}, [3, 3], "0 to n", "3 at [1]", "1 value is"),
    ("binomial", {"n": 2, "p": 0.5}, [1, 3], "0 to n", "3 at [1]", "1 value is"),
    ("gamma", {"alpha": 1, "beta": 1}, [1.0, 0.0], "positive", "0.0 at [1]", "1 value is"),
    ("lognormal", {"mu": 0, "sigma": 1}, [1.0, -1.0], "positive", "-1.0 at [1]", "1 value is"),
    ("beta", {"alpha": 1, "beta": 1}, [0.5, 1.0], "(0, 1)", "1.0 at [1]", "1 value is"),
    (
        "uniform",
        {"lower": 0, "upper": np.array([1.0, 2.0])},
        [1.5, 1.5],
        "lower to upper",
        "1.5 at [0]",
        "1 value is",
    ),
    ("half_normal", {"sigma": 1}, np.float32([0.0, -0.5]), "at least 0", "-0.5 at [1]", "1 value is"),
    ("dirichlet", {"alpha": np.ones(2)}, [[0.5, 0.5], [0.5, 0.6]], "sum to 1", "[0.5, 0.6] at [1]", "1 value is"),
    ("categorical", {"p": np.array([0.5, 0.5])}, [0, 1, 2], "0 to 1", "2 at [2]", "1 value is"),
    ("ordered_logistic", {"eta": 0, "cutpoints": np.array([0.0, 1.0])}, [0, 3], "0 to 2", "3 at [1]", "1 value is"),
    ("multinomial", {"n": 3, "p": np.array([0.5, 0.5])}, [[1, 2], [2, 2]], "sum to n", "[2, 2] at [1]", "1 value is"),
    (
        "multinomial",
        {"n": np.array([3, 4]), "p": np.array([0.5, 0.5])},
        [[1, 2], [1, 2]],
        "sum to n",
        "[1, 2] at [1]",
        "1 value is",
    ),
    ("geometric", {"p": 0.5}, [1, 0], "at least 1", "0 at [1]", "1 value is"),
    ("pareto", {"y_min": 2, "alpha": 1}, [2.0, 1.5], "at least y_min", "1.5 at [1]", "1 value is"),
    ("lkj_corr", {"eta": 1}, [[1.0, 0.5], [0.4, 1.0]], "correlation matrix", "[[1.0, 0.5], [0.4, 1.0]]", "1 value is"),
    (
        "wishart",
        {"nu": 3, "scale": np.eye(2)},
        -np.eye(2),
        "positive definite",
        "[[-1.0, -0.0], [-0.0, -1.0]]",
        "1 value is",
    ),
    ("zero_sum_normal", {"sigma": 1}, [1.0, -0.5], "sum to 0", "[1.0, -0.5]", "1 value is"),
]

ORIGIN = np.zeros(2)
IMPOSSIBLE_PARAMETERS = [
    ("mv_normal", {"mu": ORIGIN, "cov": np.array([[1.0, 2.0], [2.0, 1.0]])}, "cov", "positive", "[[1.0, 2.0]"),
    ("mv_normal", {"mu": ORIGIN, "cov": np.array([[1.0, 0.5], [0.4, 1.0]])}, "cov", "symmetric", "[[1.0, 0.5]"),
    ("mv_normal_cholesky", {"mu": ORIGIN, "chol": np.array([[1.0, 0.5], [0.0, 1.0]])}, "chol", "zeros above", "[[1."),
    ("uniform", {"lower": np.array([0.0, 1.0]), "upper": np.array([1.0, 0.5])}, "upper", "above lower", "0.5 at [1]"),
    (
        "triangular",
        {"lower": ORIGIN, "c": np.array([0.5, 2.0]), "upper": np.ones(2)},
        "c",
        "from lower to upper",
        "2.0 at [1]",
    ),
    ("car", {"mu": ORIGIN, "adjacency": np.eye(2), "alpha": 0.5, "tau": 1}, "adjacency", "on its diagonal", "[[1."),
    ("icar_edges", {"edges": np.array([[0, 1], [1, 2]]), "sigma": 1}, "edges", "indices from 0 to 1", "[1, 2] at [1]"),
    ("icar_edges", {"edges": np.array([[0, 1], [1, 1]]), "sigma": 1}, "edges", "two different", "[1, 1] at [1]"),
]
IMPOSSIBLE_EVENTS = [
    ("wishart", {"nu": np.array(1.0), "scale": np.eye(2)}, np.eye(2), "nu", "above k - 1, which is 1", "1.0"),
    ("inv_wishart", {"nu": np.array([2.5, 2.0]), "scale": np.eye(3)}, np.eye(3), "nu", "which is 2", "2.0 at [1]"),
    ("categorical", {"p": np.array([0.5, 0.6])}, 1, "p", "sum to 1", "[0.5, 0.6]"),
    ("ordered_probit", {"eta": 0, "cutpoints": np.array([1.0, 0.0])}, 1, "cutpoints", "increase", "[1.0, 0.0]"),
]


@pytest.mark.parametrize(
    ("dist", "args", "y", "name", "expected", "found"),
    [(dist, args, np.zeros(2), *rest) for dist, args, *rest in IMPOSSIBLE_PARAMETERS] + IMPOSSIBLE_EVENTS,
)
def test_impossible_vectors_and_matrices_of_parameters(
    dist: str, args: dict, y: Any, name: str, expected: str, found: str
) -> None:
    density, inputs = observe(dist, args, y)
    with pytest.raises(InvalidData, match=f"the parameter {name} of obs: 1 value is impossible") as caught:
        density.check_values(inputs)
    assert expected in caught.value.expected
    assert caught.value.found.startswith(found)


@pytest.mark.parametrize(("dist", "args", "y", "expected", "found", "count"), IMPOSSIBLE)
def test_impossible_observations(dist: str, args: dict, y: Any, expected: str, found: str, count: str) -> None:
    density, inputs = observe(dist, args, y)
    with pytest.raises(InvalidData) as caught:
        density.check_values(inputs)
    error = caught.value
    assert (error.node, error.index) == ("obs", len(density.program.steps) - 1)
    assert expected in error.expected
    assert error.found == found
    assert f"the observed value of obs: {count}" in error.message


def test_impossible_parameters() -> None:
    density, inputs = observe("normal", {"mu": 0, "sigma": np.array([1.0, 0.0])}, [1.0, 1.0])
    with pytest.raises(InvalidData, match="the parameter sigma of obs") as caught:
        density.check_values(inputs)
    assert (caught.value.expected, caught.value.found) == ("a positive number", "0.0 at [1]")


def test_possible_data_pass() -> None:
    for dist, args, y in [
        ("poisson", {"mu": 1}, [0.0, 7.0]),
        ("bernoulli", {"p": 0.5}, np.array([0, 1], np.int8)),
        ("poisson", {"mu": 1}, np.array([0, 3], ml_dtypes.uint2)),
        ("binomial", {"n": np.array([[3], [2]]), "p": 0.5}, [[3, 0], [2, 1]]),
        ("exponential", {"rate": 1}, [0.0, 1.0]),
        ("uniform", {"lower": 0, "upper": 1}, [0.0, 1.0]),
        ("normal", {"mu": 0, "sigma": 1}, [-1e300, 1e300]),
        ("uniform", {"lower": np.array([0.0, -np.inf]), "upper": np.array([np.inf, 1.0])}, [0.5, 0.5]),
        ("dirichlet", {"alpha": np.ones(3)}, np.float32([[0.1, 0.2, 0.7]])),
        ("normal", {"mu": 0, "sigma": 1}, np.array([1, 2], ml_dtypes.bfloat16)),
    ]:
        density, inputs = observe(dist, args, y)
        density.check_values(inputs)


@pytest.mark.parametrize(
    ("dist", "args", "y", "expected", "found", "count"),
    [
        ("normal", {"mu": 0, "sigma": 1}, [0.0, np.inf, -np.inf], "a finite number", "infinity at [1]", "2 values are"),
        (
            "lognormal",
            {"mu": 0, "sigma": 1},
            np.float32([1.0, np.inf]),
            "a finite number",
            "infinity at [1]",
            "1 value is",
        ),
        ("poisson", {"mu": 1}, [[0.0, 1.0], [np.inf, 2.0]], "a finite number", "infinity at [1, 0]", "1 value is"),
        ("normal", {"mu": 0, "sigma": 1}, ml_dtypes.bfloat16(-np.inf), "a finite number", "-infinity", "1 value is"),
        (
            "mv_normal",
            {"mu": np.zeros(2), "cov": np.eye(2)},
            [[0.0, 1.0], [2.0, np.inf]],
            "finite numbers",
            "[2.0, infinity] at [1]",
            "1 value is",
        ),
    ],
)
def test_infinite_observations(dist: str, args: dict, y: Any, expected: str, found: str, count: str) -> None:
    density, inputs = observe(dist, args, y)
    with pytest.raises(InvalidData, match=f"the observed value of obs: {count} impossible") as caught:
        density.check_values(inputs)
    error = caught.value
    assert (error.node, error.expected, error.found) == ("obs", expected, found)
    assert "mask" in error.hint


def test_infinite_observations_that_are_masked_or_ends_of_intervals() -> None:
    density, inputs = observe("normal", {"mu": 0, "sigma": 1}, [0.0, np.inf], mask=[1, 0])
    density.check_values(inputs)
    interval = {"name": "interval_censored", "components": ["normal"]}
    density, inputs = observe(interval, {"0.mu": 0, "0.sigma": 1}, [[-np.inf, 1.0], [2.0, np.inf]])
    density.check_values(inputs)


def test_masked_observations_may_be_anything_but_nan() -> None:
    density, inputs = observe("poisson", {"mu": 1}, [1.0, -1.0], mask=[1, 0])
    density.check_values(inputs)
    density, inputs = observe("poisson", {"mu": 1}, [1.0, -1.0], mask=[0, 1])
    with pytest.raises(InvalidData):
        density.check_values(inputs)
    density, inputs = observe("dirichlet", {"alpha": np.ones(2)}, [[0.5, 0.5], [0.0, 0.0]], mask=[1, 0])
    density.check_values(inputs)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2])
def test_nan(dtype: type) -> None:
    y = np.zeros((300, 400))
    y[200, 7] = y[299, 399] = np.nan
    density, inputs = observe("normal", {"mu": 0, "sigma": 1}, y.astype(dtype))
    with pytest.raises(InvalidData) as caught:
        density.check_values(inputs)
    error = caught.value
    assert (error.node, error.index, error.found) == ("y", 0, "NaN at [200, 7]")
    assert "y: 2 of 120000 elements are NaN" in error.message


def test_nan_in_a_constant() -> None:
    b = Builder()
    b.factor("f", b.constant(bytes(32)))
    density, inputs = bind(b.tree(), blobs={bytes(32): np.array([1.0, np.nan])})
    with pytest.raises(InvalidData) as caught:
        density.check_values(inputs)
    assert (caught.value.node, caught.value.index) == ("constant", 0)


@pytest.mark.parametrize(
    ("indices", "found", "count"),
    [
        (np.array([0, 1, 2, 2, 3]), "3 at [4]", "1 value is"),
        (np.array([[1, -1], [2, 9]], np.int32), "-1 at [0, 1]", "2 values are"),
        (np.array([2**64 - 1], np.uint64), f"{2**64 - 1} at [0]", "1 value is"),
        (np.array([0, 3], ml_dtypes.uint2), "3 at [1]", "1 value is"),
        (np.array(3), "3", "1 value is"),
    ],
)
def test_indices_outside_their_axis(indices: np.ndarray, found: str, count: str) -> None:
    for constant in (False, True):
        b = Builder()
        x = b.data("x")
        group = b.constant(bytes(32)) if constant else b.data("group")
        b.factor("f", b.call("take", x, group, axis=-1))
        data = {"x": np.zeros((5, 3))} | ({} if constant else {"group": indices})
        density, inputs = bind(b.tree(), data, {bytes(32): indices} if constant else {})
        with pytest.raises(InvalidData) as caught:
            density.check_values(inputs)
        error = caught.value
        assert (error.node, error.index, error.expected, error.found, error.hint) == (
            "take", 2, "indices from 0 to 2", found, "indices start at 0",
        )  # fmt: skip
        called = "2 of take(x, tensor)" if constant else "group of take(x, group)"
        assert error.message == f"the operand {called}: {count} impossible"


def test_indices_within_their_axis_pass_and_those_of_parameters_are_moved_into_it() -> None:
    b = Builder()
    x, group = b.data("x"), b.data("group")
    b.deterministic("given", b.call("take", x, group))
    shift = b.call("as_type", b.rv("shift", "normal", {"mu": 0, "sigma": 1}), type="s64")
    b.deterministic("of a parameter", b.call("take", x, b.call("add", group, shift)))
    density, inputs = bind(b.tree(), {"x": np.array([5.0, 6.0, 7.0]), "group": np.array([2, 0], np.uint8)})
    density.check_values(inputs)
    assert density.checked == ()
    values = outputs(density, np.array([-9.0]), inputs)
    np.testing.assert_array_equal(values["given"], [7.0, 5.0])
    np.testing.assert_array_equal(values["of a parameter"], [5.0, 5.0])


def computed_index(b: Builder) -> None:
    b.factor("f", b.call("take", b.data("x"), b.call("subtract", b.data("group"), 1)))


def computed_count(b: Builder) -> None:
    b.observe("o", "poisson", {"mu": 1}, b.call("subtract", b.data("x"), 5.5))


def computed_scale(b: Builder) -> None:
    b.observe("o", "normal", {"mu": 0, "sigma": b.call("subtract", b.data("x"), 6)}, 1.0)


def computed_observation(b: Builder) -> None:
    b.observe("o", "normal", {"mu": 0, "sigma": 1}, b.call("log", b.call("subtract", b.data("x"), 5)))


def computed_from_numbers(b: Builder) -> None:
    scale = b.call("subtract", b.call("exp", 0.0), 5.0)
    b.observe("o", "normal", {"mu": 0, "sigma": scale}, b.data("x"))


@pytest.mark.parametrize(
    ("build", "group", "node", "expected", "found"),
    [
        (computed_index, [1, 4], "take", "indices from 0 to 2", "3 at [1]"),
        (computed_index, [0, 1], "take", "indices from 0 to 2", "-1 at [0]"),
        (computed_count, None, "o", "a whole number of at least 0", "-0.5 at [0]"),
        (computed_scale, None, "o", "a positive number", "-1.0 at [0]"),
        (computed_observation, None, "o", "a finite number", "-infinity at [0]"),
        (computed_from_numbers, None, "o", "a positive number", "-4.0"),
    ],
)
def test_values_computed_from_data(
    build: Callable[[Builder], None], group: list[int] | None, node: str, expected: str, found: str
) -> None:
    b = Builder()
    build(b)
    data = {"x": np.array([5.0, 6.5, 7.5])} | ({} if group is None else {"group": np.array(group)})
    target = target_of(read(b.tree()), data, {})
    with pytest.raises(InvalidData) as caught:
        _ = target.arguments
    assert (caught.value.node, caught.value.expected, caught.value.found) == (node, expected, found)


def test_values_computed_from_data_that_are_possible() -> None:
    b = Builder()
    computed_index(b)
    target = target_of(read(b.tree()), {"x": np.array([5.0, 6.0, 7.0]), "group": np.array([3, 1])}, {})
    assert float(target.value_and_gradient(np.zeros(0))[0]) == 12.0


def test_the_place_in_a_scalar_is_not_told() -> None:
    density, inputs = observe("poisson", {"mu": 1}, -1)
    with pytest.raises(InvalidData) as caught:
        density.check_values(inputs)
    assert caught.value.found == "-1"


def test_checks_need_little_memory() -> None:
    y = np.zeros(4_000_000)
    density, inputs = observe("poisson", {"mu": 1}, y, mask=np.ones(1, np.uint8))
    for thread in threading.enumerate():  # those that store programs of tests before this one
        if thread.name == "store":
            thread.join()
    tracemalloc.start()
    try:
        density.check_values(inputs)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 0.15 * y.nbytes
