"""Predictions with the real program: uploads of draws, chunks within credit, and the last answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from port.models import gaussian
from port.port_client import PortClient, address, encode

UNLIMITED = 10**9
DRAWS = np.arange(1200.0).reshape(2, 600)


@pytest.fixture(scope="module")
def port() -> Iterator[PortClient]:
    with PortClient() as client:
        client.hello()
        yield client


def shifted() -> dict[str, Any]:
    """x, whose distribution has no part in it, and an observation close to it."""
    nodes = [
        {"kind": "constant", "value": 0},
        {"kind": "constant", "value": 1e-9},
        {"kind": "rv", "name": "x", "dist": "normal", "args": {"mu": 0, "sigma": 1}},
        {"kind": "data", "name": "y"},
        {"kind": "observe", "name": "obs", "dist": "normal", "args": {"mu": 2, "sigma": 1}, "value": 3},
    ]
    encoded = encode(DRAWS)
    return {"model": {"version": 1, "nodes": nodes}, "data": {}, "posterior": {"x": address(encoded)}}


def test_each_draw_has_its_prediction(port: PortClient) -> None:
    port.send("predict", 1, {**shifted(), "options": {"credit": UNLIMITED}})
    need, _ = port.until("need", id=1)
    assert need.body["blobs"] == [address(encode(DRAWS))]
    port.put(1, encode(DRAWS))
    done, messages = port.until("done", id=1)
    assert done.body["status"] == "complete"
    assert done.body["chains"] == []
    compiled = messages[0].body
    assert compiled["predicted"] == [{"name": "obs", "shape": [], "type": "f64"}]
    assert compiled["observed"] == ["obs"]
    for chain in range(2):
        bodies = [m.body for m in messages if m.kind == "draws" and m.body["chain"] == chain]
        assert [body["start"] for body in bodies] == list(np.cumsum([0] + [body["count"] for body in bodies[:-1]]))
        assert all(body["stats"] == {} for body in bodies)
        np.testing.assert_allclose(np.concatenate([b["variables"]["obs"] for b in bodies]), DRAWS[chain], atol=1e-7)


def test_credit_and_cancelling(port: PortClient) -> None:
    body = {**gaussian(), "posterior": {}, "options": {"redraw": None, "chains": 1, "draws": 10**8, "credit": 2}}
    port.send("predict", 1, body)
    port.until("draws", id=1)
    port.until("draws", id=1)
    port.send("ping", 2)
    assert port.until("pong", id=2)[1] == []
    port.send("ack", 1, {"chunks": 1})
    port.until("draws", id=1)
    port.send("cancel", 1)
    done, before = port.until("done", id=1)
    assert (done.body["status"], before) == ("cancelled", [])


def test_a_factor_that_is_left_out_is_logged(port: PortClient) -> None:
    body = gaussian()
    body["model"]["nodes"].append({"kind": "factor", "name": "bend", "value": 2})
    port.send("predict", 1, {**body, "posterior": {}, "options": {"redraw": None, "draws": 3, "credit": UNLIMITED}})
    log, _ = port.until("log")
    assert (log.body["level"], log.body["source"]) == ("warning", "nutkin")
    assert log.body["text"] == "the factor bend has no part in the random draws of parameters"
    assert port.until("done", id=1)[0].body["status"] == "complete"


def test_errors(port: PortClient) -> None:
    port.send("predict", 1, {**gaussian(), "options": {"draws": 0, "redraw": None}})
    assert port.until("error", id=1)[0].body["path"] == "$.options.draws"
    port.send("predict", 1, {**gaussian(), "options": {"of": "x"}})
    assert port.until("error", id=1)[0].body["code"] == "invalid_option"
    port.send("predict", 1, gaussian())
    error = port.until("error", id=1)[0].body
    assert (error["code"], error["message"]) == ("invalid_model", "there is nothing to predict")
