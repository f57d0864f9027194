"""Distribution functions against SciPy's, their gradients against differences of SciPy's, and what lies at the ends."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special

from engine.model.cumulative_cases import REFERENCES
from engine.model.distribution_cases import CASES
from nutkin.model.distributions import DISTRIBUTIONS

NAMES = sorted(REFERENCES)
LEVELS = np.array([1e-12, 1e-5, 0.1, 0.4, 0.49])[:, None]
Z = np.array([-6.0, -2.5, -1.0, -0.1, 0.0, 0.1, 1.0, 2.5, 3.0, 6.0])[:, None]
SHARES = special.expit(Z)


def between(lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    return lower + SHARES * (upper - lower)


# Where SciPy has no quantiles, or they are slow.
POINTS: dict[str, Callable[..., np.ndarray]] = {
    "wald": lambda mu, rate: mu * np.exp(np.sqrt(mu / rate) * Z / 2),
    "exp_mod_normal": lambda mu, sigma, rate: mu + sigma * Z,
    "skew_normal": lambda xi, omega, alpha: xi + omega * Z / 3,
    "von_mises": lambda mu, kappa: np.broadcast_to(np.pi * np.tanh(Z / 2), (10, 5)),
    "beta_neg_binomial": lambda r, alpha, beta: np.broadcast_to(np.floor(np.exp(Z / 2 + 1.7)), (10, 5)),
    "levy": lambda mu, sigma: mu + sigma * np.exp(Z / 2),
    "uniform": between,
    "log_uniform": between,
    "triangular": lambda lower, c, upper: between(lower, upper),
    "kumaraswamy": lambda alpha, beta: np.broadcast_to(special.expit(2 * Z), (10, 5)),
    "beta": lambda alpha, beta: np.broadcast_to(special.expit(2 * Z), (10, 5)),
    "beta_proportion": lambda mu, kappa: np.broadcast_to(special.expit(2 * Z), (10, 5)),
    "pareto": lambda y_min, alpha: y_min * (1 + np.exp(Z)),
    "pareto_type_2": lambda mu, lambda_, alpha: mu + lambda_ * np.exp(Z),
}

Arguments = tuple[np.ndarray, ...]


@cache
def arguments(name: str) -> Arguments:
    """{10, 5} values at which a tail is small, and {5, …} parameters."""
    count = len(CASES[name].value)
    parameters = tuple(p[:5] if len(p) == count else p for p in CASES[name].parameters)
    if name in POINTS:
        return (POINTS[name](*parameters), *parameters)
    reference = REFERENCES[name](*parameters)
    return (np.concatenate([reference.ppf(LEVELS), reference.isf(LEVELS)]), *parameters)


def expected(name: str, x: np.ndarray, *parameters: np.ndarray) -> np.ndarray:
    """log P(X <= x) and log P(X > x), those of numbers near 1 by their complements."""
    reference = REFERENCES[name](*parameters)
    cdf, sf = reference.cdf(x), reference.sf(x)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.stack(
            [np.where(share < 0.5, np.log(share), np.log1p(-rest)) for share, rest in ((cdf, sf), (sf, cdf))]
        )


def both_tails(name: str, *arguments: np.ndarray) -> tuple[jax.Array, jax.Array]:
    return DISTRIBUTIONS[name].cumulative.tails(*arguments)


def test_every_distribution_of_a_number_has_one() -> None:
    numbers = {name for name, family in DISTRIBUTIONS.items() if not family.event}
    assert {name for name, family in DISTRIBUTIONS.items() if family.cumulative} == set(NAMES)
    assert set(NAMES) == numbers - {"flat", "half_flat"}


def continuous(name: str) -> list[int]:
    """The positions of the parameters that are no counts."""
    family = DISTRIBUTIONS[name]
    return [
        i
        for i, (parameter, of) in enumerate(family.parameters.items())
        if not (of.support.discrete or (family.support.discrete and parameter in family.support.bounds))
    ]


def differences(name: str, arguments: Arguments, which: int, part: tuple[int, ...]) -> np.ndarray:
    """The derivatives of both tails by a parameter or its part, of fourth order: {2, 10, 5}."""
    step = np.zeros_like(arguments[which])
    step[(..., *part)] = 3e-5 * np.maximum(np.abs(arguments[which][(..., *part)]), 0.1)

    def at(k: int) -> np.ndarray:
        moved = list(arguments)
        moved[which] = arguments[which] + k * step
        return expected(name, *moved)

    with np.errstate(invalid="ignore"):  # of infinite ones
        near, far = (at(k) - at(-k) for k in (1, 2))
    return (8 * near - far) / (12 * step[(..., *part)])


def ends(name: str, *parameters: np.ndarray) -> np.ndarray:
    """Values at and beyond the ends of the support: {2, 5} below, {2, 5} above."""
    support = DISTRIBUTIONS[name].support
    named = dict(zip(DISTRIBUTIONS[name].parameters, parameters, strict=True))
    bounds = [named[bound] for bound in support.bounds]
    lower, upper = {
        "a real number": (-np.inf, np.inf),
        "a number in (0, 1)": (0.0, 1.0),
        "an angle from -pi to pi": (-np.pi, np.pi),
        "0 or 1": (-0.5, 1.0),
        "a whole number of at least 0": (-0.5, np.inf),
        "a whole number of at least 1": (0.5, np.inf),
        "a whole number from 0 to n": (-0.5, *bounds[:1]),
        "a whole number of successes that k of the population and n draws allow": (-0.5, bounds[-1] if bounds else 0),
        "whole numbers from 0 to 1": (-0.5, 2.0 if "cutpoints" not in named else 3.0),
    }.get(support.description, (*bounds, np.inf)[:2] if bounds else (0.0, np.inf))
    if name == "discrete_uniform":
        lower = lower - 0.5
    return np.stack([np.broadcast_to(x, 5) for x in (-np.inf, lower, upper, np.inf)])


@pytest.mark.parametrize("name", NAMES)
def test_tails_and_gradients_are_scipys(name: str) -> None:
    x, *parameters = arguments(name)
    family, free = DISTRIBUTIONS[name], continuous(name)
    full = [x, *(np.broadcast_to(p, (*x.shape, *p.shape[1 if len(p) == 5 else 0 :])) for p in parameters)]
    with_ends = np.concatenate([x, ends(name, *parameters)])
    longer = [with_ends, *(np.concatenate([p, p[:4]]) for p in full[1:])]
    moving = [i + 1 for i in free] if family.support.discrete else [0, *(i + 1 for i in free)]

    def tails_of(*moved: jax.Array) -> tuple[jax.Array, jax.Array]:
        given = dict(zip(moving, moved, strict=True))
        return both_tails(name, *(given.get(i, jnp.asarray(argument)) for i, argument in enumerate(longer)))

    # One operation after the other: those that the families share are compiled once.
    whole, pull_back = jax.vjp(tails_of, *(jnp.asarray(longer[i]) for i in moving))
    tails, log_tails = [np.asarray(tail[:10]) for tail in whole], expected(name, *full)
    for found, log_tail in zip(tails, log_tails, strict=True):
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, log_tail, rtol=1e-9, atol=1e-20)
    np.testing.assert_allclose(np.exp(tails[0]) + np.exp(tails[1]), 1, rtol=1e-13)
    below, above = np.full((2, 5), -np.inf), np.zeros((2, 5))
    np.testing.assert_array_equal(np.stack([tail[10:] for tail in whole]), [[*below, *above], [*above, *below]])

    one, none = jnp.ones_like(whole[0]), jnp.zeros_like(whole[0])
    gradients = [pull_back((one, none)), pull_back((none, one))]
    assert all(np.isfinite(gradient).all() for both in gradients for gradient in both)
    if not family.support.discrete:
        density = family.log_density(x, tuple(parameters))
        for gradient, sign, log_tail in zip(gradients, (1, -1), tails, strict=True):
            np.testing.assert_allclose(gradient[0][:10], sign * np.exp(density - log_tail), rtol=1e-8)
    for position, which in enumerate(moving):
        for part in np.ndindex(full[which].shape[2:]) if which > 0 else ():
            numeric = differences(name, full, which, part)
            for gradient, log_tail, expected_gradient in zip(gradients, log_tails, numeric, strict=True):
                found = gradient[position][(slice(0, 10), ..., *part)]
                # Of an infinite logarithm there is none.
                is_end = ~np.isfinite(log_tail)
                scale = np.where(is_end | (log_tail == 0), 1, -log_tail)
                np.testing.assert_allclose(
                    found / scale, np.where(is_end, 0, expected_gradient) / scale, rtol=1e-6, atol=1e-7
                )
