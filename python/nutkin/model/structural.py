"""Operations that move, pick or contract elements: `dot`, `take`, `slice`, `reshape`, `broadcast`, `concatenate`, …"""

from __future__ import annotations

import math

import jax.numpy as jnp
from jax import Array, lax

from nutkin.errors import InvalidModel
from nutkin.model.plan import Operands, Plan, broadcast_shapes, resolve_axes, resolve_axis
from nutkin.model.supports import indices_below
from nutkin.model.types import is_integer, show_shape

DOT_OPTIONS = ("contract_a", "batch_a", "contract_b", "batch_b")


def dot(operands: Operands) -> Plan:
    """Sum of products over the contracted axes; the result has the batch axes, then what is left of a, then of b."""
    a, b = operands.shapes
    merged = operands.merged()
    options = operands.options
    if not any(options.get(name) for name in DOT_OPTIONS) and (a == () or b == ()):
        return Plan(broadcast_shapes((a, b)), merged, (merged, merged), jnp.multiply)
    contract_a, contract_b = _paired_axes(operands, "contract", "contracted", ([len(a) - 1], [max(len(b) - 2, 0)]))
    batch_a, batch_b = _paired_axes(operands, "batch", "batch", ([], []))
    for sort, axes_a, axes_b in (("contracted", contract_a, contract_b), ("batch", batch_a, batch_b)):
        for axis_a, axis_b in zip(axes_a, axes_b, strict=True):
            if a[axis_a] != b[axis_b]:
                raise InvalidModel(
                    f"the {sort} axes of dot must have equal sizes: axis {axis_a} of left, axis {axis_b} of right",
                    expected=f"{a[axis_a]}",
                    found=f"{b[axis_b]}, in shapes {show_shape(a)} and {show_shape(b)}",
                    hint="transpose an operand, or name the axes: dot(left, [axis], right, [axis])",
                )
    for name, contract, batch in (("left", contract_a, batch_a), ("right", contract_b, batch_b)):
        both = set(contract) & set(batch)
        if both:
            raise InvalidModel(
                f"an axis of {name} cannot be contracted and batched", expected="disjoint axes", found=str(sorted(both))
            )
    free_a = tuple(size for axis, size in enumerate(a) if axis not in contract_a + batch_a)
    free_b = tuple(size for axis, size in enumerate(b) if axis not in contract_b + batch_b)
    dimensions = ((contract_a, contract_b), (batch_a, batch_b))

    def run(x: Array, y: Array) -> Array:
        # "highest": on GPUs the default rounds f32 operands to fewer bits.
        return lax.dot_general(x, y, dimensions, precision="highest")

    return Plan(tuple(a[axis] for axis in batch_a) + free_a + free_b, merged, (merged, merged), run)


