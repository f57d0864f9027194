"""Wrong models and wrong data: each is refused with its class, its node, what was expected and what was found."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from engine.builder import Builder
from engine.model.densities import bind, outputs, terms
from engine.model.exmc_models import eight_schools
from nutkin.errors import InvalidData, InvalidModel, NutkinError
from nutkin.model import Spec, check, read

ADDRESS = bytes(32)


def unknown_operation(b: Builder) -> None:
    b.call("expo", 1)


def unknown_distribution(b: Builder) -> None:
    b.rv("x", "norml", {"mu": 0, "sigma": 1})


def missing_parameter(b: Builder) -> None:
    b.rv("x", "normal", {"mu": 0})


def extra_parameter(b: Builder) -> None:
    b.rv("x", "half_normal", {"sigma": 1, "mu": 0})


def discrete_variable(b: Builder) -> None:
    b.rv("k", "poisson", {"mu": 3})


def shape_too_small(b: Builder) -> None:
    b.rv("x", "normal", {"mu": b.call("broadcast", 0, shape=[3]), "sigma": 1}, shape=[2])


def scalar_shape_for_vector_parameters(b: Builder) -> None:
    b.rv("x", "normal", {"mu": b.call("broadcast", 0, shape=[3]), "sigma": 1}, shape=[])


def parameters_that_do_not_broadcast(b: Builder) -> None:
    b.rv("x", "normal", {"mu": b.call("broadcast", 0, shape=[3]), "sigma": b.call("broadcast", 1, shape=[2])})


def walk_without_shape(b: Builder) -> None:
    b.rv("w", "gaussian_random_walk", {"sigma": 1})


def walk_of_a_scalar(b: Builder) -> None:
    b.rv("w", "gaussian_random_walk", {"sigma": 1}, shape=[])


def mv_normal_of_a_scalar_mean(b: Builder) -> None:
    b.rv("x", "mv_normal", {"mu": 0, "cov": b.call("broadcast", 1, shape=[3, 3])})


def mv_normal_of_unequal_sizes(b: Builder) -> None:
    mu, cov = b.call("broadcast", 0, shape=[2]), b.call("broadcast", 1, shape=[3, 3])
    b.rv("x", "mv_normal", {"mu": mu, "cov": cov})


def mv_normal_of_an_oblong_matrix(b: Builder) -> None:
    mu, chol = b.call("broadcast", 0, shape=[3]), b.call("broadcast", 1, shape=[3, 2])
    b.rv("x", "mv_normal_cholesky", {"mu": mu, "chol": chol})


def simplex_of_one_part(b: Builder) -> None:
    b.rv("x", "dirichlet", {"alpha": b.call("broadcast", 1, shape=[1])})


def event_of_another_size(b: Builder) -> None:
    b.rv("x", "dirichlet", {"alpha": b.call("broadcast", 1, shape=[3])}, shape=[5, 4])


def unknown_transform(b: Builder) -> None:
    b.rv("x", "half_normal", {"sigma": 1}, transform="logg")


def transform_of_another_support(b: Builder) -> None:
    b.rv("x", "normal", {"mu": 0, "sigma": 1}, transform="log")


def ordered_scalar(b: Builder) -> None:
    b.rv("x", "normal", {"mu": 0, "sigma": 1}, transform="ordered")


def correlation_without_shape(b: Builder) -> None:
    b.rv("x", "lkj_corr", {"eta": 1})


def correlation_that_is_not_square(b: Builder) -> None:
    b.rv("x", "lkj_cholesky", {"eta": 1}, shape=[2, 3])


def covariance_that_is_a_number(b: Builder) -> None:
    b.rv("x", "mv_normal", {"mu": b.call("broadcast", 0.0, shape=[2]), "cov": 1})


def probability_that_is_no_vector(b: Builder) -> None:
    b.observe("x", "categorical", {"p": 0.5}, 1)


def improper_scalar_with_parameters(b: Builder) -> None:
    b.rv("x", "flat", {"mu": 0})


def noncentred_gamma(b: Builder) -> None:
    b.rv("x", "gamma", {"alpha": 1, "beta": 1}, centered=False)


def negative_scale(b: Builder) -> None:
    b.rv("x", "normal", {"mu": 0, "sigma": -1})


def empty_interval(b: Builder) -> None:
    b.rv("x", "uniform", {"lower": 2, "upper": 1.5})


def probability_above_one(b: Builder) -> None:
    b.observe("x", "bernoulli", {"p": 1.5}, 1)


def impossible_observation(b: Builder) -> None:
    b.observe("x", "poisson", {"mu": 1}, -1)


def count_above_n(b: Builder) -> None:
    b.observe("x", "binomial", {"n": 3, "p": 0.5}, 4)


def observation_of_a_column(b: Builder) -> None:
    mu, y = b.call("broadcast", 0, shape=[3, 1]), b.call("broadcast", 1, shape=[3])
    b.observe("obs", "normal", {"mu": mu, "sigma": 1}, y)


def wide_weight(b: Builder) -> None:
    b.observe("obs", "normal", {"mu": 0, "sigma": 1}, 1, weight=b.call("broadcast", 1, shape=[3]))


def wide_mask(b: Builder) -> None:
    y, mask = b.call("broadcast", 1, shape=[3]), b.call("broadcast", 1, shape=[3, 3])
    b.observe("obs", "normal", {"mu": 0, "sigma": 1}, y, mask=mask)


def wrong_declared_shape(b: Builder) -> None:
    b.nodes.append({"kind": "call", "op": "exp", "args": [b.index(1)], "name": "e", "shape": [2]})


def wrong_declared_type(b: Builder) -> None:
    b.nodes.append({"kind": "call", "op": "exp", "args": [b.index(1)], "name": "e", "type": "s64"})


def unknown_declared_type(b: Builder) -> None:
    b.nodes.append({"kind": "call", "op": "exp", "args": [b.index(1)], "name": "e", "type": "f65"})


def broadcast_failure(b: Builder) -> None:
    b.call("add", b.call("broadcast", 0, shape=[2]), b.call("broadcast", 0, shape=[3]))


def bad_axis(b: Builder) -> None:
    b.call("sum", b.call("broadcast", 0, shape=[2]), axes=[2])


def unknown_option(b: Builder) -> None:
    b.call("sum", b.call("broadcast", 0, shape=[2]), axis=0)


def fractional_indices(b: Builder) -> None:
    b.call("take", b.call("broadcast", 0, shape=[2]), 0.5)


def index_beyond_the_axis(b: Builder) -> None:
    b.call("take", b.call("broadcast", 0, shape=[2]), 2)


def negative_index(b: Builder) -> None:
    b.call("take", b.call("broadcast", 0, shape=[2]), -1)


# model, node, expected, found (parts of the sentences)
WRONG = [
    (unknown_operation, "expo", "exp", "expo"),
    (unknown_distribution, "x", "normal", "norml"),
    (missing_parameter, "x", "mu, sigma", "sigma missing"),
    (extra_parameter, "x", "sigma", "mu unknown"),
    (discrete_variable, "k", "continuous", "poisson"),
    (shape_too_small, "x", "{2}", "mu {3}"),
    (scalar_shape_for_vector_parameters, "x", "{}", "mu {3}"),
    (parameters_that_do_not_broadcast, "x", "equal or 1", "{3} and {2}"),
    (walk_without_shape, "w", "steps", "no shape"),
    (walk_of_a_scalar, "w", "{…, steps}", "{}"),
    (mv_normal_of_a_scalar_mean, "x", "{…, k}", "{}"),
    (mv_normal_of_unequal_sizes, "x", "one size k", "mu {2}, cov {3, 3}"),
    (mv_normal_of_an_oblong_matrix, "x", "one size k", "chol {3, 2}"),
    (simplex_of_one_part, "x", "at least 2", "1"),
    (event_of_another_size, "x", "{…, 3}", "{5, 4}"),
    (unknown_transform, "x", "log", "logg"),
    (transform_of_another_support, "x", "identity", "log"),
    (ordered_scalar, "x", "{…, k}", "{}"),
    (correlation_without_shape, "x", "{…, k, k}", "no shape"),
    (correlation_that_is_not_square, "x", "{…, k, k}", "{2, 3}"),
    (covariance_that_is_a_number, "x", "{…, k, k}", "{}"),
    (probability_that_is_no_vector, "x", "{…, k}", "{}"),
    (improper_scalar_with_parameters, "x", "no parameters", "mu unknown"),
    (noncentred_gamma, "x", "normal, student_t, cauchy, laplace, ", "gamma"),
    (negative_scale, "x", "positive", "-1"),
    (empty_interval, "x", "lower below upper", "lower 2, upper 1.5"),
    (probability_above_one, "x", "probability", "1.5"),
    (impossible_observation, "x", "at least 0", "-1"),
    (count_above_n, "x", "from 0 to n", "4"),
    (observation_of_a_column, "obs", "{3}", "mu {3, 1}"),
    (wide_weight, "obs", "{}", "{3}"),
    (wide_mask, "obs", "{3}", "{3, 3}"),
    (wrong_declared_shape, "e", "{2}", "{}"),
    (wrong_declared_type, "e", "s64", "f64"),
    (unknown_declared_type, "e", "f64", "f65"),
    (broadcast_failure, "add", "equal or 1", "{2} and {3}"),
    (bad_axis, "sum", "-1 to 0", "2"),
    (unknown_option, "sum", "keep_axes", "axis"),
    (fractional_indices, "take", "integer", "0.5"),
    (index_beyond_the_axis, "take", "indices from 0 to 1 indices start at 0", "2"),
    (negative_index, "take", "indices from 0 to 1", "-1"),
]


@pytest.mark.parametrize(
    ("build", "node", "expected", "found"), WRONG, ids=lambda value: getattr(value, "__name__", "")
)
def test_wrong_models(build: Callable[[Builder], None], node: str, expected: str, found: str) -> None:
    b = Builder()
    build(b)
    with pytest.raises(InvalidModel) as caught:
        bind(b.tree())
    error = caught.value
    assert (error.node, error.index) == (node, len(b.nodes) - 1)
    assert expected in f"{error.expected} {error.hint}"
    assert found in error.found
    assert re.match(rf"{node}(\(.*\))?: ", error.message)


def test_an_operation_is_known_by_its_operands() -> None:
    b = Builder()
    x, y = b.data("x"), b.data("y")
    b.call("add", b.call("multiply", 2, y), b.call("sum", b.call("multiply", x, b.constant(np.ones(2)))))
    with pytest.raises(InvalidModel) as caught:
        bind(b.tree(), {"x": np.ones(3), "y": np.ones(2)}, b.tensors)
    assert caught.value.message == "multiply(x, tensor): the shapes do not broadcast"


def test_what_an_operation_is_known_by_is_short() -> None:
    b = Builder()
    tower = b.call("exp", b.call("exp", b.call("exp", b.call("exp", b.data("y")))))
    b.call("reshape", b.call("stack", *[tower, 1, 2.5, 3, 4]), shape=[7])
    with pytest.raises(InvalidModel) as caught:
        bind(b.tree(), {"y": np.ones(())})
    assert caught.value.message.startswith("reshape(stack(exp(exp(…)), 1, 2.5, 3, …)): ")


def refused_data(error: type[NutkinError], data: dict[str, np.ndarray], **declared: Any) -> NutkinError:
    b = Builder()
    b.factor("f", b.data("y", **declared))
    with pytest.raises(error) as caught:
        bind(b.tree(), data)
    return caught.value


def test_missing_slot() -> None:
    tree, data = eight_schools()
    del data["sigma"]
    with pytest.raises(InvalidData) as caught:
        bind(tree, data)
    error = caught.value
    assert (error.node, error.expected, error.found) == ("sigma", "sigma, y", "y")


def test_unknown_slot() -> None:
    tree, data = eight_schools()
    with pytest.raises(InvalidData) as caught:
        bind(tree, {**data, "sigmas": data["sigma"]})
    error = caught.value
    assert (error.node, error.expected, error.hint) == ("sigmas", "sigma, y", "did you mean sigma?")


@pytest.mark.parametrize("shape", [[3], [2, None], [None, None, None], []])
def test_declared_shape_of_data(shape: list[int | None]) -> None:
    error = refused_data(InvalidData, {"y": np.ones((3, 4))}, shape=shape)
    assert (error.node, error.index, error.found) == ("y", 0, "{3, 4}")
    assert error.expected == "{" + ", ".join("?" if size is None else str(size) for size in shape) + "}"


def test_declared_type_of_data() -> None:
    error = refused_data(InvalidData, {"y": np.ones(3)}, type="s64")
    assert (error.node, error.expected, error.found) == ("y", "s64", "f64")


def test_complex_terms() -> None:
    error = refused_data(InvalidModel, {"y": np.ones(3, complex)})
    assert (error.node, error.message, error.found) == ("f", "f: the value is complex", "c128 {3}")


def test_complex_numbers_have_no_order() -> None:
    b = Builder()
    b.factor("f", b.call("max", b.data("y"), 0))
    with pytest.raises(InvalidModel) as caught:
        bind(b.tree(), {"y": np.ones(3, complex)})
    assert (caught.value.found, caught.value.expected) == ("c128", "real numbers")


def test_empty_data() -> None:
    assert refused_data(InvalidData, {"y": np.ones((3, 0))}).found == "{3, 0}"


def test_free_sizes_accept_any() -> None:
    b = Builder()
    b.factor("f", b.data("y", shape=[None, 4], type="f64"))
    density, _ = bind(b.tree(), {"y": np.ones((3, 4))})
    assert density.program.inputs[0].spec == Spec((3, 4), "f64")


def test_missing_blob() -> None:
    b = Builder()
    b.factor("f", b.constant(ADDRESS))
    with pytest.raises(InvalidData) as caught:
        check(read(b.tree()), {}, {})
    assert (caught.value.index, caught.value.found) == (0, ADDRESS.hex())


def test_inputs_of_an_f32_model_are_f32() -> None:
    b = Builder()
    y, n = b.data("y", type="f64"), b.data("n")
    z = b.call("as_type", n, type="f64")
    b.nodes[z.index]["type"] = "f64"
    x = b.rv("x", "normal", {"mu": 0.5, "sigma": 1})
    b.deterministic("d", b.call("divide", b.call("add", x, y), z))
    density, inputs = bind(b.tree(), {"y": np.ones(3), "n": np.arange(1, 4)}, precision="f32")
    assert {index: array.dtype.name for index, array in inputs.items()} == {0: "float32", 1: "int64"}
    assert density.parameters[0].type == "f32"
    assert density.deterministic[0].type == "f32"
    found = outputs(density, np.ones(1, np.float32), inputs)
    assert {name: array.dtype.name for name, array in found.items()} == {"x": "float32", "d": "float32"}


def test_a_scalar_is_observed_under_parameters_of_any_shape() -> None:
    b = Builder()
    x = b.rv("x", "normal", {"mu": 0, "sigma": 1}, shape=[4])
    b.observe("obs", "normal", {"mu": x, "sigma": 1}, 0)
    density, inputs = bind(b.tree())
    found = terms(density, np.arange(4.0), inputs)
    assert float(found["obs"]) == float(found["x"])


def test_a_tensor_that_no_machine_holds() -> None:
    b = Builder()
    b.rv("x", "normal", {"mu": 0, "sigma": 1}, shape=[2**30, 2**30])
    with pytest.raises(InvalidModel, match="too large") as caught:
        bind(b.tree())
    assert caught.value.node == "x"


def test_parameters_that_do_not_go_together() -> None:
    b = Builder()
    b.rv("x", "normal", {"mu": 0, "sigma": 2}, shape=[3], transform="ordered", centered=False)
    with pytest.raises(InvalidModel, match="x: centered: false is for values on the real line, without a transform"):
        check(read(b.tree()), {}, {})
    b = Builder()
    b.rv("x", "triangular", {"lower": 0, "c": 3, "upper": 2})
    with pytest.raises(InvalidModel, match="x: the mode c is outside of the interval; expected a number from 0 to 2"):
        check(read(b.tree()), {}, {})
    b = Builder()
    b.observe("x", "discrete_uniform", {"lower": 0.5, "upper": 3}, 1)
    with pytest.raises(InvalidModel, match="the parameter lower is outside its range; expected a whole number"):
        check(read(b.tree()), {}, {})


def test_a_log_density_of_a_matrix_that_is_not_square() -> None:
    b = Builder()
    x = b.rv("x", "normal", {"mu": 0, "sigma": 1}, shape=[4, 3])
    b.factor("f", b.log_prob("lkj_corr", {"eta": 1}, x))
    with pytest.raises(InvalidModel, match="the value has not the event axes of lkj_corr"):
        check(read(b.tree()), {}, {})
