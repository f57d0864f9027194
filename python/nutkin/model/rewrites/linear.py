"""Linear predictors: a node of one value a row, read as a sum of blocks, each of data times a coefficient.

    offset + a + b x + tau z[group] + u[group] x + X @ beta

A block is `rows x coefficient` for a scalar coefficient, `rows x coefficient[index]` for the effects of groups, or
`rows x (matrix @ coefficient)`, where `rows`, `index` and `matrix` are data. Sums, differences, products and quotients
are opened as far as they are linear in what depends on parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from nutkin.model.ir import Call
from nutkin.model.program import Program
from nutkin.model.steps import Application

MAX_BLOCKS = 256


@dataclass(frozen=True)
class Product:
    """A product of the values of nodes; 1 if there are none."""

    factors: tuple[int, ...] = ()
    divisors: tuple[int, ...] = ()
    negative: bool = False

    def times(self, node: int) -> Product:
        return replace(self, factors=(*self.factors, node))

    def over(self, node: int) -> Product:
        return replace(self, divisors=(*self.divisors, node))

    @property
    def negated(self) -> Product:
        return replace(self, negative=not self.negative)

    @property
    def nodes(self) -> tuple[int, ...]:
        return self.factors + self.divisors

    def evaluate(self, value: Callable[[int], Any], one: Any) -> Any:
        """The product of arrays that broadcast, times `one`."""
        result = one
        for node in self.factors:
            result = result * value(node)
        for node in self.divisors:
            result = result / value(node)
        return -result if self.negative else result


@dataclass(frozen=True)
class Block:
    """`rows`: data, of shape (n,) or scalar. `coefficient`: shape () for a column, (k,) with a `matrix` (n, k), or
    (k, n) if it is `transposed`; (J,) with an `index` (n,) of values below J. Its factors but the first are scalars."""

    rows: Product
    coefficient: Product
    matrix: int | None = None
    transposed: bool = False
    index: int | None = None
    size: int = 1

    @property
    def is_column(self) -> bool:
        """Whether its coefficient is a scalar."""
        return self.matrix is None and self.index is None

    @property
    def is_offset(self) -> bool:
        """Whether it has no coefficient: data alone."""
        return not self.coefficient.nodes

    @property
    def data(self) -> tuple[int, ...]:
        """The nodes of its data."""
        optional = (self.matrix, self.index)
        return self.rows.nodes + tuple(node for node in optional if node is not None)


def linear_predictor(program: Program, node: int, n: int) -> tuple[Block, ...] | None:
    """The blocks whose sum is the node's value, broadcast to n rows; None where it is not linear in this sense."""
    reader = _Reader(program, n)
    return reader.read(node)


class _Reader:
    def __init__(self, program: Program, n: int) -> None:
        self.program, self.n = program, n
        self.blocks: list[Block] = []

    def read(self, node: int) -> tuple[Block, ...] | None:
        # A worklist: a sum may be deeper than Python's stack. Each entry is a node, times data, times a coefficient.
        pending = [(node, Product(), Product())]
        while pending:
            if len(pending) + len(self.blocks) > MAX_BLOCKS:
                return None
            opened = self._open(*pending.pop())
            if opened is None:
                return None
            pending.extend(opened)
        return tuple(self.blocks)

    def _open(self, node: int, rows: Product, coefficient: Product) -> Iterable[tuple[int, Product, Product]] | None:
        """What the node is the sum of, after its leaves have become blocks; None if it is not linear."""
        steps = self.program.steps
        shape = steps[node].spec.shape
        if shape not in ((), (1,), (self.n,)):
            return None
        if self._is_data(node):
            self.blocks.append(Block(rows.times(node), coefficient))
            return ()
        if steps[node].spec.type != self.program.precision:
            return None
        if steps[node].spec.size == 1:
            self.blocks.append(Block(rows, coefficient.times(node)))
            return ()
        if not isinstance(steps[node], Application):
            return None
        match steps[node].op, steps[node].args:
            case "add", (a, b):
                return (a, rows, coefficient), (b, rows, coefficient)
            case "subtract", (a, b):
                return (a, rows, coefficient), (b, rows.negated, coefficient)
            case "negate", (a,):
                return ((a, rows.negated, coefficient),)
            case "multiply", (a, b):
                for one, other in ((a, b), (b, a)):
                    if (scaled := self._scaled(one, rows, coefficient, Product.times)) is not None:
                        return ((other, *scaled),)
            case "divide", (a, b):
                if (scaled := self._scaled(b, rows, coefficient, Product.over)) is not None:
                    return ((a, *scaled),)
            case "dot", (a, b):
                return self._matrix(steps[node].node, a, b, rows, coefficient)
            case "take", (x, index):
                return self._group(x, index, rows, coefficient)
            case (("reshape" | "broadcast" | "squeeze" | "as_type"), (a,)):
                if steps[a].spec.shape in ((), (1,), (self.n,)):
                    return ((a, rows, coefficient),)
        return None

    def _scaled(
        self, node: int, rows: Product, coefficient: Product, scale: Callable[[Product, int], Product]
    ) -> tuple[Product, Product] | None:
        """(rows, coefficient) scaled by a node that is data, or a scalar; None if it is neither."""
        spec = self.program.steps[node].spec
        if self._is_data(node) and spec.shape in ((), (1,), (self.n,)):
            return scale(rows, node), coefficient
        if spec.size == 1 and spec.type == self.program.precision:
            return rows, scale(coefficient, node)
        return None

    def _is_data(self, node: int) -> bool:
        return node in self.program.parameter_free

    def _is_coefficients(self, node: int) -> bool:
        spec = self.program.steps[node].spec
        return not self._is_data(node) and len(spec.shape) == 1 and spec.type == self.program.precision

    def _matrix(self, call: Call, a: int, b: int, rows: Product, coefficient: Product) -> tuple[()] | None:
        # The coefficient comes first in its product: the others are scalars.
        for matrix, vector, option, default in ((a, b, "contract_a", 1), (b, a, "contract_b", 0)):
            shape = self.program.steps[matrix].spec.shape
            if self._is_data(matrix) and self._is_coefficients(vector) and len(shape) == 2:
                axis = (call.opts.get(option) or (default,))[0] % 2
                product = replace(coefficient, factors=(vector, *coefficient.factors))
                self.blocks.append(Block(rows, product, matrix=matrix, transposed=axis == 0, size=shape[axis]))
                return ()
        return None

    def _group(self, x: int, index: int, rows: Product, coefficient: Product) -> tuple[()] | None:
        spec = self.program.steps[index].spec
        if not (self._is_coefficients(x) and self._is_data(index) and spec.shape == (self.n,)):
            return None
        product = replace(coefficient, factors=(x, *coefficient.factors))
        self.blocks.append(Block(rows, product, index=index, size=self.program.steps[x].spec.shape[0]))
        return ()
