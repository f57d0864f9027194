"""Runs of single operations: values and inferred specs, and gradients against finite differences."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from nutkin.model.operations import plan_call
from nutkin.model.plan import Plan, cast
from nutkin.model.types import DTYPES, NAMES, Spec, is_float, literal_spec


def plan(name: str, *operands: Any, precision: str = "f64", **options: Any) -> Plan:
    """Numbers are literals, arrays are tensors."""
    specs = tuple(
        literal_spec(operand, precision=precision)
        if isinstance(operand, int | float)
        else Spec(operand.shape, NAMES[operand.dtype])
        for operand in operands
    )
    return plan_call(name, specs, options, precision=precision)


def run(name: str, *operands: Any, precision: str = "f64", **options: Any) -> tuple[Any, Any]:
    """-> (result of the compiled operation, the spec inferred), or tuples of them."""
    planned = plan(name, *operands, precision=precision, **options)

    @jax.jit
    def apply(*arrays):
        return planned.run(*(cast(array, wanted) for array, wanted in zip(arrays, planned.casts, strict=True)))

    arrays = tuple(map(np.asarray, operands))
    # Within a program, what depends on no parameter is an array of NumPy.
    jax.eval_shape(lambda: apply.__wrapped__(*arrays))
    return apply(*arrays), planned.elements or planned.spec


def check_value(name: str, operands: tuple, options: dict[str, Any], expected: Any, *, rtol: float = 1e-13) -> None:
    """The value, and that shape and type are those inferred. Booleans are written for u8."""
    operands = tuple(np.uint8(x) if isinstance(x, np.ndarray) and x.dtype == bool else x for x in operands)
    found, specs = run(name, *operands, **options)
    is_tuple = isinstance(expected, tuple)
    triples = zip(*((found, specs, expected) if is_tuple else ([found], [specs], [expected])), strict=True)
    for value, spec, wanted in triples:
        assert (value.shape, NAMES[value.dtype]) == (spec.shape, spec.type)
        assert (spec.shape, DTYPES[spec.type]) == (wanted.shape, wanted.dtype)
        np.testing.assert_allclose(value, wanted, rtol=rtol, atol=1e-15)


def check_gradient(name: str, operands: tuple, options: dict[str, Any], *, rtol: float = 1e-6) -> None:
    """In all floating operands, forward and backward, against finite differences in a random direction."""
    planned = plan(name, *operands, **options)
    typed = zip(operands, planned.casts, strict=True)
    arrays = [np.asarray(operand).astype(DTYPES[wanted]) for operand, wanted in typed]
    places = [place for place, wanted in enumerate(planned.casts) if is_float(wanted)]

    def of_floats(*floats):
        filled = dict(zip(places, floats, strict=True))
        results = planned.run(*(filled.get(place, array) for place, array in enumerate(arrays)))
        specs = planned.elements or (planned.spec,)
        pairs = zip(results if planned.elements else (results,), specs, strict=True)
        return tuple(value for value, spec in pairs if is_float(spec.type))

    at = tuple(arrays[place] for place in places)
    random = np.random.default_rng(0)
    direction, weights = (
        tuple(random.normal(size=each.shape).astype(each.dtype) for each in group)
        for group in (at, jax.eval_shape(of_floats, *at))
    )

    @jax.jit
    def evaluate(*floats):
        values, slopes = jax.jvp(of_floats, floats, direction)
        return values, slopes, jax.vjp(of_floats, *floats)[1](weights)

    _, slopes, gradient = evaluate(*at)
    above, below = (evaluate(*(x + step * v for x, v in zip(at, direction, strict=True)))[0] for step in (1e-5, -1e-5))
    numeric = [(high - low) / 2e-5 for high, low in zip(above, below, strict=True)]
    for slope, expected in zip(slopes, numeric, strict=True):
        np.testing.assert_allclose(slope, expected, rtol=rtol, atol=rtol, err_msg="forward")
    backward, expected = (
        sum(np.vdot(x, y) for x, y in zip(*pair, strict=True)) for pair in ((gradient, direction), (numeric, weights))
    )
    np.testing.assert_allclose(backward, expected, rtol=rtol, atol=rtol, err_msg="backward")
