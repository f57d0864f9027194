"""Operations that move, repeat or contract elements: `dot`, `reshape`, `broadcast`, `pad`, `concatenate`, `iota`, …"""

from __future__ import annotations

import math

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from nutkin.errors import InvalidModel
from nutkin.model.plan import Operands, Plan, broadcast_shapes, cast, resolve_axes, resolve_axis
from nutkin.model.types import narrow, show_shape

MAX_ORDER = 64  # of differences, each of which is a step of the program
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
    if () in shapes:
        raise InvalidModel(
            "concatenate joins along an axis, which a number does not have",
            expected="shapes such as {1}",
            found=", ".join(show_shape(shape) for shape in shapes),
            hint="reshape(x, {1}) makes a vector of a number, stack joins numbers",
        )
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
            hint="it joins along a new axis, concatenate along one that there is",
        )
    axis = resolve_axis(operands.options.get("axis", 0), len(shapes[0]) + 1, "axis")
    shape = (*shapes[0][:axis], len(shapes), *shapes[0][axis:])
    return Plan(shape, merged, (merged,) * len(shapes), lambda *xs: jnp.stack(xs, axis=axis))


def iota(operands: Operands) -> Plan:
    """Whole numbers from 0 on: along an axis, or through all elements."""
    options = operands.options
    shape, name = tuple(options["shape"]), narrow(options.get("type", "s32"), precision=operands.precision)
    axis = None if options.get("axis") is None else resolve_axis(options["axis"], len(shape), "axis")

    def run() -> Array:
        if axis is None:
            return cast(jnp.reshape(jnp.arange(math.prod(shape)), shape), name)
        return cast(lax.broadcasted_iota(np.int64, shape, axis), name)

    return Plan(shape, name, (), run)


def reverse(operands: Operands) -> Plan:
    """The entries of axes in the opposite order."""
    spec = operands.first
    axes = operands.axes("axes")
    axes = tuple(range(len(spec.shape))) if axes is None else axes
    return Plan(spec.shape, spec.type, (spec.type,), lambda x: lax.rev(x, axes))


def pad(operands: Operands) -> Plan:
    """Put a value before, behind and between the entries of each axis; negative numbers take entries away."""
    spec, value = operands.specs
    merged, config = operands.merged(), [tuple(entry) for entry in operands.options["padding_config"]]
    if value.shape != ():
        raise InvalidModel("the padding of pad must be a scalar", expected="{}", found=show_shape(value.shape))
    if len(config) != len(spec.shape):
        raise InvalidModel(
            "pad needs an entry [low, high, interior] for each axis",
            expected=f"{len(spec.shape)} entries, for {show_shape(spec.shape)}",
            found=str(len(config)),
        )
    shape = tuple(
        size + low + high + (size - 1) * interior
        for size, (low, high, interior) in zip(spec.shape, config, strict=True)
    )
    if any(size < 1 for size in shape):
        raise InvalidModel(
            "pad leaves nothing of an axis", expected="sizes of at least 1", found=f"the shape {show_shape(shape)}"
        )
    # JAX has no gradient of a number that is padded along no axis.
    return Plan(shape, merged, (merged, merged), lambda x, value: lax.pad(x, value, config) if config else x)


def tile(operands: Operands) -> Plan:
    """The tensor repeated so many times along each axis; further numbers make axes in front."""
    spec, repetitions = operands.first, tuple(operands.options["repetitions"])
    rank = max(len(repetitions), len(spec.shape))
    sizes = (1,) * (rank - len(spec.shape)) + spec.shape
    times = (1,) * (rank - len(repetitions)) + repetitions
    shape = tuple(size * count for size, count in zip(sizes, times, strict=True))
    return Plan(shape, spec.type, (spec.type,), lambda x: jnp.tile(x, repetitions))


def flatten(operands: Operands) -> Plan:
    """Several neighbouring axes as one, all by default."""
    shape = operands.first.shape
    axes = operands.axes("axes")
    axes = tuple(range(len(shape))) if axes is None else axes
    if axes[1:] != tuple(axis + 1 for axis in axes[:-1]) or (shape and not axes):
        raise InvalidModel("axes of flatten must be neighbours", expected="ascending by 1", found=str(list(axes)))
    first, last = (axes[0], axes[-1] + 1) if axes else (0, 0)
    flat = (*shape[:first], math.prod(shape[first:last]), *shape[last:])
    return reshape(Operands(operands.specs, {"shape": flat}, operands.precision))


def new_axis(operands: Operands) -> Plan:
    """An axis of size 1 more, at this place of the result."""
    shape = operands.first.shape
    axis = resolve_axis(operands.options["axis"], len(shape) + 1, "axis")
    return reshape(Operands(operands.specs, {"shape": (*shape[:axis], 1, *shape[axis:])}, operands.precision))


def outer(operands: Operands) -> Plan:
    """The products of all elements of x, as rows, with all of y, as columns."""
    merged, (x, y) = operands.merged(), operands.specs
    return Plan((x.size, y.size), merged, (merged, merged), jnp.outer)


def diff(operands: Operands) -> Plan:
    """The differences of neighbours along an axis, so many times over."""
    spec, order = operands.first, operands.options.get("order", 1)
    axis = resolve_axis(operands.options.get("axis", -1), len(spec.shape), "axis")
    if order > MAX_ORDER:
        raise InvalidModel("diff is of too high an order", expected=f"at most {MAX_ORDER}", found=str(order))
    if not 0 <= order < spec.shape[axis]:
        raise InvalidModel(
            f"axis {axis} has too few entries for differences of the order {order}",
            expected=f"an order from 0 to {spec.shape[axis] - 1}",
            found=str(order),
        )
    shape = (*spec.shape[:axis], spec.shape[axis] - order, *spec.shape[axis + 1 :])

    def run(x: Array) -> Array:
        for _ in range(order):
            x = lax.slice_in_dim(x, 1, None, axis=axis) - lax.slice_in_dim(x, 0, -1, axis=axis)
        return x

    return Plan(shape, spec.type, (spec.type,), run)
