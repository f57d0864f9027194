"""Writes models of the wire by hand: each method appends a node and returns it.

Numbers, addresses and arrays become constants where a node is expected; arrays are kept in `tensors`, by an address.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Node:
    index: int


class Builder:
    def __init__(self) -> None:
        self.nodes: list[dict[str, Any]] = []
        self.tensors: dict[bytes, np.ndarray] = {}

    def tree(self) -> dict[str, Any]:
        return {"version": 1, "nodes": self.nodes}

    def add(self, kind: str, **fields: Any) -> int:
        self.nodes.append({"kind": kind, **fields})
        return len(self.nodes) - 1

    def data(self, name: str, **fields: Any) -> Node:
        return Node(self.add("data", name=name, **fields))

    def constant(self, value: int | float | bytes | np.ndarray) -> Node:
        if isinstance(value, np.ndarray):
            address = len(self.tensors).to_bytes(32, "big")
            self.tensors[address] = value
            value = address
        field = "blob" if isinstance(value, bytes) else "value"
        return Node(self.add("constant", **{field: value}))

    def rv(self, name: str, dist: str, args: dict[str, Any], **fields: Any) -> Node:
        return Node(self.add("rv", name=name, dist=dist, args=self.indices(args), **fields))

    def observe(self, name: str, dist: str, args: dict[str, Any], value: Any, **fields: Any) -> None:
        references = {field: self.index(fields.pop(field)) for field in ("weight", "mask") if field in fields}
        args, value = self.indices(args), self.index(value)
        self.add("observe", name=name, dist=dist, args=args, value=value, **references, **fields)

    def factor(self, name: str, value: Any) -> None:
        self.add("factor", name=name, value=self.index(value))

    def deterministic(self, name: str, value: Any) -> None:
        self.add("deterministic", name=name, value=self.index(value))

    def call(self, op: str, *args: Any, **opts: Any) -> Node:
        return Node(self.add("call", op=op, args=[self.index(arg) for arg in args], opts=opts))

    def elem(self, of: Node, index: int) -> Node:
        return Node(self.add("elem", of=of.index, index=index))

    def log_prob(self, dist: str, args: dict[str, Any], value: Any, **fields: Any) -> Node:
        value, args = self.index(value), self.indices(args)
        return Node(self.add("log_prob", dist=dist, args=args, value=value, **fields))

    def scan(
        self, body: dict[str, Any], init: list[Any], xs: list[Any] = (), captures: list[Any] = (), **fields
    ) -> Node:
        lists = {"init": init, "xs": xs, "captures": captures}
        references = {name: [self.index(value) for value in values] for name, values in lists.items()}
        return Node(self.add("scan", body=body, **references, **fields))

    def while_(
        self, condition: dict[str, Any], body: dict[str, Any], init: list[Any], captures: list[Any] = (), **fields
    ) -> Node:
        lists = {"init": init, "captures": captures}
        references = {name: [self.index(value) for value in values] for name, values in lists.items()}
        return Node(self.add("while", condition=condition, body=body, **references, **fields))

    def ode(
        self, body: dict[str, Any], init: list[Any], start: Any, times: Any, captures: list[Any] = (), **fields: Any
    ) -> Node:
        init, captures = ([self.index(value) for value in values] for values in (init, captures))
        start, times = self.index(start), self.index(times)
        return Node(self.add("ode", body=body, init=init, start=start, times=times, captures=captures, **fields))

    def custom_gradient(self, value: Any, body: dict[str, Any], inputs: list[Any], captures: list[Any] = ()) -> Node:
        lists = {"inputs": inputs, "captures": captures}
        references = {name: [self.index(item) for item in items] for name, items in lists.items()}
        return Node(self.add("custom_gradient", body=body, value=self.index(value), **references))

    def cond(self, predicate: Any, on_true: dict[str, Any], on_false: dict[str, Any], captures: list[Any] = ()) -> Node:
        predicate, captures = self.index(predicate), [self.index(value) for value in captures]
        return Node(self.add("cond", predicate=predicate, captures=captures, on_true=on_true, on_false=on_false))

    def index(self, value: Any) -> int:
        return value.index if isinstance(value, Node) else self.constant(value).index

    def indices(self, args: dict[str, Any]) -> dict[str, int]:
        return {name: self.index(value) for name, value in args.items()}


def body(count: int, write: Callable[..., list[Any]]) -> dict[str, Any]:
    """A body of `count` arguments: `write` takes a builder and their nodes, and gives the results."""
    inner = Builder()
    arguments = [Node(inner.add("argument", index=index)) for index in range(count)]
    results = [inner.index(value) for value in write(inner, *arguments)]
    return {"nodes": inner.nodes, "results": results}
