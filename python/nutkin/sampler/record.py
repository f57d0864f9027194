"""All that a chain is between two calls, as one value that is never changed; and its form as plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from nutkin.errors import InvalidCheckpoint
from nutkin.sampler.metric import Metric
from nutkin.sampler.moments import Collected, Moments


@dataclass(frozen=True)
class Record:
    """`packed` (22 + 4 d,): its state as of `nutkin.sampler.state`; `metric`: what it learned, None before that;
    `done`, `sent`: iterations made and draws kept, of the warmup and of the sampling; `in_window`, `collected`,
    `statistics` (n, 7) each: of the window that it is in; `divergences_before`: of this phase, before that window."""

    packed: np.ndarray
    metric: Metric | None
    done: tuple[int, int]
    sent: tuple[int, int]
    gradients: int
    divergences: int
    divergences_before: int
    in_window: int
    collected: Collected
    statistics: tuple[np.ndarray, ...]


_COUNTS = ("gradients", "divergences", "divergences_before", "in_window")


def to_tree(record: Record) -> dict[str, Any]:
    """Plain data and arrays, without the metric, which chains may share."""
    whole, rest = record.collected.whole, record.collected.rest
    return {
        "packed": record.packed,
        "done": [*record.done],
        "sent": [*record.sent],
        **{name: getattr(record, name) for name in _COUNTS},
        "moments": whole and {field.name: getattr(whole, field.name) for field in fields(Moments)},
        "rows": [*rest],
        "statistics": [*record.statistics],
    }


def from_tree(tree: Any, metric: Metric | None, dimension: int, packed_size: int, columns: int) -> Record:
    """The inverse, for a model of so many coordinates, with so many `columns` of statistics. Errors:
    InvalidCheckpoint."""
    entries = mapping(tree, "a chain")
    counts = {name: count(entries.get(name), name) for name in _COUNTS}
    done, sent = (pair(entries.get(name), name) for name in ("done", "sent"))
    rows = [array(one, "rows", (None, 2 * dimension)) for one in sequence(entries.get("rows"), "rows")]
    statistics = [
        array(one, "statistics", (None, columns)) for one in sequence(entries.get("statistics"), "statistics")
    ]
    whole = entries.get("moments")
    if whole is not None:
        found = mapping(whole, "moments")
        products = found.get("products")
        whole = Moments(
            count(found.get("count"), "moments.count"),
            array(found.get("mean"), "moments.mean", (2 * dimension,)),
            array(found.get("squares"), "moments.squares", (2 * dimension,)),
            products if products is None else array(products, "moments.products", (dimension, dimension)),
        )
    packed = array(entries.get("packed"), "packed", (packed_size,))
    if metric is not None and not (np.isfinite(metric.inverse_mass).all() and (metric.inverse_mass > 0).all()):
        raise wrong("inverse_mass", "numbers above 0")
    return Record(packed, metric, done, sent, **counts, collected=Collected(whole, (*rows,)), statistics=(*statistics,))


# Reading what came from outside: each names what is wrong.


def wrong(what: str, expected: str) -> InvalidCheckpoint:
    return InvalidCheckpoint(f"the checkpoint is damaged: `{what}` cannot be read", expected=expected)


def mapping(value: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise wrong(what, "a map")
    return value


def sequence(value: Any, what: str, length: int | None = None) -> Sequence[Any]:
    if not isinstance(value, (list, tuple)) or (length is not None and len(value) != length):
        raise wrong(what, "a list" if length is None else f"a list of {length}")
    return value


def count(value: Any, what: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**62:
        raise wrong(what, "a count")
    return value


def number(value: Any, what: str) -> float:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise wrong(what, "a number")
    return float(value)


def pair(value: Any, what: str) -> tuple[int, int]:
    first, second = sequence(value, what, 2)
    return count(first, what), count(second, what)


def array(value: Any, what: str, shape: tuple[int | None, ...], dtype: Any = np.float64) -> np.ndarray:
    """An array of this type and shape, None in which stands for any size."""
    fits = (
        isinstance(value, np.ndarray)
        and value.dtype == dtype
        and value.ndim == len(shape)
        and all(wanted in (None, found) for wanted, found in zip(shape, value.shape, strict=True))
    )
    if not fits:
        raise wrong(what, f"an array of {np.dtype(dtype)} {shape}")
    return value
