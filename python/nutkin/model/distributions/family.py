"""What a distribution is: the supports of its values and parameters, their event axes, and its log density in parts.

    log p(x | parameters) = kernel(x, *parameters) - normalizer(*parameters) + carrier(x, *bounds)

The kernel holds what depends on both, the normalizer what depends on the parameters only, constants included, and the
carrier what depends on the value (and the bounds of the support) only. A normalizer has the shape of the parameters
that it depends on: of scalar parameters it is computed once, not once a value.

Counts by log odds or log rate are exact also where the probability or the rate rounds to 0, 1 or infinity. A scale
divides before anything is squared: the square of a small f32 scale is 0. Terms that cancel each other stay in one
part, lest their sums over many values cancel with what rounding has left of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jax import Array

from nutkin.model.supports import (
    CHOLESKY,
    COUNT,
    COVARIANCE,
    NONNEGATIVE,
    POSITIVE,
    PROBABILITY,
    REAL,
    Support,
)

Part = Callable[..., Array]


@dataclass(frozen=True)
class LogDensity:
    """The parts of a log density; one that is None is 0. All arrays are of one floating type.

    `kernel` and `carrier` reduce the event axes of the value. `prepare` turns the parameters of the model language
    into those that kernel and normalizer take. Outside the support the density is unspecified.
    """

    kernel: Part | None = None
    normalizer: Part | None = None
    carrier: Part | None = None
    prepare: Callable[..., tuple[Array, ...]] | None = None


@dataclass(frozen=True)
class Parameter:
    """A parameter's support, and its event axes by name: axes of one name have one size.

    `repeats`: a scalar is allowed too, and counts for every place of the event axes.
    """

    support: Support = REAL
    event: tuple[str, ...] = ()
    repeats: bool = False


@dataclass(frozen=True)
class Parts:
    """The parts of a log density at some values and parameters. None is 0."""

    kernel: Array | None
    normalizer: Array | None
    carrier: Array | None

    def signed(self) -> tuple[Array, ...]:
        """The parts whose sum, broadcast to the batch, is the log density."""
        normalizer = None if self.normalizer is None else -self.normalizer
        return tuple(part for part in (self.kernel, normalizer, self.carrier) if part is not None)

    def within(self, is_inside: Array, dtype: np.dtype) -> Parts:
        """The same with a density of 0 where the value is not inside the support."""
        kernel = jnp.where(is_inside, 0 if self.kernel is None else self.kernel, np.asarray(-np.inf, dtype))
        carrier = None if self.carrier is None else jnp.where(is_inside, self.carrier, np.zeros((), dtype))
        return Parts(kernel, self.normalizer, carrier)


@dataclass(frozen=True)
class Cumulative:
    """log P(X <= x) and log P(X > x), by one function of x and the parameters, which broadcast and are of one floating
    type.

    Below the support they are -inf and 0, above it 0 and -inf. Counts are numbers too: x is rounded down.
    """

    tails: Callable[..., tuple[Array, Array]]

    def log_cdf(self, x: Array, *parameters: Array) -> Array:
        return self.tails(x, *parameters)[0]

    def log_sf(self, x: Array, *parameters: Array) -> Array:
        return self.tails(x, *parameters)[1]


@dataclass(frozen=True)
class Family:
    """A distribution of the model language. The functions of `density` take the parameters in the table's order.

    `event`: the event axes of a value, by name; an axis that no parameter has takes its size from the value.
    `location_scale`: the names of location and scale, where x = location + scale z with z of a standard member.
    `sized`: the same for event axes of these sizes, where something depends on them.
    `cumulative`: both tails of the distribution of a number, None where no form of them is known.
    `draw`: of a key, the parameters and the shape of the whole value, a random value; None of an improper density.
    """

    parameters: Mapping[str, Parameter]
    density: LogDensity
    support: Support
    event: tuple[str, ...] = ()
    location_scale: tuple[str, str] | None = None
    sized: Callable[[Family, Mapping[str, int]], Family] | None = None
    cumulative: Cumulative | None = None
    draw: Callable[..., Array] | None = None

    @property
    def event_rank(self) -> int:
        return len(self.event)

    @property
    def transform(self) -> str | None:
        """The transform of its variables, if they choose no other; None where they cannot be sampled."""
        return self.support.transforms[0] if self.support.transforms else None

    def of_sizes(self, sizes: Mapping[str, int]) -> Family:
        """The same for event axes of these sizes."""
        return self if self.sized is None else self.sized(self, sizes)

    def parts(
        self, value: Array, parameters: tuple[Array, ...], names: Collection[str] = ("kernel", "normalizer", "carrier")
    ) -> Parts:
        """Those that are named of kernel, normalizer and carrier. All arrays are of one floating type.

        Outside the support they are unspecified: the caller knows whether that can happen. Of the parameters, the
        carrier alone needs those that bound the support only.
        """
        density = self.density
        kernel, normalizer, carrier = (
            getattr(density, name) if name in names else None for name in ("kernel", "normalizer", "carrier")
        )
        needs_all = kernel is not None or normalizer is not None
        prepared = density.prepare(*parameters) if density.prepare is not None and needs_all else parameters
        return Parts(
            kernel and kernel(value, *prepared),
            normalizer and normalizer(*prepared),
            carrier and carrier(value, *self.bounds(parameters)),
        )

    def log_density(self, value: Array, parameters: tuple[Array, ...]) -> Array:
        """Log density or mass at each value: what the parts broadcast to."""
        return sum(self.parts(value, parameters).signed())

    def log_density_within(self, value: Array, parameters: tuple[Array, ...]) -> Array:
        """The same, and -inf outside of the support, with a gradient there too."""
        support = self.support
        if support.contains is None:
            return self.log_density(value, parameters)
        is_inside = support.contains(value, *self.bounds(parameters))
        if support.inside is not None:
            events = is_inside.reshape(is_inside.shape + (1,) * self.event_rank)
            value = jnp.where(events, value, np.asarray(support.inside, value.dtype))
        return jnp.where(is_inside, self.log_density(value, parameters), np.asarray(-np.inf, value.dtype))

    def bounds(self, parameters: tuple[Array, ...]) -> tuple[Array, ...]:
        """Those of the parameters that bound the support."""
        named = dict(zip(self.parameters, parameters, strict=True))
        return tuple(named[name] for name in self.support.bounds)

    def standard_parameters(self, parameters: tuple[Array, ...]) -> tuple[Array, ...]:
        """The parameters of the standardised variable z in x = location + scale z."""
        standard = dict(zip(self.location_scale, (0, 1), strict=True))
        named = zip(self.parameters, parameters, strict=True)
        return tuple(np.asarray(standard[name], value.dtype) if name in standard else value for name, value in named)


def spoken(name: str) -> str:
    """The name of a parameter in an error: `mu of component 1` for `1.mu`."""
    *components, name = name.split(".")
    return name + "".join(f" of component {component}" for component in reversed(components))


ANY = Parameter()
ABOVE_0 = Parameter(POSITIVE)
AT_LEAST_0 = Parameter(NONNEGATIVE)
A_PROBABILITY = Parameter(PROBABILITY)
A_COUNT = Parameter(COUNT)
VECTOR = Parameter(event=("k",))
COVARIANCE_MATRIX = Parameter(COVARIANCE, ("k", "k"))
CHOLESKY_FACTOR = Parameter(CHOLESKY, ("k", "k"))
