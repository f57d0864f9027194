"""The distributions of the model language: one table of their parameters, supports and log densities, and the inference
of their shapes.

Names and parameters are those of Stan and PyMC (a gamma has a rate, a normal a standard deviation).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jax import Array

from nutkin.errors import InvalidModel
from nutkin.model import log_densities
from nutkin.model.log_densities import LogDensity
from nutkin.model.operations import close_matches
from nutkin.model.plan import broadcast_shapes, broadcasts_to
from nutkin.model.supports import (
    BINARY,
    COUNT,
    COUNT_TO_N,
    INTERVAL,
    NONNEGATIVE,
    POSITIVE,
    PROBABILITY,
    REAL,
    SIMPLEX,
    UNIT,
    Support,
)
from nutkin.model.types import Spec, show_shape


@dataclass(frozen=True)
class Parameter:
    """A parameter's support and the number of its event axes (`mu` of mv_normal has 1, `cov` 2)."""

    support: Support = REAL
    event_rank: int = 0


@dataclass(frozen=True)
class Parts:
    """The parts of a log density at some values and parameters; see `nutkin.model.log_densities`. None is 0."""

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
class Family:
    """A distribution of the model language. The functions of `density` take the parameters in the table's order."""

    parameters: Mapping[str, Parameter]
    density: LogDensity
    support: Support
    transform: str | None = "identity"
    event_rank: int = 0
    location_scale: bool = False

    @property
    def is_walk(self) -> bool:
        """Whether the event axis is not that of a parameter, so that a variable must declare its shape."""
        return self.event_rank > max(parameter.event_rank for parameter in self.parameters.values())

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

    def bounds(self, parameters: tuple[Array, ...]) -> tuple[Array, ...]:
        """Those of the parameters that bound the support."""
        named = dict(zip(self.parameters, parameters, strict=True))
        return tuple(named[name] for name in self.support.bounds)

    def standard_parameters(self, parameters: tuple[Array, ...]) -> tuple[Array, ...]:
        """The parameters of the standardised variable z in x = mu + sigma z."""
        standard = {"mu": 0, "sigma": 1}
        named = zip(self.parameters, parameters, strict=True)
        return tuple(np.asarray(standard[name], value.dtype) if name in standard else value for name, value in named)


_ANY = Parameter()
_POSITIVE = Parameter(POSITIVE)
_PROBABILITY = Parameter(PROBABILITY)
_COUNT = Parameter(COUNT)
_VECTOR = Parameter(event_rank=1)
_MATRIX = Parameter(event_rank=2)
_LOCATION_SCALE = {"mu": _ANY, "sigma": _POSITIVE}

DISTRIBUTIONS: dict[str, Family] = {
    "normal": Family(_LOCATION_SCALE, log_densities.NORMAL, REAL, location_scale=True),
    "half_normal": Family({"sigma": _POSITIVE}, log_densities.HALF_NORMAL, NONNEGATIVE, "log"),
    "lognormal": Family(_LOCATION_SCALE, log_densities.LOGNORMAL, POSITIVE, "log"),
    "student_t": Family({"nu": _POSITIVE, **_LOCATION_SCALE}, log_densities.STUDENT_T, REAL, location_scale=True),
    "cauchy": Family(_LOCATION_SCALE, log_densities.CAUCHY, REAL, location_scale=True),
    "half_cauchy": Family({"sigma": _POSITIVE}, log_densities.HALF_CAUCHY, NONNEGATIVE, "log"),
    "exponential": Family({"rate": _POSITIVE}, log_densities.EXPONENTIAL, NONNEGATIVE, "log"),
    "gamma": Family({"alpha": _POSITIVE, "beta": _POSITIVE}, log_densities.GAMMA, POSITIVE, "log"),
    "inverse_gamma": Family({"alpha": _POSITIVE, "beta": _POSITIVE}, log_densities.INVERSE_GAMMA, POSITIVE, "log"),
    "beta": Family({"alpha": _POSITIVE, "beta": _POSITIVE}, log_densities.BETA, UNIT, "logit"),
    "uniform": Family({"lower": _ANY, "upper": _ANY}, log_densities.UNIFORM, INTERVAL, "interval"),
    "laplace": Family(_LOCATION_SCALE, log_densities.LAPLACE, REAL, location_scale=True),
    "logistic": Family(_LOCATION_SCALE, log_densities.LOGISTIC, REAL, location_scale=True),
    "weibull": Family({"alpha": _POSITIVE, "sigma": _POSITIVE}, log_densities.WEIBULL, POSITIVE, "log"),
    "bernoulli": Family({"p": _PROBABILITY}, log_densities.BERNOULLI, BINARY, None),
    "bernoulli_logit": Family({"logits": _ANY}, log_densities.BERNOULLI_LOGIT, BINARY, None),
    "binomial": Family({"n": _COUNT, "p": _PROBABILITY}, log_densities.BINOMIAL, COUNT_TO_N, None),
    "binomial_logit": Family({"n": _COUNT, "logits": _ANY}, log_densities.BINOMIAL_LOGIT, COUNT_TO_N, None),
    "poisson": Family({"mu": Parameter(NONNEGATIVE)}, log_densities.POISSON, COUNT, None),
    "poisson_log": Family({"eta": _ANY}, log_densities.POISSON_LOG, COUNT, None),
    "neg_binomial": Family({"mu": _POSITIVE, "alpha": _POSITIVE}, log_densities.NEG_BINOMIAL, COUNT, None),
    "dirichlet": Family({"alpha": Parameter(POSITIVE, 1)}, log_densities.DIRICHLET, SIMPLEX, "stick_breaking", 1),
    "mv_normal": Family(
        {"mu": _VECTOR, "cov": _MATRIX},
        log_densities.MV_NORMAL,
        REAL,
        event_rank=1,
    ),
    "mv_normal_cholesky": Family(
        {"mu": _VECTOR, "chol": _MATRIX},
        log_densities.MV_NORMAL_CHOLESKY,
        REAL,
        event_rank=1,
    ),
    "gaussian_random_walk": Family({"sigma": _POSITIVE}, log_densities.GAUSSIAN_RANDOM_WALK, REAL, event_rank=1),
}


