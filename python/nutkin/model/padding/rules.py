"""What becomes of each operation whose operands have axes that grow.

A rule writes the operation on padded operands, such that its result is the same where its entries are, and repeats the
last one behind them. What has no rule, or is met in a way that its rule does not know, is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from nutkin.model import complex_numbers, elementwise, linear_algebra
from nutkin.model.ir import Call
from nutkin.model.padding.axes import Axes, Axis
from nutkin.model.padding.writer import Writer
from nutkin.model.plan import resolve_axes, resolve_axis
from nutkin.model.types import Spec, bits, to_floating


class Mixed(Exception):
    """The operation mixes entries of an axis that grows in a way that padding cannot mend."""


@dataclass(frozen=True)
class Operand:
    """A value in the padded model: its place, its spec there, and the axes of it that grow."""

    place: int
    spec: Spec
    axes: Axes

    @property
    def rank(self) -> int:
        return len(self.spec.shape)


@dataclass(frozen=True)
class Operation:
    """A call to be written on padded operands. `spec`, `axes`: of its result; `precision`: of the model."""

    writer: Writer
    call: Call
    operands: tuple[Operand, ...]
    spec: Spec
    axes: Axes
    precision: str

    @property
    def first(self) -> Operand:
        return self.operands[0]

    @property
    def options(self) -> Mapping[str, Any]:
        return self.call.opts

    def option(self, name: str, default: Any) -> Any:
        value = self.options.get(name)
        return default if value is None else value

    def axis(self, default: int | None) -> int | None:
        """The axis of the first operand that is named."""
        axis = self.option("axis", default)
        return None if axis is None else resolve_axis(axis, self.first.rank, "axis")

    def reduced(self) -> tuple[int, ...]:
        """The axes of the first operand over which it is reduced."""
        return resolve_axes(self.option("axes", range(self.first.rank)), self.first.rank, "axes")

    def growing(self, places: Iterable[int]) -> dict[int, Axis]:
        """Those of these axes of the first operand that grow."""
        return {place: self.first.axes[place] for place in places if place in self.first.axes}

    def kept(self, *first: int) -> int:
        """The same call, with these nodes as its first operands."""
        places = (*first, *(operand.place for operand in self.operands[len(first) :]))
        return self.writer.append(msgspec.structs.replace(self.call, args=places))

    def filled(self, axes: Axes, value: int | float) -> int:
        """The first operand with a number behind its entries along these axes."""
        if not axes:
            return self.first.place
        return self.writer.filled(self.first.place, self.first.spec.shape, axes, self.writer.number(value))


Rule = Callable[[Operation], int]


def _kept(operation: Operation) -> int:
    return operation.kept()


def _where(is_known: Callable[[Operation], bool]) -> Rule:
    """Kept, where this holds."""

    def rule(operation: Operation) -> int:
        if not is_known(operation):
            raise Mixed
        return operation.kept()

    return rule


def _events(*ranks: int) -> Rule:
    """For operations on so many last axes of each operand, which must not grow."""
    return _where(
        lambda operation: all(
            max(operand.axes, default=-1) < operand.rank - rank
            for operand, rank in zip(operation.operands, ranks, strict=True)
        )
    )


def _with_neutral(value: int) -> Rule:
    """Reductions that a number does not change."""
    return lambda operation: operation.kept(operation.filled(operation.growing(operation.reduced()), value))


def _floating(operation: Operation) -> tuple[int, str]:
    """The first operand in a floating type of at least 32 bits, and the type."""
    name = to_floating(operation.first.spec.type, precision=operation.precision)
    return _as_type(operation, operation.first.place, operation.first.spec.type, name if bits(name) >= 32 else "f32")


def _as_type(operation: Operation, x: int, name: str, wanted: str) -> tuple[int, str]:
    return (x if name == wanted else operation.writer.call("as_type", x, type=wanted)), wanted


def _rounded(operation: Operation, x: int, name: str) -> int:
    """A result that was worked out in the type `name`."""
    return _as_type(operation, x, name, operation.spec.type)[0]


def _sum(operation: Operation, x: int, axes: Axes) -> int:
    """The sum of x, of the shape of the first operand, over the axes of the operation."""
    shape, write = operation.first.spec.shape, operation.writer
    options = {name: operation.options[name] for name in ("axes", "keep_axes") if name in operation.options}
    return write.call("sum", write.filled(x, shape, axes, write.number(0)), **options)


def _mean(operation: Operation) -> int:
    axes, write = operation.growing(operation.reduced()), operation.writer
    if not axes:
        return operation.kept()
    x, name = _floating(operation)
    count = write.count(operation.first.spec.shape, axes, operation.reduced())
    return _rounded(operation, write.call("divide", _sum(operation, x, axes), count), name)


def _spread(operation: Operation) -> tuple[int, str] | None:
    """The variance, and the type in which it was worked out; None where nothing grows that is reduced."""
    reduced, write, shape = operation.reduced(), operation.writer, operation.first.spec.shape
    axes = operation.growing(reduced)
    if not axes:
        return None
    (x, name), count = _floating(operation), write.count(shape, axes, reduced)
    filled = write.filled(x, shape, axes, write.number(0))
    mean = write.call("divide", write.call("sum", filled, axes=reduced, keep_axes=True), count)
    distance = write.call("subtract", x, mean)
    total = _sum(operation, write.call("multiply", distance, distance), axes)
    free = write.call("subtract", count, write.number(operation.option("ddof", 0)))
    return write.call("divide", total, free), name


def _variance(operation: Operation) -> int:
    variance = _spread(operation)
    return operation.kept() if variance is None else _rounded(operation, *variance)


def _standard_deviation(operation: Operation) -> int:
    variance, write = _spread(operation), operation.writer
    if variance is None:
        return operation.kept()
    x, name = variance
    # Its derivative at 0 is 0.
    is_zero = write.call("equal", x, write.number(0))
    root = write.call("sqrt", write.call("select", is_zero, write.number(1), x))
    return _rounded(operation, write.call("select", is_zero, write.number(0), root), name)


def _logsumexp(operation: Operation) -> int:
    axes, write = operation.growing(operation.reduced()), operation.writer
    if not axes:
        return operation.kept()
    name = to_floating(operation.first.spec.type, precision=operation.precision)
    x, _ = _as_type(operation, operation.first.place, operation.first.spec.type, name)
    nothing, _ = _as_type(operation, write.call("log", write.number(0.0)), operation.precision, name)
    return operation.kept(write.filled(x, operation.first.spec.shape, axes, nothing))


def _cumulative(value: int) -> Rule:
    """Those that a number does not change; in reverse, what is behind the last entry comes first."""

    def rule(operation: Operation) -> int:
        axes = operation.growing((operation.axis(0),))
        result = operation.kept(operation.filled(axes, value))
        if axes and operation.option("reverse", False):
            return operation.writer.repeating(result, operation.spec.shape, axes)
        return result

    return rule


def _dot(operation: Operation) -> int:
    left, right = operation.operands
    if not left.spec.shape or not right.spec.shape:
        return operation.kept()
    contracted = operation.option("contract_a", (left.rank - 1,))
    return operation.kept(operation.filled(operation.growing(resolve_axes(contracted, left.rank, "contract_a")), 0))


def _norm(operation: Operation) -> int:
    axes = operation.growing(operation.reduced())
    if axes and operation.options.get("ord") is not None:
        raise Mixed
    return operation.kept(operation.filled(axes, 0))


def _extreme(operation: Operation) -> bool:
    """Of equal entries the first is told, which is not behind the others."""
    axis, is_first = operation.axis(None), operation.option("tie_break", "low") == "low"
    if axis is None:
        return is_first and max(operation.first.axes) == 0
    return is_first or axis not in operation.first.axes


def _along(axis: int | None) -> Rule:
    """For operations along one axis, all by default if that is None."""
    return _where(lambda operation: operation.axis(axis) is not None and not operation.growing((operation.axis(axis),)))


def _places_grow(operation: Operation) -> bool:
    """Whether of indices {…, k} the last axis is fixed."""
    indices = operation.operands[1]
    return indices.rank - 1 not in indices.axes


def _taken_along(operation: Operation) -> bool:
    x, indices = operation.operands
    axis = operation.axis(0)
    return all(x.axes.get(place) == grown for place, grown in indices.axes.items() if place != axis)


def _indexed_add(operation: Operation) -> int:
    x, indices, updates = operation.operands
    if x.axes or not _places_grow(operation):
        raise Mixed
    write = operation.writer
    added = write.filled(updates.place, updates.spec.shape, updates.axes, write.number(0))
    return operation.kept(x.place, indices.place, added)


def _slice(operation: Operation) -> int:
    """Entries in front are there. Those counted from the end are taken by their indices."""
    write, first = operation.writer, operation.first
    starts, lengths = list(operation.options["starts"]), list(operation.options["lengths"])
    strides = operation.option("strides", 1)
    strides = [strides] * len(starts) if isinstance(strides, int) else list(strides)
    at_the_end, shortened = {}, {}
    for place, axis in first.axes.items():
        if place >= len(starts) or (starts[place] >= 0 and lengths[place] > 0):
            continue
        start, length, stride = starts[place], lengths[place], strides[place]
        if start < 0:
            count = length if length > 0 else length - start
            at_the_end[place] = (axis, start, range(0, count, stride))
            starts[place], lengths[place], strides[place] = 0, 0, 1
        elif stride != 1:
            raise Mixed
        elif length < 0:
            shortened[place] = operation.axes[place]
    result = write.call("slice", first.place, starts=starts, lengths=lengths, strides=strides)
    for place, (axis, start, steps) in at_the_end.items():
        index = write.call("iota", shape=(len(steps),), type="s64")
        index = write.call("multiply", index, write.number(steps.step))
        index = write.call("add", index, write.length(Axis(axis.name, axis.surplus + start)))
        result = write.call("take", result, index, axis=place)
    return write.repeating(result, operation.spec.shape, shortened)


def _beyond_windows(operation: Operation) -> bool:
    return min(operation.first.axes) >= len(operation.options["lengths"])


def _concatenate(operation: Operation) -> bool:
    """Nothing may come behind what grows."""
    axis = operation.axis(0)
    return all(axis not in operand.axes for operand in operation.operands[:-1])


def _pad(operation: Operation) -> int:
    config = operation.options["padding_config"]
    if any(config[place][1] > 0 or config[place][2] for place in operation.first.axes):
        raise Mixed
    shortened = {place: axis for place, axis in operation.axes.items() if config[place][1] < 0}
    return operation.writer.repeating(operation.kept(), operation.spec.shape, shortened)


def _diff(operation: Operation) -> int:
    axis = operation.axis(-1)
    shortened = {axis: operation.axes[axis]} if axis in operation.axes else {}
    return operation.writer.repeating(operation.kept(), operation.spec.shape, shortened)


def _tile(operation: Operation) -> bool:
    times = tuple(operation.options["repetitions"])
    times = (1,) * (operation.first.rank - len(times)) + times
    offset = len(times) - operation.first.rank
    return all(times[place + offset] == 1 for place in operation.first.axes)


def _reverse(operation: Operation) -> bool:
    return not operation.growing(operation.reduced())


def _outer(operation: Operation) -> bool:
    return all(not operand.axes or operand.rank == 1 for operand in operation.operands)


_ELEMENTWISE = (
    *(*elementwise.BINARY, *elementwise.UNARY, *elementwise.TERNARY, *complex_numbers.UNARY),
    *("complex", "stop_gradient", "as_type", "bitcast", "select", "clip"),
)
# Entries that are repeated change none of these; their places are those of the entries that are there.
_UNCHANGED = ("reduce_max", "reduce_min", "all", "any", "all_close", "cumulative_max", "cumulative_min", "take")
_MOVED = ("squeeze", "transpose", "flatten", "new_axis", "stack")

RULES: dict[str, Rule] = {
    **dict.fromkeys((*_ELEMENTWISE, *_UNCHANGED, *_MOVED), _kept),
    "sum": _with_neutral(0),
    "product": _with_neutral(1),
    "mean": _mean,
    "variance": _variance,
    "standard_deviation": _standard_deviation,
    "logsumexp": _logsumexp,
    "norm": _norm,
    "cumulative_sum": _cumulative(0),
    "cumulative_product": _cumulative(1),
    "dot": _dot,
    "outer": _where(_outer),
    "argmax": _where(_extreme),
    "argmin": _where(_extreme),
    "sort": _along(0),
    "argsort": _along(0),
    "median": _along(None),
    "quantile": _along(None),
    "top_k": _events(1),
    "take_along_axis": _where(_taken_along),
    "gather": _where(_places_grow),
    "indexed_add": _indexed_add,
    "slice": _slice,
    "dynamic_slice": _where(_beyond_windows),
    "concatenate": _where(_concatenate),
    "pad": _pad,
    "diff": _diff,
    "tile": _where(_tile),
    "reverse": _where(_reverse),
    **dict.fromkeys((*linear_algebra.UNARY, "matrix_power", "trace", "take_diagonal", "tril", "triu"), _events(2)),
    **dict.fromkeys(("solve", "triangular_solve", "kron"), _events(2, 2)),
    "make_diagonal": _events(1),
    "put_diagonal": _events(2, 1),
}
