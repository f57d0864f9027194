"""Builds regressions from terms of every kind that a linear predictor is made of."""

from __future__ import annotations

import numpy as np

from engine.builder import Builder, Node

TERMS = ("intercept", "slope", "offset", "design", "transposed", "group", "slopes", "other_group", "non_centred")


class Regression:
    """A model under way: the terms of a linear predictor over n rows, and the data that they need."""

    def __init__(self, n: int, *, seed: int = 0, groups: int = 7, columns: int = 3) -> None:
        self.builder = Builder()
        self.n, self.groups, self.columns = n, groups, columns
        self.random = np.random.default_rng(seed)
        self.data: dict[str, np.ndarray] = {}
        self.tau = self.rv("half_normal")

    def rv(self, dist: str = "normal", shape: tuple[int, ...] | None = None, **fields: object) -> Node:
        args = {"mu": 0, "sigma": 2} if dist == "normal" else {"sigma": 1}
        name = f"parameter_{len(self.builder.nodes)}"
        return self.builder.rv(name, dist, args, shape=None if shape is None else list(shape), **fields)

    def slot(self, array: np.ndarray) -> Node:
        name = f"data_{len(self.data)}"
        self.data[name] = array
        return self.builder.data(name)

    def term(self, name: str) -> Node:
        call, normal = self.builder.call, self.random.normal
        match name:
            case "intercept":
                return self.rv()
            case "slope":
                return call("multiply", self.rv(), self.slot(normal(size=self.n)))
            case "offset":
                return call("divide", self.slot(normal(size=self.n)), 3)
            case "design":
                return call("dot", self.slot(normal(size=(self.n, self.columns))), self.rv(shape=(self.columns,)))
            case "transposed":
                matrix = self.slot(normal(size=(self.columns, self.n)))
                return call("negate", call("divide", call("dot", self.rv(shape=(self.columns,)), matrix), self.tau))
            case "group":
                return call("multiply", self.tau, call("take", self.rv(shape=(self.groups,)), self.index()))
            case "slopes":
                effects = call("take", self.rv(shape=(self.groups,)), self.index())
                return call("multiply", effects, self.slot(normal(size=self.n)))
            case "other_group":
                return call("take", self.rv(shape=(4,)), self.slot(self.random.integers(4, size=self.n)))
            case "non_centred":
                args = {"mu": self.rv(), "sigma": self.tau}
                effects = self.builder.rv("effects", "normal", args, shape=[self.groups], centered=False)
                return call("take", effects, self.index())
        raise ValueError(name)

    def index(self) -> Node:
        if not hasattr(self, "_index"):
            # The last group is empty, if there is more than one.
            self._index = self.slot(self.random.integers(max(self.groups - 1, 1), size=self.n))
        return self._index

    def options(self, *, weighted: bool, masked: bool, mean: bool) -> dict[str, object]:
        """Of an observe node: random weights and a random mask where they are wanted, and the reduction."""
        options: dict[str, object] = {"reduce": "mean" if mean else "sum"}
        if weighted:
            options["weight"] = self.slot(self.random.normal(size=self.n) + 1)
        if masked:
            options["mask"] = self.slot(self.random.integers(2, size=self.n))
        return options

    def sum(self, terms: list[Node]) -> Node:
        """The terms, added and subtracted by turns."""
        total = terms[0]
        for number, term in enumerate(terms[1:]):
            total = self.builder.call("subtract" if number % 2 else "add", total, term)
        return total
