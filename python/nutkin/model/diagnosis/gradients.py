"""Where a gradient becomes NaN or infinite: the chain rule, node by node from the last to the first.

The node is to blame whose own cotangent (the derivative of the log density by its value) is finite, and whose pullback
makes one of an operand that is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from nutkin.model.density import Density, Inputs
from nutkin.model.diagnosis.bodies import LOOPS, Unrolled, unroll
from nutkin.model.diagnosis.scope import GRADIENT, Culprit, Scope, is_wrong
from nutkin.model.evaluation import apply
from nutkin.model.ir import Argument
from nutkin.model.steps import Application, Number

Leaves = tuple[Array, ...]
"""The floats of a value, or of several, and likewise their cotangents."""

Run = Callable[[int, Mapping[int | None, Leaves]], Leaves]
"""The results of a node, from those of its operands; None stands for the coordinates of a parameter."""


def origin_of_gradient(
    density: Density, scope: Scope, coordinates: Mapping[int, Array], inputs: Inputs
) -> Culprit | None:
    """Of a gradient that is wrong where all values are finite. None if each step by itself is finite."""

    def run(index: int, given: Mapping[int | None, Leaves]) -> Leaves:
        known = {**scope.values, **_restored(scope, given)}
        own = given[None][0] if None in given else coordinates.get(index)
        value, term = density.step(index, own, known, inputs)
        return (*_floats(value), *(() if term is None else (term,)))

    one = jnp.ones((), coordinates[next(iter(coordinates))].dtype)
    cotangents: dict[int, Leaves] = {}
    for index in reversed(density.nodes):
        own = (coordinates[index],) if index in coordinates else None
        value = _floats(scope.values.get(index))
        term = () if index in scope.values and own is None else (one,)
        if index not in cotangents and not term:
            continue
        seeds = (*cotangents.get(index, tuple(map(jnp.zeros_like, value))), *term)
        if (culprit := _pull_back(scope, index, run, seeds, cotangents, own)) is not None:
            return culprit
    return None


def _pull_back(
    scope: Scope, index: int, run: Run, seeds: Leaves, cotangents: dict[int, Leaves], own: Leaves | None = None
) -> Culprit | None:
    """Adds to the cotangents of a node's operands."""
    given: dict[int | None, Leaves] = {} if own is None else {None: own}
    for operand in scope.steps[index].references:
        if operand in scope.live and not isinstance(scope.steps[operand], Number) and _floats(scope.values[operand]):
            given[operand] = _floats(scope.values[operand])
    keys = list(given)
    _, pull = jax.vjp(lambda *leaves: run(index, dict(zip(keys, leaves, strict=True))), *given.values())
    pulled = dict(zip(keys, pull(seeds), strict=True))
    for operand, leaves in pulled.items():
        if (wrong := next(filter(is_wrong, leaves), None)) is not None:
            inner = _within(scope, index, seeds) if isinstance(scope.nodes[index], LOOPS) else None
            return inner or Culprit(scope, index, GRADIENT, np.asarray(wrong), by=operand)
    pulled.pop(None, None)
    _add(cotangents, pulled)
    return None


def _within(scope: Scope, index: int, seeds: Leaves) -> Culprit | None:
    """The node of a body, in the last step that makes a cotangent wrong."""
    loop = unroll(scope, index)
    if loop is None:
        return None
    fresh = iter(seeds)
    outputs = [next(fresh) if _floats(x) else None for x in scope.values[index]]
    carried = {place: x for place, x in enumerate(outputs[: loop.carried]) if x is not None}
    collected = {place: x for place, x in enumerate(outputs) if place >= loop.carried and x is not None}
    for step in reversed(range(loop.count)):
        rows = {place: x[loop.row(step)] if loop.collects_rows else x for place, x in collected.items()}
        found = _through_body(loop.scope(step), loop, {**carried, **rows})
        if isinstance(found, Culprit):
            return found
        carried = found
    return None


def _through_body(inner: Scope, loop: Unrolled, seeds: Mapping[int, Array]) -> Culprit | dict[int, Array]:
    """From cotangents of the results of a step to those of what it was carried."""

    def run(index: int, given: Mapping[int | None, Leaves]) -> Leaves:
        return _floats(apply(inner.steps, inner.steps[index], {**inner.values, **_restored(inner, given)}))

    cotangents: dict[int, Leaves] = {}
    for place, seed in seeds.items():
        result = loop.body.results[place]
        value = _floats(inner.values.get(result))
        if value:
            _add(cotangents, {result: (jnp.asarray(_fitted(seed, value[0].shape), value[0].dtype),)})
    for index in reversed(range(len(inner.nodes))):
        if index in cotangents and isinstance(inner.steps[index], Application):
            culprit = _pull_back(inner, index, run, cotangents[index], cotangents)
            if culprit is not None:
                return culprit
    arguments = {node.index: index for index, node in enumerate(inner.nodes) if isinstance(node, Argument)}
    return {
        place: cotangents[arguments[place]][0]
        for place in range(loop.carried)
        if place in arguments and arguments[place] in cotangents
    }


def _fitted(seed: Array, shape: tuple[int, ...]) -> Array:
    """Summed over the axes along which a side of a choice was repeated."""
    lead = seed.ndim - len(shape)
    stretched = [lead + axis for axis, size in enumerate(shape) if size == 1 and seed.shape[lead + axis] > 1]
    return jnp.sum(seed, axis=(*range(lead), *stretched)).reshape(shape)


def _floats(value: Any) -> Leaves:
    leaves = () if value is None else value if isinstance(value, tuple) else (value,)
    return tuple(jnp.asarray(x) for x in leaves if jnp.issubdtype(x.dtype, jnp.floating))


def _restored(scope: Scope, given: Mapping[int | None, Leaves]) -> dict[int, Any]:
    """The values of operands, with these floats in them."""
    restored: dict[int, Any] = {}
    for index, leaves in given.items():
        if index is None:
            continue
        fresh, value = iter(leaves), scope.values[index]
        if isinstance(value, tuple):
            restored[index] = tuple(next(fresh) if jnp.issubdtype(x.dtype, jnp.floating) else x for x in value)
        else:
            restored[index] = next(fresh)
    return restored


def _add(cotangents: dict[int, Leaves], more: Mapping[int, Iterable[Array]]) -> None:
    for index, leaves in more.items():
        leaves = tuple(leaves)
        known = cotangents.get(index)
        cotangents[index] = leaves if known is None else tuple(a + b for a, b in zip(known, leaves, strict=True))
