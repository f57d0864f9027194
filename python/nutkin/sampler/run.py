"""A run: the chains of one request, ready to be advanced in any order."""

from __future__ import annotations

import os

import numpy as np

from nutkin.errors import InvalidOption
from nutkin.sampler.chain import Chain
from nutkin.sampler.compiled import Sampler
from nutkin.sampler.options import Options


def cores() -> int:
    """How many chains can run at once: the cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Run:
    """`chains` are independent of each other: their order, their threads and their chunks change no draw."""

    def __init__(self, sampler: Sampler, options: Options) -> None:
        """Errors: InvalidOption for an unknown variable, or a starting value that does not fit."""
        target = sampler.target
        names = [output.name for output in (*target.parameters, *target.deterministic)]
        unknown = [name for name in options.variables or () if name not in names]
        if unknown:
            raise InvalidOption(
                f"option `variables` names `{unknown[0]}`, which the model does not have",
                path="$.options.variables",
                expected=", ".join(f"`{name}`" for name in names),
                found=f"`{unknown[0]}`",
            )
        centre, given = target.unconstrain(options.init.values)
        spread = np.where(given, 0.0, options.init.radius)
        self.sampler = sampler
        self.options = options
        self.chains = tuple(Chain(sampler, options, index, centre, spread) for index in range(options.chains))
