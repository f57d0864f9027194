"""Models whose data may grow, by name: each is written with slots that grow, and with slots that do not.

A case takes a builder, writes a model, and gives a function from lengths by axis, and a random generator, to its data.
"""

from __future__ import annotations

import numpy as np

from engine.builder import Builder, Node, body


class Growing(Builder):
    def __init__(self, *, grows: bool) -> None:
        super().__init__()
        self._grows = grows

    def slot(self, name: str, axis: str = "rows") -> Node:
        return self.data(name, grows=axis) if self._grows else self.data(name)

    def parameter(self, name: str, **fields) -> Node:
        return self.rv(name, "normal", {"mu": 0.0, "sigma": 1.0}, **fields)

    def scale(self) -> Node:
        return self.rv("sigma", "lognormal", {"mu": 0.0, "sigma": 0.3})

    def normal(self, mu, y, **fields) -> None:
        self.observe("obs", "normal", {"mu": mu, "sigma": self.scale()}, y, **fields)


def xy(n, random):
    return {"x": random.normal(size=n["rows"]), "y": random.normal(size=n["rows"])}


def matrix(n, random):
    return {"x": random.normal(size=(n["rows"], 3)), "y": random.normal(size=n["rows"])}


def grouped(n, random):
    return {**matrix(n, random), "g": random.integers(0, 4, n["rows"])}


def counted(n, random):
    return {**grouped(n, random), "y": random.integers(0, 2, n["rows"])}


def predictor(b):
    eta = b.call("add", b.parameter("a"), b.call("dot", b.slot("x"), b.parameter("b", shape=[3])))
    return b.call("add", eta, b.call("take", b.parameter("u", shape=[4]), b.slot("g")))


def linear(b):
    b.normal(b.call("add", b.parameter("a"), b.call("dot", b.slot("x"), b.parameter("b", shape=[3]))), b.slot("y"))
    return matrix


def grouped_regression(b):
    b.normal(predictor(b), b.slot("y"))
    return grouped


def logistic(b):
    b.observe("obs", "bernoulli_logit", {"logits": predictor(b)}, b.slot("y"))
    return counted


def poisson(b):
    b.observe("obs", "poisson_log", {"eta": predictor(b)}, b.slot("y"))
    return counted


def robust(b):
    eta = predictor(b)
    b.deterministic("eta", eta)
    b.observe("obs", "student_t", {"nu": 4.0, "mu": eta, "sigma": b.scale()}, b.slot("y"))
    return grouped


def centred(b):
    x, y = b.slot("x"), b.slot("y")
    spread = b.call("standard_deviation", x, axes=[0], keep_axes=True, ddof=1)
    z = b.call("divide", b.call("subtract", x, b.call("mean", x, axes=[0])), spread)
    mu = b.call("add", b.call("dot", z, b.parameter("b", shape=[3])), b.call("mean", y))
    b.normal(mu, y)
    b.deterministic("z", z)
    return matrix


def weighted_and_masked(b):
    x, y, w, m = (b.slot(name) for name in ("x", "y", "w", "m"))
    b.normal(b.call("multiply", x, b.parameter("a")), y, weight=w, mask=m)

    def data(n, random):
        rows = n["rows"]
        return {**xy(n, random), "w": random.normal(size=rows), "m": random.integers(0, 2, rows)}

    return data


def computed_mask(b):
    x, y = b.slot("x"), b.slot("y")
    mu = b.call("tanh", b.call("multiply", x, b.parameter("a")))
    b.normal(mu, y, mask=b.call("greater", x, 0.0))
    b.observe("some", "cauchy", {"mu": mu, "sigma": 1.0}, y, mask=b.call("less", b.slot("m"), 1))
    return lambda n, random: {**xy(n, random), "m": random.integers(0, 2, n["rows"])}


def of_the_mean(b):
    b.normal(b.call("multiply", b.slot("x"), b.parameter("a")), b.slot("y"), reduce="mean")
    return xy


def of_the_weighted_mean_of_a_matrix(b):
    mu = b.call("multiply", b.slot("x"), b.parameter("a", shape=[3]))
    b.normal(mu, b.slot("v"), reduce="mean", weight=b.slot("w"), mask=b.slot("m"))

    def data(n, random):
        rows = n["rows"]
        return {
            "x": random.normal(size=(rows, 3)),
            "v": random.normal(size=(rows, 3)),
            "w": random.normal(size=(rows, 1)),
            "m": random.integers(0, 2, (rows, 3)),
        }

    return data


