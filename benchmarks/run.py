"""`make bench`: measures, and writes what it measured to docs/benchmarks.json and docs/benchmarks.md.

    python -m benchmarks.run [--models M,...] [--samplers S,...] [--seeds N] [--only PART,...]

Without options it runs everything. A part run replaces its own records, and leaves the others as they are.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence

from benchmarks import cold, contest, data, environments, records, report, workers
from benchmarks.models import MODELS
from benchmarks.race import race

PARTS = ("race", "cold", "leapfrog", "refit", "memory", "transfer")
CORES = 2
_REFITS, _MEMORY_REFITS, _MEMORY_EARLY, _TRANSFERS, _COLD_REPEATS = 30, 1000, 50, 7, 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=_names(MODELS), default=list(MODELS), help=", ".join(MODELS))
    parser.add_argument("--samplers", type=lambda text: text.split(","), default=[], help="parts of their names")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", type=_names(PARTS), default=list(PARTS), help=", ".join(PARTS))
    arguments = parser.parse_args()

    # The contestants, which inherit this, are to have the same cores everywhere.
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    environments.compile_elixir()
    programs = _programs(arguments.samplers)
    for model in arguments.models:
        data.write(model)
        _measure(model, programs, arguments)
    if "transfer" in arguments.only:
        records.update("logistic regression, 100000 x 100", contest.ELIXIR, {"transfer": workers.transfer(_TRANSFERS)})
    report.write()
    print(report.FILE.read_text())


def _names(known: Sequence[str]):
    def parse(text: str) -> list[str]:
        if unknown := [name for name in text.split(",") if name not in known]:
            raise argparse.ArgumentTypeError(f"{unknown[0]} is none of {', '.join(known)}")
        return text.split(",")

    return parse


def _programs(parts: list[str]) -> list[contest.Program]:
    """Those that stand for one of the wanted samplers, and that can be installed here."""
    usable = []
    for program in contest.PROGRAMS:
        if parts and not any(part.lower() in name.lower() for part in parts for name in program.samplers):
            continue
        try:
            program.command()
        except environments.NotInstallable as reason:
            print(f"left out: {reason}", file=sys.stderr)
        else:
            usable.append(program)
    return usable


def _measure(model: str, programs: list[contest.Program], arguments: argparse.Namespace) -> None:
    if "race" in arguments.only:
        for sampler, fields in race(model, programs, arguments.seeds):
            records.update(model, sampler, fields)
    if "cold" in arguments.only and model in cold.MODELS:
        for sampler, fields in cold.cold(model, programs, _COLD_REPEATS):
            records.update(model, sampler, fields)
    if "leapfrog" in arguments.only and MODELS[model].headline:
        records.update(model, contest.ENGINE, {"leapfrog": _leapfrog(model)})
    if "refit" in arguments.only and model in workers.REFIT_MODELS:
        records.update(model, contest.ELIXIR, {"refit": workers.refits(model, _REFITS, _REFITS)})
    if "memory" in arguments.only and model == workers.REFIT_MODELS[0]:
        memory = workers.refits(model, _MEMORY_REFITS, _MEMORY_EARLY)
        records.update(model, contest.ELIXIR, {"memory": {"early": _MEMORY_EARLY, **memory}})


def _leapfrog(model: str) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.leapfrog", model]
    done = subprocess.run(command, cwd=data.ROOT, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)


if __name__ == "__main__":
    main()
