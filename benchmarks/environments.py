"""The environments of the contestants: one Python environment a file in `peers/`, made once, and Nutkin's own."""

from __future__ import annotations

import glob
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
FOLDER = HERE / ".environments"
_CLIENT = HERE.parent / "elixir_client"

# httpstan has no wheels for later versions of Python.
_PYTHONS = {"pystan": ("3.12", "3.11", "3.10")}


class NotInstallable(Exception):
    """A peer cannot be installed here; the message says why."""


def python(peer: str) -> str:
    """The interpreter of an environment with the packages of `peers/PEER.txt`. Errors: NotInstallable."""
    environment, wanted = FOLDER / peer, HERE / "peers" / f"{peer}.txt"
    interpreter, stamp = environment / "bin" / "python", environment / "requirements"
    if not stamp.exists() or stamp.read_text() != wanted.read_text():
        print(f"making the environment of {peer}", file=sys.stderr)
        _run([_base(peer), "-m", "venv", "--clear", str(environment)], peer)
        _run([str(interpreter), "-m", "pip", "install", "--quiet", "--requirement", str(wanted)], peer)
        stamp.write_text(wanted.read_text())
    return str(interpreter)


def elixir(module: str) -> list[str]:
    """The command that runs `MODULE.main/1` of `elixir/`, which `compile_elixir` has compiled."""
    return ["elixir", *_code_paths(), "-pa", str(FOLDER / "ebin"), "-e", f"{module}.main(System.argv())"]


def compile_elixir() -> None:
    """Compile `elixir/` against the compiled client, and write the models out for the engine alone."""
    ebin = FOLDER / "ebin"
    ebin.mkdir(parents=True, exist_ok=True)
    sources = sorted(str(source) for source in (HERE / "elixir").glob("*.ex"))
    subprocess.run(["elixirc", "--warnings-as-errors", *_code_paths(), "-o", str(ebin), *sources], check=True)
    subprocess.run([*elixir("Benchmarks.Models"), str(FOLDER / "models")], check=True, stdin=subprocess.DEVNULL)


def _code_paths() -> list[str]:
    build = Path(os.environ.get("MIX_BUILD_PATH", _CLIENT / "_build" / "dev"))
    return ["-pa", str(build / "lib" / "nutkin" / "ebin")]


def _base(peer: str) -> str:
    if peer not in _PYTHONS:
        return getattr(sys, "_base_executable", sys.executable)
    for wanted in _PYTHONS[peer]:
        found = [
            shutil.which(f"python{wanted}"),
            *glob.glob(str(Path.home() / f".pyenv/versions/{wanted}.*/bin/python")),
        ]
        for candidate in filter(None, found):
            answer = subprocess.run([candidate, "-c", "import ensurepip, sys; print(sys.version)"], capture_output=True)
            if answer.returncode == 0 and answer.stdout.decode().startswith(wanted):
                return candidate
    raise NotInstallable(f"{peer} needs one of Python {', '.join(_PYTHONS[peer])}; found none")


def _run(command: list[str], peer: str) -> None:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        raise NotInstallable(f"{peer} could not be installed: {done.stderr.strip().splitlines()[-1]}")
