"""The pass `normal_sufficient_statistics`: a normal likelihood whose mean is linear in the parameters.

    observe normal(a + b x + u[group] + X @ beta, sigma), with one sigma, weights and a mask that are data

depends on the rows only through sums over them. They are taken once for each data set (`least_squares.py`); then the
cost of a gradient depends on the number of coefficients, not on the number of rows.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from nutkin.model.distributions import DISTRIBUTIONS
from nutkin.model.program import Program, Rewrite
from nutkin.model.rewrites.design import (
    Columns,
    coefficient,
    groups,
    has_data_rows,
    observed_rows,
    row_factors,
)
from nutkin.model.rewrites.least_squares import Rows, reduce_rows
from nutkin.model.rewrites.linear import Block, linear_predictor
from nutkin.model.steps import Likelihood, Observation
from nutkin.model.types import DTYPES

NAME = "normal_sufficient_statistics"

_MAX_DENSE = 256  # columns; the reduction takes n k^2 steps on the host
_MAX_EFFECTS = 4  # effects of one grouping: intercept, slopes


def normal_sufficient_statistics(program: Program) -> Program:
    """Replace the observations of which sums are cheaper than rows."""
    found = {
        index: likelihood
        for index, step in enumerate(program.steps)
        if isinstance(step, Observation) and (likelihood := _likelihood(program, step)) is not None
    }
    return program.rewritten(found, *(Rewrite(NAME, step.name) for step in found.values()))


def _likelihood(program: Program, step: Observation) -> Likelihood | None:
    if step.family is not DISTRIBUTIONS["normal"]:
        return None
    mu, sigma = step.args
    if program.steps[sigma].spec.size != 1 or not has_data_rows(program, step):
        return None
    (n,) = step.spec.shape
    blocks = linear_predictor(program, mu, n)
    if blocks is None:
        return None
    design = _design(blocks, n)
    if design.cost > n * (sum(block.size if block.matrix is not None else 1 for block in blocks) + 2):
        return None
    if design.k > _MAX_DENSE or len(design.effects) > _MAX_EFFECTS:
        return None
    data = [*step.observed, *(node for block in blocks for node in block.data)]
    coefficients = [node for block in blocks for node in block.coefficient.nodes]
    statistics = _Statistics(
        design, step, DTYPES[program.precision], tuple(dict.fromkeys(data)), (sigma, *dict.fromkeys(coefficients))
    )
    return Likelihood(step.name, step.spec, statistics.data, statistics.args, statistics.prepare, statistics.term)


@dataclass(frozen=True)
class _Design:
    """Blocks by how they are reduced: `effects` are those of the grouping with the most groups, if there is one; the
    `dense` blocks are columns of a matrix, one for each group where they are effects of another grouping."""

    n: int
    offsets: tuple[Block, ...]
    dense: tuple[Block, ...]
    effects: tuple[Block, ...]

    @property
    def k(self) -> int:
        return sum(block.size for block in self.dense)

    @property
    def groups(self) -> int:
        return self.effects[0].size if self.effects else 0

    @property
    def cost(self) -> int:
        """Multiplications of an evaluation."""
        m = len(self.effects)
        return self.groups * m * (m + self.k) + self.k**2


def _design(blocks: tuple[Block, ...], n: int) -> _Design:
    groupings: dict[int, list[Block]] = defaultdict(list)
    for block in blocks:
        if block.index is not None:
            groupings[block.index].append(block)
    effects = max(groupings.values(), key=lambda group: group[0].size, default=[])
    offsets = tuple(block for block in blocks if block.is_offset)
    dense = tuple(block for block in blocks if not block.is_offset and block not in effects)
    return _Design(n, offsets, dense, tuple(effects))


@dataclass(frozen=True)
class _Statistics:
    """The two halves of the likelihood: on the host, from the `data` nodes; traced, from the `args` nodes."""

    design: _Design
    step: Observation
    dtype: np.dtype
    data: tuple[int, ...]
    args: tuple[int, ...]

    def prepare(self, *data: np.ndarray) -> Any:
        """-> (sum of the weights, the statistics of the rows of positive weight, and of those of negative weight)."""
        values = dict(zip(self.data, data, strict=True))
        n = self.design.n
        y, weight = observed_rows(self.step, values)
        for block in self.design.offsets:
            y = y - row_factors(block, values, n)
        weight = np.ones(n) if weight is None else weight
        # The square root of a weight is needed; a negative one counts against the others.
        signed = (weight,) if self.step.weight is None else (np.maximum(weight, 0.0), np.maximum(-weight, 0.0))
        rows = _rows(self.design, y, values)
        return self.dtype.type(weight.sum()), tuple(self._statistics(rows, part) for part in signed)

    def _statistics(self, rows: Rows, weight: np.ndarray) -> Any:
        """The reduction in the program's precision, cut into what meets each of the dense coefficients."""
        reduced = reduce_rows(replace(rows, weight=weight), self.dtype)
        m = len(self.design.effects)
        places, at = [], 0
        for block in self.design.dense:
            # A scalar coefficient meets a vector: one axis less.
            places.append(at if block.is_column else slice(at, at + block.size))
            at += block.size
        statistics = _Reduced(
            triangle=[[reduced.triangle[i, j] for j in range(i, m)] for i in range(m)],
            across=[[reduced.across[i][:, place] for place in places] for i in range(m)],
            effects_target=list(reduced.group_target),
            dense=[reduced.dense[:, place] for place in places],
            dense_target=reduced.dense_target,
            rest=reduced.rest,
            effects_shift=list(reduced.group_shift),
            dense_shift=[reduced.dense_shift[place] for place in places],
        )
        return jax.tree.map(lambda array: np.asarray(array, self.dtype), statistics)

    def term(self, prepared: Any, sigma: Array, *coefficients: Array) -> Array:
        """The log density of all rows."""
        values = dict(zip(self.args[1:], coefficients, strict=True))
        total_weight, parts = prepared
        sigma = jnp.reshape(sigma, ())
        effects, dense = (
            [coefficient(block, values, self.dtype) for block in blocks]
            for blocks in (self.design.effects, self.design.dense)
        )
        squares, *negative = (_sum_of_squares(part, effects, dense) for part in parts)
        for part in negative:
            squares = squares - part
        # Divided twice: the square of a small f32 scale is 0.
        exponent = squares / sigma / sigma
        term = -0.5 * exponent - total_weight * (jnp.log(sigma) + 0.5 * math.log(2 * math.pi))
        return term / self.design.n if self.step.mean else term


