"""Linear algebra on the last two axes, for each entry of the others: factorizations, solutions, invariants."""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
from jax import Array, lax

from nutkin.errors import InvalidModel
from nutkin.model.diagonals import check_matrix
from nutkin.model.plan import Operands, Plan, Planner, broadcast_shapes, cast, widened
from nutkin.model.supports import COVARIANCE, INVERTIBLE, NONZERO_DIAGONAL, SYMMETRIC, Support
from nutkin.model.types import Spec, is_integer, real_of, show_shape

TRANSFORMS_OF_A = ("none", "transpose", "conjugate")
ORDERS = ("inf", "neg_inf", "frobenius", "nuclear")


def _square(name: str, function: Callable[[Array], Array], *, keeps: int, support: Support | None = None) -> Planner:
    """A function of square matrices that keeps the first `keeps` of their two axes."""

    def plan(operands: Operands) -> Plan:
        spec, floating = operands.first, operands.floating()
        check_matrix(spec, name, square=True)
        shape = spec.shape[: len(spec.shape) - 2 + keeps]
        return Plan(shape, floating, (floating,), function, {} if support is None else {0: support})

    return plan


def _invert(x: Array) -> Array:
    return jnp.linalg.solve(x, jnp.broadcast_to(jnp.eye(x.shape[-1], dtype=x.dtype), x.shape))


def _slogdet(operands: Operands) -> Plan:
    """-> the sign of the determinant, and the logarithm of its absolute value."""
    spec, floating = operands.first, operands.floating()
    check_matrix(spec, "slogdet", square=True)
    results = (Spec(spec.shape[:-2], floating), Spec(spec.shape[:-2], _real(operands)))
    return Plan.several(results, (floating,), lambda x: tuple(jnp.linalg.slogdet(x)))


def _real(operands: Operands) -> str:
    """The type of what is real of complex matrices too: singular values, logarithms of sizes."""
    return real_of(operands.floating(), precision=operands.precision)


def _lu(operands: Operands) -> Plan:
    """-> P, L and U, whose product is x: a permutation, ones on the diagonal of L."""
    spec, floating = operands.first, operands.floating()
    check_matrix(spec, "lu", square=True)

    def run(x: Array) -> tuple[Array, Array, Array]:
        factors, _, permutation = lax.linalg.lu(x)
        rows = jnp.arange(x.shape[-1], dtype=permutation.dtype)[:, None]
        lower = jnp.tril(factors, -1) + jnp.eye(x.shape[-1], dtype=x.dtype)
        return (rows == permutation[..., None, :]).astype(x.dtype), lower, jnp.triu(factors)

    return Plan.several((Spec(spec.shape, floating),) * 3, (floating,), run)


def _qr(operands: Operands) -> Plan:
    """-> Q {…, m, k} and R {…, k, n}, k being the smaller of m and n."""
    spec, floating = operands.first, operands.floating()
    check_matrix(spec, "qr")
    *batch, m, n = spec.shape
    k = min(m, n)

    def run(x: Array) -> tuple[Array, Array]:
        # Columns beyond the m-th depend on those before: JAX differentiates only the factors of the latter.
        q, r = jnp.linalg.qr(x[..., :k])
        rest = jnp.matmul(jnp.swapaxes(q, -1, -2), x[..., k:], precision="highest")
        return q, jnp.concatenate([r, rest], -1) if n > k else r

    return Plan.several((Spec((*batch, m, k), floating), Spec((*batch, k, n), floating)), (floating,), run)


def _eigh(operands: Operands) -> Plan:
    """-> the eigenvalues of a symmetric matrix, ascending, and the eigenvectors, as columns."""
    spec, floating = operands.first, operands.floating()
    check_matrix(spec, "eigh", square=True)
    results = (Spec(spec.shape[:-1], _real(operands)), Spec(spec.shape, floating))
    return Plan.several(results, (floating,), lambda x: tuple(jnp.linalg.eigh(x)), {0: SYMMETRIC})


def _svd(operands: Operands) -> Plan:
    """-> U {…, m, k}, the singular values, descending, and the transpose of V {…, k, n}, k the smaller of m and n."""
    spec, floating = operands.first, operands.floating()
    check_matrix(spec, "svd")
    *batch, m, n = spec.shape
    k = min(m, n)
    results = (Spec((*batch, m, k), floating), Spec((*batch, k), _real(operands)), Spec((*batch, k, n), floating))
    return Plan.several(results, (floating,), lambda x: tuple(jnp.linalg.svd(x, full_matrices=False)))


def _solve(operands: Operands) -> Plan:
    """x of a x = b, b being a vector or a matrix for every matrix a."""
    floating = operands.floating()
    is_vector = _check_system(operands, "solve", side=-2)

    def run(a: Array, b: Array) -> Array:
        return jnp.linalg.solve(a, b[..., None])[..., 0] if is_vector else jnp.linalg.solve(a, b)

    return Plan(operands.shapes[1], floating, (floating,) * 2, run, {0: INVERTIBLE})


@widened
def triangular_solve(operands: Operands) -> Plan:
    """x of a x = b, or of x a = b, a being a triangle; what is beyond it is not read."""
    options, floating = operands.options, operands.floating()
    left = options.get("left_side", True)
    is_vector = _check_system(operands, "triangular_solve", side=-2 if left else -1)
    added = -1 if left else -2

    def run(a: Array, b: Array) -> Array:
        a = jnp.conjugate(a) if options.get("transform_a") == "conjugate" else a
        solved = lax.linalg.triangular_solve(
            a,
            jnp.expand_dims(b, added) if is_vector else b,
            left_side=left,
            lower=options.get("lower", True),
            transpose_a=options.get("transform_a", "none") == "transpose",
        )
        return jnp.squeeze(solved, added) if is_vector else solved

    return Plan(operands.shapes[1], floating, (floating,) * 2, run, {0: NONZERO_DIAGONAL})


