"""The blocks of a linear predictor with numbers in them: the rows of a regression, on the host, and its coefficients.

`values` maps nodes to their values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jax import Array

from nutkin.model.program import Program
from nutkin.model.rewrites.linear import Block
from nutkin.model.steps import Observation

Values = Mapping[int, np.ndarray]

_ALL = slice(None)


def has_data_rows(program: Program, step: Observation) -> bool:
    """Whether what is observed, and its weights and mask, are data, one a row, known to lie in the support."""
    return (
        step.is_checked
        and len(step.spec.shape) == 1
        and program.steps[step.value].spec.shape == step.spec.shape
        and program.parameter_free.issuperset(step.observed)
    )


def observed_rows(step: Observation, values: Values) -> tuple[np.ndarray, np.ndarray | None]:
    """-> (observed values (n,), f64, 0 where they are masked; weights (n,), f64, None if all are 1)."""
    (n,) = step.spec.shape
    y = values[step.value].astype(np.float64)
    weight = None if step.weight is None else np.broadcast_to(values[step.weight], n).astype(np.float64)
    if step.mask is not None:
        is_kept = np.broadcast_to(values[step.mask], n) != 0
        y, weight = np.where(is_kept, y, 0.0), np.where(is_kept, 1.0 if weight is None else weight, 0.0)
    return y, weight


def row_factors(block: Block, values: Values, n: int, which: slice | np.ndarray = _ALL) -> np.ndarray:
    """What the block's data multiply the rows with, all n or some of them, f64."""

    def value(node: int) -> np.ndarray:
        return np.broadcast_to(values[node], n)[which].astype(np.float64)

    return block.rows.evaluate(value, np.broadcast_to(1.0, n)[which])


def groups(block: Block, values: Values, which: slice | np.ndarray = _ALL) -> np.ndarray:
    """The group of each row; computed indices beyond the ends are moved to them, as `take` does."""
    return np.clip(values[block.index][which], 0, block.size - 1).astype(np.int64)


def coefficient(block: Block, values: Mapping[int, Array], dtype: np.dtype) -> Array:
    """The block's coefficient, () for a column, (k,) or (J,) otherwise; traced."""
    product = block.coefficient.evaluate(values.__getitem__, np.ones((), dtype))
    return jnp.reshape(product, () if block.is_column else (block.size,))


@dataclass(frozen=True)
class Columns:
    """The design matrix of some blocks, (n, k): a group effect has a column for each group. Never formed as a whole."""

    blocks: tuple[Block, ...]
    values: Values
    n: int

    def __getitem__(self, which: slice | np.ndarray) -> np.ndarray:
        """Some of the rows, f64."""
        pieces = [np.empty((len(np.broadcast_to(0.0, self.n)[which]), 0))]
        for block in self.blocks:
            column = row_factors(block, self.values, self.n, which)[:, None]
            if block.matrix is not None:
                matrix = self.values[block.matrix]
                pieces.append((matrix.T if block.transposed else matrix)[which] * column)
            elif block.index is not None:
                pieces.append((groups(block, self.values, which)[:, None] == np.arange(block.size)) * column)
            else:
                pieces.append(column)
        return np.concatenate(pieces, axis=1)
