"""Distributions made of others: mixtures, truncation, censoring, and more zeros than a distribution of counts has.

The parameters of component i are those of its family with the prefix `i.`, those of a combinator have their own names.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from nutkin.errors import InvalidModel
from nutkin.model.distributions.combined_draws import (
    censored_draw,
    hurdle_draw,
    mixture_draw,
    truncated_draw,
    zero_inflated_draw,
)
from nutkin.model.distributions.family import ANY, Family, LogDensity, Parameter
from nutkin.model.ir import Combination
from nutkin.model.native.elementary import exp, log, log1p
from nutkin.model.special import log1mexp
from nutkin.model.supports import (
    INTERVAL,
    NONNEGATIVE,
    POSITIVE,
    PROBABILITIES,
    PROBABILITY,
    REAL,
    UNIT,
    UP_TO_UPPER,
    Support,
    at_least,
    at_most,
)

_COMPONENTS = "components"
_ENDS = "ends"
_LIMITS = ("lower", "upper")


def combine(name: str, components: Sequence[Family], given: Collection[str]) -> Family:
    """The family of a combinator over these components, `given` the names of its own parameters that are used.

    Raises InvalidModel.
    """
    combinator = _COMBINATORS.get(name)
    if combinator is None:
        known = ", ".join(_COMBINATORS)
        raise InvalidModel("there is no such combination of distributions", expected=f"one of {known}", found=name)
    if name != "mixture" and len(components) != 1:
        raise InvalidModel(f"{name} is made of one distribution", expected="1", found=str(len(components)))

    def of_components(components: Sequence[Family]) -> Family:
        family = combinator(*components) if name == "mixture" else combinator(components[0], given)
        return replace(family, sized=sized)

    def sized(_: Family, sizes: Mapping[str, int]) -> Family:
        if name == "interval_censored" and sizes.get(_ENDS, 2) != 2:
            found = f"{{…, {sizes[_ENDS]}}}"
            raise InvalidModel("a value of interval_censored is a pair of numbers", expected="{…, 2}", found=found)
        count = sizes.get(_COMPONENTS, len(components))
        if len(components) > 1 and count != len(components):
            raise InvalidModel(
                "a mixture has a weight for each of its components",
                expected=f"weights {{…, {len(components)}}}",
                found=f"{{…, {count}}}",
            )
        return of_components([family.of_sizes(sizes) for family in components])

    return of_components(components)


def check_cumulative(name: str, component: str | Combination, family: Family) -> None:
    """Raises InvalidModel for a combinator that needs the distribution function of a component without one."""
    if name not in _OF_CUMULATIVES or family.cumulative is not None:
        return
    is_mixture = isinstance(component, Combination) and component.name == "mixture"
    raise InvalidModel(
        f"{name} needs a distribution function (cdf), and there is none of {component}",
        expected="a distribution of a number, such as normal, student_t, gamma, weibull or poisson",
        found=str(component),
        hint=f"mix distributions that are {name}: mixture(weights, [{name}(…), …])" if is_mixture else None,
    )


def _mixture(*components: Family) -> Family:
    """log p(x) = log sum_k w_k p_k(x): of the components listed, or of one whose last batch axis they are."""
    if len({(family.event, family.support.discrete) for family in components}) > 1:
        raise InvalidModel(
            "the components of a mixture must be alike",
            expected="all discrete or all continuous, with the same event axes",
            found=", ".join(family.support.description for family in components),
        )
    is_one, rank = len(components) == 1, components[0].event_rank
    parameters = {"weights": Parameter(PROBABILITIES, (_COMPONENTS,))}
    for place, family in enumerate(components):
        for name, parameter in family.parameters.items():
            event = (_COMPONENTS, *parameter.event) if is_one else parameter.event
            parameters[f"{place}.{name}"] = replace(parameter, event=event, repeats=is_one and not parameter.event)
    parts = _split([len(family.parameters) for family in components])

    def kernel(x: Array, weights: Array, *given: Array) -> Array:
        if is_one:
            each = components[0].log_density_within(jnp.expand_dims(x, x.ndim - rank), given)
        else:
            terms = [family.log_density_within(x, given[part]) for family, part in zip(components, parts, strict=True)]
            each = jnp.stack(jnp.broadcast_arrays(*terms), axis=-1)
        is_used = weights > 0
        weighted = each + log(jnp.where(is_used, weights, 1))
        # A component without weight, or without density, has no part in the gradient either.
        return _logsumexp(jnp.where(is_used, weighted, -np.inf))

    return Family(
        parameters,
        LogDensity(kernel),
        _union(components),
        event=components[0].event,
        draw=mixture_draw(components, parts),
    )


def _union(components: Sequence[Family]) -> Support:
    """The values of any component. Those of unequal ones have no transform, and cannot be sampled."""
    first = components[0].support
    if all(family.support == first for family in components) and not first.bounds:
        return first
    if len(components) == 1:
        raise InvalidModel(
            "a mixture over an axis of its parameters needs a support without bounds",
            expected="components listed one by one",
            found=first.description,
        )
    places = _split([len(family.support.bounds) for family in components])

    def contains(x: Any, *bounds: Any) -> Any:
        supports = zip(components, places, strict=True)
        return functools.reduce(operator.or_, (_contains(family.support, x, bounds[at]) for family, at in supports))

    descriptions = dict.fromkeys(family.support.description for family in components)
    bounds = tuple(f"{place}.{name}" for place, family in enumerate(components) for name in family.support.bounds)
    return replace(first, description=" or ".join(descriptions), contains=contains, bounds=bounds, transforms=())


def _truncated(family: Family, given: Collection[str]) -> Family:
    """The distribution given that the value is from lower to upper, both ends included."""
    limits = _limits("truncated", family, given)
    count = len(family.parameters)

    def log_density(x: Array, *parameters: Array) -> Array:
        return family.log_density(x, parameters[:count])

    def log_mass(*parameters: Array) -> Array:
        return _log_mass(family, parameters[:count], *_ends(limits, parameters[count:]))

    parameters = {**_of_component(family), **{name: _limit(family, name) for name in limits}}
    draw = truncated_draw(family, functools.partial(_ends, limits))
    return Family(parameters, LogDensity(log_density, log_mass), _between(family, limits), draw=draw)


def _censored(family: Family, given: Collection[str]) -> Family:
    """A value at lower stands for all that are not above it, a value at upper for all that are not below it."""
    limits = _limits("censored", family, given)
    count = len(family.parameters)

    def kernel(x: Array, *parameters: Array) -> Array:
        base, (lower, upper) = parameters[:count], _ends(limits, parameters[count:])
        cumulative = family.cumulative
        is_low = jnp.zeros(x.shape, bool) if lower is None else x <= lower
        is_high = jnp.zeros(x.shape, bool) if upper is None else x >= upper
        # Where a side is not taken, its number is one at which it has a gradient.
        density = family.log_density_within(x, base)
        low = 0 if lower is None else cumulative.log_cdf(jnp.where(is_low, lower, x), *base)
        high = 0 if upper is None else _log_not_below(family, jnp.where(is_high, upper, x), base)
        return jnp.where(is_low, low, jnp.where(is_high, high, density))

    parameters = {**_of_component(family), **dict.fromkeys(limits, ANY)}
    values = _within_limits(family.support, limits, are_values=True)
    draw = censored_draw(family, functools.partial(_ends, limits))
    return Family(parameters, LogDensity(kernel), values, draw=draw)


def _interval_censored(family: Family, given: Collection[str]) -> Family:
    """Of each value only the two numbers are known between which it lies: {…, 2}, the ends may be infinite."""
    if given:
        raise InvalidModel("interval_censored has no parameter of its own", expected="none", found=", ".join(given))

    def kernel(x: Array, *parameters: Array) -> Array:
        return _log_mass(family, parameters, x[..., 0], x[..., 1])

    return Family(_of_component(family), LogDensity(kernel), _PAIRS, event=(_ENDS,))


_PAIRS = Support(
    "two numbers along the last axis, the second not below the first",
    lambda x: x[..., 0] <= x[..., 1],
    event_rank=1,
    has_infinities=True,
)


def _zero_inflated(family: Family, given: Collection[str]) -> Family:
    """With probability p a zero, else a value of the distribution, which may be 0 too."""
    _check_own("zero_inflated", given, ("p",))
    _check_counts("zero_inflated", family)

    def kernel(x: Array, *parameters: Array) -> Array:
        *base, p = parameters
        value = log1p(-p) + family.log_density_within(x, tuple(base))
        is_zero = x == 0
        # log(p + exp(value)), by what is larger; p may be 0.
        other = log(jnp.where(p > 0, p, 1))
        zero = jnp.where(p > 0, jnp.logaddexp(other, value), value)
        return jnp.where(is_zero, zero, value)

    parameters = {**_of_component(family), "p": Parameter(PROBABILITY)}
    return Family(parameters, LogDensity(kernel), _with_zero(family.support), draw=zero_inflated_draw(family))


def _hurdle(family: Family, given: Collection[str]) -> Family:
    """With probability p a zero, else a value of the distribution that is not 0."""
    _check_own("hurdle", given, ("p",))
    support = family.support
    if not support.discrete and support not in (POSITIVE, NONNEGATIVE):
        raise InvalidModel(
            "hurdle is made of counts or of positive numbers",
            expected="such as poisson, neg_binomial, gamma or lognormal",
            found=support.description,
        )
    if support.discrete:
        _check_counts("hurdle", family)

    def kernel(x: Array, *parameters: Array) -> Array:
        *base, p = parameters
        base = tuple(base)
        is_zero = x == 0
        value = log1p(-p) + family.log_density_within(jnp.where(is_zero, jnp.ones_like(x), x), base)
        if support.discrete:
            of_zero = family.log_density_within(jnp.zeros_like(x), base)
            can_be_zero = of_zero > -np.inf
            value = value - jnp.where(can_be_zero, log1mexp(jnp.where(can_be_zero, -of_zero, 1)), 0)
        return jnp.where(is_zero, log(p), value)

    values = _with_zero(support) if support.discrete else replace(NONNEGATIVE, transforms=())
    parameters = {**_of_component(family), "p": Parameter(PROBABILITY)}
    return Family(parameters, LogDensity(kernel), values, draw=hurdle_draw(family))


_COMBINATORS: dict[str, Callable[..., Family]] = {
    "mixture": _mixture,
    "truncated": _truncated,
    "censored": _censored,
    "interval_censored": _interval_censored,
    "zero_inflated": _zero_inflated,
    "hurdle": _hurdle,
}


_OF_CUMULATIVES = ("truncated", "censored", "interval_censored")


def _check_own(name: str, given: Collection[str], wanted: Collection[str]) -> None:
    if set(given) != set(wanted):
        found = ", ".join(given) or "nothing"
        raise InvalidModel(f"wrong parameters of {name} itself", expected=", ".join(wanted), found=found)


def _limits(name: str, family: Family, given: Collection[str]) -> tuple[str, ...]:
    """Which of lower and upper there are."""
    limits = tuple(limit for limit in _LIMITS if limit in given)
    if not limits or len(limits) != len(given):
        raise InvalidModel(
            f"wrong parameters of {name} itself", expected="lower, upper or both", found=", ".join(given) or "nothing"
        )
    return limits


def _check_counts(name: str, family: Family) -> None:
    if not family.support.discrete or family.event:
        raise InvalidModel(
            f"{name} is made of counts",
            expected="such as poisson, neg_binomial or binomial",
            found=family.support.description,
        )


def _of_component(family: Family) -> dict[str, Parameter]:
    return {f"0.{name}": parameter for name, parameter in family.parameters.items()}


def _with_zero(support: Support) -> Support:
    """0 and the values of the component, whose bounds have the names that they have here."""
    description = support.description if support.inside == 0 else f"0, or {support.description}"
    return replace(
        support,
        description=description,
        contains=lambda x, *bounds: (x == 0) | _contains(support, x, bounds),
        bounds=tuple(f"0.{name}" for name in support.bounds),
        inside=0.0,
        transforms=(),
    )


def _limit(family: Family, name: str) -> Parameter:
    if family.support in (POSITIVE, NONNEGATIVE):
        return Parameter(NONNEGATIVE if name == "lower" else POSITIVE)
    return Parameter(PROBABILITY) if family.support == UNIT else ANY


def _between(family: Family, limits: tuple[str, ...]) -> Support:
    """The values from lower to upper. Those of most distributions have a transform."""
    support = family.support
    if support in (REAL, POSITIVE, NONNEGATIVE, UNIT):
        if limits == _LIMITS:
            return INTERVAL
        if limits == ("upper",):
            return at_most("upper") if support == REAL else UP_TO_UPPER
        if support != UNIT:
            return at_least("lower")
    return _within_limits(support, limits, are_values=False)


def _within_limits(support: Support, limits: tuple[str, ...], *, are_values: bool) -> Support:
    """From lower to upper, among the values of a support; `are_values`: or one of the two, which are values too."""
    count = len(support.bounds)

    def contains(x: Any, *bounds: Any) -> Any:
        member = _contains(support, x, bounds[:count])
        named = dict(zip(limits, bounds[count:], strict=True))
        if are_values:
            for limit in named.values():
                member = member | (x == limit)
        if "lower" in named:
            member = member & (x >= named["lower"])
        return member & (x <= named["upper"]) if "upper" in named else member

    description = f"{support.description}, {' and '.join(_LIMIT_WORDS[name] for name in limits)}"
    bounds = (*(f"0.{name}" for name in support.bounds), *limits)
    return Support(description, contains, bounds, discrete=support.discrete)


_LIMIT_WORDS = {"lower": "not below lower", "upper": "not above upper"}


def _ends(limits: tuple[str, ...], given: Sequence[Array]) -> tuple[Array | None, Array | None]:
    named = dict(zip(limits, given, strict=True))
    return named.get("lower"), named.get("upper")


def _contains(support: Support, x: Any, bounds: Sequence[Any]) -> Any:
    return x == x if support.contains is None else support.contains(x, *bounds)


def _log_not_below(family: Family, x: Array, parameters: Sequence[Array]) -> Array:
    """log P(X >= x)."""
    return family.cumulative.log_sf(jnp.ceil(x) - 1 if family.support.discrete else x, *parameters)


def _log_mass(family: Family, parameters: Sequence[Array], lower: Array | None, upper: Array | None) -> Array:
    """log P(lower <= X <= upper), by the tail in which both ends are. An end may be None or infinite."""
    cumulative = family.cumulative
    if upper is None:
        return _log_not_below(family, lower, parameters)
    if lower is None:
        return cumulative.log_cdf(upper, *parameters)
    has_lower, has_upper = lower > -np.inf, upper < np.inf
    # An infinite end has no part in the gradient: a finite one is put in its place, and then its value.
    first, last = jnp.where(has_lower, lower, upper), jnp.where(has_upper, upper, lower)
    first, last = (jnp.where(jnp.isfinite(end), end, 1) for end in (first, last))
    before = jnp.ceil(first) - 1 if family.support.discrete else first
    below, above = cumulative.tails(before, *parameters)
    is_right = has_lower & (below > -math.log(2))
    below, above = jnp.where(has_lower, below, -np.inf), jnp.where(has_lower, above, 0)
    up_to, beyond = cumulative.tails(last, *parameters)
    up_to, beyond = jnp.where(has_upper, up_to, 0), jnp.where(has_upper, beyond, -np.inf)
    larger, smaller = jnp.where(is_right, above, up_to), jnp.where(is_right, beyond, below)
    is_whole = smaller == -np.inf
    return larger + jnp.where(is_whole, 0, log1mexp(jnp.where(is_whole, 1, larger - smaller)))


def _logsumexp(x: Array) -> Array:
    """Over the last axis; -inf, with a gradient, where all are."""
    largest = lax.stop_gradient(jnp.max(x, axis=-1, keepdims=True))
    largest = jnp.where(largest > -np.inf, largest, 0)
    total = jnp.sum(exp(x - largest), axis=-1)
    return jnp.where(total > 0, log(jnp.where(total > 0, total, 1)) + largest[..., 0], -np.inf)


def _split(counts: Sequence[int]) -> list[slice]:
    """The places of groups of so many, one after the other."""
    ends = list(itertools.accumulate(counts))
    return [slice(end - count, end) for end, count in zip(ends, counts, strict=True)]
