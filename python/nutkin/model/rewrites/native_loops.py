"""The passes `segment_sum` and `cumulative_sum`: operations of which XLA's gradient cannot be part of a native loop.

The gradient of a `take` along the first axis is a sum over the rows of each group, which JAX writes as a scatter; that
of a `cumulative_sum` is another one, in a form of quadratic cost. Both become loops (`nutkin.model.native.loops`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import jax.numpy as jnp
import numpy as np
from jax import Array

from nutkin.model.ir import Call
from nutkin.model.native import loops
from nutkin.model.plan import Plan
from nutkin.model.program import Program, Rewrite
from nutkin.model.steps import Application
from nutkin.model.types import is_float


def segment_sum(program: Program) -> Program:
    """Replace the `take`s along the first axis of what depends on parameters, by indices that are data."""

    def plan(call: Call, step: Application) -> Plan | None:
        x, index = step.args
        spec = program.steps[x].spec
        is_first = (call.opts.get("axis") or 0) % len(spec.shape) == 0
        if not is_first or index not in program.parameter_free or program.steps[index].spec.literal is not None:
            return None
        return replace(step.plan, run=lambda x, index: loops.take(x, _clamped(index, spec.shape[0])))

    return _replaced(program, "segment_sum", "take", plan)


def cumulative_sum(program: Program) -> Program:
    """Replace the cumulative sums of vectors that depend on parameters."""

    def plan(call: Call, step: Application) -> Plan | None:
        if len(step.spec.shape) != 1:
            return None
        reverse = bool(call.opts.get("reverse"))
        return replace(step.plan, run=lambda x: loops.cumulative_sum(x, reverse))

    return _replaced(program, "cumulative_sum", "cumulative_sum", plan)


def _clamped(index: Array, size: int) -> Array:
    """Indices of 32 bits; those beyond the ends are moved to them, as `take` does."""
    return jnp.clip(index, 0, size - 1).astype(np.int32)


def _replaced(program: Program, name: str, op: str, plan: Callable[[Call, Application], Plan | None]) -> Program:
    """With the plans that `plan` gives for applications of `op` of which the log density has a gradient."""

    def found() -> Iterator[tuple[int, Application]]:
        for index in program.needed_by(program.terms):
            step = program.steps[index]
            if index in program.parameter_free or not isinstance(step, Application) or not is_float(step.spec.type):
                continue
            if step.op == op and (replacement := plan(step.node, step)) is not None:
                yield index, replace(step, plan=replacement)

    steps = dict(found())
    return program.rewritten(steps, *(Rewrite(name, program.label(index)) for index in steps))
