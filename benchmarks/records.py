"""`docs/benchmarks.json`: one record a model and sampler. A run replaces what it measured, and leaves the rest."""

from __future__ import annotations

import json
import os
import platform
from datetime import date
from pathlib import Path
from typing import Any

FILE = Path(__file__).resolve().parent.parent / "docs" / "benchmarks.json"

Record = dict[str, Any]


def machine() -> str:
    model = next(
        (line.split(":", 1)[1].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")),
        platform.machine(),
    )
    return f"{model}, {len(os.sched_getaffinity(0))} cores, {platform.system()}"


def _lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines() if Path(path).exists() else []


def load() -> list[Record]:
    return json.loads(FILE.read_text())["records"] if FILE.exists() else []


def update(model: str, sampler: str, fields: dict[str, Any]) -> None:
    """Put the fields into the record, which is made if there is none, with the day and the machine of this run."""
    records = load()
    found = next((r for r in records if (r["model"], r["sampler"]) == (model, sampler)), None)
    if found is None:
        records.append(found := {"model": model, "sampler": sampler})
    found.update({"measured": date.today().isoformat(), "machine": machine(), **_rounded(fields)})
    FILE.write_text(json.dumps({"records": records}, indent=1) + "\n")


def _rounded(value: Any) -> Any:
    """Six digits are more than a clock and a machine give."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    return value
