"""The log density of an observation: its elements, and their sum over the batch."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import Array

from nutkin.model.distributions.family import Parts
from nutkin.model.steps import Observation
from nutkin.model.sums import batch_sum


def observation_sum(
    step: Observation,
    value: Array | None,
    parameters: tuple[Array, ...],
    *,
    weight: Array | None = None,
    mask: Array | None = None,
) -> Array:
    """The sum of those parts of the log density that the step names, a scalar. All but the mask are of one type.

    What no part needs may be None: the value where there is the normalizer alone, and parameters.
    """
    parts, unmasked = _parts(step, value, parameters, mask)
    total = batch_sum(parts.signed(), step.spec.shape, weight=weight, unmasked=unmasked)
    return total / step.spec.size if step.mean else total


def observation_elements(
    step: Observation,
    value: Array,
    parameters: tuple[Array, ...],
    *,
    weight: Array | None = None,
    mask: Array | None = None,
) -> Array:
    """What `observation_sum` adds up, of the shape of the batch."""
    parts, unmasked = _parts(step, value, parameters, mask)
    elements = sum(parts.signed()) * (1 if weight is None else weight)
    if unmasked is not None:
        elements = jnp.where(unmasked, elements, np.zeros((), elements.dtype))
    return jnp.broadcast_to(elements, step.spec.shape)


def _parts(
    step: Observation, value: Array | None, parameters: tuple[Array, ...], mask: Array | None
) -> tuple[Parts, Array | None]:
    """-> the parts that the step names, and where they count."""
    support = step.family.support
    unmasked = None if mask is None else mask != 0
    if value is not None and unmasked is not None and support.inside is not None:
        # A masked value may be anything; its NaN would come back through the gradient.
        events = unmasked.reshape(unmasked.shape + (1,) * step.family.event_rank)
        value = jnp.where(events, value, np.asarray(support.inside, value.dtype))
    parts = step.family.parts(value, parameters, step.parts)
    if not step.is_checked:
        parts = parts.within(support.contains(value, *step.family.bounds(parameters)), value.dtype)
    return parts, unmasked
