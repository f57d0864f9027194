"""The pass `generalized_linear`: a likelihood over a linear predictor, all rows in one native loop.

    observe bernoulli_logit(a + X @ beta + u[group])

and likewise binomial_logit, poisson_log, neg_binomial(exp(…), alpha), normal(…, sigma), and the same under other names:
bernoulli(sigmoid(…)), binomial(n, sigmoid(…)), poisson(exp(…)).

The value and the gradient of every coefficient come from one pass over the rows, with one exponential a row
(`nutkin.model.native.glm`). The design matrix is laid out for it once for each data set, in place of the raw one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from nutkin.model.native import glm
from nutkin.model.program import Program, Rewrite
from nutkin.model.rewrites.design import Columns, coefficient, has_data_rows, observed_rows, row_factors
from nutkin.model.rewrites.linear import Block, linear_predictor
from nutkin.model.steps import Application, Likelihood, Observation
from nutkin.model.types import DTYPES

NAME = "generalized_linear"

MIN_ROWS = 32  # fewer are as fast written out


@dataclass(frozen=True)
class _Family:
    """`name` is the kernel's; `predictor` the parameter that is linear, after the operation `link`; `extra` a scalar
    parameter of the family; `trials` a parameter that is data."""

    name: str
    predictor: str
    link: str | None = None
    extra: str | None = None
    trials: str | None = None


_FAMILIES = {
    "normal": _Family("normal", "mu", extra="sigma"),
    "bernoulli_logit": _Family("bernoulli_logit", "logits"),
    "bernoulli": _Family("bernoulli_logit", "p", "sigmoid"),
    "binomial_logit": _Family("binomial_logit", "logits", trials="n"),
    "binomial": _Family("binomial_logit", "p", "sigmoid", trials="n"),
    "poisson_log": _Family("poisson_log", "eta"),
    "poisson": _Family("poisson_log", "mu", "exp"),
    "neg_binomial": _Family("neg_binomial", "mu", "exp", extra="alpha"),
}


def generalized_linear(program: Program) -> Program:
    """Replace the observations over a linear predictor."""
    found = {
        index: likelihood
        for index, step in enumerate(program.steps)
        if isinstance(step, Observation)
        and (family := _FAMILIES.get(step.dist)) is not None
        and (likelihood := _likelihood(program, step, family)) is not None
    }
    return program.rewritten(found, *(Rewrite(NAME, step.name) for step in found.values()))


def _likelihood(program: Program, step: Observation, family: _Family) -> Likelihood | None:
    if not has_data_rows(program, step) or step.spec.size < MIN_ROWS:
        return None
    parameters = dict(zip(step.family.parameters, step.args, strict=True))
    predictor = _predictor(program, parameters[family.predictor], family.link)
    if predictor is None or program.steps[predictor].spec.size == 1:  # the same for all rows: computed once
        return None
    blocks = linear_predictor(program, predictor, step.spec.size)
    extra, trials = (parameters.get(name) for name in (family.extra, family.trials))
    if blocks is None or all(block.is_offset for block in blocks):
        return None
    if extra is not None and program.steps[extra].spec.size != 1:
        return None
    if trials is not None and trials not in program.parameter_free:
        return None
    data = [*step.observed, *(node for block in blocks for node in block.data)]
    data += [] if trials is None else [trials]
    args = [node for block in blocks for node in block.coefficient.nodes]
    args += [] if extra is None else [extra]
    regression = _Regression(
        family.name,
        step,
        blocks,
        DTYPES[program.precision],
        tuple(dict.fromkeys(data)),
        tuple(dict.fromkeys(args)),
        extra,
        trials,
    )
    return Likelihood(step.name, step.spec, regression.data, regression.args, regression.prepare, regression.term)


def _predictor(program: Program, node: int, link: str | None) -> int | None:
    """The node of the linear predictor: the parameter itself, or what its link is applied to."""
    if link is None:
        return node
    step = program.steps[node]
    if isinstance(step, Application) and step.op == link and step.spec.type == program.precision:
        return step.args[0]
    return None


@dataclass(frozen=True)
class _Regression:
    """The two halves of the likelihood: on the host, from the `data` nodes; traced, from the `args` nodes."""

    family: str
    step: Observation
    blocks: tuple[Block, ...]
    dtype: np.dtype
    data: tuple[int, ...]
    args: tuple[int, ...]
    extra: int | None
    trials: int | None

    @property
    def _intercepts(self) -> tuple[Block, ...]:
        return tuple(block for block in self.blocks if block.is_column and not block.rows.nodes)

    @property
    def _columns(self) -> tuple[Block, ...]:
        """The blocks of the design matrix."""
        blocks = (block for block in self.blocks if block.index is None and not block.is_offset)
        return tuple(block for block in blocks if block not in self._intercepts)

    @property
    def _groups(self) -> tuple[Block, ...]:
        return tuple(block for block in self.blocks if block.index is not None)

    @property
    def _layout(self) -> glm.Layout:
        return glm.Layout(
            family=self.family,
            rows=self.step.spec.size,
            columns=sum(block.size for block in self._columns),
            groups=tuple((block.size, _is_scaled(block)) for block in self._groups),
            offset=any(block.is_offset for block in self.blocks),
            weighted=self.step.weight is not None or self.step.mask is not None,
            dtype=self.dtype.name,
        )

    def prepare(self, *data: np.ndarray) -> Any:
        """-> (the kernel's arrays, the sum of what depends on the observed values only)."""
        values = dict(zip(self.data, data, strict=True))
        n = self.step.spec.size
        y, weight = observed_rows(self.step, values)
        offsets = [row_factors(block, values, n) for block in self.blocks if block.is_offset]
        trials = None if self.trials is None else np.broadcast_to(values[self.trials], n).astype(np.float64)
        arrays = glm.prepare(
            self._layout,
            y,
            self._design(values),
            indices=[values[block.index] for block in self._groups],
            scales=[row_factors(block, values, n) if _is_scaled(block) else None for block in self._groups],
            offset=sum(offsets) if offsets else None,
            weight=weight,
            trials=trials,
        )
        return arrays, self.dtype.type(_carrier(self.family, y, weight, trials))

    def _design(self, values: Mapping[int, np.ndarray]) -> Any:
        columns = self._columns
        if len(columns) == 1 and columns[0].matrix is not None and not _is_scaled(columns[0]):
            matrix = values[columns[0].matrix]
            return matrix.T if columns[0].transposed else matrix
        return Columns(columns, values, self.step.spec.size) if columns else None

    def term(self, prepared: Any, *args: Array) -> Array:
        """The log density of all rows."""
        values = dict(zip(self.args, args, strict=True))
        arrays, carrier = prepared

        def coefficients(blocks: tuple[Block, ...]) -> list[Array]:
            return [coefficient(block, values, self.dtype) for block in blocks]

        signs = (-1 if block.rows.negative else 1 for block in self._intercepts)
        intercepts = (sign * value for sign, value in zip(signs, coefficients(self._intercepts), strict=True))
        beta = [jnp.reshape(value, (-1,)) for value in coefficients(self._columns)]
        total = glm.log_likelihood(
            self._layout,
            arrays,
            sum(intercepts, start=jnp.zeros((), self.dtype)),
            jnp.concatenate(beta) if beta else jnp.zeros((0,), self.dtype),
            tuple(coefficients(self._groups)),
            None if self.extra is None else jnp.reshape(values[self.extra], ()),
        )
        total = total + carrier
        return total / self.step.spec.size if self.step.mean else total


def _is_scaled(block: Block) -> bool:
    return bool(block.rows.nodes) or block.rows.negative


def _carrier(family: str, y: np.ndarray, weight: np.ndarray | None, trials: np.ndarray | None) -> float:
    """The weighted sum of the terms of the log density that the kernel leaves out. Constants included."""
    weight = np.ones(y.size) if weight is None else weight
    match family:
        case "normal":
            return -0.5 * math.log(2 * math.pi) * weight.sum()
        case "poisson_log" | "neg_binomial":
            return -_sum_of_log_factorials(y, weight)
        case "binomial_logit":
            used = weight != 0
            y, trials, weight = y[used], trials[used], weight[used]
            signed = ((trials, weight), (y, -weight), (trials - y, -weight))
            return sum(_sum_of_log_factorials(*counts) for counts in signed)
        case _:
            return 0.0


def _sum_of_log_factorials(counts: np.ndarray, weight: np.ndarray) -> float:
    """Counts are few distinct numbers, of which each is worked out once."""
    distinct, at = np.unique(counts, return_inverse=True)
    logs = np.array([math.lgamma(count + 1) for count in distinct])
    return float(np.bincount(at, weight, distinct.size) @ logs)
