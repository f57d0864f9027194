"""A model that is not finite at a point names the first node that is not, with what went into it."""

from __future__ import annotations

import numpy as np
import pytest

from engine.builder import Builder, body
from engine.model import densities
from nutkin.model.diagnosis import bodies, diagnose

STANDARD = {"mu": 0.0, "sigma": 1.0}


def standard(b, **fields):
    return b.rv("x", "normal", STANDARD, **fields)


def diagnosis_of(b, position, *, precision="f64", **data):
    arrays = {name: np.asarray(value) for name, value in data.items()}
    density, inputs = densities.bind(b.tree(), arrays, b.tensors, precision=precision)
    return diagnose(density, np.asarray(position, float), inputs)


def cause_of(b, position, **data):
    diagnosis = diagnosis_of(b, position, **data)
    assert not diagnosis.finite
    return diagnosis.cause


def test_a_model_that_is_finite():
    b = Builder()
    standard(b)
    diagnosis = diagnosis_of(b, [0.5])
    assert diagnosis.finite
    assert diagnosis.cause is None
    assert float(diagnosis.value) == pytest.approx(-0.125 - 0.5 * np.log(2 * np.pi))
    np.testing.assert_array_equal(diagnosis.gradient, [-0.5])
    np.testing.assert_array_equal(diagnosis.point["x"], 0.5)
    assert str(diagnosis) == "the log density, -1.04394, and its gradient are finite\nat x = 0.5"


def test_the_logarithm_of_a_negative_number():
    b = Builder()
    b.factor("term", b.call("log", b.call("subtract", standard(b), 1.0)))
    cause = cause_of(b, [0.75])
    assert (cause.node, cause.name, cause.index) == ("log(subtract(x, 1.0))", "log", 5)
    assert (cause.kind, cause.what, cause.affects, cause.found) == ("call", "value", "term", "NaN")
    (reading,) = cause.inputs
    assert (reading.node, reading.role, reading.type, reading.shape) == ("subtract(x, 1.0)", "operand 1", "f64", ())
    assert reading.element == -0.25
    assert "positive" in cause.hint


def test_a_division_of_0_by_0_with_its_place():
    b = Builder()
    x = standard(b, shape=[3])
    difference = b.call("subtract", x, b.data("z"))
    b.observe("obs", "normal", {"mu": 0.0, "sigma": b.call("divide", difference, difference)}, b.data("y"))
    cause = cause_of(b, [0.5, 1.0, 2.0], z=[0.0, 1.0, 0.0], y=np.ones(3))
    assert cause.headline == "divide(subtract(x, z), subtract(x, z)) is NaN at [1], and with it obs"
    (reading,) = cause.inputs  # both operands are one
    assert (reading.place, reading.element, reading.least, reading.greatest) == ((1,), 0.0, 0.0, 2.0)


def test_an_overflow_of_exp():
    b = Builder()
    rate = b.call("exp", b.call("multiply", standard(b), b.data("z")))
    b.observe("obs", "poisson", {"mu": rate}, b.data("y"))
    diagnosis = diagnosis_of(b, [0.5], z=[0.0, 1.0, 2000.0], y=[1, 2, 3])
    assert diagnosis.cause.found == "inf at [2]"
    assert str(diagnosis).startswith(
        "exp(multiply(x, z)) is inf at [2], and with it obs\n"
        "  multiply(x, z) = f64 {3}, 1000 at [2], from 0 to 1000\n"
        "at x = 0.5\n"
        "exp overflows"
    )


def test_an_overflow_in_f32_alone():
    b = Builder()
    b.factor("term", b.call("exp", b.call("multiply", standard(b), 100.0)))
    assert diagnosis_of(b, [1.0]).finite
    assert diagnosis_of(b, [1.0], precision="f32").cause.node == "exp(multiply(x, 100.0))"


