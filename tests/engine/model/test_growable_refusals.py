"""Data that grow: what a padded model cannot be, and what is told of it."""

import numpy as np
import pytest

from engine.builder import Builder, Node, body
from nutkin.compile import bind
from nutkin.errors import InvalidData, InvalidModel
from nutkin.model import read

ROWS = {"x": np.linspace(-1, 1, 100), "m": np.ones((100, 3))}


def refused(write, data=ROWS, error=InvalidModel):
    """The error of a model of the slots x {rows} and m {rows, 3}, which grow."""
    b = Builder()
    b.rv("a", "normal", {"mu": 0.0, "sigma": 1.0})
    slots = [b.data(name, grows="rows") for name in ("x", "m")]
    write(b, *slots)
    with pytest.raises(error) as caught:
        bind(read(b.tree()), data, b.tensors)
    return caught.value


def call(op, *rest, of=0, **opts):
    return lambda b, *slots: b.factor("term", b.call(op, slots[of], *rest, **opts))


MIXED = {
    "sort": call("sort"),
    "argsort": call("argsort"),
    "median": call("median"),
    "quantile": call("quantile", q=0.5),
    "the last extreme": call("argmax", tie_break="high"),
    "an extreme of columns first": lambda b, x, m: b.factor("t", b.call("argmin", b.call("transpose", m))),
    "top_k": lambda b, x, m: b.factor("t", b.elem(b.call("top_k", x, k=2), 0)),
    "reverse": call("reverse"),
    "tile": call("tile", repetitions=[2]),
    "windows": call("window_sum", window=[3]),
    "every other entry": call("slice", starts=[0], lengths=[0], strides=[2]),
    "a moving window": lambda b, x, m: b.factor("t", b.call("dynamic_slice", x, 3, lengths=[4])),
    "put_slice": lambda b, x, m: b.factor("t", b.call("put_slice", x, 3, np.ones(2))),
    "indexed_put": lambda b, x, m: b.factor("t", b.call("indexed_put", x, np.array([[1]]), np.ones(1))),
    "adding to rows": lambda b, x, m: b.factor("t", b.call("indexed_add", x, np.array([[1]]), np.ones(1))),
    "padding behind": lambda b, x, m: b.factor("t", b.call("pad", x, 0.0, padding_config=[[0, 1, 0]])),
    "another norm": call("norm", ord=1),
    "a diagonal": call("make_diagonal"),
    "factors": lambda b, x, m: b.factor("t", b.elem(b.call("qr", m), 0)),
    "a covariance of rows": lambda b, x, m: b.observe(
        "o", "mv_normal", {"mu": b.call("multiply", x, 0.0), "cov": b.call("outer", x, x)}, x
    ),
    "a walk over rows": lambda b, x, m: b.observe("o", "gaussian_random_walk", {"sigma": 1.0}, x),
    "the density of a walk": lambda b, x, m: b.factor("t", b.log_prob("gaussian_random_walk", {"sigma": 1.0}, x)),
    "categories": lambda b, x, m: b.observe("o", "categorical_logit", {"logits": x}, 1),
    "an ode": lambda b, x, m: b.factor(
        "t", b.elem(b.ode(body(2, lambda i, t, z: [i.call("negate", z)]), [x], 0.0, np.ones(1)), 0)
    ),
}


@pytest.mark.parametrize("write", MIXED.values(), ids=MIXED)
def test_what_mixes_entries_is_refused(write):
    error = refused(write)
    assert "the entries of rows, which grows, are not kept apart here" in error.message
    assert "rows" in error.found
    assert "x, m" in error.hint
    assert error.index is not None


def test_the_node_is_named_with_what_goes_into_it():
    error = refused(call("sort"))
    assert (error.node, error.index, error.found) == ("sort", 3 + 2, "{rows}")
    assert error.message.startswith("sort(x): ")
    assert error.expected.startswith("operations entry by entry")
    error = refused(MIXED["a walk over rows"])
    assert (error.node, error.found) == ("o", "sigma {}, value {rows}")


@pytest.mark.parametrize("behind", [lambda x: np.zeros(1), lambda x: x])
def test_what_nothing_can_be_joined_behind_is_told_to_come_last(behind):
    error = refused(lambda b, x, m: b.factor("t", b.call("concatenate", x, behind(x))))
    assert "nothing can be joined behind the entries of rows, which grows" in error.message
    assert "concatenate([first, x])" in error.expected
    assert error.found.startswith("{rows}, ")


def test_an_axis_that_grows_does_not_become_one_with_another():
    error = refused(call("flatten", of=1))
    assert error.message == "flatten(m): the axis rows, which grows, cannot become one with another axis"
    assert error.found == "{rows, 3}"
    assert "x, m" in error.hint


FIXED = {
    "a variable": lambda b, x, m: b.call("add", x, b.rv("v", "normal", {"mu": 0.0, "sigma": 1.0}, shape=[100])),
    "a tensor": lambda b, x, m: b.call("add", x, np.ones(100)),
    "data without the axis": lambda b, x, m: b.call("dot", x, b.data("z")),
    "a shape": lambda b, x, m: b.call("reshape", x, shape=[100, 1]),
    "another axis": lambda b, x, m: b.call("add", x, b.data("z", grows="others")),
    "indices for all rows": lambda b, x, m: b.call("add", b.call("take", x, np.arange(100)), x),
}


