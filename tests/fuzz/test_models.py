"""Models at random: each is read, checked and traced, or refused by one of the documented errors, in bounded time."""

from __future__ import annotations

import collections
import threading
from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.builder import Builder, body
from fuzz.bounds import TookTooLong, bounded
from fuzz.targets import ERRORS, fuzz_model, trace
from nutkin.compile import bind
from nutkin.errors import InvalidModel, LimitExceeded
from nutkin.model import Spec, applications, check, read
from nutkin.model.types import DTYPES, NAMES

# Numbers of a model may be beyond what a type holds: NumPy warns, and they are infinite.
pytestmark = pytest.mark.filterwarnings("ignore")

MANY = 20_000


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.randoms(use_true_random=False))
def test_models_are_traced_or_refused(random: Random) -> None:
    with bounded():
        fuzz_model(random)


def test_the_models_are_of_all_sorts() -> None:
    outcomes = collections.Counter()
    for seed in range(150):
        with bounded():
            outcomes[fuzz_model(Random(seed))] += 1
    assert min(outcomes[outcome] for outcome in ("refused", "checked", "traced")) > 5


def wide(kind: str) -> tuple[dict, dict[str, np.ndarray]]:
    """A model of very many nodes, of one kind."""
    b = Builder()
    data = {}
    if kind == "data":
        data = {f"d{i}": np.zeros(()) for i in range(MANY)}
        for name in data:
            b.data(name)
    elif kind == "growing":
        data = {f"d{i}": np.zeros(3) for i in range(MANY // 4)}
        for name in data:
            b.data(name, grows=f"axis of {name}")
    elif kind == "mixture":
        data = {"w": np.full(MANY, 1 / MANY), "y": np.ones(())}
        y, w = b.data("y"), b.data("w")
        args = {f"{place}.{name}": y for place in range(MANY) for name in ("mu", "sigma")}
        b.observe("o", {"name": "mixture", "components": ["normal"] * MANY}, {"weights": w, **args}, y)
    else:
        one = b.constant(1.0)
        x = b.rv("x", "normal", {"mu": one, "sigma": one})
        for i in range(MANY):
            if kind == "variables":
                b.rv(f"x{i}", "normal", {"mu": one, "sigma": one})
            elif kind == "chained":
                x = b.rv(f"x{i}", "normal", {"mu": x, "sigma": one})
            else:
                b.observe(f"o{i}", "normal", {"mu": x, "sigma": one}, one)
    return b.tree(), data


@pytest.mark.parametrize("kind", ["data", "growing", "mixture", "variables", "chained", "observations"])
def test_models_of_many_nodes_take_time_and_memory_in_proportion(kind: str) -> None:
    tree, data = wide(kind)
    with bounded(seconds=30, mebibytes=1024):
        bind(read(tree), data, {})


def nested_loops(depth: int) -> dict:
    """Loops within loops, each of which has to find out that what it carries is no integer."""

    def write(b: Builder, x: object, depth: int = depth) -> list[object]:
        if not depth:
            return [b.call("add", x, 1.5)]
        start = b.call("as_type", 0, type="u2")
        loop = b.scan(body(1, lambda b, x: write(b, x, depth - 1)), [start], length=2)
        return [b.call("add", b.elem(loop, 0), x)]

    b = Builder()
    b.scan(body(1, write), [0], length=2)
    return b.tree()


def test_nested_loops_settle(monkeypatch: pytest.MonkeyPatch) -> None:
    check(read(nested_loops(5)), {}, {})
    monkeypatch.setattr(applications, "MAX_EFFORT", 2**16)
    with bounded(seconds=10), pytest.raises(LimitExceeded, match="do not settle in time"):
        check(read(nested_loops(18)), {}, {})


def deep(levels: int) -> list[dict]:
    """Models that are nested this deep, as no message can be: in bodies, distributions, and options."""
    dist: object = "normal"
    for _ in range(levels):
        dist = {"name": "truncated", "components": [dist]}
    option: list = []
    for _ in range(levels):
        option = [option]
    return [
        nested_loops(levels) if levels < 100 else _deep_bodies(levels),
        {"version": 1, "nodes": [{"kind": "observe", "name": "o", "dist": dist, "args": {}, "value": 0}]},
        {"version": 1, "nodes": [{"kind": "call", "op": "iota", "args": [], "opts": {"shape": option}}]},
    ]


def _deep_bodies(levels: int) -> dict:
    inner: dict = {"nodes": [], "results": []}
    for _ in range(levels):
        inner = {"nodes": [{"kind": "scan", "init": [], "length": 2, "body": inner}], "results": []}
    return {"version": 1, **inner}


@pytest.mark.parametrize("levels", [30, 100_000])
def test_deep_models_are_refused(levels: int) -> None:
    for tree in deep(levels):
        with pytest.raises((InvalidModel, LimitExceeded), match=r"nested too deeply|option shape is wrong"):
            bind(read(tree), {}, {})


def refused(*nodes: dict, data: dict[str, Spec] | None = None) -> str:
    with bounded(seconds=10, mebibytes=512), pytest.raises(ERRORS) as raised:
        check(read({"version": 1, "nodes": list(nodes)}), data or {}, {})
    return str(raised.value)


def call(op: str, *args: int, **opts: object) -> dict:
    return {"kind": "call", "op": op, "args": list(args), "opts": opts}


ONE = {"kind": "constant", "value": 1.5}
Y = {"kind": "data", "name": "y"}
VECTOR = {"y": Spec((4,), "f64")}


@pytest.mark.parametrize("option", [np.zeros(2), {"a": 1}, b"x", 2**64, -(2**63) - 1])
def test_options_are_plain_values(option: object) -> None:
    assert "the option axes is wrong" in refused(ONE, call("sum", 0, axes=option))


@pytest.mark.parametrize(
    "node",
    [
        call("slice", 0, starts=[0], lengths=[1], strides=[2**40]),
        call("pad", 0, 0, padding_config=[[-(2**62), 2**62, 0]]),
        call("window_sum", 0, window=[1], window_dilations=2**62),
        call("fft", 0, length=2**40),
        {"kind": "scan", "init": [], "body": {"nodes": [], "results": []}, "length": 2**70},
    ],
)
def test_numbers_are_bounded(node: dict) -> None:
    message = refused(Y, node, data=VECTOR)
    assert "is wrong" in message or "2147483648" in message


@pytest.mark.parametrize("array", [np.zeros(2), np.zeros(())])
def test_a_tensor_is_no_part_of_a_model(array: np.ndarray) -> None:
    rv = {"kind": "rv", "name": "x", "args": {"mu": 0, "sigma": 0}}
    scan = {"kind": "scan", "init": [], "length": 2}
    for node, path in [(array, ""), ({**rv, "dist": array}, ".dist"), ({**scan, "body": array}, ".body")]:
        with pytest.raises(InvalidModel, match="Expected `object`, got `ndarray`") as raised:
            read({"version": 1, "nodes": [ONE, node]})
        assert raised.value.path == f"$.nodes[1]{path}"
    with pytest.raises(InvalidModel, match="got `ndarray`"):
        read(array)


def test_tensors_of_bodies_are_bounded_too() -> None:
    inner = {"nodes": [call("iota", shape=[2**30, 2**30])], "results": [0]}
    cond = {"kind": "cond", "predicate": 0, "on_true": inner, "on_false": inner}
    assert "in its body: iota(): the tensor is too large" in refused(ONE, cond)
    assert "too many axes; expected at most 64; found 70" in refused(ONE, call("broadcast", 0, shape=[1] * 70))


@pytest.mark.parametrize(
    ("node", "message"),
    [
        (call("gather", 0, 1), "the last axis of the indices of gather has an index for each axis"),
        (call("put_slice", 0), "expected x, starts and an update; found 1"),
        (call("bitcast", 0, type="c64"), "bitcast makes no complex numbers"),
        (call("diff", 0, order=1000), "too high an order"),
        (call("window_product", 0, window=[100_000]), "the window of window_product is too large"),
        (
            {"kind": "observe", "name": "o", "dist": {"name": "interval_censored", "components": ["logistic"]}}
            | {"args": {"0.mu": 0, "0.sigma": 0}, "value": 0},
            "a value of interval_censored is a pair of numbers",
        ),
        ({"x` - at `$.nodes[9].args[...]": 1, **call("exp", 0)}, "unknown field"),
    ],
)
def test_what_was_no_typed_error_once(node: dict, message: str) -> None:
    data = {"y": Spec((2**20,), "f64"), "i": Spec((1, 2**30), "s64")}
    assert message in refused(Y, {"kind": "data", "name": "i"}, node, data=data)


def test_a_state_and_a_condition_there_must_be() -> None:
    nothing = {"nodes": [], "results": []}
    assert "the condition of while must give one scalar" in refused(
        ONE, {"kind": "while", "init": [], "condition": nothing, "body": nothing, "max_steps": 3}
    )
    times = {"y": Spec((3,), "f64")}
    assert "an ode needs a state" in refused(
        ONE, Y, {"kind": "ode", "init": [], "start": 0, "times": 1, "body": nothing}, data=times
    )


@pytest.mark.parametrize(
    ("node", "given"),
    [
        (call("eigh", 0), np.array([[2, 1j], [-1j, 2]])),
        (call("svd", 0), np.array([[2, 1j], [-1j, 2]])),
        (call("slogdet", 0), np.array([[2, 1j], [-1j, 2]])),
        (call("norm", 0), np.array([3j, 4])),
        (call("invert", 0), np.array([[1j, 0], [0, 1j]])),
        (call("cholesky", 0), np.array([[2, 1j], [-1j, 2]])),
        (call("abs", 0), np.array([1, 0]).astype(DTYPES["s2"])),
        (call("all_close", 0, 0, atol=2**64 - 1), np.zeros(2)),
        ({"kind": "log_prob", "dist": "von_mises", "args": {"mu": 0, "kappa": 1}, "value": 0}, np.zeros(2, np.int8)),
        (
            {"kind": "observe", "name": "o", "dist": "von_mises", "args": {"mu": 1, "kappa": 1}, "value": 0},
            np.zeros(2).astype(DTYPES["s4"]),
        ),
    ],
)
def test_what_could_not_be_traced_once(node: dict, given: np.ndarray) -> None:
    nodes = [Y, {"kind": "constant", "value": 1}, node]
    program = check(read({"version": 1, "nodes": nodes}), {"y": Spec(given.shape, NAMES[given.dtype])}, {})
    trace(program, {"y": given}, {})


def test_a_number_is_padded_along_no_axis() -> None:
    b = Builder()
    x = b.rv("x", "normal", {"mu": 0, "sigma": 1})
    b.factor("f", b.call("pad", x, x, padding_config=[]))
    b.deterministic("power", b.call("pow", 2**64 - 1, 2**64 - 1))
    trace(check(read(b.tree()), {}, {}), {}, {})


def test_numbers_of_a_body_change_between_types_of_less_than_a_byte() -> None:
    def small(b: Builder, x: object) -> list[object]:
        return [b.call("add", x, b.call("as_type", b.call("as_type", 2**64 - 1, type="s2"), type="u2"))]

    b = Builder()
    b.deterministic("last", b.elem(b.scan(body(1, small), [0], length=2), 0))
    trace(check(read(b.tree()), {}, {}), {}, {})


def test_a_bound_of_time_is_one() -> None:
    with pytest.raises(TookTooLong), bounded(seconds=0.05):
        threading.Event().wait(5)


def test_a_bound_of_memory_is_one() -> None:
    with pytest.raises(MemoryError), bounded(mebibytes=64):
        bytearray(1 << 30)
