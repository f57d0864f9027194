"""Loops and choices: values and gradients against Python's own loops and finite differences, and their errors."""

import jax
import numpy as np
import pytest

from engine.builder import Builder, body
from engine.model import densities
from nutkin.errors import InvalidModel


def evaluate(b, *names, position, data=None, precision="f64"):
    density, inputs = densities.bind(b.tree(), data, b.tensors, precision=precision)
    values = densities.outputs(density, np.asarray(position, float), inputs)
    return [np.asarray(values[name]) for name in names]


def check_gradient(b, position, *, data=None, rtol=1e-7):
    density, inputs = densities.bind(b.tree(), data, b.tensors)
    position = np.asarray(position, float)
    function = densities.log_density_and_gradient(density, inputs)
    value, gradient = function(position)
    assert np.isfinite(value)
    expected = densities.finite_differences(lambda q: function(q)[0], position)
    np.testing.assert_allclose(gradient, expected, rtol=rtol, atol=1e-8)
    return value


def garch(b, y):
    """sigma_t^2 = a0 + a1 (y_t - mu)^2 + b1 sigma_{t-1}^2, and the log density of y."""
    mu, a0, a1, b1 = (b.rv(name, "normal", {"mu": 0.0, "sigma": 1.0}) for name in ("mu", "a0", "a1", "b1"))

    def step(i, variance, y, mu, a0, a1, b1):
        term = i.log_prob("normal", {"mu": mu, "sigma": i.call("sqrt", variance)}, y)
        residual = i.call("pow", i.call("subtract", y, mu), 2)
        following = i.call("add", i.call("add", a0, i.call("multiply", a1, residual)), i.call("multiply", b1, variance))
        return [following, term]

    loop = b.scan(body(6, step), [1.5], [b.data(y)], [mu, a0, a1, b1])
    b.deterministic("last", b.elem(loop, 0))
    terms = b.elem(loop, 1)
    b.deterministic("terms", terms)
    b.factor("likelihood", terms)


def test_a_scan_carries_collects_and_captures():
    b = Builder()
    garch(b, "y")
    y, q = np.random.default_rng(0).normal(size=12), np.array([0.1, 0.4, 0.3, 0.2])
    last, terms = evaluate(b, "last", "terms", position=q, data={"y": y})
    variance, expected = 1.5, []
    for x in y:
        expected.append(-0.5 * (x - q[0]) ** 2 / variance - 0.5 * np.log(2 * np.pi * variance))
        variance = q[1] + q[2] * (x - q[0]) ** 2 + q[3] * variance
    np.testing.assert_allclose(terms, expected, rtol=1e-12)
    np.testing.assert_allclose(last, variance, rtol=1e-12)
    check_gradient(b, q, data={"y": y})


@pytest.mark.parametrize("reverse", [False, True])
def test_a_scan_of_a_length_counts_without_anything_to_run_over(reverse):
    b = Builder()
    x = b.rv("x", "normal", {"mu": 0.0, "sigma": 1.0})
    step = body(2, lambda i, carry, x: [i.call("add", i.call("multiply", carry, x), 1.0), carry])
    loop = b.scan(step, [0], [], [x], length=4, reverse=reverse)
    b.deterministic("last", b.elem(loop, 0))
    b.deterministic("all", b.elem(loop, 1))
    last, collected = evaluate(b, "last", "all", position=[0.5])
    assert last.dtype == np.float64  # the literal 0 takes the type of what the body gives
    np.testing.assert_allclose(last, 1.875)
    np.testing.assert_allclose(collected, [0, 1, 1.5, 1.75][:: -1 if reverse else 1])


def newton(b, a, *, max_steps=100):
    """sqrt(a) by Newton's method: how many steps it takes depends on the number."""

    def goes_on(i, x, count, a):
        error = i.call("abs", i.call("subtract", i.call("divide", i.call("multiply", x, x), a), 1.0))
        return [i.call("greater", error, 1e-13)]

    def step(i, x, count, a):
        return [i.call("multiply", 0.5, i.call("add", x, i.call("divide", a, x))), i.call("add", count, 1)]

    return b.while_(body(3, goes_on), body(3, step), [a, 0], [a], max_steps=max_steps)


def test_a_while_takes_as_many_steps_as_the_numbers_ask_for_and_is_differentiated():
    b = Builder()
    x = b.rv("x", "normal", {"mu": 0.0, "sigma": 1.0})
    loop = newton(b, b.call("exp", x))
    root, count = b.elem(loop, 0), b.elem(loop, 1)
    b.deterministic("root", root)
    b.deterministic("count", count)
    b.factor("term", b.call("multiply", root, b.call("as_type", count, type="f64")))
    counts = []
    for q in (0.1, 3.0, 9.0):
        root, count = evaluate(b, "root", "count", position=[q])
        np.testing.assert_allclose(root, np.exp(q / 2), rtol=1e-12)
        assert count.dtype == np.int64
        counts.append(int(count))
        value = check_gradient(b, [q])
        np.testing.assert_allclose(value, root * count - q * q / 2 - 0.5 * np.log(2 * np.pi), rtol=1e-12)
    assert len(set(counts)) == 3


