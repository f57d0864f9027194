"""Parameters whose centering a pilot decides: the density is that of the model, and it sees what the data say."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import nutkin
from engine.builder import Builder
from nutkin.compile import Target, bind
from nutkin.errors import Cancelled, InvalidModel
from nutkin.model import read
from nutkin.sampler import Options, centered, compile_sampler

FAMILIES = {
    "normal": {"mu", "sigma"},
    "student_t": {"nu", "mu", "sigma"},
    "gumbel": {"mu", "beta"},
    "skew_normal": {"xi", "omega", "alpha"},
}


def hierarchy(centering: bool | str, size: int = 3, dist: str = "normal") -> dict:
    b = Builder()
    mu = b.rv("mu", "normal", {"mu": 0, "sigma": 5})
    tau = b.rv("tau", "half_normal", {"sigma": 2})
    known = {"mu": mu, "xi": mu, "sigma": tau, "beta": tau, "omega": tau, "nu": 4, "alpha": 1.5}
    theta = b.rv("theta", dist, {name: known[name] for name in FAMILIES[dist]}, shape=[size], centered=centering)
    b.observe("y", "normal", {"mu": b.call("take", theta, b.data("group")), "sigma": 1}, b.data("values"))
    return b.tree()


def data(sizes: list[int], tau: float = 0.5) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    group = np.repeat(np.arange(len(sizes)), sizes)
    theta = 1 + tau * rng.normal(size=len(sizes))
    return {"group": group, "values": theta[group] + rng.normal(size=len(group))}


def bound(centering: bool | str, dist: str = "normal", **options: str) -> Target:
    return bind(read(hierarchy(centering, dist=dist)), data([1, 5, 100]), {}, rewrites=(), **options)


VALUES = {"mu": np.array(0.7), "tau": np.array(0.4), "theta": np.array([1.0, -0.3, 0.9])}


@pytest.mark.parametrize("dist", FAMILIES)
def test_the_density_is_that_of_the_parameter_with_the_jacobian(dist: str) -> None:
    weights = np.array([0.0, 0.3, 1.0])
    auto, plain = bound("auto", dist).centered({"theta": weights}), bound(True, dist)
    position, is_given = auto.unconstrain(VALUES)
    assert is_given.all()
    found, gradient = auto.value_and_gradient(position)
    expected = plain.value_and_gradient(plain.unconstrain(VALUES)[0])[0] + (1 - weights).sum() * np.log(0.4)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    outputs = auto.outputs(position, auto.arguments)
    for name, value in VALUES.items():
        np.testing.assert_allclose(outputs[name], value, rtol=1e-12)
    numeric = jax.grad(lambda q: auto.log_density(q, auto.arguments))(position)
    np.testing.assert_allclose(gradient, numeric, rtol=1e-10)


def test_the_ends_are_the_two_forms() -> None:
    for weight, centering in ((0, False), (1, True)):
        auto, plain = bound("auto").centered({"theta": np.full(3, weight)}), bound(centering)
        np.testing.assert_allclose(auto.unconstrain(VALUES)[0], plain.unconstrain(VALUES)[0], rtol=1e-12)
        position = auto.unconstrain(VALUES)[0]
        for mine, other in zip(auto.value_and_gradient(position), plain.value_and_gradient(position), strict=True):
            np.testing.assert_allclose(mine, other, rtol=1e-12)


def test_a_pilot_sees_what_the_data_say_of_each_element() -> None:
    sizes = [1] * 10 + [10] * 10 + [300] * 10
    target = bind(read(hierarchy("auto", len(sizes))), data(sizes), {})
    sampler, pilot = centered(compile_sampler(target), Options(seed=3))
    weights = pilot.weights["theta"]
    assert (weights[:10] < 0.5).all()
    assert (weights[20:] > 0.7).all()
    assert weights[:10].mean() < weights[10:20].mean() < weights[20:].mean()
    assert pilot.gradients > 0
    np.testing.assert_array_equal(sampler.target.arrays[target.centerings["theta"]], weights)


def test_little_data_stay_as_they_are() -> None:
    y, sigma = np.array([28.0, 8, -3, 7, -1, 1, 18, 12]), np.array([15.0, 10, 16, 11, 9, 11, 10, 18])
    b = Builder()
    mu, tau = b.rv("mu", "normal", {"mu": 0, "sigma": 5}), b.rv("tau", "half_cauchy", {"sigma": 5})
    theta = b.rv("theta", "normal", {"mu": mu, "sigma": tau}, shape=[8], centered="auto")
    b.observe("y", "normal", {"mu": theta, "sigma": b.data("sigma")}, b.data("values"))
    draws = nutkin.sample(b.tree(), {"values": y, "sigma": sigma}, seed=1)
    assert (draws.pilot.weights["theta"] < 0.4).all()
    assert abs(draws.variables["mu"].mean() - 4.4) < 0.4


@pytest.mark.statistical
@pytest.mark.parametrize("options", [{}, {"chains": 1}, {"mass_matrix": "dense"}, {"precision": "f32"}], ids=str)
def test_the_posterior_is_that_of_the_centered_model(options: dict) -> None:
    sizes = [1] * 6 + [100] * 6
    values = data(sizes)
    auto = nutkin.sample(hierarchy("auto", len(sizes)), values, seed=2, draws=2000, **options)
    plain = nutkin.sample(hierarchy(False, len(sizes)), values, seed=2, draws=4000)
    assert (auto.pilot.weights["theta"][6:] > 0.3).all()
    for name in ("mu", "tau", "theta"):
        mine, other = auto.variables[name], plain.variables[name]
        sd = other.std((0, 1))
        np.testing.assert_allclose(mine.mean((0, 1)), other.mean((0, 1)), atol=0.12 * sd.max())
        np.testing.assert_allclose(mine.std((0, 1)), sd, rtol=0.15)


def test_where_there_is_no_pilot() -> None:
    assert nutkin.sample(hierarchy(True), data([1, 2, 3]), draws=10, warmup=10).pilot is None
    draws = nutkin.sample(hierarchy("auto"), data([1, 2, 3]), draws=10, warmup=0)
    assert draws.pilot is None


def test_a_pilot_can_be_stopped() -> None:
    target = bind(read(hierarchy("auto")), data([1, 2, 3]), {})
    with pytest.raises(Cancelled):
        centered(compile_sampler(target), Options(), lambda: True)


def test_predictions_need_no_centering() -> None:
    draws = {"mu": np.zeros((1, 2)), "tau": np.ones((1, 2))}
    found = nutkin.predict(hierarchy("auto"), draws, {"group": np.array([0, 2])}, redraw=["theta"])
    assert {name: value.shape for name, value in found.items()} == {"theta": (1, 2, 3), "y": (1, 2, 2)}


def test_other_families_are_refused() -> None:
    b = Builder()
    b.rv("x", "gamma", {"alpha": 2, "beta": 1}, centered="auto")
    with pytest.raises(InvalidModel, match="x: centered: auto needs a location-scale distribution"):
        bind(read(b.tree()), {}, {})
