"""exp, log and log1p in plain arithmetic, for float64: they vectorise at a half to a third of the cost of XLA's own.

float32 keeps XLA's functions, which are as short. Whole domain, accuracy 2 units in the last place (see the tests); as
in XLA's compiled loops, subnormal numbers count as 0. Differentiable to any order.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array, lax

_LOG2_E = 1 / math.log(2)
_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_EXP_RANGE = (-708.0, 709.75)  # 2^k stays normal below, and is inf above
_EXP_DEGREE = 12

_SMALLEST_NORMAL = 2.0**-1022
_SQRT_HALF_BITS = 0x3FE6A09E667F3BCD
_INTEGER_BITS = 0x4330000000000000  # of 2^52: the low bits of 2^52 + k are the integer k
_MANTISSA_BITS = 0x000FFFFFFFFFFFFF
# log((1 + s) / (1 - s)) / s - 2 as a polynomial in s^2: its series interpolated at the Chebyshev nodes of the range of
# s^2, from 0 to ((sqrt(2) - 1) / (sqrt(2) + 1))^2. The error is 3e-16.
_LOG_COEFFICIENTS = (
    0.14616449685043406,
    0.15331721600556042,
    0.18182889125261723,
    0.2222221113479508,
    0.28571428625975487,
    0.39999999999899505,
    0.666666666666667,
)


def elementwise(derivative: Callable[[Array, Array], Array]):
    """A custom derivative (of x and of the function's value there): that of bit arithmetic would be 0.

    The function becomes part of a program as it is, but is traced once for each shape instead of at each call.
    """

    def decorate(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
        differentiable = jax.custom_jvp(function)

        @differentiable.defjvp
        def _jvp(primals, tangents):
            (x,), (tangent,) = primals, tangents
            value = differentiable(x)
            return value, derivative(x, value) * tangent

        return jax.jit(differentiable, inline=True)

    return decorate


@elementwise(lambda x, value: value)
def exp(x: Array) -> Array:
    """exp(x): 0 below -708 (where it is less than 3.4e-308), inf from 709.44 on."""
    if x.dtype != jnp.float64:
        return lax.exp(x)
    return jnp.where(x < _EXP_RANGE[0], 0.0, bounded_exp(jnp.minimum(x, _EXP_RANGE[1])))


def bounded_exp(x: Array) -> Array:
    """exp(x) for x up to 709.75; below -708 it is exp(-708). Not differentiable."""
    if x.dtype != jnp.float64:
        return lax.exp(x)
    x = jnp.maximum(x, _EXP_RANGE[0])
    # Adding and subtracting 1.5 * 2^52 would round as well, but XLA may cancel the two.
    k = lax.round(x * _LOG2_E, lax.RoundingMethod.TO_NEAREST_EVEN)
    r = (x - k * _LN2_HIGH) - k * _LN2_LOW
    series = 1.0 / math.factorial(_EXP_DEGREE)
    for i in range(_EXP_DEGREE - 1, -1, -1):
        series = series * r + 1.0 / math.factorial(i)
    exponent = k.astype(jnp.int32).astype(jnp.int64) + 1023  # by int32: AVX2 has no conversion to int64
    return series * lax.bitcast_convert_type(exponent << 52, jnp.float64)


@elementwise(lambda x, value: 1 / x)
def log(x: Array) -> Array:
    """log(x): -inf at 0, nan below."""
    if x.dtype != jnp.float64:
        return lax.log(x)
    exponent, mantissa = split(x)
    return _at_the_ends(x, _log(exponent, mantissa - 1.0))


@elementwise(lambda x, value: 1 / (1 + x))
def log1p(x: Array) -> Array:
    """log(1 + x), exact for small x: -inf at -1, nan below."""
    if x.dtype != jnp.float64:
        return lax.log1p(x)
    one_plus = 1.0 + x
    exponent, mantissa = split(one_plus)
    return _at_the_ends(one_plus, _log(exponent, jnp.where(exponent == 0, x, mantissa - 1.0)))


def normal_log(x: Array) -> Array:
    """log(x) for positive, finite, normal x (not checked). Not differentiable."""
    if x.dtype != jnp.float64:
        return lax.log(x)
    exponent, mantissa = split(x)
    return _log(exponent, mantissa - 1.0)


def split(x: Array) -> tuple[Array, Array]:
    """(k, m), both float64, with x = 2^k m and sqrt(1/2) <= m < sqrt(2), for positive, finite, normal float64 x."""
    # Counted from sqrt(1/2), the high bits are the exponent; a bias of 1024 keeps the count positive.
    count = lax.bitcast_convert_type(x, jnp.uint64) - jnp.uint64((_SQRT_HALF_BITS - (1024 << 52)) % 2**64)
    k = lax.bitcast_convert_type((count >> jnp.uint64(52)) | jnp.uint64(_INTEGER_BITS), jnp.float64)
    mantissa = (count & jnp.uint64(_MANTISSA_BITS)) + jnp.uint64(_SQRT_HALF_BITS)
    return k - (2.0**52 + 1024.0), lax.bitcast_convert_type(mantissa, jnp.float64)


def _log(exponent: Array, f: Array) -> Array:
    """exponent log(2) + log(1 + f) for 1 + f between sqrt(1/2) and sqrt(2)."""
    s = f / (2.0 + f)
    z = s * s
    series = _LOG_COEFFICIENTS[0]
    for coefficient in _LOG_COEFFICIENTS[1:]:
        series = series * z + coefficient
    half_square = 0.5 * f * f
    return exponent * _LN2_HIGH - ((half_square - (s * (half_square + series * z) + exponent * _LN2_LOW)) - f)


def _at_the_ends(x: Array, log_x: Array) -> Array:
    below = jnp.where(x >= 0, -jnp.inf, jnp.nan)
    return jnp.where(x >= _SMALLEST_NORMAL, jnp.where(x == jnp.inf, jnp.inf, log_x), below)
