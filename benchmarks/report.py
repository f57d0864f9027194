"""`docs/benchmarks.md`, written from the records: the ratios that matter first, then a table a model."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from benchmarks import records
from benchmarks.contest import ELIXIR, ENGINE, NUTKIN, PROGRAMS
from benchmarks.models import MODELS
from benchmarks.records import Record

FILE = Path(__file__).resolve().parent.parent / "docs" / "benchmarks.md"
NOT_A_DEFAULT = "nutpie, tune 1000"
SAMPLERS = [sampler for program in PROGRAMS for sampler in program.samplers]
NONE = "–"
R_HAT, ERROR = 1.01, 4.0

Rows = dict[str, Record]


def write() -> None:
    """Render all records."""
    by_model: dict[str, Rows] = {}
    for record in records.load():
        by_model.setdefault(record["model"], {})[record["sampler"]] = record
    sections = [_head(), _race(by_model), _cold(by_model), _workers(by_model)]
    sections += [_model(name, by_model[name]) for name in MODELS if name in by_model]
    sections.append(_versions(by_model))
    FILE.write_text("\n".join(line for section in sections if section for line in (*section, "")))


def _head() -> list[str]:
    return [
        "# Benchmarks",
        "",
        "Written by `make bench`; [benchmarks/README.md](../benchmarks/README.md) says what is measured and how. The",
        "numbers are in [benchmarks.json](benchmarks.json). Medians over seeds, of contestants that took turns;",
        "compilation is not counted unless it says so. ESS is the least of all scalars, by arviz-stats.",
    ]


def _race(by_model: dict[str, Rows]) -> list[str]:
    rows, ratios = [], []
    for name, model in MODELS.items():
        found = by_model.get(name, {})
        raced = {sampler: record for sampler, record in found.items() if "total" in record}
        peers = {sampler: record for sampler, record in raced.items() if sampler not in NUTKIN}
        if ENGINE not in raced or not peers:
            continue
        ours, fast = raced[ENGINE], _best(peers, "ess_per_second")
        defaults = {sampler: record for sampler, record in peers.items() if sampler != NOT_A_DEFAULT}
        thrifty = _best(defaults, "ess_per_1000_gradients")
        speed = _ratio(ours, peers[fast], "ess_per_second")
        if model.headline:
            ratios.append(speed)
        elixir = _ratio(raced[ELIXIR], ours, "ess_per_second") if ELIXIR in raced else None
        careful = min(record["divergences"]["median"] for record in peers.values())
        leapfrog = ours.get("leapfrog")
        rows.append(
            [
                model.title,
                _count(ours["ess_per_second"]["median"]),
                f"{_count(peers[fast]['ess_per_second']['median'])} ({fast})",
                f"**{speed:.2f}**" if _is_sampled(ours) else f"{speed:.2f} (not sampled)",
                NONE if elixir is None else f"{elixir:.2f}",
                f"{_ratio(ours, defaults[thrifty], 'ess_per_1000_gradients'):.2f} ({thrifty})",
                NONE if leapfrog is None else f"{leapfrog['ratio']:.2f} of {leapfrog['gradient']:.3g} us",
                f"{ours['r_hat']['median']:.3f}",
                f"{ours['error']:.1f}",
                f"{ours['divergences']['median']:g} / {careful:g}",
            ]
        )
    if not rows:
        return []
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else None
    titles = [
        "model",
        "ESS/s of Nutkin's engine, warmup included",
        "best peer",
        "ratio",
        "from Elixir / engine",
        "ESS per 1000 gradients / best peer at its defaults",
        "leapfrog / gradient",
        "R-hat",
        "largest error of a mean, in its standard errors",
        "divergences / least of a peer",
    ]
    note = (
        []
        if mean is None
        else ["", f"Geometric mean of the ratio over the first {len(ratios)} models: **{mean:.2f}**."]
    )
    unsampled = [
        "",
        f"Not sampled: R-hat of {R_HAT} or more, or a mean {ERROR:g} standard errors off. There ESS says little, "
        "of the peers too.",
    ]
    return ["## Speed", "", *_table(titles, rows), *note, *unsampled]


def _cold(by_model: dict[str, Rows]) -> list[str]:
    rows = []
    for name, found in by_model.items():
        started = {sampler: record["cold"] for sampler, record in found.items() if "cold" in record}
        for cache in ("empty", "warm"):
            seconds = {sampler: cold[cache]["median"] for sampler, cold in started.items()}
            peers = {sampler: value for sampler, value in seconds.items() if sampler not in NUTKIN}
            if not peers:
                continue
            fastest = min(peers, key=peers.get)
            cells = [f"{seconds[s]:.2f} ({seconds[s] / peers[fastest]:.2f})" if s in seconds else NONE for s in NUTKIN]
            others = ", ".join(f"{sampler} {value:.2f}" for sampler, value in sorted(peers.items(), key=lambda p: p[1]))
            rows.append([MODELS[name].title, cache, *cells, others])
    if not rows:
        return []
    intro = "Seconds from the start of a process to its 4 x 1000 draws, and in brackets the part of the fastest peer's."
    titles = ["model", "disk cache", "Nutkin from Elixir", "Nutkin's engine", "peers"]
    return ["## Cold start", "", intro, "", *_table(titles, rows)]


def _workers(by_model: dict[str, Rows]) -> list[str]:
    lines = []
    for name, found in by_model.items():
        record = found.get(ELIXIR, {})
        title = MODELS[name].title if name in MODELS else name
        if refit := record.get("refit"):
            lines.append(
                f"- {title}: a refit on new data of the same shape takes {1e3 * refit['refit']:.1f} ms, "
                f"{refit['refit'] / refit['sampling']:.2f} times its warmup and sampling; {refit['compilations']} "
                f"compilations in {refit['refits']} refits"
            )
        if memory := record.get("memory"):
            early, late = memory["resident_early"] / 2**20, memory["resident"] / 2**20
            lines.append(
                f"- {title}: the worker holds {early:.0f} MiB after {memory['early']} refits and {late:.0f} MiB after "
                f"{memory['refits']}, {100 * (late / early - 1):+.1f} %"
            )
        if transfer := record.get("transfer"):
            lines.append(
                f"- {title}: {transfer['bytes'] / 1e6:.0f} MB from Elixir to the first gradient take "
                f"{1e3 * transfer['gradient']['median']:.0f} ms, {transfer['ratio']:.2f} times their way through a "
                f"pipe ({1e3 * transfer['pipe']['median']:.0f} ms)"
            )
    return ["## A warm worker", "", *lines] if lines else []


def _model(name: str, found: Rows) -> list[str]:
    raced = [found[sampler] for sampler in SAMPLERS if "total" in found.get(sampler, {})]
    if not raced:
        return []
    columns: dict[str, Callable[[Record], str]] = {
        "sampler": lambda r: r["sampler"],
        "compile, s": lambda r: f"{r['compile']:.1f}",
        "total, ms (least, most)": lambda r: _spread(r["total"]),
        "warmup, ms": lambda r: _milliseconds(r["warmup"]),
        "sampling, ms": lambda r: _milliseconds(r["sample"]),
        "gradients: warmup": lambda r: _count(r["warmup_gradients"]["median"]),
        "sampling": lambda r: _count(r["sample_gradients"]["median"]),
        "bulk ESS": lambda r: _count(r["ess_bulk"]["median"]),
        "tail ESS": lambda r: _count(r["ess_tail"]["median"]),
        "ESS/s": lambda r: _count(r["ess_per_second"]["median"]),
        "ESS/s of sampling": lambda r: NONE if (e := r["ess_per_sampling_second"]) is None else _count(e["median"]),
        "ESS per 1000 gradients": lambda r: f"{r['ess_per_1000_gradients']['median']:.3g}",
        "of sampling": lambda r: f"{r['ess_per_1000_sampling_gradients']['median']:.3g}",
        "divergences": lambda r: f"{r['divergences']['median']:g}",
        "R-hat": lambda r: f"{r['r_hat']['median']:.3f}",
        "error": lambda r: f"{r['error']:.1f}",
    }
    seeds = sorted({record["seeds"] for record in raced})
    measured = sorted({record["measured"] for record in raced})
    where = " and ".join(sorted({record["machine"] for record in raced}))
    intro = f"{' or '.join(map(str, seeds))} seeds, {' to '.join(measured)}, {where}."
    rows = [[column(record) for column in columns.values()] for record in raced]
    return [f"## {MODELS[name].title}", "", intro, "", *_table(list(columns), rows)]


def _versions(by_model: dict[str, Rows]) -> list[str]:
    found: dict[str, set[str]] = {}
    for rows in by_model.values():
        for sampler, record in rows.items():
            if "versions" in record:
                text = ", ".join(f"{package} {version}" for package, version in sorted(record["versions"].items()))
                found.setdefault(sampler, set()).add(text)
    return ["## Versions", "", *(f"- {sampler}: {'; or '.join(sorted(texts))}" for sampler, texts in found.items())]


def _is_sampled(record: Record) -> bool:
    return record["r_hat"]["median"] < R_HAT and record["error"] < ERROR


def _best(rows: Rows, field: str) -> str:
    return max(rows, key=lambda sampler: rows[sampler][field]["median"])


def _ratio(ours: Record, theirs: Record, field: str) -> float:
    return ours[field]["median"] / theirs[field]["median"]


def _table(titles: list[str], rows: Iterable[list[str]]) -> list[str]:
    cells = [titles, ["---"] * len(titles), *rows]
    return [f"| {' | '.join(row)} |" for row in cells]


def _count(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _milliseconds(seconds: dict[str, Any] | None) -> str:
    return NONE if seconds is None else f"{1e3 * seconds['median']:,.1f}"


def _spread(seconds: dict[str, Any]) -> str:
    return f"{1e3 * seconds['median']:,.1f} ({1e3 * seconds['min']:,.1f}, {1e3 * seconds['max']:,.1f})"