def test_a_while_that_does_not_end_is_nan_in_value_and_gradient_not_wrong():
    b = Builder()
    x = b.rv("x", "normal", {"mu": 0.0, "sigma": 1.0})
    root = b.elem(newton(b, b.call("exp", x), max_steps=3), 0)
    b.deterministic("root", root)
    b.factor("term", root)
    assert np.isnan(evaluate(b, "root", position=[9.0])[0])
    density, inputs = densities.bind(b.tree())
    value, gradient = densities.log_density_and_gradient(density, inputs)(np.array([9.0]))
    assert np.isnan(value)
    assert np.isnan(gradient).all()


def test_loops_and_choices_nest():
    """The sum over rows of the sum of x^k up to the first that is below a limit, or of nothing for negative rows."""
    b = Builder()
    x = b.rv("x", "normal", {"mu": 0.0, "sigma": 1.0})

    def powers(i, row, x):
        condition = body(3, lambda j, power, total, x: [j.call("greater", power, 1e-3)])
        step = body(3, lambda j, power, total, x: [j.call("multiply", power, x), j.call("add", total, power)])
        return [i.elem(i.while_(condition, step, [row, 0.0], [x], max_steps=50), 1)]

    def step(i, total, row, x):
        chosen = i.cond(i.call("greater", row, 0), body(2, powers), body(2, lambda j, row, x: [0]), [row, x])
        return [i.call("add", total, i.elem(chosen, 0))]

    loop = b.scan(body(3, step), [0.0], [b.constant(np.array([0.5, -1.0, 2.0]))], [x])
    b.deterministic("total", b.elem(loop, 0))
    b.factor("term", b.elem(loop, 0))
    q, expected = 0.4, 0.0
    for row in (0.5, 2.0):
        power = row
        while power > 1e-3:
            expected, power = expected + power, power * q
    (total,) = evaluate(b, "total", position=[q])
    np.testing.assert_allclose(total, expected, rtol=1e-12)
    check_gradient(b, [q])


def test_only_the_side_that_is_chosen_is_run_so_its_gradient_alone_counts():
    b = Builder()
    x = b.rv("x", "normal", {"mu": 0.0, "sigma": 1.0})
    root, other = body(1, lambda i, x: [i.call("sqrt", x)]), body(1, lambda i, x: [i.call("multiply", 2, x)])
    chosen = b.elem(b.cond(b.call("greater", x, 0), root, other, [x]), 0)
    b.factor("term", chosen)
    for q in (-1.0, 0.3):
        check_gradient(b, [q])


def test_the_log_probability_of_a_value_broadcasts_and_is_minus_infinity_outside_the_support():
    b = Builder()
    rate = b.rv("rate", "half_normal", {"sigma": 1.0}, shape=[2])
    b.deterministic("terms", b.log_prob("exponential", {"rate": rate}, np.array([[1.0], [-1.0], [3.0]])))
    (terms,) = evaluate(b, "terms", position=np.log([0.5, 2.0]))
    assert terms.shape == (3, 2)
    np.testing.assert_allclose(terms[[0, 2]], np.log([0.5, 2]) - np.outer([1, 3], [0.5, 2]), rtol=1e-13)
    assert np.isneginf(terms[1]).all()


def test_what_loops_compute_of_data_alone_is_known_before_the_first_draw():
    b = Builder()
    n = 1 << 14
    running = body(2, lambda i, carry, y: [i.call("add", carry, y), i.call("add", carry, y)])
    sums = b.elem(b.scan(running, [0.0], [b.data("y")]), 1)
    x = b.rv("x", "normal", {"mu": 0.0, "sigma": 1.0})
    b.observe("z", "normal", {"mu": x, "sigma": 1.0}, sums)
    y = np.random.default_rng(1).normal(size=n) / n
    density, inputs = densities.bind(b.tree(), {"y": y})
    (value,) = jax.tree.leaves(densities.terms(density, np.array([0.3]), inputs)["z"])
    expected = -0.5 * np.sum((np.cumsum(y) - 0.3) ** 2) - n / 2 * np.log(2 * np.pi)
    np.testing.assert_allclose(value, expected, rtol=1e-10)


ONE = body(1, lambda i, x: [x])


def scan_of(step, init, xs=(), **fields):
    b = Builder()
    b.elem(b.scan(step, list(init), list(xs), **fields), 0)
    return b


