"""Models for the tests of the port, as a client sends them."""

from __future__ import annotations

from typing import Any

from port.port_client import PortClient, address, encode

SCHOOLS_Y = encode([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
SCHOOLS_SIGMA = encode([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])


def schools(size: int = 8) -> dict[str, Any]:
    """The body of a request about eight schools, non-centred. Its blobs: SCHOOLS_Y and SCHOOLS_SIGMA."""
    nodes = [
        {"kind": "data", "name": "y"},
        {"kind": "data", "name": "sigma"},
        {"kind": "constant", "value": 0},
        {"kind": "constant", "value": 5},
        {"kind": "rv", "name": "mu", "dist": "normal", "args": {"mu": 2, "sigma": 3}},
        {"kind": "rv", "name": "tau", "dist": "half_cauchy", "args": {"sigma": 3}},
        {
            "kind": "rv",
            "name": "theta",
            "dist": "normal",
            "args": {"mu": 4, "sigma": 5},
            "shape": [size],
            "centered": False,
        },
        {"kind": "observe", "name": "obs", "dist": "normal", "args": {"mu": 6, "sigma": 1}, "value": 0},
    ]
    data = {"y": address(SCHOOLS_Y), "sigma": address(SCHOOLS_SIGMA)}
    return {"model": {"version": 1, "nodes": nodes}, "data": data}


def gaussian(size: int = 3) -> dict[str, Any]:
    """A standard normal vector: no blobs, and a quick compilation."""
    nodes = [
        {"kind": "constant", "value": 0},
        {"kind": "constant", "value": 1},
        {"kind": "rv", "name": "x", "dist": "normal", "args": {"mu": 0, "sigma": 1}, "shape": [size]},
    ]
    return {"model": {"version": 1, "nodes": nodes}, "data": {}}


def slow_to_compile(terms: int = 400) -> dict[str, Any]:
    """A model whose compilation takes longer the more terms it has: many seconds by default. A test that waits for its
    end takes a number of its own, since the program is stored then, and is at hand for other tests."""
    nodes: list[dict[str, Any]] = [
        {"kind": "constant", "value": 0},
        {"kind": "constant", "value": 1},
        {"kind": "rv", "name": "x", "dist": "normal", "args": {"mu": 0, "sigma": 1}},
    ]
    for op in ("sin", "exp", "tanh", "cos") * (terms // 4 + 1):
        nodes.append({"kind": "call", "op": op, "args": [len(nodes) - 1], "opts": {}})
    nodes.append({"kind": "factor", "name": "end", "value": len(nodes) - 1})
    return {"model": {"version": 1, "nodes": nodes}, "data": {}}


def shifted_gaussian(encoded: bytes, size: int | None = None) -> dict[str, Any]:
    """A normal vector around a constant, which is a blob."""
    nodes = [
        {"kind": "constant", "blob": address(encoded)},
        {"kind": "constant", "value": 1},
        {"kind": "rv", "name": "x", "dist": "normal", "args": {"mu": 0, "sigma": 1}},
    ]
    nodes[2] |= {} if size is None else {"shape": [size]}
    return {"model": {"version": 1, "nodes": nodes}, "data": {}}


def put_schools(port: PortClient, id: int) -> None:
    """Answers the `need` of a request about eight schools."""
    need, _ = port.until("need", id=id)
    for encoded in (SCHOOLS_Y, SCHOOLS_SIGMA):
        assert address(encoded) in need.body["blobs"]
        port.put(id, encoded)
