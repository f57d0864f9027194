"""Log densities, and logarithms of distribution functions, as values of a model: element by element, not summed."""

from __future__ import annotations

from collections.abc import Sequence

import jax.numpy as jnp
from jax import Array

from nutkin.errors import InvalidModel
from nutkin.model.distributions import find_family
from nutkin.model.distributions.shapes import batch_shape, event_sizes
from nutkin.model.ir import LogProbability
from nutkin.model.plan import Plan, broadcast_shapes
from nutkin.model.types import Spec, show_shape


def plan_log_probability(node: LogProbability, specs: Sequence[Spec], precision: str) -> Plan:
    """Of a value, the first operand, under the parameters in the order of the node. Both broadcast."""
    value, *rest = specs
    family = find_family(node.dist, node.args)
    named = dict(zip(node.args, rest, strict=True))
    sizes = event_sizes(family, named)
    family = family.of_sizes(event_sizes(family, named, value.shape))
    places = {name: place for place, name in enumerate(node.args, 1)}
    rank = len(value.shape) - family.event_rank
    event = value.shape[max(rank, 0) :]
    known = dict(sizes)
    if rank < 0 or any(known.setdefault(axis, size) != size for axis, size in zip(family.event, event, strict=True)):
        raise InvalidModel(
            f"the value has not the event axes of {node.dist}",
            expected="{" + ", ".join(("…", *(str(sizes.get(axis, axis)) for axis in family.event))) + "}",
            found=show_shape(value.shape),
        )
    shape = broadcast_shapes([value.shape[:rank], batch_shape(family, named)])

    if node.of != "density" and family.cumulative is None:
        raise InvalidModel(
            f"{node.dist} has no distribution function in closed form",
            expected="such as normal, student_t, gamma, weibull or poisson",
            found=str(node.dist),
        )

    def run(value: Array, *given: Array) -> Array:
        parameters = tuple(given[places[name] - 1] for name in family.parameters)
        match node.of:
            case "cdf":
                result = family.cumulative.log_cdf(value, *parameters)
            case "sf":
                result = family.cumulative.log_sf(value, *parameters)
            case _:
                result = family.log_density_within(value, parameters)
        return jnp.broadcast_to(result, shape)

    supports = {places[name]: parameter.support for name, parameter in family.parameters.items()}
    return Plan(shape, precision, (precision,) * len(specs), run, supports)
