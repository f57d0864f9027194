"""A loop while a condition holds, which can be differentiated in reverse mode.

XLA's own cannot: the values of each step would have to be kept, and their number is not known. Here the steps have a
bound: forwards, what enters each step is written to buffers of that length; backwards, as many steps are taken as there
were, from the last to the first, each with the derivative of the body at what entered it. Both cost what the steps
taken cost, whatever the bound is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

Values = tuple[Array, ...]


def bounded_while(
    condition: Callable[[Values, Values], Array],
    body: Callable[[Values, Values], Values],
    init: Values,
    known: Values,
    max_steps: int,
) -> Values:
    """The carried values when `condition` of them and the `known` ones is false, in the types and shapes of `init`.

    Floats are NaN if it still holds after `max_steps` steps.
    """

    def goes_on(known: Values) -> Callable[[tuple], Array]:
        return lambda state: (state[0] < max_steps) & condition(state[1], known)

    def ended(carry: Values, known: Values) -> Values:
        holds = condition(carry, known)
        return tuple(jnp.where(holds, np.nan, x) if _is_float(x) else x for x in carry)

    @jax.custom_vjp
    def loop(init: Values, known: Values) -> Values:
        def step(state: tuple[Array, Values]) -> tuple[Array, Values]:
            return state[0] + 1, body(state[1], known)

        start = (jnp.zeros((), jnp.int64), init)
        return ended(lax.while_loop(goes_on(known), step, start)[1], known)

    def forwards(init: Values, known: Values) -> tuple[Values, Any]:
        def step(state: tuple[Array, Values, Values]) -> tuple[Array, Values, Values]:
            count, carry, kept = state
            kept = tuple(lax.dynamic_update_index_in_dim(k, x, count, 0) for k, x in zip(kept, carry, strict=True))
            return count + 1, body(carry, known), kept

        room = tuple(jnp.zeros((max_steps, *x.shape), x.dtype) for x in init)
        start = (jnp.zeros((), jnp.int64), init, room)
        count, last, kept = lax.while_loop(goes_on(known), step, start)
        return ended(last, known), (count, kept, last, known)

    def backwards(residuals: Any, cotangents: Values) -> tuple[Values, Values]:
        count, kept, last, known = residuals
        holds = condition(last, known)
        # What is NaN in the end is so for all parameters.
        first = tuple(jnp.where(holds, np.nan, ct) for ct, x in zip(cotangents, last, strict=True) if _is_float(x))
        none = tuple(jnp.zeros_like(x) for x in known if _is_float(x))

        def step(state: tuple[Array, Values, Values]) -> tuple[Array, Values, Values]:
            count, carried, captured = state
            entered = tuple(lax.dynamic_index_in_dim(k, count - 1, 0, keepdims=False) for k in kept)

            def floats_of_body(floats: Values, others: Values) -> Values:
                given = body(_replace_floats(entered, floats), _replace_floats(known, others))
                return tuple(x for x in given if _is_float(x))

            _, pull = jax.vjp(floats_of_body, _floats(entered), _floats(known))
            carried, added = pull(carried)
            return count - 1, carried, tuple(a + b for a, b in zip(captured, added, strict=True))

        _, carried, captured = lax.while_loop(lambda s: s[0] > 0, step, (count, first, none))
        return _cotangents(last, carried), _cotangents(known, captured)

    loop.defvjp(forwards, backwards)
    return loop(init, known)


def _is_float(x: Array) -> bool:
    return jnp.issubdtype(x.dtype, jnp.floating)


def _floats(values: Values) -> Values:
    return tuple(x for x in values if _is_float(x))


def _replace_floats(values: Values, floats: Values) -> Values:
    fresh = iter(floats)
    return tuple(next(fresh) if _is_float(x) else x for x in values)


def _cotangents(values: Values, floats: Values) -> tuple[Any, ...]:
    """Cotangents for all values: those of floats are given, integers have none."""
    fresh = iter(floats)
    return tuple(next(fresh) if _is_float(x) else zero_cotangent(x) for x in values)


def zero_cotangent(x: Array) -> Any:
    """The cotangent of what nothing depends on."""
    is_differentiable = jnp.issubdtype(x.dtype, jnp.inexact)
    return jnp.zeros_like(x) if is_differentiable else np.zeros(x.shape, jax.dtypes.float0)
