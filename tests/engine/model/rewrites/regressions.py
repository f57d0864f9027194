"""Builds regressions from terms of every kind that a linear predictor is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

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


def covering(most_terms: int, **choices: Sequence[Any]) -> list[dict[str, Any]]:
    """Random `terms`, one of each of the `choices` and a `seed`, for models in which any two kinds meet at least once.

    By a greedy choice, which takes few of many.
    """
    random = np.random.default_rng(0)

    def draw() -> dict[str, Any]:
        terms = random.choice(TERMS, size=random.integers(1, most_terms + 1), replace=False)
        drawn = {name: values[random.integers(len(values))] for name, values in choices.items()}
        return {"terms": [str(term) for term in terms], **drawn, "seed": int(random.integers(2**16))}

    drawn = [draw() for _ in range(300)]
    missing, chosen = set().union(*map(_pairs, drawn)), []
    while missing:
        chosen.append(max(drawn, key=lambda kinds: len(_pairs(kinds) & missing)))
        missing -= _pairs(chosen[-1])
    return chosen


def _pairs(kinds: Mapping[str, Any]) -> set[frozenset]:
    chosen = [(name, value) for name, value in kinds.items() if name not in ("terms", "seed")]
    return set(map(frozenset, combinations([*chosen, *(("term", term) for term in kinds["terms"])], 2)))


def named(kinds: Mapping[str, Any]) -> str:
    """Of such a model, for the name of a test."""
    return "-".join([*(f"{name}={value}" for name, value in kinds.items() if name != "terms"), *kinds["terms"]])
