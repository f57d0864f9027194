"""The passes in the order in which they are applied, by the names under which they are reported and switched off."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nutkin.errors import InvalidOption
from nutkin.model.operations import close_matches
from nutkin.model.program import Program
from nutkin.model.rewrites.generalized_linear import generalized_linear
from nutkin.model.rewrites.joined import joined
from nutkin.model.rewrites.native_loops import cumulative_sum, segment_sum
from nutkin.model.rewrites.normal_sufficient_statistics import normal_sufficient_statistics
from nutkin.model.rewrites.parameter_free import parameter_free

REWRITES: dict[str, Callable[[Program], Program]] = {
    "joined": joined,
    "normal_sufficient_statistics": normal_sufficient_statistics,
    "generalized_linear": generalized_linear,
    "segment_sum": segment_sum,
    "cumulative_sum": cumulative_sum,
    "parameter_free": parameter_free,
}


def rewrite(program: Program, names: Sequence[str] | None = None) -> Program:
    """Apply the passes of these names, None for all. What was applied is in the `rewrites` of the result.

    Raises InvalidOption for a name that there is not.
    """
    check_names(names)
    for name, apply in REWRITES.items():
        if names is None or name in names:
            program = apply(program)
    return program


def check_names(names: Sequence[str] | None) -> None:
    """Raises InvalidOption for a name that there is not."""
    for name in names or ():
        if name not in REWRITES:
            raise InvalidOption(
                "option `rewrites` names a rewrite that there is not",
                path="$.options.rewrites",
                expected=", ".join(REWRITES),
                found=str(name),
                hint=close_matches(str(name), REWRITES),
            )
