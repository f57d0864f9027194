"""Nodes that are alike, written one by one: joined or not, they are the same density, draws and starting points."""

import jax
import numpy as np
import pytest

from engine.builder import Builder
from engine.model.rewrites.agreement import assert_agree, bound, evaluation

N = 12
Y = np.random.default_rng(1).normal(size=N)


def entry(b, x, i):
    """x[i], as the language writes it."""
    return b.call("squeeze", b.call("slice", x, starts=[i], lengths=[1]), axes=[0])


def hierarchy(b, write):
    mu = b.rv("mu", "normal", {"mu": 0.0, "sigma": 5.0})
    tau = b.rv("tau", "half_normal", {"sigma": 5.0})
    return [write(b, i, mu, tau) for i in range(N)]


def group(b, i, mu, tau):
    return b.rv(f"t_{i}", "normal", {"mu": mu, "sigma": tau})


def off_center(b, i, mu, tau):
    return b.rv(f"t_{i}", "student_t", {"nu": 4.0, "mu": mu, "sigma": tau}, centered=False)


def positive(b, i, mu, tau):
    return b.rv(f"t_{i}", "gamma", {"alpha": float(i + 1), "beta": tau})


def between(b, i, mu, tau):
    return b.rv(f"t_{i}", "uniform", {"lower": mu, "upper": b.call("add", mu, float(i + 1))})


def vector(b, i, mu, tau):
    return b.rv(f"t_{i}", "normal", {"mu": mu, "sigma": tau}, shape=[3])


@pytest.mark.parametrize("write", [group, off_center, positive, between, vector])
def test_variables_in_a_stack(write):
    b = Builder()
    stacked = b.call("stack", *hierarchy(b, write))
    shape = (N, 3) if write is vector else (N,)
    b.observe("y", "student_t", {"nu": 4.0, "mu": stacked, "sigma": 1.0}, b.data("values"))
    assert_agree(b, {"values": np.resize(Y, shape)}, expected=["joined", "joined"])


@pytest.mark.parametrize("write", [group, off_center, positive, vector])
def test_an_observation_for_each_variable(write):
    b = Builder()
    y = b.data("values")
    for i, t in enumerate(hierarchy(b, write)):
        b.observe(f"y_{i}", "student_t", {"nu": 4.0, "mu": t, "sigma": 1.0}, entry(b, y, i))
    shape = (N, 3) if write is vector else (N,)
    assert_agree(b, {"values": np.resize(Y, shape)}, expected=["joined", "joined"])


def test_a_random_walk_written_as_a_loop():
    b = Builder()
    sigma = b.rv("sigma", "half_normal", {"sigma": 1.0})
    x = [b.rv("x_0", "normal", {"mu": 0.0, "sigma": 1.0})]
    for i in range(1, N + 1):
        x.append(b.rv(f"x_{i}", "normal", {"mu": x[-1], "sigma": sigma}))
    for i, value in enumerate(Y):
        b.observe(f"y_{i}", "poisson_log", {"eta": b.call("multiply", x[i + 1], 0.5)}, int(abs(value) * 3))
    assert_agree(b, {}, expected=["joined", "joined"])


def test_a_regression_written_as_a_loop_is_one():
    b = Builder()
    x, y = b.data("x"), b.data("y")
    intercept, slope = (b.rv(name, "normal", {"mu": 0.0, "sigma": 1.0}) for name in ("intercept", "slope"))
    n = 40
    for i in range(n):
        logits = b.call("add", intercept, b.call("multiply", slope, entry(b, x, i)))
        b.observe(f"y_{i}", "bernoulli_logit", {"logits": logits}, entry(b, y, i))
    random = np.random.default_rng(2)
    data = {"x": random.normal(size=n), "y": random.integers(0, 2, size=n)}
    assert_agree(b, data, expected=["joined", "generalized_linear"])


def test_entries_at_places_in_any_order_numbers_and_weights():
    b = Builder()
    y, w = b.data("y"), b.data("w")
    effects = b.rv("effects", "normal", {"mu": 0.0, "sigma": 1.0}, shape=[N])
    for i in range(N):
        parts = {"mu": entry(b, effects, (5 * i) % N), "sigma": float(1 + i)}
        value = entry(b, y, N - 1 - i)
        b.observe(f"y_{i}", "laplace", parts, value, weight=entry(b, w, -1 - i), mask=i % 3)
        b.factor(f"f_{i}", b.call("multiply", b.call("exp", entry(b, effects, i)), -0.1 * i))
    assert_agree(b, {"y": Y, "w": np.arange(1.0, N + 1)}, expected=["joined", "joined", "segment_sum"])