def _check_system(operands: Operands, of: str, *, side: int) -> bool:
    """Check that the equations and the right sides fit. -> whether the right sides are vectors."""
    a, b = operands.specs
    check_matrix(a, of, square=True)
    *batch, n, _ = a.shape
    is_vector = len(b.shape) == len(a.shape) - 1
    fits = len(b.shape) in (len(a.shape), len(a.shape) - 1) and b.shape[: len(batch)] == tuple(batch)
    if not fits or b.shape[-1 if is_vector else side] != n:
        vector, free = show_shape((*batch, n)), (*batch, n, None) if side == -2 else (*batch, None, n)
        raise InvalidModel(
            f"the right side of {of} does not fit the matrix {show_shape(a.shape)}",
            expected=f"{vector} or {show_shape(free)}",
            found=show_shape(b.shape),
        )
    return is_vector


@widened
def matrix_power(operands: Operands) -> Plan:
    """The product of so many times the matrix, or its inverse where the power is negative."""
    spec, power = operands.first, operands.options["power"]
    check_matrix(spec, "matrix_power", square=True)
    result = operands.floating() if power < 0 else spec.type
    # In 64 bits, whose low bits are the result: there are no products of types of less than a byte.
    computed = "s64" if is_integer(result) else result
    supports = {0: INVERTIBLE} if power < 0 else {}
    return Plan(spec.shape, result, (computed,), lambda x: cast(_power(x, power), result), supports)


def _power(x: Array, power: int) -> Array:
    """By repeated squaring."""
    if power < 0:
        x, power = _invert(x), -power
    result = None
    while power:
        if power & 1:
            result = x if result is None else jnp.matmul(result, x, precision="highest")
        x, power = (jnp.matmul(x, x, precision="highest") if power > 1 else x), power >> 1
    return jnp.broadcast_to(jnp.eye(x.shape[-1], dtype=x.dtype), x.shape) if result is None else result


def _kron(operands: Operands) -> Plan:
    """The products of all entries of a with all of b, as blocks."""
    merged, (a, b) = operands.merged(), operands.specs
    for spec in operands.specs:
        check_matrix(spec, "kron")
    batch = broadcast_shapes((a.shape[:-2], b.shape[:-2]))
    shape = (*batch, a.shape[-2] * b.shape[-2], a.shape[-1] * b.shape[-1])

    def run(x: Array, y: Array) -> Array:
        return jnp.reshape(x[..., :, None, :, None] * y[..., None, :, None, :], shape)

    return Plan(shape, merged, (merged, merged), run)


@widened
def norm(operands: Operands) -> Plan:
    """Of vectors along one axis, or all elements, or of matrices along two: `ord` as in NumPy, by default 2-norms."""
    spec, floating, options = operands.first, operands.floating(), operands.options
    order, keep = options.get("ord"), options.get("keep_axes", False)
    axes = operands.axes("axes")
    axes = tuple(range(len(spec.shape))) if axes is None else axes
    if order is not None and (len(axes) not in (1, 2) or not _is_order(order, len(axes))):
        raise InvalidModel(
            f"there is no norm of the order {order} over {len(axes)} axes",
            expected="over one axis a number or ±inf; over two 1, -1, 2, -2, inf, neg_inf, frobenius or nuclear",
            found=str(order),
        )
    kept = tuple(1 if axis in axes else size for axis, size in enumerate(spec.shape))
    shape = kept if keep else tuple(size for axis, size in enumerate(spec.shape) if axis not in axes)

    def run(x: Array) -> Array:
        if order is None or order == "frobenius" or (order == 2 and len(axes) == 1):
            return _euclidean(x, axes, keep)
        named = {"inf": jnp.inf, "neg_inf": -jnp.inf, "nuclear": "nuc"}.get(order, order)
        return jnp.linalg.norm(x, named, axes if len(axes) == 2 else axes[0], keep)

    return Plan(shape, _real(operands), (floating,), run)


def _is_order(order: object, rank: int) -> bool:
    if isinstance(order, str):
        return order in (("inf", "neg_inf") if rank == 1 else ORDERS)
    return rank == 1 or order in (1, -1, 2, -2)


def _euclidean(x: Array, axes: tuple[int, ...], keep: bool) -> Array:
    """The root of the sum of squares; at 0 its derivative is 0."""
    squares = jnp.sum(jnp.real(x * jnp.conjugate(x)), axes, keepdims=keep)
    return jnp.where(squares == 0, 0, jnp.sqrt(jnp.where(squares == 0, 1, squares)))


UNARY: dict[str, Planner] = {
    name: widened(planner)
    for name, planner in {
        "cholesky": _square("cholesky", jnp.linalg.cholesky, keeps=2, support=COVARIANCE),
        "determinant": _square("determinant", jnp.linalg.det, keeps=0),
        "invert": _square("invert", _invert, keeps=2, support=INVERTIBLE),
        "slogdet": _slogdet,
        "lu": _lu,
        "qr": _qr,
        "eigh": _eigh,
        "svd": _svd,
    }.items()
}

BINARY: dict[str, Planner] = {"solve": widened(_solve), "kron": _kron}
