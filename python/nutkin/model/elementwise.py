"""Element-wise operations: arithmetic, comparison, logic, bits, functions of one argument, `select`, `clip`, types."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from nutkin.errors import InvalidModel
from nutkin.model import complex_numbers, special_functions
from nutkin.model.native import elementary
from nutkin.model.plan import Operands, Plan, Planner, broadcast_shapes, broadcasts_to, cast, widened
from nutkin.model.types import DTYPES, bits, is_complex, is_float, is_integer, narrow, show_shape


def _arithmetic(function: Callable[..., Array]) -> Planner:
    def plan(operands: Operands) -> Plan:
        merged = operands.merged()
        return Plan(broadcast_shapes(operands.shapes), merged, (merged,) * len(operands.specs), function)

    return plan


def _floating(function: Callable[..., Array]) -> Planner:
    def plan(operands: Operands) -> Plan:
        floating = operands.floating()
        return Plan(broadcast_shapes(operands.shapes), floating, (floating,) * len(operands.specs), function)

    return plan


def _comparison(function: Callable[..., Array]) -> Planner:
    def plan(operands: Operands) -> Plan:
        merged = operands.merged()
        casts = (merged,) * len(operands.specs)
        return Plan(broadcast_shapes(operands.shapes), "u8", casts, lambda *xs: cast(function(*xs), "u8"))

    return plan


def _logic(function: Callable[..., Array]) -> Planner:
    """Truth of each operand in its own type: everything but 0 is true, NaN too."""

    def plan(operands: Operands) -> Plan:
        casts = tuple(spec.type for spec in operands.specs)
        return Plan(
            broadcast_shapes(operands.shapes), "u8", casts, lambda *xs: cast(function(*(x != 0 for x in xs)), "u8")
        )

    return plan


def _bitwise(name: str, function: Callable[..., Array]) -> Planner:
    """A function of the bits of integers."""

    def plan(operands: Operands) -> Plan:
        merged = operands.merged()
        if not is_integer(merged):
            raise InvalidModel(
                f"{name} is for integers", expected="integer types", found=merged, hint="convert with as_type first"
            )
        casts = (merged,) * len(operands.specs)
        return Plan(broadcast_shapes(operands.shapes), merged, casts, lambda *xs: function(*jnp.broadcast_arrays(*xs)))

    return plan


def _count(name: str, function: Callable[[Array, int], Array]) -> Planner:
    """A count of bits, of x with a surplus of zeros in front: types of less than a byte have to be moved into 64."""

    def plan(operands: Operands) -> Plan:
        checked = _bitwise(name, function)(operands)
        surplus, mask = 64 - bits(checked.type), np.asarray(2 ** bits(checked.type) - 1, np.uint64)

        def run(x: Array) -> Array:
            return cast(function(cast(x, "u64") & mask, surplus), checked.type)

        return replace(checked, casts=("s64",), run=run)

    return plan


def _shift_right(x: Array, by: Array) -> Array:
    """Copies of the sign come in from the left, if there is one."""
    is_signed = jnp.issubdtype(x.dtype, jnp.signedinteger)
    return lax.shift_right_arithmetic(x, by) if is_signed else lax.shift_right_logical(x, by)


def _rounding(function: Callable[[Array], Array]) -> Planner:
    """Integers are whole already."""

    def plan(operands: Operands) -> Plan:
        spec = operands.first
        return Plan(spec.shape, spec.type, (spec.type,), function if is_float(spec.type) else lambda x: x)

    return plan


def _float_test(function: Callable[[Array], Array]) -> Planner:
    """A question about NaN or infinity, to which integers answer 0."""

    def plan(operands: Operands) -> Plan:
        floating = operands.floating()
        return Plan(operands.first.shape, "u8", (floating,), lambda x: cast(function(x), "u8"))

    return plan


def _remainder(x: Array, y: Array) -> Array:
    # lax.rem takes the sign of the dividend, as Nx does; jnp.remainder takes the divisor's.
    return lax.rem(*jnp.broadcast_arrays(x, y))


def _abs(operands: Operands) -> Plan:
    spec = operands.first
    if is_complex(spec.type):
        return complex_numbers.absolute(operands)
    # Integers of less than a byte in a larger type: JAX has no absolute value of them.
    computed = "s32" if is_integer(spec.type) and bits(spec.type) < 8 else spec.type
    return Plan(spec.shape, spec.type, (computed,), lambda x: cast(jnp.abs(x), spec.type))


def _native(function: Callable[[Array], Array], of_complex: Callable[[Array], Array]) -> Planner:
    return _floating(lambda x: of_complex(x) if jnp.iscomplexobj(x) else function(x))


def stop_gradient(operands: Operands) -> Plan:
    """The same value, as if it depended on nothing."""
    spec = operands.first
    return Plan(spec.shape, spec.type, (spec.type,), lax.stop_gradient)


def _quotient(operands: Operands) -> Plan:
    merged = operands.merged()
    if not is_integer(merged):
        raise InvalidModel(
            "quotient divides integers",
            expected="integer types",
            found=merged,
            hint="divide gives fractions, as_type integers",
        )
    # lax.div truncates towards zero, as Nx does; // rounds down.
    return Plan(
        broadcast_shapes(operands.shapes), merged, (merged, merged), lambda x, y: lax.div(*jnp.broadcast_arrays(x, y))
    )


def _pow(operands: Operands) -> Plan:
    merged, exponent = operands.merged(), operands.specs[1].literal
    shape = broadcast_shapes(operands.shapes)
    if is_integer(merged) and exponent is not None and exponent < 0:
        raise InvalidModel(
            "an integer has no integer power with a negative exponent",
            expected="an exponent of 0 or more",
            found=str(exponent),
            hint="convert the base with as_type first",
        )
    if is_float(merged) and exponent is not None and exponent == int(exponent) and abs(exponent) < 64:
        # A product: it is cheaper than exp(y log x), and so is its gradient.
        return Plan(shape, merged, (merged, merged), lambda x, _: lax.integer_pow(x, int(exponent)))
    if is_integer(merged):
        # In 64 bits, whose low bits are the result: jnp.power knows no types of less than a byte.
        return Plan(shape, merged, ("s64", "s64"), lambda x, y: cast(jnp.power(x, jnp.asarray(y)), merged))
    return Plan(shape, merged, (merged, merged), jnp.power)


def select(operands: Operands) -> Plan:
    """The second operand where the predicate is not 0, the third elsewhere."""
    predicate, *branches = operands.specs
    merged = Operands(tuple(branches), {}, operands.precision).merged()
    shape = predicate.shape or broadcast_shapes(operands.shapes[1:])
    for name, branch in zip(("on true", "on false"), branches, strict=True):
        if not broadcasts_to(branch.shape, shape):
            raise InvalidModel(
                f"the value {name} of select must broadcast to the shape of the predicate",
                expected=show_shape(shape),
                found=show_shape(branch.shape),
            )

    def run(condition: Array, on_true: Array, on_false: Array) -> Array:
        return jnp.where(condition != 0, jnp.broadcast_to(on_true, shape), jnp.broadcast_to(on_false, shape))

    return Plan(shape, merged, (predicate.type, merged, merged), run)


def clip(operands: Operands) -> Plan:
    """Limit x to the range from a minimum to a maximum; above all, to the maximum."""
    for name, bound in zip(("minimum", "maximum"), operands.specs[1:], strict=True):
        if bound.shape != ():
            raise InvalidModel(
                f"the {name} of clip must be a scalar",
                expected="{}",
                found=show_shape(bound.shape),
                hint="use max and min, which broadcast",
            )
    merged = operands.merged()
    return Plan(
        operands.first.shape,
        merged,
        (merged,) * 3,
        lambda x, low, high: jnp.minimum(jnp.maximum(x, low), high),
    )


def as_type(operands: Operands) -> Plan:
    """Convert, to nothing wider than the precision. Of floats beyond the integers of a type the low bits stay."""
    wanted = narrow(operands.options["type"], precision=operands.precision)
    given = operands.first.type
    wraps = not is_integer(given) and is_integer(wanted) and wanted != "s64"

    def run(x: Array) -> Array:
        x = jnp.asarray(x)  # NumPy, which holds what depends on no parameter, converts infinities otherwise
        if not wraps:
            return cast(x, wanted)
        x = lax.real(x) if is_complex(given) else x
        fits = jnp.isinf(x) | (x >= 2.0**63)  # what is above them all is none of s64
        return jnp.where(fits, cast(x, wanted), cast(cast(x, "s64"), wanted))

    return Plan(operands.first.shape, wanted, (given,), run)


def bitcast(operands: Operands) -> Plan:
    """The same bits read as another type of the same size."""
    spec, wanted = operands.first, operands.options["type"]
    if is_complex(wanted) != is_complex(spec.type):
        raise InvalidModel(
            "bitcast makes no complex numbers, and nothing of them",
            expected="real types",
            found=f"{spec.type} as {wanted}",
            hint="complex(real, imag) makes them, real and imag take their parts",
        )
    if bits(wanted) != bits(spec.type) or (is_float(wanted) and bits(wanted) > bits(operands.precision)):
        raise InvalidModel(
            "bitcast keeps the size, and makes no floats above the precision of the model",
            expected=f"a type of {bits(spec.type)} bits, of the precision {operands.precision}",
            found=wanted,
        )
    return Plan(spec.shape, wanted, (spec.type,), lambda x: lax.bitcast_convert_type(x, DTYPES[wanted]))


def _round(x: Array) -> Array:
    return lax.round(x, lax.RoundingMethod.AWAY_FROM_ZERO)


BINARY: dict[str, Planner] = {
    "add": _arithmetic(jnp.add),
    "subtract": _arithmetic(jnp.subtract),
    "multiply": _arithmetic(jnp.multiply),
    "divide": _floating(jnp.divide),
    "pow": _pow,
    "remainder": _arithmetic(_remainder),
    "quotient": _quotient,
    "max": _arithmetic(jnp.maximum),
    "min": _arithmetic(jnp.minimum),
    "atan2": _floating(jnp.arctan2),
    "equal": _comparison(jnp.equal),
    "not_equal": _comparison(jnp.not_equal),
    "less": _comparison(jnp.less),
    "less_equal": _comparison(jnp.less_equal),
    "greater": _comparison(jnp.greater),
    "greater_equal": _comparison(jnp.greater_equal),
    "logical_and": _logic(jnp.logical_and),
    "logical_or": _logic(jnp.logical_or),
    "logical_xor": _logic(jnp.logical_xor),
    "bitwise_and": _bitwise("bitwise_and", lax.bitwise_and),
    "bitwise_or": _bitwise("bitwise_or", lax.bitwise_or),
    "bitwise_xor": _bitwise("bitwise_xor", lax.bitwise_xor),
    "left_shift": _bitwise("left_shift", lax.shift_left),
    "right_shift": _bitwise("right_shift", _shift_right),
    **{name: widened(_floating(function)) for name, function in special_functions.BINARY.items()},
}

UNARY: dict[str, Planner] = {
    "negate": _arithmetic(jnp.negative),
    "abs": _abs,
    "sign": _arithmetic(jnp.sign),
    "exp": _native(elementary.exp, jnp.exp),
    "expm1": _floating(jnp.expm1),
    "log": _native(elementary.log, jnp.log),
    "log1p": _native(elementary.log1p, jnp.log1p),
    "sqrt": _floating(jnp.sqrt),
    "rsqrt": _floating(lax.rsqrt),
    "cbrt": _floating(jnp.cbrt),
    "sigmoid": _floating(jax.nn.sigmoid),
    "sin": _floating(jnp.sin),
    "cos": _floating(jnp.cos),
    "tan": _floating(jnp.tan),
    "sinh": _floating(jnp.sinh),
    "cosh": _floating(jnp.cosh),
    "tanh": _floating(jnp.tanh),
    "asin": _floating(jnp.arcsin),
    "acos": _floating(jnp.arccos),
    "atan": _floating(jnp.arctan),
    "asinh": _floating(jnp.arcsinh),
    "acosh": _floating(jnp.arccosh),
    "atanh": _floating(jnp.arctanh),
    "erf": _floating(lax.erf),
    "erfc": _floating(lax.erfc),
    "erf_inv": _floating(lax.erf_inv),
    "floor": _rounding(jnp.floor),
    "ceil": _rounding(jnp.ceil),
    "round": _rounding(_round),
    "logical_not": _logic(jnp.logical_not),
    "is_nan": _float_test(jnp.isnan),
    "is_infinity": _float_test(jnp.isinf),
    "bitwise_not": _bitwise("bitwise_not", lax.bitwise_not),
    "population_count": _count("population_count", lambda x, _surplus: lax.population_count(x)),
    "count_leading_zeros": _count("count_leading_zeros", lambda x, surplus: lax.clz(x) - surplus),
    **{name: widened(_floating(function)) for name, function in special_functions.UNARY.items()},
}

TERNARY: dict[str, Planner] = {
    name: widened(_floating(function)) for name, function in special_functions.TERNARY.items()
}
