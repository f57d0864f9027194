"""The contestants: which programs there are, how they are started, and what is said to them.

A program samples one model in a process of its own, see `contestants/serving.py` for what it reads and prints. It may
stand for several samplers, which differ in their variant.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import data, environments

ROOT = data.ROOT
CONTESTANTS = ROOT / "benchmarks" / "contestants"
ENGINE, ELIXIR = "Nutkin, engine alone", "Nutkin, from Elixir"
NUTKIN = (ELIXIR, ENGINE)


@dataclass(frozen=True)
class Program:
    """`script`: a file of `contestants/`, or a module of `elixir/`; `samplers`: their names, with the variant of each;
    `environment`: a file of `peers/`, or None for Nutkin's own."""

    script: str
    samplers: Mapping[str, str]
    environment: str | None = None
    # What runs cold, where that differs.
    cold_script: str | None = None
    # Those that it runs; None: all.
    models: tuple[str, ...] | None = None

    def command(self, script: str | None = None) -> list[str]:
        """Without model and data. Errors: environments.NotInstallable."""
        script = script or self.script
        if not script.endswith(".py"):
            return environments.elixir(script)
        return [
            environments.python(self.environment) if self.environment else sys.executable,
            str(CONTESTANTS / script),
        ]


PROGRAMS = (
    Program("Benchmarks.Contestant", {ELIXIR: "-"}),
    Program("sample_engine.py", {ENGINE: "-"}),
    Program("sample_numpyro.py", {"NumPyro": "-"}, environment="jax", cold_script="run_numpyro.py"),
    Program("sample_blackjax.py", {"BlackJAX": "-"}, environment="jax"),
    Program("sample_nutpie.py", {"nutpie": "default", "nutpie, tune 1000": "1000"}, environment="nutpie"),
    Program(
        "sample_pystan.py",
        {"pystan": "-"},
        environment="pystan",
        models=("eight_schools", "logistic", "radon", "stochastic_volatility", "funnel"),
    ),
)


class Ended(Exception):
    """A contestant ended before it answered; its errors are on the standard error."""


class Contestant:
    """A running program with one model. `cache`: a folder for what it compiles."""

    def __init__(self, program: Program, model: str, *, cache: Path, script: str | None = None) -> None:
        self.program, self.model = program, model
        cache.mkdir(parents=True, exist_ok=True)
        self._process = subprocess.Popen(
            [*program.command(script), model, str(data.FOLDER / model)],
            # httpstan builds in the folder where it is.
            cwd=cache,
            env={**os.environ, **_variables(cache)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ready(self) -> dict[str, Any]:
        """Wait until the model is compiled -> {"compile": seconds, "versions": {...}}."""
        return self._answer()

    def sample(self, sampler: str, seed: int, folder: Path) -> dict[str, Any]:
        """Draws go to `folder` -> {"seconds": {...}, "gradients": {...}, "divergences": n}."""
        folder.mkdir(parents=True, exist_ok=True)
        self._process.stdin.write(f"{self.program.samplers[sampler]} {seed} {folder}\n")
        self._process.stdin.flush()
        return self._answer()

    def __enter__(self) -> Contestant:
        return self

    def __exit__(self, *_: object) -> None:
        """It ends when its input does."""
        self._process.stdin.close()
        self._process.wait(timeout=60)

    def _answer(self) -> dict[str, Any]:
        line = self._process.stdout.readline()
        if not line:
            raise Ended(f"{self.program.script} ended early on {self.model}")
        return json.loads(line)


def _variables(cache: Path) -> dict[str, str]:
    """JAX on the CPU, and everything that is compiled into `cache`."""
    return {
        "JAX_PLATFORMS": "cpu",
        "PYTHONWARNINGS": "ignore",
        "NUTKIN_CACHE_DIR": str(cache / "nutkin"),
        "JAX_COMPILATION_CACHE_DIR": str(cache / "jax"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        "PYTENSOR_FLAGS": f"base_compiledir={cache / 'pytensor'}",
        "NUMBA_CACHE_DIR": str(cache / "numba"),
        # Where httpstan keeps its models.
        "XDG_CACHE_HOME": str(cache / "xdg"),
    }