def listed_mixture(b):
    y, mu = b.slot("y"), b.parameter("mu", shape=[2])
    args = {"weights": [0.3, 0.7], "0.mu": b.call("slice", mu, starts=[0], lengths=[1])}
    args["0.mu"] = b.call("multiply", b.slot("x"), b.call("squeeze", args["0.mu"]))
    args |= {"0.sigma": 1.0, "1.mu": 0.0, "1.nu": 3.0, "1.sigma": b.scale(), "weights": np.array([0.3, 0.7])}
    mixture = {"name": "mixture", "components": ["normal", "student_t"]}
    b.observe("obs", mixture, args, y)
    return xy


def mixture_over_an_axis(b):
    mu = b.call("multiply", b.call("new_axis", b.slot("x"), axis=1), b.parameter("mu", shape=[3]))
    weights = b.rv("w", "dirichlet", {"alpha": np.ones(3)})
    mixture = {"name": "mixture", "components": ["normal"]}
    b.observe("obs", mixture, {"weights": weights, "0.mu": mu, "0.sigma": b.scale()}, b.slot("y"))
    return xy


def autoregression(b, *, reverse=False):
    """Whose last state, and whose states, both count."""
    y, rho = b.slot("y"), b.parameter("rho")

    def step(i, state, count, y, x, rho):
        after = i.call("add", i.call("multiply", i.call("tanh", rho), state), y)
        term = i.log_prob("normal", {"mu": i.call("multiply", rho, state), "sigma": i.call("exp", x)}, y)
        return [after, i.call("add", count, 1), term, after]

    loop = b.scan(body(5, step), [b.parameter("start"), 0], [y, b.slot("x")], [rho], reverse=reverse)
    last, count, terms, states = (b.elem(loop, i) for i in range(4))
    b.factor("terms", terms)
    b.factor("last term", b.call("multiply", last, b.call("as_type", count, type="f64")))
    b.factor("mean state", b.call("multiply", b.call("mean", states), -0.1))
    b.deterministic("states", states)
    b.deterministic("last", last)
    return xy


def autoregression_backwards(b):
    return autoregression(b, reverse=True)


def stock_that_runs_out(b):
    """One more step would take the logarithm of a negative number."""
    use = b.slot("y")
    level = b.call("add", 1.0, b.call("multiply", 0.1, b.call("tanh", b.parameter("a"))))

    def step(i, stock, use):
        left = i.call("subtract", stock, use)
        return [left, i.call("log", left)]

    loop = b.scan(body(2, step), [level], [use])
    b.factor("logs", b.elem(loop, 1))
    return lambda n, _random: {"y": np.full(n["rows"], 0.4 / n["rows"]) + 0.3 * np.eye(n["rows"])[-1]}


def scan_of_vectors(b):
    """Over steps, of a state for each unit: both grow."""
    y, rho = b.slot("grid", "steps"), b.parameter("rho")

    def step(i, state, y, units, rho):
        after = i.call("multiply", i.call("tanh", i.call("add", i.call("multiply", rho, state), y)), units)
        return [after, after]

    units = b.slot("units", "units")
    loop = b.scan(body(4, step), [b.call("multiply", units, 0.0)], [y], [units, rho])
    b.factor("last", b.call("sum", b.elem(loop, 0)))
    b.normal(b.call("mean", b.elem(loop, 1), axes=[1]), b.call("squeeze", y, axes=[1]))
    b.deterministic("states", b.elem(loop, 1))
    return lambda n, random: {
        "grid": random.normal(size=(n["steps"], 1)),
        "units": random.normal(size=n["units"]),
    }


def products(b):
    x, y = b.slot("x"), b.slot("y")
    residual = b.call("subtract", y, b.call("dot", x, b.parameter("b", shape=[3])))
    squares = b.call("dot", residual, residual)
    moments = b.call("dot", x, residual, contract_a=[0], contract_b=[0])
    gram = b.call("dot", b.call("transpose", x), x)
    b.factor("squares", b.call("multiply", b.call("add", squares, b.call("sum", gram)), -0.1))
    b.factor("moments", b.call("tanh", b.call("multiply", moments, 0.01)))
    b.factor("norm", b.call("negate", b.call("norm", residual)))
    b.factor("outer", b.call("multiply", b.call("outer", residual, b.parameter("c", shape=[2])), 0.01))
    return matrix


