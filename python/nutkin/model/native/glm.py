"""Log likelihood of a generalised linear model and its gradient, in one pass over the rows.

    eta_i = intercept + X_i beta + sum over groups of coefficient[index_i] (* scale_i) + offset_i

The gradient with respect to the intercept, beta, the group coefficients and the family's own parameter is computed
together with the value; the backward pass only scales it. The pass consists of elementwise loops over blocks of rows
(see `rows`), so XLA:CPU can make it part of one native function.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from nutkin.model.native.elementary import normal_log
from nutkin.model.native.families import FAMILIES
from nutkin.model.native.loops import add_at, repeat, row
from nutkin.model.native.rows import Layout as Layout
from nutkin.model.native.rows import prepare as prepare

_COLUMNS_AT_ONCE = 8  # terms of the linear predictor that are added in registers before the sum is stored
_LANES_KEPT = 16  # lanes of the accumulated gradient of the design's coefficients
_MAX_DOUBLINGS = {"float64": 1000, "float32": 120}  # factors of at most 2 whose product cannot overflow


class Gradient(NamedTuple):
    intercept: Array
    beta: Array
    groups: tuple[Array, ...]
    extra: Array | None


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def log_likelihood(
    layout: Layout,
    prepared: tuple[Array, ...],
    intercept: Array,
    beta: Array,
    groups: tuple[Array, ...] = (),
    extra: Array | None = None,
) -> Array:
    """Scalar log likelihood, without terms that depend on the response only.

    intercept (), beta (columns,), groups a (J,) for each group effect; extra () is sigma of "normal", alpha of
    "neg_binomial", None elsewhere. `prepared` is what `prepare` returned for this layout. Differentiable in reverse
    mode, once, in all but the layout and the data."""
    return _value_and_gradient(layout, prepared, intercept, beta, groups, extra)[0]


def _forward(layout, prepared, intercept, beta, groups, extra):
    return _value_and_gradient(layout, prepared, intercept, beta, groups, extra)


def _backward(layout, gradient, cotangent):
    return None, *jax.tree.map(lambda g: cotangent * g, tuple(gradient))


log_likelihood.defvjp(_forward, _backward)


def _value_and_gradient(layout, prepared, intercept, beta, groups, extra) -> tuple[Array, Gradient]:
    family = FAMILIES[layout.family]
    data = dict(zip(layout.fields, prepared, strict=True))
    by_row = {name: array for name, array in data.items() if array.shape == (layout.blocks, layout.lanes)}
    coefficients = jnp.concatenate([intercept[None], beta])
    # The last coefficient of a group belongs to the padding.
    tables = [jnp.concatenate([table, jnp.zeros(1, table.dtype)]) for table in groups]

    def block(b, carry):
        sums, product, design_gradient, group_gradients = carry
        rows = {name: row(array, b) for name, array in by_row.items()}
        eta = _linear_predictor(layout, data["design"], b, coefficients)
        if layout.offset:
            eta = eta + rows["offset"]
        for g, table in enumerate(tables):
            effect = table.at[rows[f"index_{g}"]].get(mode="promise_in_bounds")
            eta = eta + _scaled(rows, g, effect)
        residual, terms, factor = family.row(lax.optimization_barrier(eta), rows, extra)
        # Without a barrier the residual would be computed again for every column.
        residual = lax.optimization_barrier(residual)
        group_gradients = tuple(
            add_at(total, _scaled(rows, g, residual), rows[f"index_{g}"]) for g, total in enumerate(group_gradients)
        )
        return (
            tuple(total + term for total, term in zip(sums, terms, strict=True)),
            product if factor is None else product * factor,
            _add_columns(design_gradient, row(data["design"], b), residual),
            group_gradients,
        )

    dtype = layout.dtype
    start = (
        (jnp.zeros(layout.lanes, dtype),) * family.terms,
        jnp.ones(layout.lanes, dtype),
        jnp.zeros((layout.columns + 1, _LANES_KEPT), dtype),
        tuple(jnp.zeros_like(table) for table in tables),
    )
    (sums, log_product, design_gradient, group_gradients) = _over_blocks(layout, block, start)
    design_gradient = jnp.sum(design_gradient, 1)
    value, scale, extra_gradient = family.finish(
        layout, [jnp.sum(s) for s in sums], design_gradient[0], log_product, data, extra
    )
    if scale is not None:
        design_gradient = scale * design_gradient
        group_gradients = tuple(scale * gradient for gradient in group_gradients)
    groups = tuple(gradient[:-1] for gradient in group_gradients)
    return value, Gradient(design_gradient[0], design_gradient[1:], groups, extra_gradient)


def _scaled(rows, g: int, values: Array) -> Array:
    return values * rows[f"scale_{g}"] if f"scale_{g}" in rows else values


def _over_blocks(layout: Layout, block, carry):
    """The carry after all blocks, with the log of the product in the place of the product (a scalar)."""
    limit = _MAX_DOUBLINGS[layout.dtype]

    def stretch(first, last, carry):
        sums, _, *gradients = carry
        sums, product, *gradients = repeat(last, block, (sums, start_product, *gradients), first)
        return sums, product, *gradients

    start_product = carry[1]
    if layout.blocks <= limit:
        sums, product, *gradients = stretch(0, layout.blocks, carry)
        factors = layout.blocks
        while product.size % 2 == 0 and 2 * factors <= limit:
            product = product[: product.size // 2] * product[product.size // 2 :]
            factors *= 2
        return sums, jnp.sum(normal_log(product)), *gradients

    def outer(s, carry):
        logs, carry = carry
        first = s * jnp.uint32(limit)
        carry = stretch(first, jnp.minimum(first + jnp.uint32(limit), jnp.uint32(layout.blocks)), carry)
        return logs + normal_log(carry[1]), carry

    stretches = -(-layout.blocks // limit)
    logs, (sums, _, *gradients) = repeat(stretches, outer, (jnp.zeros_like(start_product), carry))
    return sums, jnp.sum(logs), *gradients


def _linear_predictor(layout: Layout, design: Array, b: Array, coefficients: Array) -> Array:
    """(L,): the design's columns in chunks, the first of which takes what does not fill a chunk."""
    chunks = -(-coefficients.size // _COLUMNS_AT_ONCE)
    first = coefficients.size - (chunks - 1) * _COLUMNS_AT_ONCE

    def chunk(start: Array, size: int) -> Array:
        columns = lax.dynamic_slice(design, (b, start, jnp.uint32(0)), (1, size, layout.lanes))[0]
        scalars = lax.dynamic_slice(coefficients, (start,), (size,))
        total = scalars[0] * columns[0]
        for j in range(1, size):
            total = total + scalars[j] * columns[j]
        return total

    def add(c, eta):
        return eta + chunk(c * jnp.uint32(_COLUMNS_AT_ONCE) + jnp.uint32(first), _COLUMNS_AT_ONCE)

    eta = chunk(jnp.uint32(0), first)
    return repeat(chunks - 1, add, eta) if chunks > 1 else eta


def _add_columns(total: Array, columns: Array, residual: Array) -> Array:
    """total (K, 16) + columns (K, L) * residual (L,), folded to 16 lanes."""
    for lane in range(0, residual.size, _LANES_KEPT):
        part = slice(lane, lane + _LANES_KEPT)
        total = total + columns[:, part] * residual[part]
    return total
