"""The distributions of the model language: one table onto NumPyro's, and the inference of their shapes.

Names and parameters are those of Stan and PyMC (a gamma has a rate, a normal a standard deviation).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import jax.numpy as jnp
import numpyro.distributions as dist
from jax import Array

from nutkin.errors import InvalidModel
from nutkin.model.operations import close_matches
from nutkin.model.plan import broadcast_shapes, broadcasts_to
from nutkin.model.replacements import BernoulliLogit, BinomialLogit, NegBinomial, PoissonLog, RandomWalk
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
class Family:
    """A distribution of the model language.

    `build` takes the parameters in the table's order, and NumPyro's `validate_args`.
    """

    parameters: Mapping[str, Parameter]
    build: Callable[..., dist.Distribution]
    support: Support
    transform: str | None = "identity"
    event_rank: int = 0
    location_scale: bool = False

    @property
    def is_walk(self) -> bool:
        """Whether the event axis is not that of a parameter, so that a variable must declare its shape."""
        return self.event_rank > max(parameter.event_rank for parameter in self.parameters.values())

    def log_density(self, value: Array, parameters: tuple[Array, ...]) -> Array:
        """Log density or mass at each value, of the value's batch shape. All are of one floating type.

        Outside the support it is unspecified: the caller knows whether that can happen.
        """
        return self.build(*parameters, validate_args=False).log_prob(value).astype(value.dtype)

    def standard_parameters(self, parameters: tuple[Array, ...]) -> tuple[Array, ...]:
        """The parameters of the standardised variable z in x = mu + sigma z."""
        standard = {"mu": jnp.zeros_like, "sigma": jnp.ones_like}
        named = zip(self.parameters, parameters, strict=True)
        return tuple(standard[name](value) if name in standard else value for name, value in named)


def _weibull(alpha: Array, sigma: Array, **options: bool) -> dist.Distribution:
    return dist.Weibull(sigma, alpha, **options)


def _binomial(n: Array, p: Array, **options: bool) -> dist.Distribution:
    return dist.BinomialProbs(p, n, **options)


def _mv_normal(mu: Array, cov: Array, **options: bool) -> dist.Distribution:
    return dist.MultivariateNormal(mu, covariance_matrix=cov, **options)


def _mv_normal_cholesky(mu: Array, chol: Array, **options: bool) -> dist.Distribution:
    return dist.MultivariateNormal(mu, scale_tril=chol, **options)


_ANY = Parameter()
_POSITIVE = Parameter(POSITIVE)
_PROBABILITY = Parameter(PROBABILITY)
_COUNT = Parameter(COUNT)
_VECTOR = Parameter(event_rank=1)
_MATRIX = Parameter(event_rank=2)
_LOCATION_SCALE = {"mu": _ANY, "sigma": _POSITIVE}

DISTRIBUTIONS: dict[str, Family] = {
    "normal": Family(_LOCATION_SCALE, dist.Normal, REAL, location_scale=True),
    "half_normal": Family({"sigma": _POSITIVE}, dist.HalfNormal, NONNEGATIVE, "log"),
    "lognormal": Family(_LOCATION_SCALE, dist.LogNormal, POSITIVE, "log"),
    "student_t": Family({"nu": _POSITIVE, **_LOCATION_SCALE}, dist.StudentT, REAL, location_scale=True),
    "cauchy": Family(_LOCATION_SCALE, dist.Cauchy, REAL, location_scale=True),
    "half_cauchy": Family({"sigma": _POSITIVE}, dist.HalfCauchy, NONNEGATIVE, "log"),
    "exponential": Family({"rate": _POSITIVE}, dist.Exponential, NONNEGATIVE, "log"),
    "gamma": Family({"alpha": _POSITIVE, "beta": _POSITIVE}, dist.Gamma, POSITIVE, "log"),
    "inverse_gamma": Family({"alpha": _POSITIVE, "beta": _POSITIVE}, dist.InverseGamma, POSITIVE, "log"),
    "beta": Family({"alpha": _POSITIVE, "beta": _POSITIVE}, dist.Beta, UNIT, "logit"),
    "uniform": Family({"lower": _ANY, "upper": _ANY}, dist.Uniform, INTERVAL, "interval"),
    "laplace": Family(_LOCATION_SCALE, dist.Laplace, REAL, location_scale=True),
    "logistic": Family(_LOCATION_SCALE, dist.Logistic, REAL, location_scale=True),
    "weibull": Family({"alpha": _POSITIVE, "sigma": _POSITIVE}, _weibull, POSITIVE, "log"),
    "bernoulli": Family({"p": _PROBABILITY}, dist.BernoulliProbs, BINARY, None),
    "bernoulli_logit": Family({"logits": _ANY}, BernoulliLogit, BINARY, None),
    "binomial": Family({"n": _COUNT, "p": _PROBABILITY}, _binomial, COUNT_TO_N, None),
    "binomial_logit": Family({"n": _COUNT, "logits": _ANY}, BinomialLogit, COUNT_TO_N, None),
    "poisson": Family({"mu": Parameter(NONNEGATIVE)}, dist.Poisson, COUNT, None),
    "poisson_log": Family({"eta": _ANY}, PoissonLog, COUNT, None),
    "neg_binomial": Family({"mu": _POSITIVE, "alpha": _POSITIVE}, NegBinomial, COUNT, None),
    "dirichlet": Family({"alpha": Parameter(POSITIVE, 1)}, dist.Dirichlet, SIMPLEX, "stick_breaking", 1),
    "mv_normal": Family(
        {"mu": _VECTOR, "cov": _MATRIX},
        _mv_normal,
        REAL,
        event_rank=1,
    ),
    "mv_normal_cholesky": Family(
        {"mu": _VECTOR, "chol": _MATRIX},
        _mv_normal_cholesky,
        REAL,
        event_rank=1,
    ),
    "gaussian_random_walk": Family({"sigma": _POSITIVE}, RandomWalk, REAL, event_rank=1),
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