def find_family(name: str, arguments: Mapping[str, object]) -> Family:
    """The family of this name, if these are its parameters. Raises InvalidModel."""
    family = DISTRIBUTIONS.get(name)
    if family is None:
        raise InvalidModel("there is no such distribution", found=name, hint=close_matches(name, DISTRIBUTIONS))
    if set(arguments) != set(family.parameters):
        missing = [parameter for parameter in family.parameters if parameter not in arguments]
        extra = [argument for argument in arguments if argument not in family.parameters]
        faults = [f"{', '.join(missing)} missing"] if missing else []
        faults += [f"{', '.join(extra)} unknown"] if extra else []
        raise InvalidModel(
            f"wrong parameters for {name}", expected=", ".join(family.parameters), found="; ".join(faults)
        )
    return family


def variable_shape(family: Family, specs: Mapping[str, Spec], declared: tuple[int, ...] | None) -> tuple[int, ...]:
    """The shape of a variable: the declared one, or what the parameters broadcast to. Raises InvalidModel."""
    batch, event = _parameter_shapes(family, specs)
    if declared is None:
        if event is None:
            raise InvalidModel("the number of steps is not known", expected="a shape {…, steps}", found="no shape")
        return batch + event
    rank = len(declared) - family.event_rank
    declared_event = declared[max(rank, 0) :]
    if rank < 0 or event not in (None, declared_event) or not broadcasts_to(batch, declared[:rank]):
        raise InvalidModel(
            "the parameters do not broadcast to the declared shape",
            expected=show_shape(declared),
            found=_show_parameters(specs),
            hint="the shape is that of the whole variable, event axes included",
        )
    return declared


def observed_batch(family: Family, specs: Mapping[str, Spec], value: Spec) -> tuple[int, ...]:
    """The shape of the log density of an observed value. Raises InvalidModel.

    The parameters broadcast to the value, never the value to the parameters, lest {n} with {n, 1} give {n, n};
    but a scalar may be observed under parameters of any shape.
    """
    batch, event = _parameter_shapes(family, specs)
    rank = len(value.shape) - family.event_rank
    if rank >= 0 and event in (None, value.shape[rank:]):
        if rank == 0:
            return batch
        if broadcasts_to(batch, value.shape[:rank]):
            return value.shape[:rank]
    raise InvalidModel(
        "the parameters do not broadcast to the observed value",
        expected=f"parameters that broadcast to {show_shape(value.shape)}",
        found=_show_parameters(specs),
        hint="reshape or broadcast the value if it is to be repeated",
    )


def _parameter_shapes(family: Family, specs: Mapping[str, Spec]) -> tuple[tuple[int, ...], tuple[int, ...] | None]:
    """Batch shape, and event shape (None for a walk, whose length no parameter tells)."""
    batches, event_sizes = [], set()
    for name, parameter in family.parameters.items():
        shape = specs[name].shape
        rank = len(shape) - parameter.event_rank
        if rank < 0:
            raise InvalidModel(
                f"the parameter {name} has too few axes",
                expected="{…, k}" if parameter.event_rank == 1 else "{…, k, k}",
                found=show_shape(shape),
            )
        batches.append(shape[:rank])
        event_sizes.update(shape[rank:])
    if len(event_sizes) > 1:
        raise InvalidModel(
            "the event axes of the parameters differ", expected="one size k", found=_show_parameters(specs)
        )
    batch = broadcast_shapes(batches)
    if family.is_walk:
        return batch, None
    event = tuple(event_sizes) * family.event_rank
    if family.support is SIMPLEX and event == (1,):
        raise InvalidModel("a simplex has at least two parts", expected="k of at least 2", found="1")
    return batch, event


def _show_parameters(specs: Mapping[str, Spec]) -> str:
    return ", ".join(f"{name} {show_shape(spec.shape)}" for name, spec in specs.items())