def test_matrices_and_the_same_value_for_all():
    b = Builder()
    cov, y = np.array([[2.0, 0.3], [0.3, 1.0]]), b.data("y")
    for i in range(N):
        mu = b.rv(f"mu_{i}", "normal", {"mu": 0.0, "sigma": 1.0}, shape=[2])
        b.observe(f"y_{i}", "mv_normal", {"mu": b.call("dot", np.full((2, 2), 0.5), mu), "cov": cov}, y)
    assert_agree(b, {"y": np.array([0.3, -0.5])}, expected=["joined", "joined"])


def test_what_is_alike_but_not_joined_is_left():
    b = Builder()
    y = b.data("y")
    for i in range(4):
        b.rv(f"t_{i}", "normal", {"mu": 0.0, "sigma": 1.0})
    for i in range(N):
        x = b.rv(f"x_{i}", "normal", {"mu": 0.0, "sigma": 1.0}, shape=[i + 1])
        b.observe(f"y_{i}", "normal", {"mu": b.call("sum", x), "sigma": 1.0}, y, reduce="mean")
    assert_agree(b, {"y": Y}, rewrites=["joined"], expected=[])


def test_draws_and_starting_points_are_those_of_the_model_as_written():
    for write in (group, off_center, positive):
        b = Builder()
        t = hierarchy(b, write)
        stacked = b.call("stack", *t[3:], t[0], *t[1:3])
        x = b.rv("x", "normal", {"mu": b.call("sum", stacked), "sigma": 1.0}, centered=False)
        b.deterministic("d", b.call("add", t[5], x))
        original, joined = (bound(b, {}, rewrites=names) for names in ([], ["joined"]))
        assert [applied.name for applied in joined.rewrites] == ["joined", "joined"]
        assert joined.parameters == original.parameters
        position = np.random.default_rng(3).normal(size=original.dimension)
        wanted, found = (jax.jit(target.outputs)(position, target.arguments) for target in (original, joined))
        assert wanted.keys() == found.keys()
        for name in wanted:
            np.testing.assert_allclose(found[name], wanted[name], rtol=1e-12)
        values = {name: np.asarray(value) for name, value in wanted.items() if name != "d"}
        for target in (original, joined):
            place, given = target.unconstrain(values)
            assert given.all()
            np.testing.assert_allclose(place, position, rtol=1e-9, atol=1e-12)


def test_a_change_of_one_member_is_seen():
    """The tests above would not notice members whose order is lost, were all of them alike."""
    b = Builder()
    for i, t in enumerate(hierarchy(b, group)):
        b.observe(f"y_{i}", "normal", {"mu": t, "sigma": 0.1}, float(i))
    target = bound(b, {})
    _, gradient = evaluation(target)(np.zeros(target.dimension))
    assert (np.diff(gradient[-N:]) > 0).all()


def test_two_hundred_numbers_are_a_program_of_the_size_of_one_vector_of_them():
    def operations(b):
        target = bound(b, {"y": np.zeros(200)})
        gradient = jax.make_jaxpr(jax.value_and_grad(target.log_density))
        return len(gradient(np.zeros(target.dimension), target.arguments).jaxpr.eqns)

    def written(names, observe):
        b = Builder()
        y = b.data("y")
        mu = b.rv("mu", "normal", {"mu": 0.0, "sigma": 5.0})
        fields = {} if len(names) > 1 else {"shape": [200]}
        observe(b, [b.rv(name, "normal", {"mu": mu, "sigma": 2.0}, **fields) for name in names], y)
        return operations(b)

    def each(b, t, y):
        for i, one in enumerate(t):
            b.observe(f"y_{i}", "student_t", {"nu": 4.0, "mu": one, "sigma": 1.0}, entry(b, y, i))

    def whole(b, t, y):
        b.observe("o", "student_t", {"nu": 4.0, "mu": t[0] if len(t) == 1 else b.call("stack", *t), "sigma": 1.0}, y)

    names = [f"t_{i}" for i in range(200)]
    one = written(["t"], whole)
    assert written(names, whole) < 2 * one
    assert written(names, each) < 2 * one


def test_numbers_that_an_operation_is_made_for_are_those_of_each_member():
    b = Builder()
    effects = b.rv("effects", "normal", {"mu": 0.0, "sigma": 1.0}, shape=[N, 2])
    for i in range(N):
        chosen = b.call(
            "select", entry(b, b.data(f"is_{i}"), 0), b.call("take", effects, (5 * i) % N), [0.5, 1.5][i % 2]
        )
        b.observe(f"y_{i}", "laplace", {"mu": b.call("pow", chosen, i % 4), "sigma": 1.0}, np.array([0.3, i]))
    data = {f"is_{i}": np.array([i % 3]) for i in range(N)}
    assert_agree(b, data, rewrites=["joined"], expected=["joined"])
