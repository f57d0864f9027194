"""Every transform: its inverse, its image, and its log-Jacobian against the determinant of the autodiff Jacobian."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from engine.builder import Builder
from engine.model.densities import bind, outputs, terms
from engine.model.jacobians import log_volume
from engine.model.numpyro_oracle import BIJECTIONS
from nutkin.errors import InvalidModel
from nutkin.model import supports
from nutkin.model.distributions import DISTRIBUTIONS
from nutkin.model.transforms import TRANSFORMS

POINTS = np.array([-7.0, -1.5, -1e-3, 0.0, 0.4, 2.0, 8.0])
# The entries of a matrix of 4 rows, with and without its diagonal.
MATRIX_POINTS = np.array([-1.5, 0.4, -1e-3, 0.0, 2.0, 0.7, -0.3, 1.1, 0.2, -0.8])
COORDINATES = {"covariance": MATRIX_POINTS, "correlation": MATRIX_POINTS[:6], "correlation_cholesky": MATRIX_POINTS[:6]}
BOUNDS = {"interval": (np.array(-3.0), np.array(0.5)), "lower": (np.array(-3.0),)} | {
    "upper": (np.array(0.5),),
    "fraction": (np.array(2.5),),
}
SUPPORTS = [s for s in vars(supports).values() if isinstance(s, supports.Support)]
SUPPORTS += [family.support for family in DISTRIBUTIONS.values()] + [supports.at_most("upper")]
BIJECTIVE = sorted(TRANSFORMS.keys() - {"unit_vector"})


@pytest.fixture(params=BIJECTIVE)
def case(request):
    name = request.param
    return name, TRANSFORMS[name], COORDINATES.get(name, POINTS), BOUNDS.get(name, ())


def test_inverse_and_image(case) -> None:
    name, transform, points, bounds = case
    value = jax.jit(transform.constrain)(points, *bounds)
    fitting = [support for support in SUPPORTS if name in support.transforms]
    assert fitting
    for support in fitting:
        assert support.contains is None or np.all(support.contains(value, *bounds))
    np.testing.assert_allclose(jax.jit(transform.unconstrain)(value, *bounds), points, rtol=1e-9, atol=1e-9)
    assert transform.unconstrained_shape(value.shape) == points.shape


def test_many_at_once_are_each_alone(case) -> None:
    _, transform, points, bounds = case
    many = np.stack([points, 0.5 * points, points[::-1]]).reshape(3, 1, -1)

    @jax.jit
    def together(many):
        value = transform.constrain(many, *bounds)
        return value, transform.unconstrain(value, *bounds), transform.log_jacobian(many, *bounds)

    @jax.jit
    def alone(row):
        return transform.constrain(row, *bounds), transform.log_jacobian(row, *bounds)

    value, back, found = together(many)
    assert transform.unconstrained_shape(value.shape) == many.shape
    np.testing.assert_allclose(value[1, 0], alone(many[1, 0])[0], rtol=1e-12)
    np.testing.assert_allclose(back, many, rtol=1e-9, atol=1e-9)
    apart = sum(float(alone(row)[1]) for row in many[:, 0])
    assert float(found) == pytest.approx(apart, rel=1e-12)


@pytest.mark.parametrize("name", BIJECTIVE)
def test_log_jacobian(name: str) -> None:
    transform, points, bounds = TRANSFORMS[name], COORDINATES.get(name, POINTS), BOUNDS.get(name, ())

    @jax.jit
    def evaluate(coordinates):
        jacobian = jax.jacfwd(lambda x: transform.constrain(x, *bounds))(coordinates)
        return jacobian, transform.log_jacobian(coordinates, *bounds)

    jacobian, found = evaluate(points)
    assert found.shape == ()
    assert float(found) == pytest.approx(log_volume(name, np.asarray(jacobian)), rel=1e-9, abs=1e-9)


def test_a_unit_vector_is_uniform() -> None:
    """Directions of standard normal coordinates: the log density of the coordinates is that of the normal."""
    transform = TRANSFORMS["unit_vector"]
    rng = np.random.default_rng(3)
    coordinates = rng.normal(size=(20_000, 3))
    value = np.asarray(transform.constrain(coordinates))
    np.testing.assert_allclose(np.sum(value**2, axis=-1), 1, rtol=1e-12)
    np.testing.assert_allclose(value.T @ value / len(value), np.eye(3) / 3, atol=0.01)
    np.testing.assert_allclose(transform.constrain(transform.unconstrain(value)), value, rtol=1e-12)
    expected = stats.norm.logpdf(coordinates).sum() + coordinates.size * stats.norm.entropy() - coordinates.size / 2
    assert float(transform.log_jacobian(coordinates)) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("name", sorted(BIJECTIONS))
def test_is_numpyros(name: str) -> None:
    transform, points, bounds = TRANSFORMS[name], COORDINATES.get(name, POINTS), BOUNDS.get(name, ())
    theirs = BIJECTIONS[name](*bounds)

    def mine(x):
        return jnp.sum(jnp.sin(transform.constrain(x, *bounds))), transform.log_jacobian(x, *bounds)

    def numpyros(x):
        y = theirs(x)
        return jnp.sum(jnp.sin(y)), jnp.sum(theirs.log_abs_det_jacobian(x, y))

    found, expected = (
        jax.jit(lambda x, each=each: (each(x), jax.jacrev(each)(x)))(points) for each in (mine, numpyros)
    )
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
    _, transform, points, bounds = case
    coordinates = points.astype(np.float32)
    bounds = tuple(np.float32(bound) for bound in bounds)

    def evaluate(coordinates):
        value = transform.constrain(coordinates, *bounds)
        return value, transform.unconstrain(value, *bounds), transform.log_jacobian(coordinates, *bounds)

    assert [result.dtype.name for result in jax.eval_shape(evaluate, coordinates)] == ["float32"] * 3


def test_every_default_maps_onto_its_support() -> None:
    for name, family in DISTRIBUTIONS.items():
        assert (family.transform is None) == family.support.discrete, name
    assert {name for support in SUPPORTS for name in support.transforms} == set(TRANSFORMS)


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


@pytest.mark.parametrize(
    "name", [name for name, family in DISTRIBUTIONS.items() if family.support is not supports.REAL]
)
def test_identity_is_refused_on_a_bounded_support(name: str) -> None:
    b = Builder()
    family = DISTRIBUTIONS[name]
    arguments = {parameter: b.constant(1) for parameter in family.parameters}
    for parameter, known in family.parameters.items():
        if known.event:
            arguments[parameter] = b.call("broadcast", 1, shape=[3] * len(known.event))
    event = {"shape": [3] * family.event_rank} if family.event else {}
    b.rv("x", name, arguments, transform="identity", **event)
    with pytest.raises(InvalidModel):
        bind(b.tree())