def wrong_models():
    two = np.zeros(2)
    yield scan_of(ONE, [0.0]), "must know its number of steps"
    yield scan_of(body(3, lambda i, c, x, y: [c]), [0.0], [two, np.zeros(3)]), "one first size"
    yield scan_of(ONE, [0.0, 1.0], length=2), "must give what it carries"
    yield scan_of(body(2, lambda i, c, x: [x]), [0.0], [np.zeros((2, 3))]), "must keep its shape: value 1"
    yield scan_of(body(3, lambda i, c, x, y: [c]), [0.0], [two]), "no such argument"
    yield (
        scan_of(
            body(1, lambda i, c: [i.call("reshape", c, shape=[2])]),
            [0.0],
            length=2,
        ),
        "in its body: reshape.*must keep the number",
    )
    b = Builder()
    b.elem(b.while_(body(1, lambda i, x: [i.call("stack", x, x)]), ONE, [1.0], max_steps=3), 0)
    yield b, "condition of while must give one scalar"
    b = Builder()
    b.elem(b.cond(two, ONE, ONE, [1.0]), 0)
    yield b, "must be a scalar"
    b = Builder()
    b.elem(b.cond(1, ONE, body(1, lambda i, x: [x, x]), [1.0]), 0)
    yield b, "must give as many values"
    b = Builder()
    b.elem(b.constant(1.0), 0)
    yield b, "gives one value, not several"
    b = Builder()
    b.elem(b.cond(1, ONE, ONE, [1.0]), 1)
    yield b, "has no value 1"
    b = Builder()
    b.deterministic("d", b.cond(1, ONE, ONE, [1.0]))
    yield b, "gives several values"
    b = Builder()
    b.log_prob("mv_normal", {"mu": two, "cov": np.eye(2)}, np.zeros(3))
    yield b, "has not the event axes"
    b = Builder()
    b.log_prob("normal", {"mu": 0.0, "sigma": -1.0}, 0.5)
    yield b, "the parameter sigma is outside its range"


@pytest.mark.parametrize(("b", "message"), [pytest.param(b, message, id=message[:40]) for b, message in wrong_models()])
def test_wrong_loops_say_what_is_wrong(b, message):
    with pytest.raises(InvalidModel, match=message) as raised:
        densities.bind(b.tree(), {}, b.tensors)
    assert raised.value.index is not None


def refused(b):
    with pytest.raises(InvalidModel) as raised:
        densities.bind(b.tree(), {}, b.tensors)
    return raised.value


def test_a_gradient_of_ones_own():
    b = Builder()
    x = b.rv("x", "normal", {"mu": 0.0, "sigma": 1.0}, shape=(2,))
    scale = b.rv("scale", "normal", {"mu": 0.0, "sigma": 1.0})

    def gradient(i, g, x, scale):
        return [i.call("multiply", i.call("multiply", g, scale), x)]

    value = b.custom_gradient(b.call("sum", b.call("exp", x)), body(3, gradient), [x], [scale])
    b.deterministic("value", value)
    b.factor("f", value)
    q = np.array([0.3, -1.2, 2.0])
    np.testing.assert_allclose(evaluate(b, "value", position=q)[0], np.exp(q[:2]).sum())
    density, inputs = densities.bind(b.tree(), None, b.tensors)
    _, found = densities.log_density_and_gradient(density, inputs)(q)
    # The captured scale has none but that of its own distribution.
    np.testing.assert_allclose(found, [*(2.0 * q[:2] - q[:2]), -2.0])


def test_gradients_that_do_not_fit_the_inputs():
    b = Builder()
    x = b.rv("x", "normal", {"mu": 0.0, "sigma": 1.0}, shape=(2,))
    b.factor("f", b.custom_gradient(b.call("sum", x), body(2, lambda i, g, x: [g]), [x]))
    error = refused(b)
    assert (error.expected, error.found) == ("{2}", "{}")


def halved(b, x):
    """x, halved until it is below 1."""
    condition = body(1, lambda i, x: [i.call("greater", x, 1.0)])
    return b.elem(b.while_(condition, body(1, lambda i, x: [i.call("divide", x, 2.0)]), [x]), 0)


def test_a_loop_without_a_bound_over_data():
    b = Builder()
    b.deterministic("last", halved(b, b.data("y")))
    assert evaluate(b, "last", position=[], data={"y": np.array(1000.0)})[0] == 1000 / 1024


def test_a_loop_without_a_bound_over_parameters():
    b = Builder()
    b.factor("f", halved(b, b.rv("x", "normal", {"mu": 0.0, "sigma": 1.0})))
    error = refused(b)
    assert (error.node, error.expected) == ("while", "the option max_steps")