def _paired_axes(
    operands: Operands, name: str, sort: str, default: tuple[list[int], list[int]]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    options, (a, b) = operands.options, operands.shapes
    left, right = options.get(f"{name}_a"), options.get(f"{name}_b")
    if (left is None) != (right is None) or len(left or ()) != len(right or ()):
        raise InvalidModel(
            f"the {sort} axes of left and right come in pairs",
            expected="two lists of the same length",
            found=f"{left if left is not None else 'nothing'} and {right if right is not None else 'nothing'}",
        )
    axes = default if left is None else (left, right)
    return (
        resolve_axes(axes[0], len(a), f"the list of {sort} axes of left"),
        resolve_axes(axes[1], len(b), f"the list of {sort} axes of right"),
    )


def take(operands: Operands) -> Plan:
    """Elements of x along an axis. Indices that depend on a parameter, and are beyond its ends, are moved to them."""
    x, indices = operands.specs
    if not is_integer(indices.type):
        raise InvalidModel(
            "the indices of take must be integers", expected="an integer type", found=str(indices), hint="use as_type"
        )
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
    strides = operands.options.get("strides", [1] * len(starts))
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
    raise InvalidModel(
        f"slice is outside axis {axis} of size {size}",
        expected=f"some of its {size} entries, and a positive stride",
        found=f"start {start}, length {length}, stride {stride}",
    )


def reshape(operands: Operands) -> Plan:
    """The same elements, row-major, in another shape."""
    spec = operands.first
    shape = tuple(operands.options["shape"])
    if math.prod(shape) != spec.size:
        raise InvalidModel(
            "reshape must keep the number of elements",
            expected=f"{spec.size} elements, as in {show_shape(spec.shape)}",
            found=f"{math.prod(shape)} in {show_shape(shape)}",
        )
    return Plan(shape, spec.type, (spec.type,), lambda x: jnp.reshape(x, shape))


def broadcast(operands: Operands) -> Plan:
    """Repeat along new axes and along those of size 1."""
    spec = operands.first
    shape = tuple(operands.options["shape"])
    rank = len(spec.shape)
    if operands.options.get("axes") is None:
        axes = tuple(range(len(shape) - rank, len(shape)))
    else:
        axes = resolve_axes(operands.options["axes"], len(shape), "axes")
    fits = len(axes) == rank <= len(shape) and all(
        size in (1, shape[axis]) for size, axis in zip(spec.shape, axes, strict=True)
    )
    if not fits:
        raise InvalidModel(
            "the tensor does not broadcast to the shape",
            expected=f"a tensor whose axes are 1 or those of {show_shape(shape)}",
            found=show_shape(spec.shape),
            hint="axes says, for every axis of the tensor, which axis of the result it becomes",
        )
    if list(axes) != sorted(axes):
        raise InvalidModel("axes of broadcast must ascend", expected=str(sorted(axes)), found=str(list(axes)))
    return Plan(shape, spec.type, (spec.type,), lambda x: lax.broadcast_in_dim(x, shape, axes))


def squeeze(operands: Operands) -> Plan:
    """Drop axes of size 1."""
    spec = operands.first
    axes = operands.axes("axes")
    axes = tuple(axis for axis, size in enumerate(spec.shape) if size == 1) if axes is None else axes
    if any(spec.shape[axis] != 1 for axis in axes):
        raise InvalidModel(
            "squeeze removes axes of size 1", expected=f"such axes of {show_shape(spec.shape)}", found=str(list(axes))
        )
    shape = tuple(size for axis, size in enumerate(spec.shape) if axis not in axes)
    return Plan(shape, spec.type, (spec.type,), lambda x: lax.squeeze(x, axes))


def transpose(operands: Operands) -> Plan:
    """Reorder the axes."""
    spec = operands.first
    axes = operands.axes("axes")
    axes = tuple(reversed(range(len(spec.shape)))) if axes is None else axes
    if len(axes) != len(spec.shape):
        raise InvalidModel(
            "axes of transpose must name every axis", expected=f"{len(spec.shape)} axes", found=str(list(axes))
        )
    return Plan(tuple(spec.shape[axis] for axis in axes), spec.type, (spec.type,), lambda x: lax.transpose(x, axes))


def concatenate(operands: Operands) -> Plan:
    """Join along an axis that all have."""
    merged, shapes = operands.merged(), operands.shapes
    axis = resolve_axis(operands.options.get("axis", 0), len(shapes[0]), "axis")
    rests = {shape[:axis] + shape[axis + 1 :] if len(shape) > axis else None for shape in shapes}
    if len(rests) > 1 or len({len(shape) for shape in shapes}) > 1:
        raise InvalidModel(
            f"concatenate needs equal shapes but for axis {axis}",
            expected=f"shapes like {show_shape(shapes[0])}",
            found=", ".join(show_shape(shape) for shape in shapes),
        )
    length = sum(shape[axis] for shape in shapes)
    shape = (*shapes[0][:axis], length, *shapes[0][axis + 1 :])
    return Plan(shape, merged, (merged,) * len(shapes), lambda *xs: lax.concatenate(xs, axis))


def stack(operands: Operands) -> Plan:
    """Join along a new axis."""
    merged, shapes = operands.merged(), operands.shapes
    if len(set(shapes)) > 1:
        raise InvalidModel(
            "stack needs equal shapes",
            expected=show_shape(shapes[0]),
            found=", ".join(show_shape(shape) for shape in shapes),
        )
    axis = resolve_axis(operands.options.get("axis", 0), len(shapes[0]) + 1, "axis")
    shape = (*shapes[0][:axis], len(shapes), *shapes[0][axis:])
    return Plan(shape, merged, (merged,) * len(shapes), lambda *xs: jnp.stack(xs, axis=axis))
