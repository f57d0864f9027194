"""Random regressions, and their log likelihood as a plain formula: what the row kernels are compared with."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln

from nutkin.model.native import glm

FAMILIES = ("normal", "bernoulli_logit", "binomial_logit", "poisson_log", "neg_binomial")
WITH_EXTRA = ("normal", "neg_binomial")


@dataclass
class Regression:
    family: str
    y: np.ndarray
    X: np.ndarray | None = None
    sizes: tuple[int, ...] = ()
    indices: list[np.ndarray] = field(default_factory=list)
    scales: list[np.ndarray | None] = field(default_factory=list)
    offset: np.ndarray | None = None
    weight: np.ndarray | None = None
    trials: np.ndarray | None = None
    dtype: str = "float64"

    @property
    def layout(self) -> glm.Layout:
        return glm.Layout(
            family=self.family,
            rows=self.y.size,
            columns=0 if self.X is None else self.X.shape[1],
            groups=tuple((size, scale is not None) for size, scale in zip(self.sizes, self.scales, strict=True)),
            offset=self.offset is not None,
            weighted=self.weight is not None,
            dtype=self.dtype,
        )

    def prepared(self) -> tuple[np.ndarray, ...]:
        return glm.prepare(
            self.layout,
            self.y,
            self.X,
            indices=self.indices,
            scales=self.scales,
            offset=self.offset,
            weight=self.weight,
            trials=self.trials,
        )

    def kernel(self) -> Callable[[Any], jax.Array]:
        layout, prepared = self.layout, self.prepared()
        return lambda point: glm.log_likelihood(layout, prepared, *point)

    def formula(self) -> Callable[[Any], jax.Array]:
        return lambda point: plain_log_likelihood(self, *point)

    def point(self, rng: np.random.Generator, scale: float = 0.5) -> tuple:
        """(intercept, beta, group coefficients, extra)."""
        columns = 0 if self.X is None else self.X.shape[1]
        extra = np.asarray(1.7, self.dtype) if self.family in WITH_EXTRA else None
        return (
            np.asarray(rng.normal(), self.dtype),
            rng.normal(0, scale, columns).astype(self.dtype),
            tuple(rng.normal(0, scale, size).astype(self.dtype) for size in self.sizes),
            extra,
        )


def regression(
    family: str,
    rows: int,
    columns: int = 0,
    *,
    groups: tuple[tuple[int, bool], ...] = (),
    offset: bool = False,
    weighted: bool = False,
    dtype: str = "float64",
    seed: int = 1,
) -> Regression:
    rng = np.random.default_rng(seed)
    trials = rng.integers(0, 9, rows).astype(dtype) if family == "binomial_logit" else None
    y = {
        "normal": lambda: rng.normal(2, 3, rows),
        "bernoulli_logit": lambda: rng.integers(0, 2, rows),
        "binomial_logit": lambda: rng.binomial(trials.astype(int), 0.4),
        "poisson_log": lambda: rng.poisson(3, rows),
        "neg_binomial": lambda: rng.poisson(rng.gamma(2.0, 3.0, rows)),
    }[family]()
    return Regression(
        family,
        y.astype(dtype),
        rng.normal(size=(rows, columns)).astype(dtype) if columns else None,
        tuple(size for size, _ in groups),
        [rng.integers(0, size, rows).astype(np.int32) for size, _ in groups],
        [rng.normal(size=rows).astype(dtype) if scaled else None for _, scaled in groups],
        rng.normal(size=rows).astype(dtype) if offset else None,
        (rng.uniform(0.5, 2, rows) * (rng.random(rows) < 0.8)).astype(dtype) if weighted else None,
        trials,
        dtype,
    )


def plain_log_likelihood(r: Regression, intercept, beta, groups, extra) -> jax.Array:
    eta = jnp.full(r.y.size, intercept, jnp.float64)
    if r.X is not None:
        eta = eta + r.X.astype(float) @ beta
    for index, scale, coefficients in zip(r.indices, r.scales, groups, strict=True):
        eta = eta + coefficients[index] * (1.0 if scale is None else scale)
    if r.offset is not None:
        eta = eta + r.offset
    y = r.y.astype(float)
    terms = {
        "normal": lambda: -0.5 * ((y - eta) / extra) ** 2 - jnp.log(extra),
        "bernoulli_logit": lambda: y * eta - jnp.logaddexp(eta, 0.0),
        "binomial_logit": lambda: y * eta - r.trials * jnp.logaddexp(eta, 0.0),
        "poisson_log": lambda: y * eta - jnp.exp(eta),
        "neg_binomial": lambda: (
            y * eta
            - (y + extra) * jnp.logaddexp(jnp.log(extra), eta)
            + extra * jnp.log(extra)
            + gammaln(y + extra)
            - gammaln(extra)
        ),
    }[r.family]()
    return jnp.sum(terms if r.weight is None else r.weight * terms)


def assert_equal_with_gradients(actual: Callable, expected: Callable, points: Iterable[Any], tolerance: float) -> None:
    """Values agree relatively; gradients relatively to the largest entry of their block."""
    actual, expected = (jax.jit(jax.value_and_grad(function)) for function in (actual, expected))
    for point in points:
        value, gradient = actual(point)
        expected_value, expected_gradient = expected(jax.tree.map(lambda x: x.astype(float), point))
        assert np.isfinite(expected_value), point
        np.testing.assert_allclose(value, expected_value, rtol=tolerance, err_msg=str(point))
        assert jax.tree.structure(gradient) == jax.tree.structure(expected_gradient)
        for block, expected_block in zip(jax.tree.leaves(gradient), jax.tree.leaves(expected_gradient), strict=True):
            assert block.shape == expected_block.shape
            if block.size:
                atol = tolerance * max(np.max(np.abs(expected_block)), 1e-300)
                np.testing.assert_allclose(block, expected_block, rtol=0, atol=atol, err_msg=str(point))
