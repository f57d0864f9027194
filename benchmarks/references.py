"""Posterior means to compare with: exact, posteriordb's, or those of a long run of NumPyro that is kept here.

`python -m benchmarks.references MODEL...` makes long runs and writes them to `references/`; so does the first race of a
model that has none.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks import data
from benchmarks.models import MODELS

FOLDER = Path(__file__).resolve().parent / "references"
_KNOWN = data.ROOT / "tests" / "references"
_FIRST_SEED, _RUNS, _RUNS_OF_SLOW = 100, 10, 2


@dataclass(frozen=True)
class Reference:
    """Means of all scalars of a model, and the standard errors of these means: (scalars,) each."""

    mean: np.ndarray
    mcse: np.ndarray


def _posteriordb(name: str) -> Callable[[str], Reference]:
    """10,000 nearly independent draws; elements are counted from 1, and in the order of the file."""

    def read(model: str) -> Reference:
        known = json.loads((_KNOWN / "posteriordb" / f"{name}.json").read_text())["reference"]
        chosen = [known[key] for p in MODELS[model].parameters for key in known if key.split("[")[0] == p]
        return Reference(np.array([k["mean"] for k in chosen]), np.array([k["sd"] for k in chosen]) / 100)

    return read


def _exmc(name: str) -> Callable[[str], Reference]:
    """Exact, by quadrature."""

    def read(model: str) -> Reference:
        known = json.loads((_KNOWN / "exmc" / "bench_reference.json").read_text())[name]
        mean = [known[key][0] for p in MODELS[model].parameters for key in known if key == p or key.startswith(f"{p}_")]
        return Reference(np.array(mean), np.zeros(len(mean)))

    return read


def _zero(scalars: int) -> Callable[[str], Reference]:
    return lambda _model: Reference(np.zeros(scalars), np.zeros(scalars))


_SOURCES: dict[str, Callable[[str], Reference]] = {
    "eight_schools": _posteriordb("eight_schools-eight_schools_noncentered"),
    "diamonds": _posteriordb("diamonds-diamonds"),
    "ar5": _posteriordb("arK-arK"),
    "blr": _posteriordb("sblrc-blr"),
    "exmc_simple": _exmc("simple"),
    "exmc_medium": _exmc("medium"),
    "exmc_stress": _exmc("stress"),
    "exmc_eight_schools": _exmc("eight_schools"),
    "funnel": _zero(10),
    "exmc_funnel": _zero(10),
}


def _long_run(model: str) -> Reference:
    file = FOLDER / f"{model}.json"
    if not file.exists():
        make(model)
    kept = json.loads(file.read_text())
    return Reference(np.array(kept["mean"]), np.array(kept["mcse"]))


def reference(model: str) -> Reference:
    return _SOURCES.get(model, _long_run)(model)


def make(model: str) -> None:
    """Pool the runs of several seeds of NumPyro, and write their means."""
    from arviz_stats.base import array_stats

    from benchmarks import contest, diagnostics

    data.write(model)
    program = next(program for program in contest.PROGRAMS if "NumPyro" in program.samplers)
    runs, seeds = [], _RUNS_OF_SLOW if MODELS[model].seeds else _RUNS
    with (
        tempfile.TemporaryDirectory() as folder,
        contest.Contestant(program, model, cache=Path(folder) / "cache") as contestant,
    ):
        contestant.ready()
        for seed in range(_FIRST_SEED, _FIRST_SEED + seeds):
            contestant.sample("NumPyro", seed, Path(folder) / str(seed))
            runs.append(diagnostics.load(Path(folder) / str(seed), MODELS[model].parameters))
    pooled = np.concatenate(runs, axis=1)
    kept = {
        "made_by": f"NumPyro, {pooled.shape[1]} chains of {pooled.shape[2]} draws",
        "mean": pooled.mean(axis=(1, 2)).tolist(),
        "mcse": [float(array_stats.mcse(scalar, method="mean")) for scalar in pooled],
    }
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{model}.json").write_text(json.dumps(kept) + "\n")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        make(name)
