"""Operations on the diagonals and triangles of matrices, which are the last two axes, and their traces."""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
from jax import Array

from nutkin.errors import InvalidModel
from nutkin.model.plan import Operands, Plan, Planner
from nutkin.model.types import DTYPES, Spec, narrow, show_shape


def check_matrix(spec: Spec, of: str, *, square: bool = False) -> None:
    """Raises InvalidModel where the last two axes are no matrix."""
    if len(spec.shape) < 2 or (square and spec.shape[-2] != spec.shape[-1]):
        raise InvalidModel(
            f"{of} needs a {'square ' if square else ''}matrix",
            expected="a shape {…, n, n}" if square else "a shape {…, m, n}",
            found=show_shape(spec.shape),
        )


def eye(operands: Operands) -> Plan:
    """Ones on the diagonal, zeros elsewhere."""
    shape, wanted = tuple(operands.options["shape"]), operands.options.get("type", "s32")
    name = narrow(wanted, precision=operands.precision)
    check_matrix(Spec(shape, name), "eye")
    return Plan(shape, name, (), lambda: jnp.broadcast_to(jnp.eye(*shape[-2:], dtype=DTYPES[name]), shape))


def trace(operands: Operands) -> Plan:
    """The sum of the diagonal."""
    spec = operands.first
    check_matrix(spec, "trace", square=True)

    def run(x: Array) -> Array:
        return jnp.trace(x, axis1=-2, axis2=-1, dtype=x.dtype)

    return Plan(spec.shape[:-2], spec.type, (spec.type,), run)


def take_diagonal(operands: Operands) -> Plan:
    """The diagonal, as the last axis; above the main one for a positive offset, below it for a negative one."""
    spec, offset = operands.first, operands.options.get("offset", 0)
    check_matrix(spec, "take_diagonal")
    shape = (*spec.shape[:-2], _length(spec.shape, offset))
    return Plan(shape, spec.type, (spec.type,), lambda x: jnp.diagonal(x, offset, -2, -1))


def make_diagonal(operands: Operands) -> Plan:
    """Matrices of zeros but for the diagonal, which is the last axis of x."""
    spec, offset = operands.first, operands.options.get("offset", 0)
    if not spec.shape:
        raise InvalidModel("make_diagonal needs a vector", expected="a shape {…, n}", found="{}")
    size = spec.shape[-1] + abs(offset)
    shape = (*spec.shape[:-1], size, size)
    return Plan(shape, spec.type, (spec.type,), lambda x: _put(jnp.zeros(shape, x.dtype), x, offset))


def put_diagonal(operands: Operands) -> Plan:
    """x with another diagonal."""
    (x, diagonal), offset = operands.specs, operands.options.get("offset", 0)
    check_matrix(x, "put_diagonal")
    merged, expected = operands.merged(), (*x.shape[:-2], _length(x.shape, offset))
    if diagonal.shape != expected:
        raise InvalidModel(
            f"the diagonal does not fit the matrix {show_shape(x.shape)}",
            expected=show_shape(expected),
            found=show_shape(diagonal.shape),
        )
    return Plan(x.shape, merged, (merged, merged), lambda x, diagonal: _put(x, diagonal, offset))


def _length(shape: tuple[int, ...], offset: int) -> int:
    m, n = shape[-2:]
    if not -m < offset < n:
        raise InvalidModel(
            f"the matrix {show_shape(shape)} has no such diagonal",
            expected=f"an offset from {1 - m} to {n - 1}",
            found=str(offset),
        )
    return min(m + min(offset, 0), n - max(offset, 0))


def _put(x: Array, diagonal: Array, offset: int) -> Array:
    places = jnp.arange(diagonal.shape[-1])
    return jnp.asarray(x).at[..., places - min(offset, 0), places + max(offset, 0)].set(diagonal)


def _triangle(name: str, function: Callable[[Array, int], Array]) -> Planner:
    """Zeros beyond the diagonal number k."""

    def plan(operands: Operands) -> Plan:
        spec, k = operands.first, operands.options.get("k", 0)
        check_matrix(spec, name)
        return Plan(spec.shape, spec.type, (spec.type,), lambda x: function(x, k))

    return plan


TRIANGLES: dict[str, Planner] = {"tril": _triangle("tril", jnp.tril), "triu": _triangle("triu", jnp.triu)}