def reductions(b):
    x, a = b.slot("x"), b.parameter("a")
    scaled = b.call("multiply", x, a)
    for op in ("sum", "mean", "reduce_max", "reduce_min", "logsumexp", "variance", "standard_deviation"):
        b.factor(op, b.call("multiply", b.call(op, scaled), 0.01))
        b.factor(f"{op} by column", b.call("multiply", b.call(op, scaled, axes=[0], keep_axes=True), 0.01))
        b.factor(f"{op} by row", b.call("multiply", b.call(op, scaled, axes=[-1]), 0.01))
    b.factor("product", b.call("product", b.call("add", 1.0, b.call("multiply", scaled, 0.01))))
    b.deterministic("positive", b.call("all", b.call("less", x, 1.0e9)))
    b.deterministic("large", b.call("any", b.call("greater", x, 2.5), axes=[0]))
    b.deterministic("first", b.call("argmax", scaled, axis=0))
    b.deterministic("least", b.call("argmin", x))
    b.deterministic("whole", b.call("mean", b.slot("g")))
    b.deterministic("sorted", b.call("sort", x, axis=1))
    return grouped_without_y


def grouped_without_y(n, random):
    return {"x": random.normal(size=(n["rows"], 3)), "g": random.integers(0, 4, n["rows"])}


def cumulated(b):
    x = b.call("multiply", b.slot("x"), b.parameter("a"))
    walk = b.call("multiply", b.call("cumulative_sum", x), 0.01)
    b.factor("walk term", b.call("multiply", b.call("exp", walk), 0.01))
    b.deterministic("walk", walk)
    growth = b.call("cumulative_product", b.call("add", 1.0, b.call("multiply", x, 0.01)), reverse=True)
    b.factor("growth term", b.call("log", growth))
    b.deterministic("growth", growth)
    b.factor("maximum", b.call("cumulative_max", x, reverse=True))
    # The partial likelihood of Cox: the logarithm of who is still at risk.
    b.factor("risk", b.call("negate", b.call("log", b.call("cumulative_sum", b.call("exp", x), reverse=True))))
    return lambda n, random: {"x": random.normal(size=n["rows"])}


def lagged(b):
    y, rho = b.slot("y"), b.parameter("rho")
    before, after = (b.call("slice", y, starts=[start], lengths=[-(1 - start)]) for start in (0, 1))
    b.normal(b.call("multiply", rho, before), after)
    b.deterministic("before", b.call("multiply", rho, before))
    steps = b.call("diff", b.call("multiply", rho, y), order=2)
    b.factor("steps", b.call("multiply", b.call("variance", steps), -1.0))
    b.factor("largest", b.call("reduce_max", b.call("slice", b.call("multiply", y, rho), starts=[0], lengths=[-1])))
    shifted = b.call("concatenate", np.array([0.5, 1.5]), b.call("multiply", y, rho))
    b.factor("shifted term", b.call("logsumexp", shifted))
    b.deterministic("shifted", shifted)
    padded = b.call("pad", b.call("multiply", y, rho), 1.0, padding_config=[[1, -2, 0]])
    b.factor("padded term", b.call("reduce_min", padded))
    b.deterministic("padded", padded)
    return lambda n, random: {"y": random.normal(size=n["rows"])}


def rows_of_their_own(b):
    """The first and the last rows."""
    x = b.call("multiply", b.slot("x"), b.parameter("a"))
    for name, start, length, stride in (
        ("first", 1, 3, 2),
        ("last", -1, 1, 1),
        ("end", -4, 0, 2),
        ("inner", -4, -1, 1),
    ):
        part = b.call("slice", x, starts=[start, 0], lengths=[length, 2], strides=[stride, 1])
        b.deterministic(name, part)
        b.factor(f"factor {name}", b.call("tanh", part))
    index = b.call("as_type", b.call("multiply", b.call("exp", b.parameter("i")), 1e9), type="s64")
    b.factor("beyond", b.call("take", x, index))
    return lambda n, random: {"x": random.normal(size=(n["rows"], 2))}


