"""Writes models of the wire by hand: each method appends a node and returns it.

Numbers, addresses and arrays become constants where a node is expected; arrays are kept in `tensors`, by an address.
"""

from __future__ import annotations

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

    def index(self, value: Any) -> int:
        return value.index if isinstance(value, Node) else self.constant(value).index

    def indices(self, args: dict[str, Any]) -> dict[str, int]:
        return {name: self.index(value) for name, value in args.items()}