class _Reduced(NamedTuple):
    """`least_squares.Reduced` as lists over the group effects and over the dense blocks."""

    triangle: list[list[Any]]
    across: list[list[Any]]
    effects_target: list[Any]
    dense: list[Any]
    dense_target: Any
    rest: Any
    effects_shift: list[Any]
    dense_shift: list[Any]


def _sum_of_squares(reduced: _Reduced, effects: list[Array], dense: list[Array]) -> Array:
    # Products and sums only: XLA compiles no loop that holds a dot into one native function.
    effects = [effect - shift for effect, shift in zip(effects, reduced.effects_shift, strict=True)]
    dense = [coefficient - shift for coefficient, shift in zip(dense, reduced.dense_shift, strict=True)]
    total = reduced.rest
    for i, target in enumerate(reduced.effects_target):
        terms = [row * effect for row, effect in zip(reduced.triangle[i], effects[i:], strict=True)]
        total = total + jnp.sum(jnp.square(sum(terms + _products(reduced.across[i], dense), start=-target)))
    return total + jnp.sum(jnp.square(sum(_products(reduced.dense, dense), start=-reduced.dense_target)))


def _products(matrices: list[Array], coefficients: list[Array]) -> list[Array]:
    return [
        matrix * coefficient if coefficient.ndim == 0 else jnp.sum(matrix * coefficient, axis=-1)
        for matrix, coefficient in zip(matrices, coefficients, strict=True)
    ]


def _rows(design: _Design, y: np.ndarray, values: Mapping[int, np.ndarray]) -> Rows:
    """The rows of a design, all of weight 1."""
    n = design.n
    group, scales = np.zeros(n, np.int64), np.zeros((0, n))
    if design.effects:
        group = groups(design.effects[0], values)
        scales = np.stack([row_factors(block, values, n) for block in design.effects])
    return Rows(y, np.ones(n), design.k, Columns(design.dense, values, n), group, design.groups, scales)