def two_axes(b):
    """A rating for each pair, known by its user and its item, whose features are of lengths of their own."""
    a, c = b.parameter("a", shape=[2]), b.parameter("c", shape=[2])
    users, items = b.slot("users", "users"), b.slot("items", "items")
    by_user, by_item = b.call("dot", users, a), b.call("dot", items, c)
    mu = b.call("multiply", b.call("take", by_user, b.slot("user")), b.call("take", by_item, b.slot("item")))
    b.normal(mu, b.slot("rating"))
    table = b.call("outer", by_user, by_item)
    b.factor("table term", b.call("multiply", b.call("mean", table), -0.3))
    b.deterministic("table", table)

    def data(n, random):
        return {
            "users": random.normal(size=(n["users"], 2)),
            "items": random.normal(size=(n["items"], 2)),
            "user": random.integers(0, n["users"], n["rows"]),
            "item": random.integers(0, n["items"], n["rows"]),
            "rating": random.normal(size=n["rows"]),
        }

    return data


def sums_of_groups(b):
    scaled = b.call("multiply", b.slot("x"), b.parameter("a"))
    places = b.call("new_axis", b.slot("g"), axis=1)
    sums = b.call("indexed_add", np.zeros(4), places, b.call("mean", scaled, axes=[1]))
    b.factor("sums term", b.call("multiply", b.call("pow", sums, 2), -0.01))
    b.factor("picked", b.call("gather", b.parameter("u", shape=[4]), places))
    choice = b.call("take_along_axis", scaled, b.call("remainder", places, 3), axis=1)
    b.factor("chosen", b.call("multiply", choice, 0.1))
    b.deterministic("sums", sums)
    return grouped_without_y


def vectors(b):
    x, mu = b.slot("x"), b.parameter("mu", shape=[3])
    b.observe("obs", "mv_normal", {"mu": b.call("multiply", x, mu), "cov": 2.0 * np.eye(3)}, b.slot("v"))
    square = b.call("multiply", b.call("new_axis", x, axis=2), b.call("new_axis", x, axis=1))
    sums = b.call("add", square, np.eye(3))
    b.factor("factors", b.call("multiply", b.call("trace", b.call("cholesky", sums)), b.parameter("c")))
    return lambda n, random: {"x": random.normal(size=(n["rows"], 3)), "v": random.normal(size=(n["rows"], 3))}


def loops_and_choices(b):
    """Whose bodies see all rows, each by itself."""
    x, a = b.slot("x"), b.parameter("a")
    double = body(2, lambda i, x, a: [i.call("multiply", i.call("multiply", x, a), 2.0)])
    none = body(2, lambda i, x, a: [i.call("add", x, a)])
    chosen = b.elem(b.cond(b.call("greater", a, 0.0), double, none, [x, a]), 0)

    def goes_on(i, z, x):
        return [i.call("greater", i.call("reduce_max", i.call("abs", z)), 0.5)]

    def halve(i, z, x):
        return [i.call("add", i.call("multiply", z, 0.5), i.call("multiply", x, 0.001))]

    small = b.elem(b.while_(body(2, goes_on), body(2, halve), [chosen], [x], max_steps=50), 0)
    b.normal(small, b.slot("y"))
    b.deterministic("small", small)
    return xy


def log_probabilities(b):
    y, mu = b.slot("y"), b.call("multiply", b.slot("x"), b.parameter("a"))
    b.factor("density", b.log_prob("normal", {"mu": mu, "sigma": 1.5}, y))
    b.factor("tails", b.log_prob("normal", {"mu": mu, "sigma": 1.5}, y, of="sf"))
    b.observe("number", "normal", {"mu": mu, "sigma": 2.0}, 0.5)
    return xy


CASES = [
    linear,
    grouped_regression,
    logistic,
    poisson,
    robust,
    centred,
    weighted_and_masked,
    computed_mask,
    of_the_mean,
    of_the_weighted_mean_of_a_matrix,
    listed_mixture,
    mixture_over_an_axis,
    autoregression,
    autoregression_backwards,
    stock_that_runs_out,
    scan_of_vectors,
    products,
    reductions,
    cumulated,
    lagged,
    rows_of_their_own,
    two_axes,
    sums_of_groups,
    vectors,
    loops_and_choices,
    log_probabilities,
]
