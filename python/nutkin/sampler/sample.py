"""Sampling from Python alone: a model tree and arrays in, arrays out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from nutkin.compile import bind
from nutkin.errors import InvalidOption
from nutkin.model import read
from nutkin.sampler.advancing import all_chunks
from nutkin.sampler.centering import centered
from nutkin.sampler.chain import Summary
from nutkin.sampler.compiled import compile_sampler
from nutkin.sampler.options import Options
from nutkin.sampler.run import Pilot, Run


@dataclass(frozen=True)
class Draws:
    """`variables` and `stats`: arrays (chains, draws, ...) by name; `chains`: how each chain ended; `seconds`: wall
    time of `warmup` and `sample`; `pilot`: what decided about centering, None where nothing was to be decided."""

    variables: Mapping[str, np.ndarray]
    stats: Mapping[str, np.ndarray]
    chains: tuple[Summary, ...]
    seconds: Mapping[str, float]
    pilot: Pilot | None


def sample(
    model: Mapping[str, Any],
    data: Mapping[str, Any] | None = None,
    *,
    tensors: Mapping[bytes, np.ndarray] | None = None,
    **options: Any,
) -> Draws:
    """Compile a model (a tree as in the wire contract's "The model"), sample it, and wait.

    `data`: anything numpy takes, by slot; `tensors`: the arrays of `constant` nodes by address; `options`: fields of
    `nutkin.sampler.Options`. Chains run in as many threads as there are cores. Warmup is not returned.
    Errors: InvalidModel, InvalidData, InvalidOption, CompileFailed, InitFailed.
    """
    settings = Options(**options)
    if settings.keep_warmup:
        hint = "use `nutkin.sampler.Run`"
        raise InvalidOption("`nutkin.sample` returns no warmup", path="$.options.keep_warmup", hint=hint)
    arrays = {name: np.asarray(value) for name, value in (data or {}).items()}
    target = bind(read(model), arrays, tensors or {}, precision=settings.precision, rewrites=settings.rewrites)
    sampler = compile_sampler(target, max_tree_depth=settings.max_tree_depth, mass_matrix=settings.mass_matrix)
    sampler, pilot = centered(sampler, settings)
    run = Run(sampler, settings, pilot)
    chunks = all_chunks(run)
    seconds = run.seconds()

    def stacked(group: str) -> dict[str, np.ndarray]:
        parts = {
            name: [getattr(c, group)[name] for chain in chunks for c in chain] for name in getattr(chunks[0][0], group)
        }
        return {
            name: np.concatenate(arrays).reshape(len(chunks), -1, *arrays[0].shape[1:])
            for name, arrays in parts.items()
        }

    return Draws(stacked("variables"), stacked("stats"), tuple(chain.summary() for chain in run.chains), seconds, pilot)
