"""The loop of a contestant: what `benchmarks.contest` expects of a program.

    program MODEL DATA_FOLDER

It prints one line of JSON when the model is compiled, `{"compile": seconds, "versions": {...}}`. For each line
`VARIANT SEED FOLDER` that it reads it samples, writes the draws of each variable to `FOLDER/NAME.npy`, an array
(chains, draws, ...), and prints `{"seconds": {...}, "gradients": {...}, "divergences": n}`. Writing is not timed.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np

CHAINS, DRAWS = 4, 1000


@dataclass(frozen=True)
class Result:
    """`variables`: draws by name; `seconds` and `gradients`: of the `warmup`, the `sample`, or both (`total`), None
    where the sampler does not say."""

    variables: Mapping[str, np.ndarray]
    seconds: Mapping[str, float | None]
    gradients: Mapping[str, int | None]
    divergences: int


Sample = Callable[[str, int], Result]


def serve(prepare: Callable[[str, dict[str, np.ndarray]], Sample], packages: tuple[str, ...]) -> None:
    """`prepare(model, data)` compiles, and returns the function of variant and seed that samples."""
    # What a sampler prints goes where it disturbs nothing.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def say(message: Mapping) -> None:
        print(json.dumps(message), file=answers, flush=True)

    model, folder = sys.argv[1], Path(sys.argv[2])
    data = {file.stem: np.load(file) for file in sorted(folder.glob("*.npy"))}
    started = time.perf_counter()
    sample = prepare(model, data)
    versions = {"python": ".".join(map(str, sys.version_info[:3])), **{name: version(name) for name in packages}}
    say({"compile": time.perf_counter() - started, "versions": versions})
    for line in sys.stdin:
        variant, seed, destination = line.split(maxsplit=2)
        result = sample(variant, int(seed))
        for name, draws in result.variables.items():
            np.save(Path(destination.strip()) / f"{name}.npy", np.asarray(draws))
        say({"seconds": result.seconds, "gradients": result.gradients, "divergences": result.divergences})
