"""Functions without parameters: their values, in parts, and the shapes of nodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from port.models import gaussian, put_schools, schools
from port.port_client import PortClient, address, encode

X = np.arange(300_000.0)


@pytest.fixture(scope="module")
def port() -> Iterator[PortClient]:
    with PortClient() as client:
        client.hello()
        yield client


def doubled(**fields: Any) -> dict[str, Any]:
    """Twice the data slot x, and their sum, as f32."""
    nodes = [
        {"kind": "data", "name": "x"},
        {"kind": "constant", "value": 2},
        {"kind": "call", "op": "multiply", "args": [0, 1]},
        {"kind": "call", "op": "sum", "args": [2]},
        {"kind": "call", "op": "as_type", "args": [3], "opts": {"type": "f32"}},
    ]
    return {"model": {"version": 1, "nodes": nodes}, "data": {"x": address(encode(X))}, "results": [2, 4], **fields}


def test_values_come_in_parts(port: PortClient) -> None:
    port.send("evaluate", 1, doubled())
    port.until("need", id=1)
    port.put(1, encode(X))
    done, messages = port.until("evaluated", id=1)
    forms = done.body["values"]
    assert [(form["type"], list(form["shape"])) for form in forms] == [("f64", [300_000]), ("f32", [])]
    parts = [m.body for m in messages if m.kind == "part"]
    assert [(part["value"], part["offset"]) for part in parts] == [(0, 0), (0, 1 << 20), (0, 2 << 20), (1, 0)]
    content = b"".join(part["bytes"] for part in parts if part["value"] == 0)
    np.testing.assert_array_equal(np.frombuffer(content), 2 * X)
    assert np.frombuffer(parts[-1]["bytes"], np.float32) == np.float32(2 * X.sum())


def test_new_data_of_the_same_shape_compile_nothing(port: PortClient) -> None:
    for id, x in ((1, X[:3]), (2, X[3:6])):
        body = doubled(data={"x": address(encode(x))})
        port.send("evaluate", id, body)
        port.until("need", id=id)
        port.put(id, encode(x))
        done, (part, *_) = port.until("evaluated", id=id)
        assert done.body["cached"] == (id == 2)
        np.testing.assert_array_equal(np.frombuffer(part.body["bytes"]), 2 * x)


def test_nan_is_a_value_like_others(port: PortClient) -> None:
    x = np.array([np.nan, np.inf])
    port.send("evaluate", 1, doubled(data={"x": address(encode(x))}, results=[2]))
    port.until("need", id=1)
    port.put(1, encode(x))
    _, (part,) = port.until("evaluated", id=1)
    np.testing.assert_array_equal(np.frombuffer(part.body["bytes"]), x)


def test_parameters_have_no_value(port: PortClient) -> None:
    port.send("evaluate", 1, {**schools(), "results": [0]})
    put_schools(port, 1)
    error, _ = port.until("error", id=1)
    assert (error.body["code"], error.body["node"]) == ("invalid_model", "mu")


def test_results_that_are_not_there(port: PortClient) -> None:
    x = X[:2]
    port.send("evaluate", 1, doubled(data={"x": address(encode(x))}, results=[5]))
    port.until("need", id=1)
    port.put(1, encode(x))
    error, _ = port.until("error", id=1)
    assert (error.body["code"], error.body["expected"]) == ("invalid_model", "an index below 5")


def test_shapes(port: PortClient) -> None:
    encoded = encode(X[:7])
    body = doubled(data={"x": address(encoded)}, nodes=[0, 4])
    del body["results"]
    port.send("shapes", 1, body)
    port.until("need", id=1)
    port.put(1, encoded)
    shapes, _ = port.until("shapes", id=1)
    assert [(list(node["shape"]), node["type"]) for node in shapes.body["nodes"]] == [([7], "f64"), ([], "f32")]


def test_shapes_of_nodes_that_are_not_there(port: PortClient) -> None:
    port.send("shapes", 1, {**gaussian(), "nodes": [3]})
    error, _ = port.until("error", id=1)
    assert (error.body["code"], error.body["expected"]) == ("invalid_model", "an index below 3")
