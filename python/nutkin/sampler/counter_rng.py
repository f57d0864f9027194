"""Counter-based random numbers in plain arithmetic, so that XLA:CPU keeps them inside one native loop.

A number is a pure function of (key, counter): nothing depends on how a run was cut into calls or threads.
The generator is Threefry-2x32 with 20 rounds (Salmon et al. 2011, https://doi.org/10.1145/2063384.2063405); normals
are made by the Box-Muller transform with polynomial log, sine and cosine, which vectorise where library calls do not.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from jax import lax

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA


def threefry(key: tuple[jax.Array, jax.Array], counter: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
    """Two uint32 words for each (key, counter), all four broadcast."""
    k0, k1 = key
    schedule = (k0, k1, k0 ^ k1 ^ jnp.uint32(_PARITY))
    x0, x1 = counter[0] + schedule[0], counter[1] + schedule[1]
    for i in range(5):
        for rotation in _ROTATIONS[i % 2]:
            x0 = x0 + x1
            x1 = ((x1 << rotation) | (x1 >> (32 - rotation))) ^ x0
        x0 = x0 + schedule[(i + 1) % 3]
        x1 = x1 + schedule[(i + 2) % 3] + jnp.uint32(i + 1)
    return x0, x1


def threefry_once(
    key: tuple[jax.Array, jax.Array], counter: tuple[jax.Array, jax.Array]
) -> tuple[jax.Array, jax.Array]:
    """`threefry` in a loop of one trip. XLA repeats the twenty rounds in every expression that uses a word, but never a
    loop: that shortens the compilation of the sampler by a quarter, and each transition a little."""
    shape = jnp.broadcast_shapes(*(jnp.shape(word) for word in (*key, *counter)))
    zeros = jnp.zeros(shape, jnp.uint32)

    def trip(_):
        return (~key[0], *(jnp.broadcast_to(word, shape) for word in threefry(key, counter)))

    return lax.while_loop(lambda carry: carry[0] == key[0], trip, (key[0], zeros, zeros))[1:]


def uniform(word: jax.Array) -> jax.Array:
    """float64 in (0, 1) from one word, 32 bits."""
    return (word.astype(jnp.float64) + 0.5) * 2.0**-32


def uniform_fine(high: jax.Array, low: jax.Array) -> jax.Array:
    """float64 in (0, 1) from two words, 52 bits."""
    return ((high >> 6).astype(jnp.float64) * 2.0**26 + (low >> 6).astype(jnp.float64) + 0.5) * 2.0**-52


def log_uniform(u: jax.Array) -> jax.Array:
    """log(u) for float64 u in (0, 1): the exponent, and the series of 2 atanh for the mantissa."""
    bits = lax.bitcast_convert_type(u, jnp.uint64)
    exponent = (bits >> 52).astype(jnp.float64) - 1023.0
    mantissa = lax.bitcast_convert_type(
        (bits & jnp.uint64(0xFFFFFFFFFFFFF)) | jnp.uint64(0x3FF0000000000000), jnp.float64
    )
    large = mantissa > math.sqrt(2.0)
    mantissa = jnp.where(large, 0.5 * mantissa, mantissa)
    exponent = jnp.where(large, exponent + 1.0, exponent)
    f = (mantissa - 1.0) / (mantissa + 1.0)
    square = f * f
    series = 1.0 / 19
    for k in (17, 15, 13, 11, 9, 7, 5, 3, 1):
        series = series * square + 1.0 / k
    return exponent * math.log(2.0) + 2.0 * f * series


def sin_cos_turn(u: jax.Array) -> tuple[jax.Array, jax.Array]:
    """(sin 2 pi u, cos 2 pi u): quadrant reduction and Taylor polynomials on [-pi/4, pi/4]."""
    quarter_turns = 4.0 * u
    quadrant = jnp.floor(quarter_turns + 0.5)
    x = (quarter_turns - quadrant) * (0.5 * math.pi)
    square = x * x
    sine, cosine = jnp.float64(1.0 / math.factorial(17)), jnp.float64(1.0 / math.factorial(16))
    for n in (15, 13, 11, 9, 7, 5, 3, 1):
        sine = 1.0 / math.factorial(n) - sine * square
    for n in (14, 12, 10, 8, 6, 4, 2, 0):
        cosine = 1.0 / math.factorial(n) - cosine * square
    sine = sine * x
    quadrant = quadrant.astype(jnp.int32) & 3
    swap = (quadrant & 1) == 1
    sign_sine = jnp.where(quadrant >= 2, -1.0, 1.0)
    sign_cosine = jnp.where((quadrant == 1) | (quadrant == 2), -1.0, 1.0)
    return sign_sine * jnp.where(swap, cosine, sine), sign_cosine * jnp.where(swap, sine, cosine)


def normals(uniforms: jax.Array, count: int) -> jax.Array:
    """`count` standard normals (float64) from `2 * ceil(count / 2)` uniforms of full precision."""
    half = (count + 1) // 2
    radius = jnp.sqrt(-2.0 * log_uniform(uniforms[:half]))
    sine, cosine = sin_cos_turn(uniforms[half : 2 * half])
    # Without the barrier XLA computes all three for each normal, one at a time.
    radius, sine, cosine = lax.optimization_barrier((radius, sine, cosine))
    return jnp.concatenate([radius * cosine, radius * sine])[:count]
