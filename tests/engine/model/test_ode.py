"""Differential equations: against closed forms and finite differences, and what does not work."""

import numpy as np
import pytest

from engine.builder import Builder, body
from engine.model import densities
from nutkin.errors import InvalidData, InvalidModel

DECAY = body(3, lambda i, t, y, rate: [i.call("negate", i.call("multiply", rate, y))])


def oscillator(b, omega, times, **fields):
    """x'' = -omega^2 x as two parts of a state, x(0) = 1, x'(0) = 0: x = cos(omega t)."""

    def derivatives(i, t, x, v, omega):
        return [v, i.call("negate", i.call("multiply", i.call("multiply", omega, omega), x))]

    return b.ode(body(4, derivatives), [1.0, 0.0], 0.0, times, [omega], **fields)


@pytest.mark.parametrize("method", ["dopri8"])
def test_every_method_solves(method):
    b = Builder()
    times = np.array([0.5, 1.0, 2.5])
    b.deterministic("x", b.elem(oscillator(b, 1.3, times, method=method, rtol=1e-8, atol=1e-8), 0))
    density, inputs = densities.bind(b.tree(), {}, b.tensors)
    x = densities.outputs(density, np.zeros(0), inputs)["x"]
    np.testing.assert_allclose(x, np.cos(1.3 * times), atol=2e-6)


@pytest.mark.parametrize("method", ["tsit5", "kvaerno5"])
def test_solutions_and_their_gradients(method):
    b = Builder()
    omega = b.rv("omega", "normal", {"mu": 0.0, "sigma": 1.0})
    times = np.array([0.5, 1.0, 2.5])
    solved = oscillator(b, omega, times, method=method, rtol=1e-8, atol=1e-8)
    x, v = b.elem(solved, 0), b.elem(solved, 1)
    b.deterministic("x", x)
    b.deterministic("v", v)
    b.factor("f", b.call("add", b.call("sum", x), b.call("sum", v)))
    density, inputs = densities.bind(b.tree(), {}, b.tensors)
    q = np.array([1.3])
    values = densities.outputs(density, q, inputs)
    np.testing.assert_allclose(values["x"], np.cos(1.3 * times), atol=2e-6)
    np.testing.assert_allclose(values["v"], -1.3 * np.sin(1.3 * times), atol=2e-6)
    _, gradient = densities.log_density_and_gradient(density, inputs)(q)
    sines, cosines = np.sin(1.3 * times), np.cos(1.3 * times)
    expected = -1.3 + np.sum(-times * sines - sines - 1.3 * times * cosines)
    np.testing.assert_allclose(gradient, [expected], rtol=2e-5)


@pytest.mark.parametrize("method", ["tsit5", "kvaerno5"])
def test_default_tolerances_hold_for_small_states_and_between_steps(method):
    b = Builder()
    times = np.array([1.0, 1.7, 4.0, 12.0])
    b.deterministic("y", b.elem(b.ode(DECAY, [1.0], 0.0, times, [1.0], method=method), 0))
    density, inputs = densities.bind(b.tree(), {}, b.tensors)
    y = densities.outputs(density, np.zeros(0), inputs)["y"]
    np.testing.assert_allclose(y, np.exp(-times), rtol=5e-6, atol=1e-9)


def test_the_start_the_first_state_and_shapes_of_parameters():
    """y' = -rate y of a vector, from a time and a state that are parameters."""
    b = Builder()
    start = b.rv("start", "normal", {"mu": 0.0, "sigma": 1.0})
    first = b.rv("first", "normal", {"mu": 0.0, "sigma": 1.0}, shape=[2])
    rate = b.constant(np.array([0.5, 2.0]))
    y = b.elem(b.ode(DECAY, [first], start, np.array([1.0, 2.0, 4.0]), [rate], rtol=1e-9, atol=1e-11), 0)
    b.deterministic("y", y)
    b.factor("f", y)
    density, inputs = densities.bind(b.tree(), {}, b.tensors)
    q = np.array([0.25, 1.5, -0.7])
    elapsed = np.array([1.0, 2.0, 4.0])[:, None] - 0.25
    expected = q[1:] * np.exp(-np.array([0.5, 2.0]) * elapsed)
    np.testing.assert_allclose(densities.outputs(density, q, inputs)["y"], expected, rtol=1e-6)
    _, gradient = densities.log_density_and_gradient(density, inputs)(q)
    by_start = -q[0] + np.sum(np.array([0.5, 2.0]) * expected)
    np.testing.assert_allclose(gradient, [by_start, *(-q[1:] + (expected / q[1:]).sum(0))], rtol=1e-5)


def test_a_solver_that_gives_up_gives_nan():
    b = Builder()
    omega = b.rv("omega", "normal", {"mu": 0.0, "sigma": 1.0})
    b.deterministic("x", b.elem(oscillator(b, omega, np.array([50.0]), max_steps=5), 0))
    density, inputs = densities.bind(b.tree(), {}, b.tensors)
    assert np.isnan(densities.outputs(density, np.array([3.0]), inputs)["x"]).all()


@pytest.mark.parametrize("method", ["tsit5", "kvaerno5"])
def test_states_that_are_no_numbers_give_nan(method):
    """An implicit solver then meets a linear system of NaN, also in the gradient."""
    b = Builder()
    rate = b.rv("rate", "normal", {"mu": 0.0, "sigma": 1.0})
    root = body(3, lambda i, t, y, rate: [i.call("multiply", rate, i.call("sqrt", y))])
    y = b.elem(b.ode(root, [1.0], 0.0, np.array([1.0, 4.0]), [rate], method=method), 0)
    b.factor("f", y)
    density, inputs = densities.bind(b.tree(), {}, b.tensors)
    for q in (-3.0, -1.0e200, np.nan):
        value, gradient = densities.log_density_and_gradient(density, inputs)(np.array([q]))
        assert np.isnan(value)
        assert np.isnan(gradient).all()


def test_f32_stays_f32():
    b = Builder()
    b.deterministic("x", b.elem(oscillator(b, 1.0, np.array([0.5])), 0))
    density, inputs = densities.bind(b.tree(), {}, b.tensors, precision="f32")
    x = np.asarray(densities.outputs(density, np.zeros(0, np.float32), inputs)["x"])
    assert x.dtype == np.float32
    np.testing.assert_allclose(x, np.cos([0.5]), rtol=1e-5)


def wrong():
    two = np.array([1.0, 2.0])
    yield DECAY, [1.0], two, two, "start of an ode must be a scalar"
    yield DECAY, [1.0], 0.0, 1.0, "times of an ode must be a vector"
    yield DECAY, [1.0], 0.0, two[::-1].copy(), "numbers that increase"
    yield DECAY, [two[:1]], 0.0, two, None
    yield body(4, lambda i, t, x, y, rate: [x]), [1.0, 2.0], 0.0, two, "must have the shapes of its state"


@pytest.mark.parametrize(("equations", "init", "start", "times", "message"), list(wrong()))
def test_wrong_equations_say_what_is_wrong(equations, init, start, times, message):
    b = Builder()
    b.deterministic("y", b.elem(b.ode(equations, init, start, times, [0.5]), 0))

    def bind():
        density, inputs = densities.bind(b.tree(), {}, b.tensors)
        density.check_values(inputs)

    if message is None:
        bind()
    else:
        with pytest.raises((InvalidModel, InvalidData), match=message):
            bind()
