"""Requests and their blobs: asked for, uploaded, shared, dropped and asked for again; what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from nutkin_port import nx_serialize
from port.models import SCHOOLS_SIGMA, SCHOOLS_Y, gaussian, put_schools, schools, shifted_gaussian
from port.port_client import PortClient, address, encode


@pytest.fixture(scope="module")
def port() -> Iterator[PortClient]:
    """One program for all tests here: what each leaves behind must not disturb the next."""
    with PortClient() as client:
        client.hello()
        yield client
        client.send("ping", 10**6)
        pong, before = client.until("pong", id=10**6)
        assert before == []
        assert pong.body["requests"] == 0


def at_zero(body: dict[str, Any], size: int = 1) -> dict[str, Any]:
    return {**body, "position": np.zeros(size)}


def test_blobs_are_asked_for_once(port: PortClient) -> None:
    port.send("compile", 1, schools())
    need, before = port.until("need", id=1)
    assert before == []
    assert need.body == {"blobs": [address(SCHOOLS_Y), address(SCHOOLS_SIGMA)]}
    port.put(1, SCHOOLS_SIGMA, chunk=10)
    port.put(1, SCHOOLS_Y)
    compiled, before = port.until("compiled", id=1)
    assert before == []
    assert [parameter["name"] for parameter in compiled.body["parameters"]] == ["mu", "tau", "theta"]
    assert compiled.body["parameters"][2] == {"name": "theta", "shape": [8], "type": "f64", "size": 8}
    assert (compiled.body["dimension"], compiled.body["observed"]) == (10, ["obs"])
    assert compiled.body["rewrites"] == []
    port.send("compile", 2, schools())
    again, before = port.until("compiled", id=2)
    assert before == []
    assert again.body["cached"] is True


def test_new_data_of_the_same_shape_compiles_nothing(port: PortClient) -> None:
    data = {"y": encode(np.arange(5.0)), "sigma": encode(np.ones(5))}
    values = []
    for id, y in ((1, data["y"]), (2, encode(np.zeros(5)))):
        body = schools(size=5) | {"data": {"y": address(y), "sigma": address(data["sigma"])}}
        port.send("log_density", id, {**body, "position": np.zeros(7)})
        need, _ = port.until("need", id=id)
        for blob in need.body["blobs"]:
            port.put(id, next(encoded for encoded in (y, data["sigma"]) if address(encoded) == blob))
        value, _ = port.until("value", id=id)
        port.send("ping", 3)
        pong, _ = port.until("pong", id=3)
        values.append((float(value.body["value"]), pong.body["compilations"]))
    assert values[0][0] != values[1][0]
    assert values[0][1] == values[1][1]


def test_one_upload_serves_all_requests_that_wait_for_it(port: PortClient) -> None:
    encoded = encode(3.25)
    for id in (1, 2):
        port.send("log_density", id, at_zero(shifted_gaussian(encoded)))
        assert port.until("need", id=id)[0].body == {"blobs": [address(encoded)]}
    port.put(2, encoded)
    answers = [port.until("value")[0] for _ in range(2)]  # in any order
    assert {answer.id for answer in answers} == {1, 2}
    expected = -0.5 * 3.25**2 - 0.5 * np.log(2 * np.pi)
    np.testing.assert_allclose([answer.body["value"] for answer in answers], expected)
    port.put(1, encoded)  # too late, and no error


def test_a_blob_as_nx_wrote_it(port: PortClient) -> None:
    encoded = nx_serialize.write(nx_serialize.tensor(np.array(-1.0)))
    port.send("log_density", 1, at_zero(shifted_gaussian(encoded)))
    port.until("need", id=1)
    port.put(1, encoded, encoding="nx", chunk=13)
    value, _ = port.until("value", id=1)
    np.testing.assert_allclose(value.body["gradient"], [-1.0])


def test_log_density_at_constrained_values(port: PortClient) -> None:
    port.send("log_density", 1, {**gaussian(2), "values": {"x": np.array([1.0, 2.0])}})
    value, _ = port.until("value", id=1)
    np.testing.assert_allclose(value.body["value"], -2.5 - np.log(2 * np.pi))
    np.testing.assert_array_equal(value.body["gradient"], [-1.0, -2.0])
    np.testing.assert_array_equal(value.body["position"], [1.0, 2.0])
    port.send("log_density", 2, {**gaussian(2), "position": np.array([1.0, 2.0]), "options": {"precision": "f32"}})
    assert port.until("value", id=2)[0].body["gradient"].dtype == np.float32


@pytest.mark.parametrize(
    ("body", "code", "text"),
    [
        ({"values": {}}, "invalid_data", "`x`"),
        ({"values": {"z": np.zeros(2)}}, "invalid_option", "z"),
        ({"position": np.zeros(3)}, "invalid_data", "shape {2}"),
        ({"position": np.zeros(2, complex)}, "invalid_data", "real numbers"),
    ],
)
def test_log_density_where_the_model_has_none(port: PortClient, body: dict[str, Any], code: str, text: str) -> None:
    port.send("log_density", 1, {**gaussian(2), **body})
    error, _ = port.until("error", id=1)
    assert error.body["code"] == code
    assert text in str(error.body)


def test_debug_at_a_point_that_is_finite_and_one_that_is_not(port: PortClient) -> None:
    body = gaussian(2)
    nodes = body["model"]["nodes"]
    nodes += [
        {"kind": "call", "op": "log", "args": [2], "opts": {}},
        {"kind": "factor", "name": "f", "value": 3},
    ]
    port.send("debug", 1, {**body, "position": np.array([1.0, 2.0])})
    fine, _ = port.until("diagnosis", id=1)
    assert (fine.body["finite"], fine.body["cause"]) == (True, None)
    np.testing.assert_array_equal(fine.body["gradient"], [0.0, -1.5])
    port.send("debug", 2, {**body, "values": {"x": np.array([1.0, -2.0])}})
    found = port.until("diagnosis", id=2)[0].body
    assert found["finite"] is False
    assert np.isnan(found["value"])
    np.testing.assert_array_equal(found["point"]["x"], [1.0, -2.0])
    cause = found["cause"]
    assert (cause["node"], cause["index"], cause["found"], cause["affects"]) == ("log(x)", 3, "NaN at [1]", "f")
    (reading,) = cause["inputs"]
    assert (reading["shape"], reading["place"], float(reading["element"])) == ([2], [1], -2.0)
    assert found["text"].startswith("log(x) is NaN at [1], and with it f\n  x = f64 {2}, -2 at [1], from -2 to 1\n")
    port.send("debug", 3, {**body, "position": np.zeros(3)})
    assert port.until("error", id=3)[0].body["code"] == "invalid_data"


def test_a_run_without_a_starting_point_says_why(port: PortClient) -> None:
    body = gaussian(1)
    body["model"]["nodes"] += [
        {"kind": "constant", "value": -1},
        {"kind": "call", "op": "sqrt", "args": [3], "opts": {}},
        {"kind": "factor", "name": "f", "value": 4},
    ]
    port.send("sample", 1, {**body, "options": {"chains": 1}})
    error = port.until("error", id=1)[0].body
    assert (error["code"], error["node"], error["index"], error["found"]) == ("init_failed", "sqrt", 4, "NaN")
    assert "no starting point in 100 tries: sqrt(-1) is NaN, and with it f, at x = [" in error["message"]
    assert "at least 0" in error["hint"]


def wrong_put(**changes: Any) -> dict[str, Any]:
    body = {"blob": address(SCHOOLS_Y), "encoding": "tensor", "size": len(SCHOOLS_Y), "offset": 0, "bytes": SCHOOLS_Y}
    return body | changes


@pytest.mark.parametrize(
    ("changes", "code", "text"),
    [
        ({"blob": bytes(32)}, "protocol", "nobody needs"),
        ({"bytes": SCHOOLS_Y[:-1] + b"x"}, "invalid_data", "do not match its address"),
        ({"offset": 1}, "protocol", "not in order"),
        ({"size": 2**32 + 1}, "limit", "too large"),
        ({"size": -1}, "protocol", "$.size"),
        ({"encoding": "pickle"}, "protocol", "pickle"),
        ({"bytes": bytes(2**20 + 1), "size": 2**21}, "limit", "too many"),
        ({"bytes": b"\x03f99\x00" + SCHOOLS_Y[5:]}, "invalid_data", "unknown type"),
    ],
)
def test_an_upload_that_is_wrong_ends_its_request(
    port: PortClient, changes: dict[str, Any], code: str, text: str
) -> None:
    fresh = {"data": {"y": address(SCHOOLS_Y), "sigma": bytes(31) + b"s"}}  # never there: the request waits
    upload = wrong_put(**changes)
    if "blob" not in changes:
        fresh["data"]["y"] = upload["blob"] = bytes(31) + b"y" if code != "invalid_data" else address(b"another")
    port.send("compile", 1, schools() | fresh)
    port.until("need", id=1)
    port.send("put", 1, upload)
    error, before = port.until("error", id=1)
    assert before == []
    assert error.body["code"] == code
    assert text in str(error.body)


def test_an_id_that_is_taken_is_refused_without_harm(port: PortClient) -> None:
    body = schools() | {"data": {"y": address(SCHOOLS_Y), "sigma": bytes(32)}}
    port.send("compile", 1, body)
    port.until("need", id=1)
    port.send("compile", 1, gaussian())
    error, _ = port.until("error")
    assert (error.id, error.body["code"], error.body["found"]) == (0, "protocol", "1")
    port.send("cancel", 1)
    error, _ = port.until("error", id=1)
    assert error.body["code"] == "cancelled"
    port.send("log_density", 1, at_zero(gaussian(1)))  # free again
    port.until("value", id=1)


def test_too_many_open_requests(port: PortClient) -> None:
    body = schools() | {"data": {"y": bytes(32), "sigma": bytes(32)}}
    for id in range(1, 257):
        port.send("compile", id, body)
        port.until("need", id=id)
    port.send("compile", 257, body)
    error, _ = port.until("error", id=257)
    assert (error.body["code"], error.body["expected"]) == ("limit", "at most 256")
    for id in range(1, 257):
        port.send("cancel", id)
        assert port.until("error", id=id)[0].body["code"] == "cancelled"


def test_too_many_nodes(port: PortClient) -> None:
    nodes = [{"kind": "constant", "value": 0}] * 100_001
    port.send("compile", 1, {"model": {"version": 1, "nodes": nodes}, "data": {}})
    error, _ = port.until("error", id=1)
    assert (error.body["code"], error.body["found"]) == ("limit", "100001")


def test_a_model_that_is_wrong(port: PortClient) -> None:
    body = gaussian()
    body["model"]["nodes"][2]["dist"] = "norml"
    port.send("compile", 1, body)
    error, _ = port.until("error", id=1)
    assert (error.body["code"], error.body["node"], error.body["index"]) == ("invalid_model", "x", 2)


def test_an_unknown_slot(port: PortClient) -> None:
    encoded = encode(1.0)
    port.send("compile", 1, gaussian() | {"data": {"z": address(encoded)}})
    port.until("need", id=1)
    port.put(1, encoded)
    error, _ = port.until("error", id=1)
    assert error.body["code"] == "invalid_data"
    assert "z" in str(error.body)


def test_an_evicted_blob_is_asked_for_again() -> None:
    first, second = encode(np.arange(200.0)), encode(np.arange(200.0) + 1)
    with PortClient("--limit", "store=2000") as port:
        port.hello()
        for encoded in (first, second, first):  # each drops the one before
            port.send("log_density", 1, at_zero(shifted_gaussian(encoded, size=200), 200))
            assert port.until("need", id=1)[0].body == {"blobs": [address(encoded)]}
            port.put(1, encoded)
            port.until("value", id=1)
        port.send("ping", 2)
        pong, _ = port.until("pong", id=2)
        assert pong.body["blobs"] == {"count": 1, "bytes": 1600}


def test_a_request_holds_on_to_blobs_that_the_store_drops() -> None:
    with PortClient("--limit", "store=64") as port:  # room for one of the two
        port.hello()
        port.send("log_density", 1, {**schools(), "position": np.zeros(10)})
        put_schools(port, 1)
        value, _ = port.until("value", id=1)
        assert np.isfinite(value.body["value"])
        port.send("ping", 2)
        assert port.until("pong", id=2)[0].body["blobs"] == {"count": 1, "bytes": 64}


def test_an_upload_of_80_megabytes() -> None:
    encoded = encode(np.arange(10_000_000.0))
    with PortClient() as port:
        port.hello()
        port.send("compile", 1, gaussian() | {"data": {"z": address(encoded)}})
        port.until("need", id=1)
        port.put(1, encoded)
        assert port.until("error", id=1)[0].body["code"] == "invalid_data"
        port.send("ping", 2)
        pong, _ = port.until("pong", id=2)
        assert pong.body["blobs"] == {"count": 1, "bytes": 80_000_000}


def test_what_was_found_is_cut_to_a_length(port: PortClient) -> None:
    """An answer that repeats what it was given must still be a frame."""
    for options in ({"mass_matrix": "x" * 6_000_000}, {"x" * 15_000_000: 1}):
        port.send("sample", 1, {**gaussian(), "options": options})
        error, _ = port.until("error", id=1)
        assert error.body["code"] == "invalid_option"
        assert sum(len(str(text)) for text in error.body.values()) < 10_000
    port.send("ping", 2)
    port.until("pong", id=2)


def test_messages_for_requests_that_are_not_open_are_ignored(port: PortClient) -> None:
    port.send("ack", 7, {"chunks": "many"})
    port.send("ack", 7, {"chunks": 1})
    port.send("cancel", 7, {})
    port.send("ping", 8)
    pong, before = port.until("pong", id=8)
    assert before == []
    assert pong.body["requests"] == 0


def test_a_ping_needs_a_free_id(port: PortClient) -> None:
    port.send("ping", 0)
    error, _ = port.until("error", id=0)
    assert error.body["code"] == "protocol"