def test_an_observation_outside_of_the_support():
    b = Builder()
    b.observe("obs", "half_normal", {"sigma": 1.0}, b.call("subtract", b.data("y"), standard(b)))
    cause = cause_of(b, [0.5], y=[1.0, 0.2, 1.0])
    assert cause.headline == "the log density of obs is -inf at [1]"
    assert (cause.kind, cause.what, cause.expected) == ("observe", "log_density", "value to be a number of at least 0")
    assert cause.inputs[0].role == "value"
    assert cause.inputs[0].element == pytest.approx(-0.3)


def test_a_masked_element_is_not_blamed():
    b = Builder()
    value = b.call("subtract", b.data("y"), standard(b))
    b.observe("obs", "half_normal", {"sigma": 1.0}, value, mask=b.data("mask"))
    assert cause_of(b, [0.5], y=[0.1, 0.2, 1.0], mask=[0, 1, 1]).found == "-inf at [1]"
    assert diagnosis_of(b, [0.5], y=[0.1, 0.9, 1.0], mask=[0, 1, 1]).finite


def test_a_parameter_of_a_distribution_outside_of_its_range():
    b = Builder()
    scale = b.call("multiply", standard(b), b.data("z"))
    b.observe("obs", "normal", {"mu": 0.0, "sigma": scale}, b.data("y"))
    cause = cause_of(b, [0.5], z=[1.0, 1.0, -2.0], y=np.ones(3))
    assert (cause.node, cause.found, cause.expected) == ("obs", "NaN at [2]", "sigma to be a positive number")
    assert str(cause.inputs[0]) == "sigma: multiply(x, z) = f64 {3}, -1 at [2], from -1 to 0.5"


def test_a_matrix_that_has_no_cholesky_factor():
    b = Builder()
    b.factor("term", b.call("cholesky", standard(b, shape=[2, 2])))
    cause = cause_of(b, [1.0, 2.0, 2.0, 1.0])
    assert (cause.node, cause.expected) == ("cholesky(x)", "operand 1 to be a symmetric positive definite matrix")
    assert "diagonal" in cause.hint


def test_a_value_of_a_small_type():
    b = Builder()
    narrow = b.call("as_type", b.call("multiply", standard(b), b.data("y")), type="bf16")
    b.factor("term", b.call("log", narrow))
    (reading,) = cause_of(b, [1.0], y=[2.0, -3.0]).inputs
    assert (reading.type, reading.element, reading.least, reading.greatest) == ("bf16", -3.0, -3.0, 2.0)


def test_a_parameter_whose_coordinate_is_too_far_out():
    b = Builder()
    b.rv("x", "half_normal", {"sigma": 1.0})
    cause = cause_of(b, [800.0])
    assert (cause.node, cause.kind, cause.what, cause.found) == ("x", "rv", "value", "inf")


def test_infinite_data_are_blamed_themselves():
    b = Builder()
    b.observe("obs", "normal", {"mu": standard(b), "sigma": 1.0}, b.data("y"))
    cause = cause_of(b, [0.0], y=[1.0, np.inf])
    assert (cause.node, cause.kind, cause.found, cause.affects) == ("y", "data", "inf at [1]", "obs")


def test_an_infinity_that_does_no_harm_is_not_blamed():
    """log(0) on the side that is not taken; then, elsewhere, a root of a negative number is the cause."""
    b = Builder()
    x, z = standard(b, shape=[3]), b.data("z")
    is_positive, logarithms = b.call("greater", z, 0.0), b.call("log", z)
    harmless = b.call("select", is_positive, logarithms, 0.0)
    b.factor("term", b.call("multiply", harmless, x))
    assert diagnosis_of(b, np.ones(3), z=[0.0, 1.0, 2.0]).finite
    b.factor("other", b.call("select", is_positive, logarithms, b.call("sqrt", x)))
    cause = cause_of(b, [-1.0, 1.0, 1.0], z=[0.0, 1.0, 2.0])
    assert (cause.node, cause.found) == ("sqrt(x)", "NaN at [0]")


