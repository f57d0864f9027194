"""The distributions of the model language: one table of their parameters, supports, densities, tails and draws.

Names and parameters are those of Stan and PyMC (a gamma has a rate, a normal a standard deviation).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from nutkin.errors import InvalidModel
from nutkin.model.distributions import bounded, categories, counts, matrices, positive, real, series, vectors
from nutkin.model.distributions.cumulative import CUMULATIVES
from nutkin.model.distributions.draws import DRAWS
from nutkin.model.distributions.family import Family as Family
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
            f"wrong parameters for {name}",
            expected=", ".join(family.parameters) or "no parameters",
            found="; ".join(faults),
        )
    return family
