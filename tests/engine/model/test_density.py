"""What a Density evaluates: terms, weights and masks, outputs, coordinates."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from engine.builder import Builder
from engine.model.densities import bind, finite_differences, log_density_and_gradient, outputs, terms
from engine.model.exmc_models import EXMC_MODELS, eight_schools, eight_schools_noncentered, reference
from nutkin.errors import InvalidOption
from nutkin.model.distributions import DISTRIBUTIONS

Y = np.array([0.3, -1.2, 2.0, 0.0])


def test_names_shapes_and_offsets() -> None:
    b = Builder()
    p = b.rv("p", "dirichlet", {"alpha": b.call("broadcast", 2, shape=[3])}, shape=[4, 3])
    s = b.rv("s", "half_normal", {"sigma": 1})
    w = b.rv("w", "gaussian_random_walk", {"sigma": s}, shape=[2, 5])
    b.observe("obs", "normal", {"mu": w, "sigma": s}, b.data("y"))
    b.deterministic("count", b.call("sum", b.call("greater", w, 0)))
    b.deterministic("p2", p)
    density, inputs = bind(b.tree(), {"y": np.zeros((2, 5))})
    assert density.dimension == 8 + 1 + 10
    rows = [(p.name, p.shape, p.type, p.size, p.offset) for p in density.parameters]
    assert rows == [("p", (4, 3), "f64", 8, 0), ("s", (), "f64", 1, 8), ("w", (2, 5), "f64", 10, 9)]
    assert [(d.name, d.shape, d.type) for d in density.deterministic] == [("count", (), "u32"), ("p2", (4, 3), "f64")]
    assert density.observed == ("obs",)
    position = np.linspace(-1, 1, 19)
    found = outputs(density, position, inputs)
    assert set(found) == {"p", "s", "w", "count", "p2"}
    for item in (*density.parameters, *density.deterministic):
        assert found[item.name].shape == item.shape
    np.testing.assert_allclose(found["p"].sum(-1), 1)
    np.testing.assert_array_equal(found["p"], found["p2"])
    np.testing.assert_array_equal(found["w"].ravel(), position[9:])


def test_terms_add_up() -> None:
    b = Builder()
    x = b.rv("x", "normal", {"mu": 0, "sigma": 2})
    s = b.rv("s", "gamma", {"alpha": 2, "beta": 3})
    b.observe("obs", "normal", {"mu": x, "sigma": s}, b.data("y"))
    b.factor("penalty", b.call("multiply", b.data("n"), x))
    density, inputs = bind(b.tree(), {"y": Y, "n": np.array([1, 2])})
    position = np.array([0.4, -0.2])
    found = terms(density, position, inputs)
    scale = np.exp(-0.2)
    expected = {
        "x": stats.norm.logpdf(0.4, 0, 2),
        "s": stats.gamma.logpdf(scale, 2, 0, 1 / 3) - 0.2,
        "obs": stats.norm.logpdf(Y, 0.4, scale).sum(),
        "penalty": 3 * 0.4,
    }
    assert {name: float(term) for name, term in found.items()} == pytest.approx(expected, rel=1e-12)
    total = log_density_and_gradient(density, inputs)(position)[0]
    assert float(total) == pytest.approx(sum(expected.values()), rel=1e-12)


WEIGHT = np.array([1.0, 0.5, 2.0, 3.0])
MASK = np.array([1, 0, 1, 1], np.uint8)


@pytest.mark.parametrize("reduce", ["sum", "mean"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_weight_mask_and_reduction(reduce: str, weighted: bool, masked: bool) -> None:
    b = Builder()
    x = b.rv("x", "normal", {"mu": 0, "sigma": 1})
    fields = {"weight": b.data("w")} if weighted else {}
    fields |= {"mask": b.data("m")} if masked else {}
    b.observe("obs", "normal", {"mu": x, "sigma": 1}, b.data("y"), reduce=reduce, **fields)
    data = {"y": Y} | ({"w": WEIGHT} if weighted else {}) | ({"m": MASK} if masked else {})
    density, inputs = bind(b.tree(), data)
    each = stats.norm.logpdf(Y, 0.7, 1) * (WEIGHT if weighted else 1) * (MASK if masked else 1)
    found = float(terms(density, np.array([0.7]), inputs)["obs"])
    assert found == pytest.approx(each.sum() if reduce == "sum" else each.mean(), rel=1e-12)


def test_parameters_alone_are_repeated_for_every_value() -> None:
    """The density of a uniform depends on no value, and still counts once for each."""
    b = Builder()
    high = b.rv("high", "normal", {"mu": 0, "sigma": 1})
    b.observe("obs", "uniform", {"lower": 0, "upper": high}, b.data("y"))
    density, inputs = bind(b.tree(), {"y": np.array([0.1, 0.2, 0.3])})
    assert float(terms(density, np.array([2.0]), inputs)["obs"]) == pytest.approx(-3 * np.log(2))
    assert float(terms(density, np.array([0.25]), inputs)["obs"]) == -np.inf


SMALL_PARAMETERS = {
    "scalars": lambda parameters: [parameter[0] for parameter in parameters],
    "rows": lambda parameters: [parameter[:3, None] for parameter in parameters],
    "columns": lambda parameters: [parameter[:4] for parameter in parameters],
    "full": lambda parameters: [np.resize(parameter, (3, 4)) for parameter in parameters],
    "mixed": lambda parameters: [parameters[0][:3, None], *(parameter[0] for parameter in parameters[1:])],
}


@pytest.mark.parametrize("shapes", SMALL_PARAMETERS)
@pytest.mark.parametrize("weight", [None, (), (4,), (3, 1), (3, 4)])
@pytest.mark.parametrize("name", ["student_t", "gamma", "uniform", "poisson_log", "binomial_logit", "neg_binomial"])
def test_observations_in_parts_are_those_in_one_piece(name: str, weight: tuple[int, ...] | None, shapes: str) -> None:
    """Whatever shape the normalizer has, the sum is that of the log density of each element."""
    family = DISTRIBUTIONS[name]
    rng = np.random.default_rng(3)
    parameters = SMALL_PARAMETERS[shapes](list(0.5 + rng.gamma(3.0, 1.0, (len(family.parameters), 5))))
    value = rng.integers(1, 4, (3, 4)).astype(float)
    if name == "uniform":
        parameters[1] = parameters[1] + parameters[0] + 5
        value = parameters[0] + value
    if name == "binomial_logit":
        parameters[0] = np.ceil(parameters[0]) + 4
    data = dict(zip(family.parameters, parameters, strict=True)) | {"y": np.broadcast_to(value, (3, 4))}
    b = Builder()
    args = {parameter: b.data(parameter) for parameter in family.parameters}
    fields = {} if weight is None else {"weight": b.data("w"), "mask": b.data("m")}
    b.observe("obs", name, args, b.data("y"), **fields)
    each = np.broadcast_to(family.log_density(data["y"], tuple(parameters)), (3, 4))
    if weight is not None:
        data |= {"w": rng.normal(size=weight), "m": rng.integers(0, 2, (*weight[:-1], 4) if weight else ())}
        each = each * data["w"] * data["m"]
    density, inputs = bind(b.tree(), data)
    with jax.disable_jit():
        found = density.terms(np.zeros(0), inputs)["obs"]
    assert float(found) == pytest.approx(each.sum(), rel=1e-12, abs=1e-12)


def test_masked_values_do_not_spoil_the_gradient() -> None:
    b = Builder()
    alpha = b.rv("alpha", "half_normal", {"sigma": 1})
    mask = b.data("m")
    b.observe("obs", "gamma", {"alpha": alpha, "beta": 2}, b.data("y"), mask=mask)
    density, inputs = bind(b.tree(), {"y": np.array([1.0, -5.0, 0.0]), "m": np.array([1, 0, 0])})
    density.check_values(inputs)
    evaluate = log_density_and_gradient(density, inputs)
    value, gradient = evaluate(np.array([0.3]))
    alpha_value = np.exp(0.3)
    expected = stats.halfnorm.logpdf(alpha_value) + 0.3 + stats.gamma.logpdf(1.0, alpha_value, 0, 0.5)
    assert float(value) == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(gradient, finite_differences(lambda q: evaluate(q)[0], np.array([0.3])), rtol=1e-7)


def test_a_computed_value_outside_the_support_has_no_density() -> None:
    b = Builder()
    x = b.rv("x", "normal", {"mu": 0, "sigma": 1})
    b.observe("obs", "exponential", {"rate": 1}, x)
    density, inputs = bind(b.tree())
    assert float(terms(density, np.array([2.0]), inputs)["obs"]) == -2
    assert float(terms(density, np.array([-2.0]), inputs)["obs"]) == -np.inf


@pytest.mark.parametrize("wrong", [np.inf, -np.inf])
def test_masked_infinities_do_not_spoil_the_gradient(wrong: float) -> None:
    b = Builder()
    mu, mask = b.rv("mu", "normal", {"mu": 0, "sigma": 1}), b.data("m")
    b.observe("one", "normal", {"mu": mu, "sigma": 1}, b.data("y"), mask=mask)
    means = b.call("broadcast", mu, shape=[2])
    b.observe("row", "mv_normal", {"mu": means, "cov": b.data("cov")}, b.data("rows"), mask=mask)
    data = {
        "y": np.array([wrong, 1.0]),
        "rows": np.array([[0.5, wrong], [1.0, 2.0]]),
        "m": np.array([0, 1]),
        "cov": np.eye(2),
    }
    value, gradient = log_density_and_gradient(*bind(b.tree(), data))(np.array([0.3]))
    assert np.isfinite(value)
    np.testing.assert_allclose(gradient, [-0.3 + 0.7 + 0.7 + 1.7])


def test_masked_weights_do_not_spoil_the_gradient() -> None:
    b = Builder()
    mu = b.rv("mu", "normal", {"mu": 0, "sigma": 1})
    b.observe("obs", "normal", {"mu": mu, "sigma": 1}, b.data("y"), mask=b.data("m"), weight=b.data("w"))
    data = {"y": np.array([1.0, 5.0]), "m": np.array([1, 0]), "w": np.array([2.0, np.inf])}
    value, gradient = log_density_and_gradient(*bind(b.tree(), data))(np.array([0.3]))
    assert np.isfinite(value)
    np.testing.assert_allclose(gradient, [-0.3 + 2 * 0.7])


def test_a_computed_mask_guards_the_support_too() -> None:
    b = Builder()
    x = b.rv("x", "normal", {"mu": 0, "sigma": 1})
    b.observe("obs", "exponential", {"rate": 1}, b.data("y"), mask=b.call("greater", x, 0))
    density, inputs = bind(b.tree(), {"y": np.array([3.0, -1.0])})
    density.check_values(inputs)
    assert float(terms(density, np.array([1.0]), inputs)["obs"]) == -np.inf
    assert float(terms(density, np.array([-1.0]), inputs)["obs"]) == 0


def test_a_model_without_parameters() -> None:
    b = Builder()
    b.deterministic("d", 2)
    density, inputs = bind(b.tree())
    assert density.dimension == 0
    assert float(density.log_density(jnp.zeros(0), inputs)) == 0
    assert int(outputs(density, jnp.zeros(0), inputs)["d"]) == 2


def test_nodes_that_only_outputs_need_are_not_in_the_density() -> None:
    b = Builder()
    x = b.rv("x", "normal", {"mu": 0, "sigma": 1})
    b.deterministic("d", b.call("tanh", x))
    density, inputs = bind(b.tree())
    traced = str(jax.make_jaxpr(lambda q: density.log_density(q, inputs))(np.zeros(1)))
    assert "tanh" not in traced
    assert "tanh" in str(jax.make_jaxpr(lambda q: density.outputs(q, inputs))(np.zeros(1)))


def test_a_shared_node_is_evaluated_once() -> None:
    b = Builder()
    x = b.rv("x", "normal", {"mu": 0, "sigma": 1})
    for _ in range(30):
        x = b.call("add", b.call("sin", x), x)
    b.factor("f", x)
    density, inputs = bind(b.tree())
    assert str(jax.make_jaxpr(lambda q: density.log_density(q, inputs))(np.zeros(1))).count(" sin ") == 30


def test_no_scatter_comes_of_reading_the_position() -> None:
    density, inputs = bind(*eight_schools())
    traced = str(jax.make_jaxpr(jax.grad(lambda q: density.log_density(q, inputs)))(np.zeros(10)))
    assert "scatter" not in traced
    assert "gather" not in traced


@pytest.mark.parametrize("name", EXMC_MODELS)
def test_f32_models_compute_in_f32(name: str) -> None:
    density, inputs = bind(*EXMC_MODELS[name](), precision="f32")
    position = np.linspace(-0.5, 0.5, density.dimension, dtype=np.float32)
    value = jax.jit(lambda q: density.log_density(q, inputs))(position)
    assert value.dtype == np.float32
    assert float(value) == pytest.approx(reference("fixtures")[name]["lin"], rel=1e-5)
    traced = str(jax.make_jaxpr(jax.grad(lambda q: density.log_density(q, inputs)))(position))
    assert "f64" not in traced


@pytest.mark.parametrize("family", [name for name, family in DISTRIBUTIONS.items() if family.location_scale])
def test_noncentred_families(family: str) -> None:
    """The same density of x, in the coordinates z = (x - mu) / sigma."""
    densities = []
    for centered in (True, False):
        b = Builder()
        location, scale = DISTRIBUTIONS[family].location_scale
        shapes = dict.fromkeys(DISTRIBUTIONS[family].parameters, 0.7)
        b.rv("x", family, {**shapes, location: b.data("m"), scale: b.data("s")}, centered=centered)
        density, inputs = bind(b.tree(), {"m": np.array([1.0, -2.0]), "s": np.array([0.5, 3.0])})
        position, _ = density.unconstrain({"x": np.array([2.0, 4.0])}, inputs)
        densities.append(float(terms(density, position, inputs)["x"]))
    np.testing.assert_allclose(position, [2.0, 2.0], rtol=1e-12)
    assert densities[1] == pytest.approx(densities[0] + np.log(0.5 * 3.0), rel=1e-12)


def test_unconstrain_some() -> None:
    density, inputs = bind(*eight_schools())
    position, given = density.unconstrain({"tau": np.array(3.0)}, inputs)
    assert given.tolist() == [False, True] + [False] * 8
    np.testing.assert_allclose(position, [0, np.log(3), *[0] * 8])


@pytest.mark.parametrize(("family", "transform"), [("flat", "ordered"), ("half_flat", "positive_ordered")])
def test_unconstrain_numbers_in_order(family: str, transform: str) -> None:
    b = Builder()
    b.rv("mu", family, {}, shape=[2, 3], transform=transform)
    density, inputs = bind(b.tree())
    values = np.array([[1.0, 2.0, 4.0], [0.5, 3.0, 3.5]])
    position, _ = density.unconstrain({"mu": values}, inputs)
    np.testing.assert_allclose(outputs(density, position, inputs)["mu"], values, rtol=1e-12)


def test_unconstrain_inverts_outputs() -> None:
    density, inputs = bind(*eight_schools_noncentered())
    position = np.linspace(-2, 2, 10)
    values = {name: np.asarray(value) for name, value in outputs(density, position, inputs).items()}
    found, given = density.unconstrain(values, inputs)
    assert given.all()
    np.testing.assert_allclose(found, position, rtol=1e-12)


def simplex_and_interval():
    b = Builder()
    low = b.rv("low", "normal", {"mu": 0, "sigma": 1})
    b.rv("u", "uniform", {"lower": low, "upper": 9})
    b.rv("p", "dirichlet", {"alpha": b.call("broadcast", 1, shape=[3])})
    b.rv("tau", "half_normal", {"sigma": 1}, shape=[2])
    b.rv("mu", "flat", {}, shape=[3], transform="ordered")
    return bind(b.tree())


IMPOSSIBLE = [
    ({"taus": np.ones(2)}, None, "low, u, p, tau, mu", "taus"),
    ({"tau": np.ones(3)}, "tau", "{2}", "{3}"),
    ({"tau": np.array([1.0, -2.0])}, "tau", "at least 0", "-2.0 at [1]"),
    ({"tau": np.array([1.0, 0.0])}, "tau", "not at its boundary", "boundary"),
    ({"tau": np.array([1.0, np.nan])}, "tau", "finite", "nan"),
    ({"p": np.array([0.5, 0.5, 0.5])}, "p", "sum to 1", "[0.5 0.5 0.5]"),
    ({"mu": np.array([1.0, 3.0, 2.0])}, "mu", "numbers that increase", "[1. 3. 2.]"),
    ({"u": np.array(3.0)}, "low", "low", "u"),
    ({"u": np.array(3.0), "low": np.array(4.0)}, "u", "lower to upper", "3.0"),
]


@pytest.mark.parametrize(("values", "node", "expected", "found"), IMPOSSIBLE)
def test_unconstrain_refuses(values: dict[str, np.ndarray], node: str | None, expected: str, found: str) -> None:
    density, inputs = simplex_and_interval()
    with pytest.raises(InvalidOption) as caught:
        density.unconstrain(values, inputs)
    assert caught.value.node == node
    assert expected in caught.value.expected
    assert found in caught.value.found


def test_unconstrain_names_the_missing_parent_of_a_noncentred_parameter() -> None:
    density, inputs = bind(*eight_schools_noncentered())
    with pytest.raises(InvalidOption, match="tau is needed") as caught:
        density.unconstrain({"theta": np.ones(8), "mu": np.array(0.0)}, inputs)
    assert caught.value.node == "tau"


def test_outputs_can_be_mapped_over_positions() -> None:
    density, inputs = bind(*eight_schools())
    positions = np.random.default_rng(1).normal(size=(7, 10))
    mapped = jax.vmap(lambda q: density.outputs(q, inputs))(positions)
    assert mapped["theta"].shape == (7, 8)
    np.testing.assert_allclose(mapped["tau"], np.exp(positions[:, 1]), rtol=1e-12)