@pytest.mark.parametrize("write", FIXED.values(), ids=FIXED)
def test_a_fixed_size_cannot_meet_what_grows(write):
    error = refused(
        lambda b, x, m: b.factor("t", write(b, x, m)), ROWS | ({"z": np.ones(100)} if _needs_z(write) else {})
    )
    assert "a fixed size cannot meet" in error.message
    assert "rows" in error.message
    assert "{rows}" in error.found


def _needs_z(write):
    return write in (FIXED["another axis"], FIXED["data without the axis"])


def test_a_function_that_was_traced_for_one_size_is_told_as_that():
    def traced(b, x, m):
        b.factor("t", Node(b.add("call", op="exp", args=[x.index], opts={}, shape=[100])))

    error = refused(traced)
    assert error.message == "exp(x): a function over Nx is traced for one size, and cannot meet rows, which grows"
    assert error.found == "{rows}"
    assert "x, m" in error.hint


def test_a_size_that_fits_the_room_is_fixed_too():
    data = {name: np.resize(array, (128, *array.shape[1:])) for name, array in ROWS.items()}
    error = refused(lambda b, x, m: b.factor("t", b.call("add", x, np.ones(128))), data)
    assert error.found == "{rows}, {128}"


def test_a_free_variable_cannot_grow():
    error = refused(lambda b, x, m: b.rv("v", "normal", {"mu": x, "sigma": 1.0}))
    assert error.node == "v"
    assert "a free variable cannot grow" in error.message


def test_a_body_holds_no_masks():
    total = body(2, lambda i, state, x: [i.call("add", state, i.call("sum", x))])
    error = refused(lambda b, x, m: b.factor("t", b.elem(b.scan(total, [0.0], [], [x], length=3), 0)))
    assert "in its body: sum(argument 1): inside a body the entries of rows" in error.message
    inner = body(
        2, lambda i, state, x: [i.elem(i.scan(body(2, lambda j, s, e: [j.call("add", s, e)]), [state], [x]), 0)]
    )
    error = refused(lambda b, x, m: b.factor("t", b.elem(b.scan(inner, [0.0], [], [x], length=3), 0)))
    assert "inside a body" in error.message


def test_one_entry_is_not_taken_for_an_axis_of_size_one():
    data = {name: array[:1] for name, array in ROWS.items()}
    error = refused(
        lambda b, x, m: b.factor("t", b.call("squeeze", b.call("slice", m, starts=[0, 0], lengths=[0, 1]))), data
    )
    assert "where it has one entry" in error.message
    error = refused(lambda b, x, m: b.factor("t", b.call("add", x, np.ones(5))), data)
    assert error.found == "{rows}, {5}"


def test_slots_of_one_axis_have_one_length():
    error = refused(call("sum"), {"x": np.ones(100), "m": np.ones((99, 3))}, InvalidData)
    assert (error.node, error.expected, error.found) == ("m", "100 along rows, as x has", "99")


def test_a_number_cannot_grow():
    error = refused(call("sum"), {"x": np.ones(()), "m": np.ones((99, 3))}, InvalidData)
    assert (error.node, error.found) == ("x", "{}")


def test_an_axis_that_grows_has_no_fixed_size():
    b = Builder()
    b.data("x", shape=[100], grows="rows")
    with pytest.raises(InvalidModel, match="has a fixed size too"):
        bind(read(b.tree()), {"x": np.ones(100)}, {})


def test_errors_are_first_those_of_the_model_as_it_is():
    error = refused(lambda b, x, m: b.factor("t", b.call("dot", m, np.ones(4))))
    assert "contracted axes" in error.message
    assert "{100, 3}" in error.found


def test_values_are_checked_as_many_as_there_are():
    data = {"x": np.append(np.ones(99), -2.0), "m": ROWS["m"]}
    error = refused(lambda b, x, m: b.observe("o", "exponential", {"rate": 1.0}, x), data, InvalidData)
    assert error.message == "the observed value of o: 1 value is impossible"
    assert error.found == "-2.0 at [99]"


def test_computed_values_are_checked_as_many_as_there_are():
    b = Builder()
    b.rv("a", "normal", {"mu": 0.0, "sigma": 1.0})
    x, g = b.data("x", grows="rows"), b.data("g", grows="others")
    b.factor("t", b.call("take", x, b.call("subtract", g, 1)))
    target = bind(read(b.tree()), {"x": np.ones(100), "g": np.array([1, 100, 101])}, {})
    with pytest.raises(InvalidData) as caught:
        _ = target.arguments
    assert "1 value is impossible" in caught.value.message
    assert (caught.value.expected, caught.value.found) == ("indices from 0 to 99", "100 at [2]")
    assert (caught.value.node, caught.value.index) == ("take", 7)


def test_parameters_are_named_as_the_model_has_them():
    b = Builder()
    x = b.data("x", grows="rows")
    tau = b.rv("tau", "half_normal", {"sigma": 1.0})
    z = b.rv("z", "normal", {"mu": b.call("mean", x), "sigma": tau}, centered=False)
    b.factor("t", z)
    target = bind(read(b.tree()), {"x": np.ones(100)}, {})
    with pytest.raises(Exception, match="the parameter tau is needed") as caught:
        target.unconstrain({"z": np.array(1.0)})
    assert (caught.value.node, caught.value.index) == ("tau", tau.index)
