"""The regularized incomplete gamma and beta functions: logarithms of both tails, with derivatives by every argument.

The tail that is mostly the smaller one is a power times a series or a continued fraction (DLMF 8.7.1 and 8.9.2,
https://dlmf.nist.gov/8); it keeps its digits where it underflows. The other one is its complement. The power is taken
relative to its mode, so that nothing large cancels (Loader 2000, "Fast and accurate computation of binomial
probabilities"). The derivative by the last argument is the density; those by the parameters are of the same sum, term
by term. The number of terms grows with the root of the parameters, and is bounded: beyond 10^6 they may be too few.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.custom_derivatives import SymbolicZero

from nutkin.model.native.elementary import exp, log
from nutkin.model.native.gamma import stirling_error
from nutkin.model.special import HALF_LOG_2PI, log1mexp, softplus

_MOST_TERMS = 10_000.0
_NEAR = 0.5
_NEAR_TERMS = 16

Tails = tuple[Array, Array]
State = tuple[Array, ...]


def gamma_tails(a: Array, log_x: Array) -> Tails:
    """log P(a, x) and log Q(a, x) for a > 0, of log(x), which may be infinite."""
    return _gamma_tails_to_the_ends(*jnp.broadcast_arrays(a, log_x))


def beta_tails(a: Array, b: Array, logit: Array) -> Tails:
    """log I_x(a, b) and log I_{1-x}(b, a) for a, b > 0, of log(x / (1 - x)), which may be infinite."""
    return _beta_tails_to_the_ends(*jnp.broadcast_arrays(a, b, logit))


@jax.jit
def _gamma_tails_to_the_ends(a: Array, log_x: Array) -> Tails:
    x = exp(log_x)
    is_start, is_end = log_x == -np.inf, x == np.inf
    tails = _gamma_tails(a, jnp.where(is_start | is_end, 0, log_x))
    return at_the_ends(tails, is_start, is_end)


@jax.jit
def _beta_tails_to_the_ends(a: Array, b: Array, logit: Array) -> Tails:
    is_start, is_end = logit == -np.inf, logit == np.inf
    tails = _beta_tails(a, b, jnp.where(is_start | is_end, 0, logit))
    return at_the_ends(tails, is_start, is_end)


def at_the_ends(tails: Tails, is_start: Array, is_end: Array) -> Tails:
    """(-inf, 0) below the support and (0, -inf) above it."""
    lower, upper = tails
    lower = jnp.where(is_start, -np.inf, jnp.where(is_end, 0, lower))
    return lower, jnp.where(is_start, 0, jnp.where(is_end, -np.inf, upper))


@jax.custom_jvp
def _gamma_tails(a: Array, log_x: Array) -> Tails:
    return both_tails(_smaller_gamma(a, log_x), _is_lower_gamma(a, log_x))


@jax.custom_jvp
def _beta_tails(a: Array, b: Array, logit: Array) -> Tails:
    return both_tails(_smaller_beta(a, b, logit), _is_lower_beta(a, b, logit))


def both_tails(smaller: Array, is_lower: Array) -> Tails:
    """The lower and the upper tail from one of them. A complement that rounds to 0 counts as one unit of rounding."""
    other = log1mexp(-lax.min(smaller, lax.full_like(smaller, -jnp.finfo(smaller.dtype).eps)))
    return jnp.where(is_lower, smaller, other), jnp.where(is_lower, other, smaller)


def tails_derivative(
    smaller: Callable[..., Array], is_lower: Callable[..., Array], log_density: Callable[..., Array]
) -> Callable[..., tuple[Tails, Tails]]:
    """The derivative of `both_tails` by those of the arguments that move, of which the last one is not a parameter."""

    def rule(primals: tuple[Array, ...], tangents: tuple[Array | SymbolicZero, ...]) -> tuple[Tails, Tails]:
        (*parameters, x), (*moves, x_tangent) = primals, tangents
        moved = [i for i, tangent in enumerate(moves) if not isinstance(tangent, SymbolicZero)]

        def along(direction: list[Array]) -> tuple[Array, Array]:
            return jax.jvp(lambda *parameters: smaller(*parameters, x), parameters, direction)

        is_low, one, none = is_lower(*primals), jnp.ones_like(x), jnp.zeros_like(x)
        if moved:
            basis = [jnp.stack([one if i == j else none for j in moved]) for i in range(len(parameters))]
            same, slopes = jax.vmap(along)(basis)
            tails = lower, upper = both_tails(same[0], is_low)
        else:
            slopes = ()
            tails = lower, upper = both_tails(smaller(*primals), is_low)
        # The derivatives of both tails sum to 0.
        ratio = -exp(jnp.where(is_low, lower - upper, upper - lower))
        of_lower, of_upper = jnp.zeros_like(x), jnp.zeros_like(x)
        for i, slope in zip(moved, slopes, strict=True):
            of_lower += jnp.where(is_low, slope, slope * ratio) * moves[i]
            of_upper += jnp.where(is_low, slope * ratio, slope) * moves[i]
        if not isinstance(x_tangent, SymbolicZero):
            density = log_density(*primals)
            of_lower += exp(density - lower) * x_tangent
            of_upper -= exp(density - upper) * x_tangent
        return tails, (of_lower, of_upper)

    return rule


def _is_lower_gamma(a: Array, log_x: Array) -> Array:
    return exp(log_x) < a + 1


def _smaller_gamma(a: Array, log_x: Array) -> Array:
    x, is_lower = exp(log_x), _is_lower_gamma(a, log_x)
    series = _gamma_series(jnp.where(is_lower, a, 1), jnp.where(is_lower, x, 0))
    fraction = _gamma_fraction(jnp.where(is_lower, 1, a), jnp.where(is_lower, 100, x))
    return _log_gamma_power(a, log_x) + jnp.where(is_lower, log(series) - log(a), -log(fraction))


def _smaller_beta(a: Array, b: Array, logit: Array) -> Array:
    is_lower = _is_lower_beta(a, b, logit)
    shapes = jnp.where(is_lower, a, b), jnp.where(is_lower, b, a)
    distance = jnp.where(is_lower, logit, -logit)
    fraction = _beta_fraction(*shapes, exp(-softplus(-distance)), exp(-softplus(distance)))
    return _log_beta_power(a, b, logit) - log(fraction)


def _is_lower_beta(a: Array, b: Array, logit: Array) -> Array:
    return logit < log(a + 1) - log(b + 1)


def _log_gamma_power(a: Array, log_x: Array) -> Array:
    """log(x^a exp(-x) / Gamma(a))."""
    distance = exp(log_x) - a
    mode = 0.5 * log(a) - HALF_LOG_2PI - stirling_error(a)
    return mode - _deviance(a, distance, log_x - log(a))


def _log_beta_power(a: Array, b: Array, logit: Array) -> Array:
    """log(x^a (1 - x)^b / B(a, b))."""
    # In stacks, since one formula of longer arrays compiles faster than some.
    means, total = jnp.stack([a, b]), a + b
    logs, errors = log(jnp.stack([a, b, total])), stirling_error(jnp.stack([a, b, total]))
    log_shares = -softplus(jnp.stack([-logit, logit]))
    # Of two numbers near 1 the complements have the digits of the distance.
    distances = total * exp(log_shares) - means
    distance = jnp.where(logit < 0, distances[0], -distances[1])
    deviances = _deviance(means, jnp.stack([distance, -distance]), log_shares - (logs[:2] - logs[2]))
    mode = 0.5 * (logs[0] + logs[1] - logs[2]) - HALF_LOG_2PI + errors[2] - errors[0] - errors[1]
    return mode - deviances[0] - deviances[1]


def _deviance(mean: Array, distance: Array, log_ratio: Array) -> Array:
    """distance - mean log(1 + distance / mean), of which the logarithm is given.

    Near the mean by the series of log(1 + r) = 2 artanh(s) in s = r / (2 + r), of which r - 2 s = s r.
    """
    is_near = lax.abs(distance) < _NEAR * mean
    r = jnp.where(is_near, distance, 0) / jnp.where(is_near, mean, 1)
    s = r / (2 + r)
    square = lax.square(s)
    series = jnp.zeros_like(s)
    for k in range(_NEAR_TERMS, 0, -1):
        series = series * square + 2 / (2 * k + 1)
    return jnp.where(is_near, mean * s * (r - square * series), distance - mean * log_ratio)


_gamma_tails.defjvp(tails_derivative(_smaller_gamma, _is_lower_gamma, _log_gamma_power), symbolic_zeros=True)
_beta_tails.defjvp(tails_derivative(_smaller_beta, _is_lower_beta, _log_beta_power), symbolic_zeros=True)


def _gamma_series(a: Array, x: Array) -> Array:
    """The sum of x^n / ((a + 1) … (a + n)) from n = 0."""

    def step(n: Array, state: State, a: Array, x: Array) -> State:
        term, total, _ = state
        term = term * x / (a + n)
        total = total + term
        return term, total, term / total

    return converged(lambda a, x: (jnp.ones_like(a),) * 3, step, _MOST_TERMS, (a, x))


def _gamma_fraction(a: Array, x: Array) -> Array:
    """The continued fraction whose inverse Q is in units of the power."""
    return _continued_fraction(lambda a, x: x - a + 1, lambda n, a, x: (n * (a - n), x - a + (2 * n + 1)), (a, x))


def _beta_fraction(a: Array, b: Array, x: Array, y: Array) -> Array:
    """The continued fraction whose inverse I is in units of the power, in its even form.

    DiDonato and Morris 1992, "Algorithm 708", https://doi.org/10.1145/131766.131776.
    """

    def outer(n: Array | float, a: Array, b: Array, x: Array, y: Array) -> Array:
        return (a + n) / (a + (2 * n + 1)) * (a * y - b * x + 1 + n * (1 + y))

    def terms(n: Array, a: Array, b: Array, x: Array, y: Array) -> tuple[Array, Array]:
        before = a + (2 * n - 1)
        slant = n * (b - n) * x / before
        return ((a + (n - 1)) / before) * (a + b + (n - 1)) * x * slant, n + slant + outer(n, a, b, x, y)

    return _continued_fraction(partial(outer, 0.0), terms, (a, b, x, y))


def _continued_fraction(
    first: Callable[..., Array], terms: Callable[..., tuple[Array, Array]], parameters: tuple[Array, ...]
) -> Array:
    """b_0 + a_1 / (b_1 + a_2 / (b_2 + …)) with b_0 = first(*parameters) and (a_n, b_n) = terms(n, *parameters).

    By Lentz's method, as modified by Thompson and Barnett 1986, https://doi.org/10.1016/0021-9991(86)90046-X.
    """

    def start(*parameters: Array) -> State:
        value = first(*parameters)
        return value, jnp.zeros_like(value), value, jnp.ones_like(value)

    def step(n: Array, state: State, *parameters: Array) -> State:
        c, d, value, _ = state
        a, b = terms(n, *parameters)
        c, d = b + a / c, 1 / (b + a * d)
        return c, d, value * (c * d), c * d - 1

    return converged(start, step, _MOST_TERMS, parameters)


@partial(jax.custom_jvp, nondiff_argnums=(0, 1, 2))
def converged(
    start: Callable[..., State], step: Callable[..., State], most: float, parameters: tuple[Array, ...]
) -> Array:
    """The limit, or what is reached after so many steps, of the last value but one of a state.

    The last is its relative change by a step.
    """

    def goes_on(carry: tuple[Array, State]) -> Array:
        n, state = carry
        return jnp.any(_is_off(state[-1])) & (n < most)

    first = start(*parameters)
    one = jnp.ones((), first[0].dtype)
    return lax.while_loop(goes_on, lambda carry: (carry[0] + 1, step(*carry, *parameters)), (one, first))[1][-2]


@converged.defjvp
def _converged_jvp(
    start: Callable[..., State], step: Callable[..., State], most: float, primals: tuple, tangents: tuple
) -> tuple[Array, Array]:
    """Goes on until the derivative has converged too: a sum that ends may have one that does not."""
    (parameters,), (directions,) = primals, tangents

    def goes_on(carry: tuple[Array, State, State]) -> Array:
        n, state, slopes = carry
        is_off = _is_off(state[-1]) | _is_off(slopes[-1] / (1 + lax.abs(slopes[-2] / state[-2])))
        return jnp.any(is_off) & (n < most)

    def advance(carry: tuple[Array, State, State]) -> tuple[Array, State, State]:
        n, state, slopes = carry
        state, slopes = jax.jvp(partial(step, n), (state, *parameters), (slopes, *directions))
        return n + 1, state, slopes

    first = jax.jvp(start, parameters, directions)
    one = jnp.ones((), first[0][0].dtype)
    _, state, slopes = lax.while_loop(goes_on, advance, advance((one, *first)))
    return state[-2], slopes[-2]


def _is_off(change: Array) -> Array:
    return lax.abs(change) > 4 * jnp.finfo(change.dtype).eps
