"""Sampling from Python alone: a model tree and arrays in, arrays out."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from nutkin.compile import bind
from nutkin.errors import InvalidOption
from nutkin.model import read
from nutkin.sampler.chain import Chain, Chunk, Summary
from nutkin.sampler.compiled import compile_sampler
from nutkin.sampler.options import Options
from nutkin.sampler.run import Run, cores


@dataclass(frozen=True)
class Draws:
    """`variables` and `stats`: arrays (chains, draws, ...) by name; `chains`: how each chain ended."""

    variables: Mapping[str, np.ndarray]
    stats: Mapping[str, np.ndarray]
    chains: tuple[Summary, ...]


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
    target = bind(read(model), arrays, tensors or {}, precision=settings.precision)
    run = Run(compile_sampler(target, max_tree_depth=settings.max_tree_depth), settings)

    def finish(chain: Chain) -> list[Chunk]:
        chunks = []
        while not chain.finished:
            if (chunk := chain.advance()) is not None:
                chunks.append(chunk)
        return chunks

    with ThreadPoolExecutor(cores()) as threads:
        chains = list(threads.map(finish, run.chains))

    def stacked(group: str) -> dict[str, np.ndarray]:
        names = getattr(chains[0][0], group)
        return {
            name: np.stack([np.concatenate([getattr(c, group)[name] for c in chain]) for chain in chains])
            for name in names
        }

    return Draws(stacked("variables"), stacked("stats"), tuple(chain.summary() for chain in run.chains))