def test_a_gradient_that_is_infinite_where_the_value_is_not():
    b = Builder()
    x = standard(b)
    b.factor("term", b.call("sqrt", b.call("multiply", x, x)))
    diagnosis = diagnosis_of(b, [0.0])
    assert np.isfinite(diagnosis.value)
    assert not np.isfinite(diagnosis.gradient).any()
    cause = diagnosis.cause
    assert (cause.node, cause.what, cause.by) == ("sqrt(multiply(x, x))", "gradient", "multiply(x, x)")


def test_a_gradient_through_the_side_of_a_select_that_is_not_taken():
    b = Builder()
    x = standard(b, shape=[3])
    b.factor("term", b.call("select", b.call("greater", x, 0.0), b.call("log", x), 0.0))
    cause = cause_of(b, [0.3, 0.0, 1.0])
    assert (cause.node, cause.what, cause.found) == ("log(x)", "gradient", "NaN at [1]")
    assert "select" in cause.hint


def test_the_gradient_by_data_is_no_concern():
    b = Builder()
    b.factor("term", b.call("multiply", standard(b), b.call("sum", b.call("sqrt", b.data("z")))))
    assert diagnosis_of(b, [1.0], z=[0.0, 1.0]).finite


def walk(i, variance, y, x):
    """The variance goes down by a constant, and a log density needs its root."""
    term = i.log_prob("normal", {"mu": x, "sigma": i.call("sqrt", variance)}, y)
    return [i.call("add", x, i.call("subtract", variance, 1.0)), term]


@pytest.mark.parametrize(("reverse", "step"), [(False, 4), (True, 1)])
def test_the_step_of_a_scan(reverse, step):
    b = Builder()
    x = standard(b)
    loop = b.scan(body(3, walk), [2.5], [b.data("y")], [x], reverse=reverse)
    b.factor("term", b.elem(loop, 1))
    cause = cause_of(b, [0.3], y=np.arange(6.0))
    assert (cause.node, cause.kind, cause.name) == ("sqrt(carried[0])", "call", "scan")
    assert cause.within == (f"step {step} of scan(2.5, y, x)",)
    assert cause.inputs[0].element == pytest.approx(-0.3)


def test_what_a_scan_carries_is_followed_to_the_step_that_made_it():
    """The value overflows in step 2, and gives NaN two steps later."""

    def step(i, carried, z, x):
        return [i.call("exp", i.call("multiply", i.call("add", carried, x), z)), i.call("subtract", carried, carried)]

    b = Builder()
    loop = b.scan(body(3, step), [1.0], [b.data("z")], [standard(b)])
    b.factor("term", b.elem(loop, 1))
    cause = cause_of(b, [1.0], z=[0.0, 1.0, 500.0, 1.0])
    assert (cause.node, cause.found) == ("exp(multiply(add(carried[0], x), z[2]))", "inf")
    assert cause.within == ("step 2 of scan(1.0, z, x)",)


def test_what_a_loop_is_given_is_followed_out_of_it():
    b = Builder()
    x = b.call("log", standard(b))
    loop = b.scan(body(2, lambda i, carried, x: [i.call("add", carried, x)]), [0.0], [], [x], length=3)
    b.factor("term", b.elem(loop, 0))
    assert cause_of(b, [-1.0]).node == "log(x)"


def test_a_gradient_in_a_step_of_a_scan():
    def step(i, carried, z, x):
        return [i.call("multiply", carried, x), i.call("sqrt", i.call("multiply", carried, z))]

    b = Builder()
    loop = b.scan(body(3, step), [2.5], [b.data("z")], [standard(b)])
    b.factor("term", b.elem(loop, 1))
    cause = cause_of(b, [0.3], z=[1.0, 2.0, 0.0, 3.0])
    assert (cause.node, cause.by) == ("sqrt(multiply(carried[0], z[2]))", "multiply(carried[0], z[2])")
    assert cause.within == ("step 2 of scan(2.5, z, x)",)


