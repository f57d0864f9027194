"""Random draws of distributions made of others: draw(key, parameters, shape), as in `draws`.

None where a component has no draws, or no distribution function where one is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from nutkin.model.distributions.draws import Draw
from nutkin.model.distributions.family import Family
from nutkin.model.distributions.inversion import draw_between
from nutkin.model.distributions.standard_draws import unit
from nutkin.model.native.elementary import log

Ends = Callable[[Sequence[Array]], tuple[Array | None, Array | None]]
"""The lower and the upper limit, None where there is none, of the parameters behind those of the component."""


def mixture_draw(components: Sequence[Family], places: Sequence[slice]) -> Draw | None:
    """Of a component each, chosen by the weights: of those listed, or along the last batch axis of the only one."""
    if any(family.draw is None for family in components):
        return None
    rank = components[0].event_rank

    def draw(key: Array, parameters: tuple[Array, ...], shape: tuple[int, ...]) -> Array:
        weights, *given = parameters
        of_choice, *keys = jax.random.split(key, 1 + len(components))
        batch, event = shape[: len(shape) - rank], shape[len(shape) - rank :]
        choice = jax.random.categorical(of_choice, log(weights), axis=-1, shape=batch)
        if len(components) == 1:
            each = components[0].draw(keys[0], tuple(given), (*batch, weights.shape[-1], *event))
        else:
            drawn = zip(components, keys, places, strict=True)
            each = [family.draw(own, tuple(given[place]), shape) for family, own, place in drawn]
            each = jnp.stack(each, axis=len(batch))
        index = choice.reshape(*batch, 1, *(1,) * rank)
        return jnp.take_along_axis(each, index, axis=len(batch)).squeeze(len(batch))

    return draw


def truncated_draw(family: Family, ends: Ends) -> Draw | None:
    """Given that the value is from lower to upper."""
    if family.cumulative is None:
        return None
    count = len(family.parameters)

    def draw(key: Array, parameters: tuple[Array, ...], shape: tuple[int, ...]) -> Array:
        lower, upper = ends(parameters[count:])
        dtype = parameters[0].dtype
        first = jnp.asarray(-np.inf, dtype) if lower is None else _before(family, lower)
        last = jnp.asarray(np.inf, dtype) if upper is None else upper
        x = draw_between(key, family.cumulative, parameters[:count], first, last, shape)
        return x if lower is None else jnp.maximum(x, lower)

    return draw


def censored_draw(family: Family, ends: Ends) -> Draw | None:
    """What is beyond a limit becomes that limit."""
    if family.draw is None:
        return None
    count = len(family.parameters)

    def draw(key: Array, parameters: tuple[Array, ...], shape: tuple[int, ...]) -> Array:
        x, (lower, upper) = family.draw(key, parameters[:count], shape), ends(parameters[count:])
        x = x if lower is None else jnp.maximum(x, lower)
        return x if upper is None else jnp.minimum(x, upper)

    return draw


def zero_inflated_draw(family: Family) -> Draw | None:
    """0 with probability p, the last parameter, else of the component."""
    return family.draw and _zero_or(family.draw)


def hurdle_draw(family: Family) -> Draw | None:
    """0 with probability p, the last parameter, else of the component given that it is not 0."""
    if not family.support.discrete:
        return family.draw and _zero_or(family.draw)
    if family.cumulative is None:
        return None

    def above_0(key: Array, parameters: tuple[Array, ...], shape: tuple[int, ...]) -> Array:
        zero, most = (jnp.asarray(end, parameters[0].dtype) for end in (0, np.inf))
        return draw_between(key, family.cumulative, parameters, zero, most, shape)

    return _zero_or(above_0)


def _zero_or(draw_other: Draw) -> Draw:
    def draw(key: Array, parameters: tuple[Array, ...], shape: tuple[int, ...]) -> Array:
        *base, p = parameters
        of_zero, of_other = jax.random.split(key)
        other = draw_other(of_other, tuple(base), shape)
        return jnp.where(unit(of_zero, shape, p.dtype) <= p, np.zeros((), other.dtype), other)

    return draw


def _before(family: Family, lower: Array) -> Array:
    """What has all below the limit up to it: of counts the number before."""
    return jnp.ceil(lower) - 1 if family.support.discrete else lower
