"""Every transform: its inverse, its image, and its log-Jacobian against the determinant of the autodiff Jacobian."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from engine.builder import Builder
from engine.model.densities import bind, outputs, terms
from engine.model.numpyro_oracle import BIJECTIONS
from nutkin.errors import InvalidModel
from nutkin.model.distributions import DISTRIBUTIONS
from nutkin.model.supports import REAL
from nutkin.model.transforms import TRANSFORMS

POINTS = np.array([-7.0, -1.5, -1e-3, 0.0, 0.4, 2.0, 8.0])
BOUNDS = {"interval": (np.array(-3.0), np.array(0.5))}


@pytest.fixture(params=sorted(TRANSFORMS))
def case(request):
    return TRANSFORMS[request.param], BOUNDS.get(request.param, ())


def test_inverse_and_image(case) -> None:
    transform, bounds = case
    value = jax.jit(transform.constrain)(POINTS, *bounds)
    for support in transform.supports:
        assert support.contains is None or np.all(support.contains(value, *bounds))
    np.testing.assert_allclose(jax.jit(transform.unconstrain)(value, *bounds), POINTS, rtol=1e-9, atol=1e-9)
    assert transform.unconstrained_shape(value.shape) == POINTS.shape


def test_log_jacobian(case) -> None:
    transform, bounds = case

    @jax.jit
    def evaluate(coordinates):
        value = transform.constrain(coordinates, *bounds)
        return value, transform.log_jacobian(coordinates, *bounds)

    _, found = evaluate(POINTS)
    jacobian = jax.jacfwd(lambda x: evaluate(x)[0])(POINTS)[: POINTS.size]
    assert found.shape == ()
    assert float(found) == pytest.approx(np.linalg.slogdet(jacobian)[1], rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("name", sorted(TRANSFORMS))
def test_is_numpyros(name: str) -> None:
    transform, bounds = TRANSFORMS[name], BOUNDS.get(name, ())
    theirs = BIJECTIONS[name](*bounds)

    def mine(x):
        return jnp.sum(jnp.sin(transform.constrain(x, *bounds))), transform.log_jacobian(x, *bounds)

    def numpyros(x):
        y = theirs(x)
        return jnp.sum(jnp.sin(y)), jnp.sum(theirs.log_abs_det_jacobian(x, y))

    for i in (0, 1):
        found = jax.jit(jax.value_and_grad(lambda x, i=i: mine(x)[i]))(POINTS)
        expected = jax.jit(jax.value_and_grad(lambda x, i=i: numpyros(x)[i]))(POINTS)
        np.testing.assert_allclose(found[0], expected[0], rtol=1e-12)
        np.testing.assert_allclose(found[1], expected[1], rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("precision", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["logit", "stick_breaking"])
def test_the_ends_of_the_support_are_not_reached(name: str, precision: type) -> None:
    coordinates = np.array([-2000.0, 500.0, -500.0, 2000.0], precision)
    value = np.asarray(TRANSFORMS[name].constrain(coordinates))
    assert value.dtype == precision
    assert np.all(value > 0)
    assert name == "stick_breaking" or np.all(value < 1)
    assert np.isfinite(TRANSFORMS[name].log_jacobian(coordinates))


def test_equal_parts_of_a_stick_are_the_origin() -> None:
    value = TRANSFORMS["stick_breaking"].constrain(np.zeros((2, 4)))
    np.testing.assert_allclose(value, np.full((2, 5), 0.2), rtol=1e-15)


def test_f32_is_kept(case) -> None:
    transform, bounds = case
    coordinates = POINTS.astype(np.float32)
    bounds = tuple(np.float32(bound) for bound in bounds)

    def evaluate(coordinates):
        value = transform.constrain(coordinates, *bounds)
        return value, transform.unconstrain(value, *bounds), transform.log_jacobian(coordinates, *bounds)

    assert [result.dtype.name for result in jax.eval_shape(evaluate, coordinates)] == ["float32"] * 3


def test_every_default_maps_onto_its_support() -> None:
    for name, family in DISTRIBUTIONS.items():
        assert (family.transform is None) == family.support.discrete, name
        assert family.transform is None or family.support in TRANSFORMS[family.transform].supports, name


def test_the_choice_of_a_transform_moves_no_mass() -> None:
    """The density of the value itself is the same whichever coordinates it is given."""
    value = np.array(0.7)
    densities = []
    for name in ("log", "softplus"):
        b = Builder()
        b.rv("x", "gamma", {"alpha": 2, "beta": 3}, transform=name)
        density, inputs = bind(b.tree())
        position, _ = density.unconstrain({"x": value}, inputs)
        slope = jax.jit(jax.grad(lambda q, density=density: density.outputs(q, {})["x"]))(position)
        densities.append(float(terms(density, position, inputs)["x"]) - np.log(slope[0]))
    assert densities[0] == pytest.approx(densities[1], rel=1e-12)


def test_interval_follows_its_parents() -> None:
    b = Builder()
    low = b.rv("low", "normal", {"mu": 0, "sigma": 1})
    b.rv("x", "uniform", {"lower": low, "upper": b.call("add", low, 2)}, shape=[3])
    density, inputs = bind(b.tree())
    found = outputs(density, np.array([5.0, -9.0, 0.0, 9.0]), inputs)
    assert np.all((found["x"] > 5) & (found["x"] < 7))
    assert float(found["x"][1]) == 6
    position, _ = density.unconstrain({name: np.asarray(value) for name, value in found.items()}, inputs)
    np.testing.assert_allclose(position, [5, -9, 0, 9], rtol=1e-9)


@pytest.mark.parametrize("name", [name for name, family in DISTRIBUTIONS.items() if family.support is not REAL])
def test_identity_is_refused_on_a_bounded_support(name: str) -> None:
    b = Builder()
    family = DISTRIBUTIONS[name]
    arguments = {parameter: b.constant(1) for parameter in family.parameters}
    if name == "dirichlet":
        arguments = {"alpha": b.call("broadcast", 1, shape=[3])}
    b.rv("x", name, arguments, transform="identity")
    with pytest.raises(InvalidModel):
        bind(b.tree())