def test_the_side_of_a_choice():
    b = Builder()
    x = standard(b)
    log = body(1, lambda i, x: [i.call("log", x)])
    choice = b.cond(b.call("greater", x, 0.0), body(1, lambda i, x: [x]), log, [x])
    b.factor("term", b.elem(choice, 0))
    assert diagnosis_of(b, [0.5]).finite
    cause = cause_of(b, [-0.5])
    assert (cause.node, cause.within) == ("log(x)", ("the side of if(greater(x, 0.0), x) for false",))


def test_the_step_of_a_while_and_one_that_does_not_end():
    def loop(write, max_steps):
        b = Builder()
        goes_on = body(1, lambda i, x: [i.call("greater", x, -10.0)])
        b.factor("term", b.elem(b.while_(goes_on, body(1, write), [standard(b)], max_steps=max_steps), 0))
        return cause_of(b, [0.3])

    cause = loop(lambda i, x: [i.call("log", x)], 9)
    assert (cause.node, cause.within) == ("log(carried[0])", ("step 1 of while(x)",))
    cause = loop(lambda i, x: [i.call("add", x, 1.0)], 9)
    assert (cause.node, cause.expected) == ("while(x)", "a loop that ends within max_steps = 9 steps")


@pytest.mark.parametrize(("start", "within"), [(1.0, ("step 10 of while(y)",)), (-1e9, ())])
def test_a_while_without_a_bound(monkeypatch, start, within):
    monkeypatch.setattr(bodies, "MOST_STEPS", 100)
    b = Builder()
    goes_on = body(1, lambda i, x: [i.call("less", x, 1e308)])
    write = body(1, lambda i, x: [i.call("multiply", x, i.call("select", i.call("less", x, 1e10), 10.0, 1e308))])
    if start < 0:
        write = body(1, lambda i, x: [i.call("divide", i.call("add", x, 1e7), i.call("less", x, 0.0))])
    end = b.elem(b.while_(goes_on, write, [b.data("y")]), 0)
    b.factor("term", b.call("multiply", standard(b), end))
    assert cause_of(b, [0.5], y=start).within == within


def test_the_derivative_of_an_equation_and_a_solver_that_gives_up():
    def cause(derivative):
        b = Builder()
        x = standard(b)
        solution = b.ode(body(3, derivative), [1.0], 0.0, b.data("t"), [x], max_steps=64)
        b.factor("term", b.elem(solution, 0))
        return cause_of(b, [3.0], t=[0.1, 2.0])

    found = cause(lambda i, t, state, x: [i.call("log", i.call("subtract", state, x))])
    assert found.node == "log(subtract(state[0], x))"
    assert found.within == ("the derivative of ode(1.0, 0.0, t, x) at the start",)
    found = cause(lambda i, t, state, x: [i.call("multiply", x, i.call("multiply", state, state))])
    assert (found.kind, found.found) == ("ode", "NaN at [0]")
    assert "max_steps" in found.hint


def test_a_loop_within_a_choice():
    step = body(2, lambda i, carried, x: [i.call("sqrt", i.call("subtract", carried, x))])
    inner = body(1, lambda i, x: [i.elem(i.scan(step, [2.0], [], [x], length=4), 0)])
    b = Builder()
    x = standard(b)
    b.factor("term", b.elem(b.cond(1, inner, body(1, lambda i, x: [x]), [x]), 0))
    cause = cause_of(b, [1.0])
    assert cause.within == ("the side of if(1, x) for true", "step 2 of scan(2.0, x)")
    assert (cause.node, cause.index, cause.kind) == ("sqrt(subtract(carried[0], x))", 4, "call")


def test_an_output_that_is_not_finite_where_the_density_is():
    b = Builder()
    b.deterministic("out", b.call("log", standard(b)))
    cause = cause_of(b, [-1.0])
    assert (cause.node, cause.affects) == ("log(x)", "out")
