"""Model trees for tests, built node by node: `Tree().rv(...)` appends a node and returns its index."""

from __future__ import annotations

from typing import Any

import numpy as np


class Tree:
    """Arguments may be indices of earlier nodes (wrapped by `ref`), or numbers and arrays, which become constants."""

    def __init__(self) -> None:
        self.nodes: list[dict[str, Any]] = []
        self.tensors: dict[bytes, np.ndarray] = {}

    def _add(self, **node: Any) -> Ref:
        self.nodes.append(node)
        return Ref(len(self.nodes) - 1)

    def _index(self, value: Any) -> int:
        if isinstance(value, Ref):
            return value.index
        if isinstance(value, int | float):
            return self._add(kind="constant", value=value).index
        address = len(self.tensors).to_bytes(32, "big")
        self.tensors[address] = np.asarray(value)
        return self._add(kind="constant", blob=address).index

    def data(self, name: str, **fields: Any) -> Ref:
        return self._add(kind="data", name=name, **fields)

    def rv(self, name: str, dist: str, args: dict[str, Any], **fields: Any) -> Ref:
        indices = {key: self._index(value) for key, value in args.items()}
        return self._add(kind="rv", name=name, dist=dist, args=indices, **fields)

    def observe(self, name: str, dist: str, args: dict[str, Any], value: Any, **fields: Any) -> None:
        indices = {key: self._index(value) for key, value in args.items()}
        self._add(kind="observe", name=name, dist=dist, args=indices, value=self._index(value), **fields)

    def factor(self, name: str, value: Any) -> None:
        self._add(kind="factor", name=name, value=self._index(value))

    def deterministic(self, name: str, value: Any) -> None:
        self._add(kind="deterministic", name=name, value=self._index(value))

    def call(self, op: str, *args: Any, **opts: Any) -> Ref:
        indices = [self._index(arg) for arg in args]
        return self._add(kind="call", op=op, args=indices, opts=opts)

    @property
    def model(self) -> dict[str, Any]:
        return {"version": 1, "nodes": self.nodes}


class Ref:
    def __init__(self, index: int) -> None:
        self.index = index
