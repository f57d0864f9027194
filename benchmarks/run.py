"""Times the contestants side by side: they take turns, seed by seed. Writes docs/benchmarks.{json,md}."""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HERE = ROOT / "benchmarks"
REFERENCE_MEAN = 4.41  # of mu, from posteriordb; here only to see that all sample the same model


@dataclass(frozen=True)
class Contestant:
    name: str
    command: list[str]
    folder: Path = ROOT


def peer_python(name: str) -> str:
    """A Python with the packages of peers/NAME.txt, in an environment that is made once."""
    environment = HERE / ".environments" / name
    python = environment / "bin" / "python"
    wanted = (HERE / "peers" / f"{name}.txt").read_text()
    stamp = environment / "requirements"
    if not stamp.exists() or stamp.read_text() != wanted:
        print(f"making the environment of {name}", file=sys.stderr)
        base = getattr(sys, "_base_executable", sys.executable)
        subprocess.run([base, "-m", "venv", "--clear", environment], check=True)
        install = [python, "-m", "pip", "install", "--quiet", "-r", HERE / "peers" / f"{name}.txt"]
        subprocess.run(install, check=True, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        stamp.write_text(wanted)
    return str(python)


def contestants() -> list[Contestant]:
    nutpie = [peer_python("nutpie"), str(HERE / "peers" / "sample_nutpie.py")]
    return [
        Contestant("Nutkin from Elixir", ["mix", "run", str(HERE / "nutkin.exs")], ROOT / "elixir_client"),
        Contestant("nutpie, default warmup", [*nutpie, "default"]),
        Contestant("nutpie, 1000 warmup", [*nutpie, "1000"]),
    ]


def start(contestant: Contestant) -> subprocess.Popen:
    process = subprocess.Popen(
        contestant.command, cwd=contestant.folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    while (line := process.stdout.readline()).strip() != "ready":
        if not line:
            raise SystemExit(f"{contestant.name} ended before it was ready")
    return process


def ask(process: subprocess.Popen, seed: int) -> dict[str, float]:
    process.stdin.write(f"{seed}\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=15)
    seeds = parser.parse_args().seeds

    entrants = contestants()
    processes = [start(entrant) for entrant in entrants]
    results: dict[str, list[dict[str, float]]] = {entrant.name: [] for entrant in entrants}
    for seed in range(1, seeds + 1):
        for entrant, process in zip(entrants, processes, strict=True):
            results[entrant.name].append(ask(process, seed))
    for process in processes:
        process.stdin.close()
        process.wait(timeout=30)

    records = []
    for name, runs in results.items():
        seconds = [run["seconds"] for run in runs]
        mean = statistics.mean(run["mean"] for run in runs)
        if abs(mean - REFERENCE_MEAN) > 0.1:
            raise SystemExit(f"{name} samples another model: mean of mu {mean}")
        records.append(
            {
                "sampler": name,
                "model": "eight schools, non-centred",
                "seconds": {"min": min(seconds), "median": statistics.median(seconds), "max": max(seconds)},
                "mean_mu": mean,
            }
        )
    write(records, seeds)


def write(records: list[dict], seeds: int) -> None:
    machine = f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}"
    report = json.dumps({"machine": machine, "records": records}, indent=1)
    (ROOT / "docs" / "benchmarks.json").write_text(report + "\n")
    ours = records[0]["seconds"]["median"]
    lines = [
        "# Benchmarks",
        "",
        "`make bench` on an otherwise idle machine; see [benchmarks/README.md](../benchmarks/README.md) for how.",
        "",
        "## Eight schools, non-centred, 4 chains of 1000 draws after warmup, compiled before",
        "",
        f"{seeds} seeds, contestants taking turns; {machine}. Nutkin's time is that of `Nutkin.sample/2` from Elixir",
        "with fresh data, through the port, with 1000 iterations of warmup; a peer's is that of its sampling call in",
        "its own process.",
        "",
        "| | median ms | min | max | against Nutkin |",
        "|---|---|---|---|---|",
    ]
    for record in records:
        low, median, high = (1e3 * record["seconds"][key] for key in ("min", "median", "max"))
        lines.append(f"| {record['sampler']} | {median:.1f} | {low:.1f} | {high:.1f} | {median / ours / 1e3:.2f} |")
    text = "\n".join(lines) + "\n"
    (ROOT / "docs" / "benchmarks.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
