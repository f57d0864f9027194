"""Operations on all windows of a tensor: sums, products, extremes and means of them, and convolutions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from functools import reduce

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from nutkin.errors import InvalidModel
from nutkin.model.plan import Operands, Plan, Planner, cast, widened
from nutkin.model.types import bits, is_integer, show_shape

WINDOW_OPTIONS = ("strides", "padding", "window_dilations")
CONV_OPTIONS = (
    "strides",
    "padding",
    "input_dilation",
    "kernel_dilation",
    "feature_group_size",
    "batch_group_size",
    "input_permutation",
    "kernel_permutation",
    "output_permutation",
)
PADDINGS = ("valid", "same")
MAX_PRODUCT = 4096  # elements of a window of a product, each of which is a step of the program


def _per_axis(operands: Operands, option: str, count: int) -> tuple[int, ...]:
    """An entry for each axis; one number is for all."""
    value = operands.options.get(option, 1)
    entries = (value,) * count if isinstance(value, int) else tuple(value)
    if len(entries) != count or any(entry < 1 for entry in entries):
        raise InvalidModel(
            f"{option} needs a positive integer for each axis", expected=f"{count} of them", found=str(list(entries))
        )
    return entries


def _padding(operands: Operands, spans: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """What is put before and behind each axis; `same` keeps the sizes of axes with windows of these spans."""
    padding = operands.options.get("padding", "valid")
    if padding == "valid":
        return ((0, 0),) * len(spans)
    if padding == "same":
        return tuple(((span - 1) // 2, span // 2) for span in spans)
    if len(padding) != len(spans):
        raise InvalidModel(
            "padding needs a pair [low, high] for each axis", expected=f"{len(spans)} pairs", found=str(len(padding))
        )
    return tuple((low, high) for low, high in padding)


def _spans(sizes: Sequence[int], dilations: Sequence[int]) -> tuple[int, ...]:
    return tuple((size - 1) * dilation + 1 for size, dilation in zip(sizes, dilations, strict=True))


def _places(
    of: str, shape: Sequence[int], spans: Sequence[int], strides: Sequence[int], padding: Sequence[tuple[int, int]]
) -> tuple[int, ...]:
    """How many windows there are along each axis."""
    padded = [size + low + high for size, (low, high) in zip(shape, padding, strict=True)]
    if any(span > size for span, size in zip(spans, padded, strict=True)):
        raise InvalidModel(
            f"the window of {of} is larger than the tensor",
            expected=f"at most {show_shape(tuple(padded))}, padding included",
            found=show_shape(tuple(spans)),
        )
    return tuple((size - span) // stride + 1 for size, span, stride in zip(padded, spans, strides, strict=True))


def _window(
    name: str, combine: Callable[[Array, Array], Array], neutral: Callable[[np.dtype], object], *, mean: bool = False
) -> Planner:
    """What all elements of a window combine to; where it is beyond the tensor there are neutral ones."""

    def plan(operands: Operands) -> Plan:
        spec, window = operands.first, tuple(operands.options["window"])
        if len(window) != len(spec.shape):
            raise InvalidModel(
                f"{name} needs the size of the window along each axis",
                expected=f"{len(spec.shape)} sizes, for {show_shape(spec.shape)}",
                found=str(list(window)),
            )
        if combine is lax.mul and math.prod(window) > MAX_PRODUCT:
            expected, found = f"at most {MAX_PRODUCT} elements", show_shape(window)
            raise InvalidModel(f"the window of {name} is too large", expected=expected, found=found)
        rank = len(window)
        strides, dilations = _per_axis(operands, "strides", rank), _per_axis(operands, "window_dilations", rank)
        spans = _spans(window, dilations)
        padding = _padding(operands, spans)
        shape = _places(name, spec.shape, spans, strides, padding)
        result = operands.floating() if mean else spec.type
        # Types of less than a byte in a larger one, whose low bits are the result of sums and products.
        computed = result if bits(result) >= 8 or not is_integer(result) else "s32"
        count = math.prod(window) if mean else 1

        def run(x: Array) -> Array:
            start = np.asarray(neutral(x.dtype), x.dtype)
            if combine is lax.mul:  # JAX differentiates windows of sums and extremes alone
                return cast(_product(lax.pad(x, start, [(*pair, 0) for pair in padding])), result)
            total = lax.reduce_window(x, start, combine, window, strides, padding, None, dilations)
            return cast(total / count if mean else total, result)

        def _product(x: Array) -> Array:
            corners = itertools.product(*(range(size) for size in window))
            starts = [[i * step for i, step in zip(corner, dilations, strict=True)] for corner in corners]
            return reduce(combine, (_part(x, start) for start in starts))

        def _part(x: Array, start: Sequence[int]) -> Array:
            limits = [s + (n - 1) * stride + 1 for s, n, stride in zip(start, shape, strides, strict=True)]
            return lax.slice(x, start, limits, strides)

        return Plan(shape, result, (computed,), run)

    return plan


def _lowest(dtype: np.dtype) -> object:
    return -np.inf if jnp.issubdtype(dtype, jnp.floating) else jnp.iinfo(dtype).min


def _highest(dtype: np.dtype) -> object:
    return np.inf if jnp.issubdtype(dtype, jnp.floating) else jnp.iinfo(dtype).max


@widened
def conv(operands: Operands) -> Plan:
    """Convolution of x {n, c, …} with a kernel {o, c, …}, as `Nx.conv/3`: axes are permuted to these first."""
    floating, options = operands.floating(), operands.options
    rank = len(operands.first.shape)
    if rank < 3 or len(operands.shapes[1]) != rank:
        raise InvalidModel(
            "conv needs a batch, channels and some further axes, and a kernel of as many",
            expected="shapes {n, c, …} and {o, c, …}",
            found=" and ".join(map(show_shape, operands.shapes)),
        )
    orders = [_permutation(operands, option, rank) for option in ("input", "kernel", "output")]
    x, kernel = (tuple(shape[axis] for axis in order) for shape, order in zip(operands.shapes, orders[:2], strict=True))
    features, batches = options.get("feature_group_size", 1), options.get("batch_group_size", 1)
    if x[1] != kernel[1] * features or kernel[0] % features or x[0] % batches or kernel[0] % batches:
        raise InvalidModel(
            "the channels of x and of the kernel of conv do not fit",
            expected="the channels of the kernel, times feature_group_size; batch and outputs multiples of the groups",
            found=f"{show_shape(x)} and {show_shape(kernel)}, groups {features} and {batches}",
        )
    strides, spread, dilation = (
        _per_axis(operands, option, rank - 2) for option in ("strides", "input_dilation", "kernel_dilation")
    )
    spans = _spans(kernel[2:], dilation)
    padding = _padding(operands, spans)
    places = _places("conv", _spans(x[2:], spread), spans, strides, padding)
    result = (x[0] // batches, kernel[0], *places)

    def run(x: Array, kernel: Array) -> Array:
        y = lax.conv_general_dilated(
            lax.transpose(x, orders[0]), lax.transpose(kernel, orders[1]), strides, padding, spread, dilation,
            feature_group_count=features, batch_group_count=batches, precision="highest",
        )  # fmt: skip
        return lax.transpose(y, np.argsort(orders[2]))

    return Plan(tuple(result[axis] for axis in np.argsort(orders[2])), floating, (floating, floating), run)


def _permutation(operands: Operands, of: str, rank: int) -> tuple[int, ...]:
    order = tuple(operands.options.get(f"{of}_permutation", range(rank)))
    if sorted(order) != list(range(rank)):
        raise InvalidModel(
            f"{of}_permutation must name every axis",
            expected=f"the numbers from 0 to {rank - 1}",
            found=str(list(order)),
        )
    return order


WINDOWS: dict[str, Planner] = {
    "window_sum": _window("window_sum", lax.add, lambda dtype: 0),
    "window_product": _window("window_product", lax.mul, lambda dtype: 1),
    "window_max": _window("window_max", lax.max, _lowest),
    "window_min": _window("window_min", lax.min, _highest),
    "window_mean": widened(_window("window_mean", lax.add, lambda dtype: 0, mean=True)),
}
