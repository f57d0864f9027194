"""Cold starts: from the start of a process to the draws of a new model, without and with a warm disk cache.

The contestants take turns. Each repeat gives every one of them an empty folder for its caches, and starts it twice.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks import contest
from benchmarks.race import spread

MODELS = ("eight_schools", "logistic", "radon")
# BlackJAX and pystan are far behind these.
SCRIPTS = ("Benchmarks.Contestant", "sample_engine.py", "sample_numpyro.py", "sample_nutpie.py")


def cold(
    model: str, programs: Sequence[contest.Program], repeats: int
) -> Iterator[tuple[str, dict[str, dict[str, Any]]]]:
    """-> (sampler, {"cold": {"empty": seconds, "warm": seconds}}); of a program with several samplers, its first."""
    programs = [program for program in programs if program.script in SCRIPTS]
    seconds: dict[str, dict[str, list[float]]] = {program.script: {"empty": [], "warm": []} for program in programs}
    for repeat in range(1, repeats + 1):
        with tempfile.TemporaryDirectory() as scratch:
            for state in ("empty", "warm"):
                for program in programs:
                    folder = Path(scratch) / program.script
                    seconds[program.script][state].append(_start_to_draws(program, model, repeat, folder))
    for program in programs:
        print(f"{model}, cold: {program.script}", file=sys.stderr)
        found = {state: spread(values) for state, values in seconds[program.script].items()}
        yield next(iter(program.samplers)), {"cold": {"repeats": repeats, **found}}


def _start_to_draws(program: contest.Program, model: str, seed: int, folder: Path) -> float:
    started = time.perf_counter()
    with contest.Contestant(program, model, cache=folder / "cache", script=program.cold_script) as contestant:
        contestant.ready()
        contestant.sample(next(iter(program.samplers)), seed, folder / "draws")
        return time.perf_counter() - started
