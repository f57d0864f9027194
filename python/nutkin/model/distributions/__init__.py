"""The distributions of the model language: one table of their parameters, supports, densities, tails and draws.

Names and parameters are those of Stan and PyMC (a gamma has a rate, a normal a standard deviation).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import replace

from nutkin.errors import InvalidModel
from nutkin.model.distributions import bounded, categories, counts, matrices, positive, real, series, vectors
from nutkin.model.distributions.combinators import check_cumulative, combine
from nutkin.model.distributions.cumulative import CUMULATIVES
from nutkin.model.distributions.draws import DRAWS
from nutkin.model.distributions.family import Family as Family
from nutkin.model.distributions.family import spoken as spoken
from nutkin.model.ir import Combination
from nutkin.model.operations import close_matches

_FAMILIES: dict[str, Family] = {
    **real.FAMILIES,
    **positive.FAMILIES,
    **bounded.FAMILIES,
    **counts.FAMILIES,
    **categories.FAMILIES,
    **vectors.FAMILIES,
    **matrices.FAMILIES,
    **series.FAMILIES,
}

DISTRIBUTIONS: dict[str, Family] = {
    name: replace(family, cumulative=CUMULATIVES.get(name), draw=DRAWS.get(name)) for name, family in _FAMILIES.items()
}


def find_family(dist: str | Combination, arguments: Collection[str]) -> Family:
    """The family of this name, or of this combination, if these are its parameters. Raises InvalidModel."""
    family = _combined(dist, arguments) if isinstance(dist, Combination) else DISTRIBUTIONS.get(dist)
    if family is None:
        raise InvalidModel("there is no such distribution", found=dist, hint=close_matches(dist, DISTRIBUTIONS))
    if set(arguments) != set(family.parameters):
        missing = [parameter for parameter in family.parameters if parameter not in arguments]
        extra = [argument for argument in arguments if argument not in family.parameters]
        faults = [f"{', '.join(missing)} missing"] if missing else []
        faults += [f"{', '.join(extra)} unknown"] if extra else []
        raise InvalidModel(
            f"wrong parameters for {dist}",
            expected=", ".join(family.parameters) or "no parameters",
            found="; ".join(faults),
        )
    return family


def _combined(combination: Combination, arguments: Collection[str]) -> Family:
    given: dict[str | None, list[str]] = defaultdict(list)  # by the prefix of a component, None: its own
    for name in arguments:
        prefix, dot, rest = name.partition(".")
        given[prefix if dot else None].append(rest if dot else name)
    components = [find_family(component, given[str(place)]) for place, component in enumerate(combination.components)]
    family = combine(combination.name, components, given[None])
    for component, of in zip(combination.components, components, strict=True):
        check_cumulative(combination.name, component, of)
    return family
