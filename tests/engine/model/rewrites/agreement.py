"""Compares a model's log density and gradient with and without rewrites."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import jax
import numpy as np

from engine.builder import Builder
from nutkin.compile import Target, bind
from nutkin.model import read
from nutkin.model.types import DTYPES


def bound(builder: Builder, data: Mapping[str, np.ndarray], **options: object) -> Target:
    return bind(read(builder.tree()), data, builder.tensors, **options)


def evaluation(target: Target) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """position -> (log density, gradient), by a program that no other test shares, compiled once for all positions."""
    program = jax.jit(jax.value_and_grad(target.log_density))

    def evaluate(position: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        value, gradient = program(position.astype(DTYPES[target.precision]), target.arguments)
        return np.asarray(value, np.float64), np.asarray(gradient, np.float64)

    return evaluate


def assert_agree(
    builder: Builder,
    data: Mapping[str, np.ndarray],
    *,
    expected: Sequence[str],
    rewrites: Sequence[str] | None = None,
    precision: str = "f64",
    relative: float = 1e-10,
    positions: Sequence[np.ndarray] = (),
    spread: float = 1.0,
    seed: int = 0,
) -> Target:
    """Both forms agree at random points, or at those given, and the rewrites `expected` were applied, in this order.

    A component of the gradient may differ by `relative` of the largest one. Random points, of standard deviation
    `spread`, come closer to 0 until the original form is finite: far out, a probability that it takes the logarithm of
    is rounded to 0 or 1.
    """
    original = bound(builder, data, rewrites=[], precision=precision)
    rewritten = bound(builder, data, rewrites=rewrites, precision=precision)
    assert [applied.name for applied in rewritten.rewrites] == list(expected), rewritten.rewrites
    of_original, of_rewritten = evaluation(original), evaluation(rewritten)
    random = np.random.default_rng(seed)
    for position in positions or [spread * random.normal(size=original.dimension) for _ in range(3)]:
        wanted_value, wanted_gradient = of_original(position)
        for _ in range(0 if positions else 5):
            if not np.isfinite(wanted_value):
                position = 0.5 * position
                wanted_value, wanted_gradient = of_original(position)
        value, gradient = of_rewritten(position)
        assert np.isfinite(wanted_value)
        np.testing.assert_allclose(value, wanted_value, rtol=relative)
        largest = np.max(np.abs(wanted_gradient))
        np.testing.assert_allclose(gradient, wanted_gradient, rtol=relative, atol=relative * largest)
    return rewritten
