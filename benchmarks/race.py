"""The race: contestants compile a model, and then take turns, seed by seed, one at a time."""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import contest, diagnostics
from benchmarks.models import MODELS
from benchmarks.references import reference

_WARM_SEED = 0


def race(model: str, programs: Sequence[contest.Program], seeds: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Run one model -> (sampler, its fields of a record) for each sampler."""
    seeds = min(seeds, MODELS[model].seeds or seeds)
    runs: dict[str, list[dict[str, Any]]] = {}
    draws: dict[str, list[np.ndarray]] = {}
    entrants, ready = {}, {}
    with tempfile.TemporaryDirectory() as scratch, ExitStack() as running:
        for program, samplers in _entered(model, programs):
            cache = Path(scratch) / "caches" / program.script
            contestant = running.enter_context(contest.Contestant(program, model, cache=cache))
            answer = contestant.ready()
            for sampler in samplers:
                entrants[sampler], ready[sampler], runs[sampler], draws[sampler] = contestant, answer, [], []
        # A slow model needs no first run to be warm.
        first = 1 if MODELS[model].seeds else _WARM_SEED
        for seed in range(first, seeds + 1):
            for sampler, contestant in entrants.items():
                folder = Path(scratch) / sampler / str(seed)
                run = contestant.sample(sampler, seed, folder)
                if seed != _WARM_SEED:
                    runs[sampler].append(run)
                    draws[sampler].append(diagnostics.load(folder, MODELS[model].parameters))

    for sampler in entrants:
        print(f"{model}: {sampler}", file=sys.stderr)
        yield sampler, _summary(model, ready[sampler], runs[sampler], draws[sampler])


def _entered(model: str, programs: Sequence[contest.Program]) -> Iterator[tuple[contest.Program, list[str]]]:
    """The programs that run this model, with their samplers that do."""
    wanted = MODELS[model].peers
    for program in programs:
        samplers = [name for name in program.samplers if wanted is None or name in (*contest.NUTKIN, *wanted)]
        if samplers and (program.models is None or model in program.models):
            yield program, samplers


def _summary(model: str, ready: dict, runs: list[dict], draws: list[np.ndarray]) -> dict[str, Any]:
    qualities = [diagnostics.quality(run) for run in draws]
    bulk = [quality.ess_bulk for quality in qualities]
    total = [run["seconds"]["total"] for run in runs]
    sample = [run["seconds"]["sample"] for run in runs]
    drawn = [run["gradients"]["sample"] for run in runs]
    warmed = [run["gradients"]["warmup"] for run in runs]
    return {
        "seeds": len(runs),
        "versions": ready["versions"],
        "compile": ready["compile"],
        "warmup": spread(run["seconds"]["warmup"] for run in runs),
        "sample": spread(sample),
        "total": spread(total),
        "warmup_gradients": spread(warmed),
        "sample_gradients": spread(drawn),
        "ess_bulk": spread(bulk),
        "ess_tail": spread(quality.ess_tail for quality in qualities),
        "ess_per_second": spread(b / t for b, t in zip(bulk, total, strict=True)),
        "ess_per_sampling_second": spread(None if s is None else b / s for b, s in zip(bulk, sample, strict=True)),
        "ess_per_1000_gradients": spread(1e3 * b / (w + d) for b, w, d in zip(bulk, warmed, drawn, strict=True)),
        "ess_per_1000_sampling_gradients": spread(1e3 * b / d for b, d in zip(bulk, drawn, strict=True)),
        "divergences": spread(run["divergences"] for run in runs),
        "r_hat": spread(quality.r_hat for quality in qualities),
        "error": float(diagnostics.errors(draws, reference(model)).max()),
    }


def spread(values: Any) -> dict[str, float] | None:
    """Median, least and most; None where a value is not known."""
    values = list(values)
    if any(value is None for value in values):
        return None
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}
