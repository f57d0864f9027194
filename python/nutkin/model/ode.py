"""Ordinary differential equations: adaptive solutions by Diffrax, differentiated in reverse mode.

The gradient is that of the steps that the solver took, exact for the numbers that it gives (Griewank and Walther 2008,
"Evaluating Derivatives", chapter 12; https://docs.kidger.site/diffrax/api/adjoints, `RecursiveCheckpointAdjoint`).
"""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jax import Array

from nutkin.errors import InvalidModel
from nutkin.model.control import PlanBody
from nutkin.model.ir import Ode
from nutkin.model.plan import Plan
from nutkin.model.supports import ORDERED
from nutkin.model.types import Spec, show_shape


def plan_ode(node: Ode, specs: Sequence[Spec], plan_body: PlanBody, precision: str) -> Plan:
    """-> each part of the state at the times, {n, …}; NaN where the solver gives up."""
    count = len(node.init)
    start, times = specs[count : count + 2]
    if not count:
        raise InvalidModel("an ode needs a state", expected="one or more values in init", found="none")
    if start.shape != ():
        raise InvalidModel("the start of an ode must be a scalar", expected="{}", found=show_shape(start.shape))
    if len(times.shape) != 1:
        raise InvalidModel("the times of an ode must be a vector", expected="{n}", found=show_shape(times.shape))
    state = tuple(Spec(spec.shape, precision) for spec in specs[:count])
    rest = tuple(Spec(spec.shape, spec.type) for spec in specs[count + 2 :])
    results, body = plan_body(node.body, (Spec((), precision), *state, *rest))
    shapes = tuple(spec.shape for spec in state)
    if tuple(spec.shape for spec in results) != shapes:
        raise InvalidModel(
            "the derivatives of an ode must have the shapes of its state",
            expected=", ".join(map(show_shape, shapes)),
            found=", ".join(show_shape(spec.shape) for spec in results) or "nothing",
        )

    def run(*operands: Array) -> tuple[Array, ...]:
        first, (t0, ts), known = operands[:count], operands[count : count + 2], operands[count + 2 :]

        def derivatives(t: Array, state: tuple[Array, ...], known: tuple[Array, ...]) -> tuple[Array, ...]:
            return tuple(jnp.asarray(x, ts.dtype) for x in body(t, *state, *known))

        return _solve(node, derivatives, jax.tree.map(jnp.asarray, (first, t0, ts, known)))

    elements = tuple(Spec((times.shape[0], *shape), precision) for shape in shapes)
    casts = (precision,) * (count + 2) + tuple(spec.type for spec in rest)
    return Plan.several(elements, casts, run, supports={count + 1: ORDERED})


def _solve(node: Ode, derivatives: object, operands: tuple) -> tuple[Array, ...]:
    # Its import takes a second, which only models with equations need.
    import diffrax

    first, t0, ts, known = operands
    solvers = {
        "tsit5": diffrax.Tsit5,
        "dopri5": diffrax.Dopri5,
        "dopri8": diffrax.Dopri8,
        "kvaerno3": diffrax.Kvaerno3,
        "kvaerno5": diffrax.Kvaerno5,
    }
    controller, most_steps = diffrax.PIDController(rtol=node.rtol, atol=node.atol), node.max_steps
    if node.method == "kvaerno5":
        # Diffrax interpolates its steps by cubics, which are worse than the steps: each time is the end of one.
        controller, most_steps = diffrax.ClipStepSizeController(controller, step_ts=ts), most_steps + ts.size
    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(derivatives),
        solvers[node.method](),
        t0=t0,
        t1=ts[-1],
        dt0=None,
        y0=first,
        args=known,
        saveat=diffrax.SaveAt(ts=ts),
        stepsize_controller=controller,
        max_steps=most_steps,
        throw=False,
    )
    has_ended = solution.result == diffrax.RESULTS.successful
    return tuple(jnp.where(has_ended, y, jnp.nan) for y in solution.ys)
