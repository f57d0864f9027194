"""Models at random, of all kinds of nodes: most of their nodes are valid, since the check itself chooses among several.

The names of operations, options, distributions and transforms come from the engine's tables, so that what is added
there is tried too. Shapes, types, references and options are drawn without regard to what fits.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

import numpy as np

from nutkin.errors import NutkinError
from nutkin.model import Spec, check, read
from nutkin.model.distributions import DISTRIBUTIONS
from nutkin.model.operations import OPERATIONS
from nutkin.model.options import OPTIONS
from nutkin.model.transforms import TRANSFORMS
from nutkin.model.types import DTYPES

COMBINATIONS = ("mixture", "truncated", "censored", "interval_censored", "zero_inflated", "hurdle")
OWN_PARAMETERS = {"mixture": ["weights"], "truncated": ["lower", "upper"], "censored": ["lower", "upper"]}
OWN_PARAMETERS |= {"zero_inflated": ["p"], "hurdle": ["p"]}
NUMBERS = [0, 1, 2, 3, -1, 5, 0.5, 1.5, -2.0, 1e300, 1e-300, 255, 256, 2**31, 2**63 - 1, 2**64 - 1, -(2**63)]
LARGE = [64, 65, 1000, 2**20, 2**30, 2**31 - 1, 2**31, 2**31 + 1, 2**40, 2**63 - 1, -(2**31), -(2**63)]
WORDS = [*DTYPES, "valid", "same", "asc", "desc", "low", "high", "none", "transpose", "inf", "nuclear", "frobenius"]
CANDIDATES = 6
DEPTH = 3

Data = dict[str, Spec]


class ModelWriter:
    """Draws a model from `random`. `tree` is the model of the wire, `data` and `blobs` are the specs of its tensors."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.nodes: list[dict[str, Any]] = []
        self.data: Data = {}
        self.blobs: dict[bytes, Spec] = {}
        for _ in range(random.randint(1, 12)):
            self._append()

    @property
    def tree(self) -> dict[str, Any]:
        return {"version": 1, "nodes": self.nodes}

    def _append(self) -> None:
        """The first of some nodes that the check takes; now and then one that it does not."""
        wrong_too = self.random.random() < 0.03
        for _ in range(CANDIDATES):
            data, blobs = dict(self.data), dict(self.blobs)
            node = self._node(data, blobs)
            nodes = [*self.nodes, node]
            if wrong_too or _is_valid({"version": 1, "nodes": nodes}, data, blobs):
                self.nodes, self.data, self.blobs = nodes, data, blobs
                return

    def _node(self, data: Data, blobs: dict[bytes, Spec]) -> dict[str, Any]:
        random, name = self.random, f"v{len(self.nodes)}"
        if not self.nodes or random.random() < 0.15:
            if random.random() < 0.6:
                data[name] = self._spec()
                return self._fields({"kind": "data", "name": name}, shape=self._free_shape, type=self._type)
            if random.random() < 0.4:
                address = len(blobs).to_bytes(32, "big")
                blobs[address] = self._spec()
                return {"kind": "constant", "blob": address}
            return {"kind": "constant", "value": random.choice(NUMBERS)}
        match random.randrange(8):
            case 0:
                node = {"kind": "rv", "name": name, **self._distribution(DEPTH)}
                return self._fields(node, shape=self._shape, transform=self._transform, centered=self._centered)
            case 1:
                node = {"kind": "observe", "name": name, **self._distribution(DEPTH), "value": self._reference()}
                return self._fields(node, weight=self._reference, mask=self._reference, reduce=self._reduction)
            case 2:
                kind = random.choice(["factor", "deterministic"])
                return {"kind": kind, "name": name, "value": self._reference()}
        return self._computed(len(self.nodes), DEPTH)

    def _computed(self, count: int, depth: int) -> dict[str, Any]:
        """A node that may stand in a body too, behind `count` others."""
        random = self.random
        references = [random.randrange(count) for _ in range(random.choice([0, 1, 1, 2]))]
        captures = [random.randrange(count) for _ in range(random.choice([0, 0, 1, 2]))]
        kind = random.randrange(12) if depth else random.randrange(5, 12)
        if kind == 0:
            xs = [random.randrange(count) for _ in range(random.choice([0, 1]))]
            body = self._body(len(references) + len(xs) + len(captures), len(references), depth)
            node = {"kind": "scan", "init": references, "xs": xs, "captures": captures, "body": body}
            return self._fields(node, length=self._size, reverse=self._boolean)
        if kind == 1:
            arguments = len(references) + len(captures)
            node = {"kind": "while", "init": references, "captures": captures}
            node |= {
                "condition": self._body(arguments, 1, depth),
                "body": self._body(arguments, len(references), depth),
            }
            return self._fields(node, max_steps=self._size)
        if kind == 2:
            sides = {side: self._body(len(captures), 1, depth) for side in ("on_true", "on_false")}
            return {"kind": "cond", "predicate": random.randrange(count), "captures": captures, **sides}
        if kind == 3:
            body = self._body(1 + len(references) + len(captures), len(references), depth)
            node = {"kind": "ode", "init": references, "captures": captures, "body": body}
            node |= {"start": random.randrange(count), "times": random.randrange(count)}
            return self._fields(node, max_steps=self._size, rtol=self._number, atol=self._number)
        if kind == 4:
            body = self._body(1 + len(references) + len(captures), len(references), depth)
            lists = {"inputs": references, "captures": captures}
            return {"kind": "custom_gradient", "value": random.randrange(count), "body": body, **lists}
        if kind == 5:
            return {"kind": "elem", "of": random.randrange(count), "index": random.choice([0, 0, 1, 2])}
        if kind == 6:
            node = {"kind": "log_prob", **self._distribution(depth, count), "value": random.randrange(count)}
            return self._fields(node, of=lambda: random.choice(["density", "cdf", "sf"]))
        return self._call(count)

    def _call(self, count: int) -> dict[str, Any]:
        random, op = self.random, self.random.choice(list(OPERATIONS))
        operation = OPERATIONS[op]
        arity = random.choice([1, 2, 3]) if operation.arity is None else operation.arity
        names = [*operation.required, *(name for name in operation.optional if random.random() < 0.4)]
        args = [random.randrange(count) for _ in range(arity)]
        return {"kind": "call", "op": op, "args": args, "opts": {name: self._option(name) for name in names}}

    def _option(self, name: str) -> Any:
        """A value that its table takes, mostly."""
        is_valid, _ = OPTIONS[name]
        values = (self._value() for _ in range(40))
        return next((value for value in values if is_valid(value) or self.random.random() < 0.005), 1)

    def _value(self) -> Any:
        random = self.random
        match random.randrange(7):
            case 0:
                return self._integer()
            case 1 | 2:
                return [self._integer() for _ in range(random.choice([0, 1, 1, 2, 2, 3]))]
            case 3:
                return [[self._integer() for _ in range(random.choice([2, 3]))] for _ in range(random.choice([1, 2]))]
            case 4:
                return random.choice(WORDS)
            case 5:
                return random.choice([True, False, None])
        return random.choice(NUMBERS)

    def _integer(self) -> int:
        return (
            self.random.choice(LARGE) if self.random.random() < 0.1 else self.random.choice([0, 1, 1, 2, 3, -1, -2, 4])
        )

    def _distribution(self, depth: int, count: int | None = None) -> dict[str, Any]:
        dist, names = self._named_distribution(depth)
        count = len(self.nodes) if count is None else count
        return {"dist": dist, "args": {name: self.random.randrange(count) for name in names}}

    def _named_distribution(self, depth: int) -> tuple[Any, list[str]]:
        """-> a distribution of the wire, and the names of its parameters."""
        random = self.random
        if not depth or random.random() < 0.8:
            name = random.choice(list(DISTRIBUTIONS))
            return name, list(DISTRIBUTIONS[name].parameters)
        name = random.choice(COMBINATIONS)
        inner = [self._named_distribution(depth - 1) for _ in range(random.choice([1, 2]) if name == "mixture" else 1)]
        own = [own for own in OWN_PARAMETERS.get(name, []) if random.random() < 0.9]
        names = own + [f"{place}.{parameter}" for place, (_, given) in enumerate(inner) for parameter in given]
        return {"name": name, "components": [component for component, _ in inner]}, names

    def _body(self, arguments: int, results: int, depth: int) -> dict[str, Any]:
        random = self.random
        nodes: list[dict[str, Any]] = [{"kind": "argument", "index": index} for index in range(arguments)]
        if not nodes or random.random() < 0.5:
            nodes.append({"kind": "constant", "value": random.choice(NUMBERS)})
        for _ in range(random.choice([0, 1, 1, 2, 3])):
            if random.random() < 0.5:  # what keeps shapes, as loops need it
                op = random.choice(["add", "multiply", "max", "negate", "exp", "less", "divide", "as_type", "real"])
                args = [random.randrange(len(nodes)) for _ in range(OPERATIONS[op].arity)]
                opts = {"type": random.choice(list(DTYPES))} if op == "as_type" else {}
                nodes.append({"kind": "call", "op": op, "args": args, "opts": opts})
            else:
                nodes.append(self._computed(len(nodes), depth - 1))
        count = max(0, results + random.choice([0] * 12 + [1, 1, -1]))
        return {"nodes": nodes, "results": [random.randrange(len(nodes)) for _ in range(count)]}

    def _fields(self, node: dict[str, Any], **drawn: Any) -> dict[str, Any]:
        """With some optional fields."""
        return node | {name: draw() for name, draw in drawn.items() if self.random.random() < 0.25}

    def _reference(self) -> int:
        return self.random.randrange(len(self.nodes))

    def _spec(self) -> Spec:
        return Spec(tuple(abs(size) for size in self._shape()), self._type())

    def _shape(self) -> list[int]:
        random = self.random
        sizes = [random.choice([1, 2, 2, 3, 4]) for _ in range(random.choice([0, 0, 1, 1, 1, 2, 2, 3]))]
        if sizes and random.random() < 0.03:
            sizes[0] = random.choice(LARGE)
        return sizes

    def _free_shape(self) -> list[int | None]:
        return [self.random.choice([size, None]) for size in self._shape()]

    def _type(self) -> str:
        random = self.random
        return (
            random.choice(["f64", "f64", "f32", "s64", "u8"]) if random.random() < 0.7 else random.choice(list(DTYPES))
        )

    def _transform(self) -> str:
        return self.random.choice(list(TRANSFORMS))

    def _centered(self) -> Any:
        return self.random.choice([True, False, "auto"])

    def _reduction(self) -> str:
        return self.random.choice(["sum", "mean"])

    def _boolean(self) -> bool:
        return self.random.choice([True, False])

    def _size(self) -> int:
        return abs(self._integer())

    def _number(self) -> int | float:
        return self.random.choice(NUMBERS)


def arrays(specs: Mapping[Any, Spec], random: Random) -> dict[Any, np.ndarray]:
    """Arrays of these specs, of numbers that many distributions take."""
    seed = random.getrandbits(32)
    return {
        key: np.random.default_rng(seed).choice([0, 1, 1, 2], spec.shape).astype(DTYPES[spec.type])
        for key, spec in specs.items()
    }


def _is_valid(tree: dict[str, Any], data: Data, blobs: Mapping[bytes, Spec]) -> bool:
    try:
        check(read(tree), data, blobs)
    except NutkinError:
        return False
    return True
