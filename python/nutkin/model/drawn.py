"""Checks of the draws that a prediction is given: whether the distributions of the model have such values at all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from nutkin.errors import InvalidData
from nutkin.model.distributions import find_family
from nutkin.model.ir import Constant, Model, RandomVariable
from nutkin.model.plan import broadcasts_to
from nutkin.model.supports import (
    CORRELATION,
    CORRELATION_CHOLESKY,
    COVARIANCE,
    ORDERED,
    SYMMETRIC,
    UNIT_VECTOR,
    ZERO_SUM,
    Support,
)
from nutkin.model.transforms import TRANSFORMS
from nutkin.model.values import show_value

_PIECE = 1 << 16
_ROUNDING = 1e-6  # of a draw in f32, between bounds in f64

# What rounding leaves of a support in which not every number can be moved by itself.
_ROUNDED = {
    ORDERED: replace(ORDERED, contains=lambda x: (x[..., 1:] >= x[..., :-1]).all(-1)),
    ZERO_SUM: replace(ZERO_SUM, contains=lambda x: ZERO_SUM.contains(x / np.maximum(abs(x).max(-1, keepdims=True), 1))),
    COVARIANCE: replace(COVARIANCE, contains=SYMMETRIC.contains),
    CORRELATION: replace(CORRELATION, contains=SYMMETRIC.contains),
    CORRELATION_CHOLESKY: replace(CORRELATION_CHOLESKY, contains=lambda x: UNIT_VECTOR.contains(x).all(-1)),
}


def check_drawn(model: Model, parameters: Iterable[int], draws: Mapping[str, np.ndarray]) -> None:
    """`parameters`: those of which the draws are used; `draws`: finite numbers (chains, draws, ...), by name.

    A draw may lie at the edge of a support, as rounding leaves it. Nothing is told of bounds that are computed, nor of
    those in the data, which may be others than those of the posterior. Raises InvalidData with the parameter, and with
    the chain and the draw of its first impossible value.
    """
    for index in parameters:
        node = model.nodes[index]
        support = find_family(node.dist, node.args).support
        bounds = [_bound(model.nodes[node.args[name]], draws) for name in support.bounds]
        if all(bound is not None for bound in bounds):
            _check(node, index, draws[node.name], support, bounds)
        if node.transform in TRANSFORMS:
            _check(node, index, draws[node.name], TRANSFORMS[node.transform].within, ())


def _bound(node: object, draws: Mapping[str, np.ndarray]) -> np.ndarray | None:
    """A number, or draws; None where it is neither."""
    if isinstance(node, Constant) and node.value is not None:
        return np.float64(node.value)
    return draws.get(node.name) if isinstance(node, RandomVariable) else None


def _check(node: RandomVariable, index: int, array: np.ndarray, support: Support, bounds: Sequence[np.ndarray]) -> None:
    support = _ROUNDED.get(support, support)
    is_known = support.contains is not None and array.ndim - 2 >= support.event_rank
    if not is_known or not all(broadcasts_to(bound.shape[2:], array.shape[2:]) for bound in bounds):
        return
    for chain, start, x, limits in _pieces(array, bounds):
        possible = _contains(support, x, limits)
        if not possible.all():
            draw, *place = (int(at) for at in np.unravel_index(int(np.argmin(possible)), possible.shape))
            raise InvalidData(
                f"the draws of {node.name} are not all values of its distribution",
                node=node.name,
                index=index,
                expected=support.description,
                found=f"{show_value(x[draw, *place])} at {[chain, start + draw, *place]}",
                hint="the first places are the chain and the draw; predict from draws of this model",
            )


def _contains(support: Support, x: np.ndarray, bounds: Sequence[np.ndarray]) -> np.ndarray:
    """Up to rounding: also where numbers are in the support that are next to these."""
    possible = support.contains(x, *bounds)
    if possible.all() or support in _ROUNDED.values():
        return possible
    scale = np.maximum.reduce(np.broadcast_arrays(*(np.where(np.isfinite(y), abs(y), 0) for y in (x, *bounds))))
    step = np.maximum(_ROUNDING * scale, np.finfo(np.float64).tiny)
    return possible | support.contains(x - step, *bounds) | support.contains(x + step, *bounds)


def _pieces(
    array: np.ndarray, bounds: Sequence[np.ndarray]
) -> Iterator[tuple[int, int, np.ndarray, tuple[np.ndarray, ...]]]:
    """Chain, first draw, some draws of the chain, and their bounds, all of one rank or numbers: little memory."""
    count = max(1, _PIECE * array.shape[1] // max(array[0].size, 1))
    for chain in range(array.shape[0]):
        for start in range(0, array.shape[1], count):

            def part(array: np.ndarray, rank: int) -> np.ndarray:
                piece = array[chain, start : start + count].astype(np.float64)
                return piece.reshape(len(piece), *(1,) * (rank - array.ndim), *piece.shape[1:])

            limits = (bound if bound.ndim == 0 else part(bound, array.ndim) for bound in bounds)
            yield chain, start, part(array, array.ndim), tuple(limits)
