"""Nodes and the values that they had, and which elements of a value are wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import jax.numpy as jnp
import numpy as np

from nutkin.model.distributions import spoken
from nutkin.model.ir import Argument, Node
from nutkin.model.steps import Number, Step

VALUE, TERM, GRADIENT = "value", "log_density", "gradient"


@dataclass(frozen=True)
class Scope:
    """The nodes of a model, or of a body in one step of its loop, and their values.

    `live`: those that depend on a parameter; `within`: the loops and choices around a body, the outermost first, such
    as `step 3 of scan(x)`; `outer`: the model's node that they are in.
    """

    nodes: Sequence[Node | Argument]
    steps: Sequence[Step]
    values: Mapping[int, Any]
    live: frozenset[int]
    precision: str
    within: tuple[str, ...] = ()
    outer: int | None = None

    def value(self, index: int, output: int | None = None) -> np.ndarray:
        """Of a node, or one of its several values."""
        step = self.steps[index]
        if isinstance(step, Number):
            return np.asarray(step.spec.literal)
        value = self.values[index]
        return np.asarray(value if output is None else value[output])


@dataclass(frozen=True)
class Culprit:
    """The node at which it begins.

    `what` of it is wrong, and all elements of that, `wrong`: its value, its log density element by element, or the
    gradient by its operand `by` (None: by the unconstrained coordinates). `expected` and `hint`: where more is known.
    """

    scope: Scope
    index: int
    what: Literal["value", "log_density", "gradient"]
    wrong: np.ndarray
    by: int | None = None
    expected: str | None = None
    hint: str | None = None


def faults(value: Any) -> np.ndarray:
    """Which elements are NaN; if none is, which are infinite."""
    value = np.asarray(value)
    if not jnp.issubdtype(value.dtype, jnp.floating):
        return np.zeros(value.shape, bool)
    is_nan = np.isnan(value)
    return is_nan if is_nan.any() else np.isinf(value)


def is_wrong(value: Any) -> bool:
    return bool(faults(value).any())


def has_nan(value: Any) -> bool:
    value = np.asarray(value)
    return bool(jnp.issubdtype(value.dtype, jnp.floating) and np.isnan(value).any())


def meets(mine: np.ndarray, theirs: np.ndarray) -> bool:
    """Whether two masks, broadcast against each other, are true at a common place; also if they do not broadcast."""
    try:
        return bool((mine & theirs).any())
    except ValueError:
        return True


def role(path: str) -> str:
    """What an operand is for its node, by the path of the reference."""
    if path.startswith("args."):
        return spoken(path.removeprefix("args."))
    if path.startswith("args["):
        return f"operand {int(path[5:-1]) + 1}"
    return path
