"""Operations that pick or replace entries by their places: `take`, `slice`, `gather`, `put_slice`, `indexed_add`, …

Places that depend on no parameter must lie within their axes, or it is an error; others are moved into them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import jax.numpy as jnp
from jax import Array, lax

from nutkin.errors import InvalidModel
from nutkin.model.plan import Operands, Plan, Planner, resolve_axis
from nutkin.model.supports import Support, indices_below, places_below
from nutkin.model.types import Spec, is_integer, show_shape


def _check_integers(what: str, spec: Spec) -> None:
    if not is_integer(spec.type):
        raise InvalidModel(f"{what} must be integers", expected="an integer type", found=str(spec), hint="use as_type")


def _within(indices: Array, size: int) -> Array:
    return jnp.clip(indices, 0, size - 1)


def take(operands: Operands) -> Plan:
    """Elements of x along an axis. Indices that depend on a parameter, and are beyond its ends, are moved to them."""
    x, indices = operands.specs
    _check_integers("the indices of take", indices)
    axis = resolve_axis(operands.options.get("axis", 0), len(x.shape), "axis")
    shape = x.shape[:axis] + indices.shape + x.shape[axis + 1 :]
    casts, supports = (x.type, indices.type), {1: indices_below(x.shape[axis])}
    if indices.literal is not None:
        return Plan(
            shape, x.type, casts, lambda x, _: lax.index_in_dim(x, indices.literal, axis, keepdims=False), supports
        )
    return Plan(shape, x.type, casts, lambda x, i: jnp.take(x, i, axis=axis, mode="clip"), supports)


def slice(operands: Operands) -> Plan:
    """A window of x, with strides; it must lie within x."""
    spec = operands.first
    starts, lengths = operands.options["starts"], operands.options["lengths"]
    strides = _strides(operands, len(starts))
    if not len(starts) == len(lengths) == len(strides):
        raise InvalidModel(
            "slice needs starts, lengths and strides for the same axes",
            expected="three lists of the same length",
            found=f"{list(starts)}, {list(lengths)} and {list(strides)}",
        )
    if len(starts) > len(spec.shape):
        raise InvalidModel(
            "slice names more axes than there are",
            expected=f"at most {len(spec.shape)}, those of {show_shape(spec.shape)}",
            found=str(len(starts)),
            hint="a list in brackets has an entry for each axis; take picks the entries at a list of indices",
        )
    bounds = [
        _bounds(axis, spec.shape[axis], *entry) for axis, entry in enumerate(zip(starts, lengths, strides, strict=True))
    ]
    bounds += [(0, size, 1) for size in spec.shape[len(starts) :]]
    firsts, limits, steps = ([bound[i] for bound in bounds] for i in range(3))
    shape = tuple(math.ceil((limit - first) / step) for first, limit, step in bounds)
    return Plan(shape, spec.type, (spec.type,), lambda x: lax.slice(x, firsts, limits, steps))


def _strides(operands: Operands, count: int) -> Sequence[int]:
    strides = operands.options.get("strides", 1)
    return [strides] * count if isinstance(strides, int) else strides


def _bounds(axis: int, size: int, start: int, length: int, stride: int) -> tuple[int, int, int]:
    """-> (first, limit, stride): a start that counts from the end and a length that leaves some out, resolved."""
    first = start + size if start < 0 else start
    limit = first + length if length > 0 else size + length
    if 0 <= first < limit <= size and stride >= 1:
        return first, limit, stride
    if length == stride == 1:
        raise InvalidModel(
            f"index {start} is outside axis {axis} of size {size}",
            expected=f"an index from 0 to {size - 1}, or from {-size} to -1, which count from the end",
            found=str(start),
        )
    last = start + length - 1 if length > 0 else length - 1
    raise InvalidModel(
        f"slice is outside axis {axis} of size {size}",
        expected=f"entries from 0 to {size - 1}, and a positive stride",
        found=f"{start}..{last}" + (f"//{stride}" if stride != 1 else ""),
    )


def dynamic_slice(operands: Operands) -> Plan:
    """A window of x at starts that are values; the lengths are those before the strides."""
    x, *starts = operands.specs
    lengths = operands.options["lengths"]
    strides = _strides(operands, len(lengths))
    if not len(starts) == len(lengths) == len(strides) <= len(x.shape):
        raise InvalidModel(
            "dynamic_slice needs starts, lengths and strides for the same axes",
            expected=f"as many of each, at most {len(x.shape)}",
            found=f"{len(starts)} starts, {list(lengths)} and {list(strides)}",
        )
    sizes = (*lengths, *x.shape[len(lengths) :])
    steps = (*strides, *(1 for _ in x.shape[len(lengths) :]))
    for axis, (size, length, step) in enumerate(zip(x.shape, sizes, steps, strict=True)):
        if not 1 <= length <= size or step < 1:
            raise InvalidModel(
                f"dynamic_slice is longer than axis {axis} of size {size}",
                expected=f"a length from 1 to {size}, and a positive stride",
                found=f"length {length}, stride {step}",
            )
    shape = tuple(math.ceil(length / step) for length, step in zip(sizes, steps, strict=True))

    def run(x: Array, *starts: Array) -> Array:
        window = lax.dynamic_slice(x, _moved(starts, x.shape, sizes), sizes)
        return lax.slice(window, (0,) * len(sizes), sizes, steps)

    casts = (x.type, *("s64",) * len(starts))
    return Plan(shape, x.type, casts, run, _starts_within("dynamic_slice", starts, x.shape, sizes, place=1))


def put_slice(operands: Operands) -> Plan:
    """x with a window replaced by the last operand; the starts are between the two."""
    if len(operands.specs) < 2:
        raise InvalidModel(
            "wrong number of operands", expected="x, starts and an update", found=str(len(operands.specs))
        )
    x, *starts, update = operands.specs
    merged = Operands((x, update), {}, operands.precision).merged()
    if len(starts) > len(x.shape) or len(update.shape) != len(x.shape):
        raise InvalidModel(
            "put_slice needs starts for axes of x, and an update of as many axes as x",
            expected=f"at most {len(x.shape)} starts, and an update like {show_shape(x.shape)}",
            found=f"{len(starts)} starts, and an update {show_shape(update.shape)}",
        )
    if any(length > size for length, size in zip(update.shape, x.shape, strict=True)):
        raise InvalidModel(
            "the update of put_slice is larger than the tensor",
            expected=f"sizes of at most {show_shape(x.shape)}",
            found=show_shape(update.shape),
        )

    def run(x: Array, *rest: Array) -> Array:
        return lax.dynamic_update_slice(x, rest[-1], _moved(rest[:-1], x.shape, update.shape))

    casts = (merged, *("s64",) * len(starts), merged)
    return Plan(x.shape, merged, casts, run, _starts_within("put_slice", starts, x.shape, update.shape, place=1))


def _moved(starts: Sequence[Array], shape: Sequence[int], lengths: Sequence[int]) -> list[Array]:
    """A start for each axis, 0 for those that have none, so that the window lies within."""
    rooms = [size - length + 1 for size, length in zip(shape, lengths, strict=True)]
    given = [_within(start, room) for start, room in zip(starts, rooms, strict=False)]
    return given + [jnp.zeros((), jnp.int64)] * (len(rooms) - len(given))


def _starts_within(
    of: str, starts: Sequence[Spec], shape: Sequence[int], lengths: Sequence[int], *, place: int
) -> dict[int, Support]:
    for start in starts:
        _check_integers(f"the starts of {of}", start)
        if start.shape != ():
            raise InvalidModel(f"the starts of {of} must be scalars", expected="{}", found=show_shape(start.shape))
    rooms = (size - length + 1 for size, length in zip(shape, lengths, strict=True))
    return {place + i: indices_below(room) for i, (room, _) in enumerate(zip(rooms, starts, strict=False))}


def take_along_axis(operands: Operands) -> Plan:
    """For each place of the indices, the element of x there, but along the axis at the index."""
    x, indices = operands.specs
    _check_integers("the indices of take_along_axis", indices)
    axis = resolve_axis(operands.options.get("axis", 0), len(x.shape), "axis")
    fits = len(indices.shape) == len(x.shape) and all(
        other == axis or length <= size for other, (length, size) in enumerate(zip(indices.shape, x.shape, strict=True))
    )
    if not fits:
        raise InvalidModel(
            f"the indices of take_along_axis must have the axes of x, but for the size of axis {axis}",
            expected=show_shape(tuple(None if other == axis else size for other, size in enumerate(x.shape))),
            found=show_shape(indices.shape),
        )
    limits = tuple(
        size if other == axis else length
        for other, (length, size) in enumerate(zip(indices.shape, x.shape, strict=True))
    )

    def run(x: Array, i: Array) -> Array:
        part = lax.slice(x, (0,) * len(limits), limits)
        return jnp.take_along_axis(part, _within(i, limits[axis]), axis, mode="promise_in_bounds")

    return Plan(indices.shape, x.type, (x.type, "s64"), run, {1: indices_below(x.shape[axis])})


def gather(operands: Operands) -> Plan:
    """The entries of x at tuples of indices, the last axis of the indices, for the axes named, the first by default."""
    x, indices = operands.specs
    axes = _indexed_axes("gather", operands)
    rest = tuple(size for axis, size in enumerate(x.shape) if axis not in axes)
    sizes = tuple(x.shape[axis] for axis in axes)

    def run(x: Array, indices: Array) -> Array:
        return jnp.moveaxis(x, axes, range(len(axes)))[_places(indices, sizes)]

    return Plan(indices.shape[:-1] + rest, x.type, (x.type, "s64"), run, {1: places_below(sizes)})


def _indexed(of: str, function: Callable[[Array, tuple[Array, ...], Array], Array]) -> Planner:
    """x with entries changed: indices {n, k} for k axes, updates {n, …} with the others."""

    def plan(operands: Operands) -> Plan:
        x, indices, updates = operands.specs
        axes = _indexed_axes(of, operands)
        merged = Operands((x, updates), {}, operands.precision).merged()
        sizes = tuple(x.shape[axis] for axis in axes)
        expected = indices.shape[:-1] + tuple(size for axis, size in enumerate(x.shape) if axis not in axes)
        if updates.shape != expected:
            raise InvalidModel(
                f"the updates of {of} must have an entry for each tuple of indices, of the other axes of x",
                expected=show_shape(expected),
                found=show_shape(updates.shape),
            )

        def run(x: Array, indices: Array, updates: Array) -> Array:
            front = jnp.moveaxis(x, axes, range(len(axes)))
            return jnp.moveaxis(function(front, _places(indices, sizes), updates), range(len(axes)), axes)

        return Plan(x.shape, merged, (merged, "s64", merged), run, {1: places_below(sizes)})

    return plan


def _indexed_axes(of: str, operands: Operands) -> tuple[int, ...]:
    x, indices = operands.specs[:2]
    _check_integers(f"the indices of {of}", indices)
    count = indices.shape[-1] if indices.shape else 0
    axes = operands.axes("axes")
    axes = tuple(range(min(count, len(x.shape)))) if axes is None else axes
    if not 1 <= count == len(axes) <= len(x.shape) or list(axes) != sorted(axes):
        raise InvalidModel(
            f"the last axis of the indices of {of} has an index for each axis named, and axes ascend",
            expected=f"a shape {{…, k}}, k from 1 to {len(x.shape)}" + (f", here {len(axes)}" if axes else ""),
            found=f"{show_shape(indices.shape)} for the axes {list(axes)}",
        )
    return axes


def _places(indices: Array, sizes: Sequence[int]) -> tuple[Array, ...]:
    return tuple(_within(indices[..., place], size) for place, size in enumerate(sizes))


indexed_add = _indexed("indexed_add", lambda x, places, updates: x.at[places].add(updates, mode="promise_in_bounds"))
indexed_put = _indexed("indexed_put", lambda x, places, updates: x.at[places].set(updates, mode="promise_in_bounds"))
