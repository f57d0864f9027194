"""Coverage-guided fuzzing, without an end of its own: `make fuzz MINUTES=10`, or one target, or one input again.

    python -m fuzz.run --minutes 10                     # every target in turn, for as long together
    python -m fuzz.run --target model --minutes 5
    python -m fuzz.run --target model tests/fuzz/.found/crash-1234…   # what it has found, once more

Each target runs in a process of its own, guided by Atheris (libFuzzer), which is installed into `.environment` here.
What it learns stays in `.corpus`; an input that shows a defect is left in `.found`, and ends the run.
"""

from __future__ import annotations

import argparse
import functools
import subprocess
import sys
import warnings
import zlib
from collections.abc import Callable
from pathlib import Path
from random import Random

HERE = Path(__file__).resolve().parent
REQUIREMENTS = HERE / "requirements.txt"
ENVIRONMENT = HERE / ".environment" / f"{sys.implementation.cache_tag}"
CORPUS, FOUND = HERE / ".corpus", HERE / ".found"
TARGETS = ("frame", "nx_file", "term", "payload", "model")
SECONDS, MEBIBYTES = 20, 4096  # of one input, and of a process
CLEARED_AFTER = 2000  # models: JAX keeps what it has traced

INSTRUMENTED = ["nutkin.errors", "nutkin.model", "nutkin_port", "erlang"]


class Bytes(Random):
    """Choices that are read from bytes, so that what changes them changes one choice; then pseudorandom ones."""

    def __init__(self, data: bytes) -> None:
        super().__init__(zlib.crc32(data))
        self._data, self._place = data, 0

    def getrandbits(self, k: int) -> int:
        end = self._place + (k + 7) // 8
        if end > len(self._data):
            return super().getrandbits(k)
        taken, self._place = self._data[self._place : end], end
        return int.from_bytes(taken, "little") & ((1 << k) - 1)

    def random(self) -> float:
        return self.getrandbits(16) / 2**16


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=2)
    parser.add_argument("--target", choices=TARGETS)
    parser.add_argument("input", nargs="?", type=Path)
    options = parser.parse_args()
    if (lack := _install()) is not None:
        print(lack, file=sys.stderr)
        return 2
    sys.path.append(str(ENVIRONMENT))
    if options.target is not None:
        _fuzz(options.target, options.minutes, options.input)
        return 0
    for target in TARGETS:
        print(f"fuzzing {target}", flush=True)
        command = [sys.executable, "-m", "fuzz.run", "--target", target]
        done = subprocess.run([*command, "--minutes", str(options.minutes / len(TARGETS))])
        if done.returncode != 0:
            print(f"a defect, see above; again: python -m fuzz.run --target {target} {FOUND}/…", file=sys.stderr)
            return 1
    return 0


def _install() -> str | None:
    """Puts Atheris into its folder, once: None, or what is lacking."""
    stamp = ENVIRONMENT / "requirements"
    if stamp.exists() and stamp.read_text() == REQUIREMENTS.read_text():
        return None
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--upgrade", "--only-binary", ":all:"]
    command += ["--target", str(ENVIRONMENT), "--requirement", str(REQUIREMENTS)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or ["pip failed"])[-1]
        wanted = REQUIREMENTS.read_text().strip()
        return (
            f"fuzzing needs {wanted}, which cannot be installed here: {reason}\n"
            "It needs the network once, and has wheels for Linux on x86_64 and CPython 3.11 to 3.13. "
            "Without it, `pytest tests/fuzz` tries a fixed number of inputs."
        )
    stamp.write_text(REQUIREMENTS.read_text())
    return None


def _fuzz(target: str, minutes: float, input: Path | None) -> None:
    """Does not return after a defect."""
    import atheris

    with atheris.instrument_imports(include=INSTRUMENTED):
        from fuzz import targets  # and what it imports
    warnings.simplefilter("ignore")  # numbers of a model may be beyond what its types hold
    function = getattr(targets, f"fuzz_{target}")
    known = CORPUS / target
    known.mkdir(parents=True, exist_ok=True)
    FOUND.mkdir(exist_ok=True)
    for seed in _seeds(target):
        (known / f"seed-{zlib.crc32(seed):08x}").write_bytes(seed)
    arguments = ["fuzz", f"-timeout={SECONDS}", f"-rss_limit_mb={MEBIBYTES}", f"-artifact_prefix={FOUND}/"]
    time = f"-max_total_time={max(1, round(60 * minutes))}"
    limits = ["-verbosity=0", "-print_final_stats=1", time, str(known)] if input is None else [str(input)]
    atheris.Setup([*arguments, *limits], _of_models(function) if target == "model" else function)
    atheris.Fuzz()


def _of_models(function: Callable[[Random], str]) -> Callable[[bytes], None]:
    import jax

    @functools.wraps(function)
    def run(data: bytes) -> None:
        run.count += 1
        if run.count % CLEARED_AFTER == 0:
            jax.clear_caches()
        function(Bytes(data))

    run.count = 0
    return run


def _seeds(target: str) -> list[bytes]:
    """Valid inputs to begin with, of which damaged ones come further than bytes at random."""
    from fuzz import examples

    return {
        "frame": examples.FRAMES,
        "nx_file": examples.FILES,
        "term": examples.TERMS,
        "payload": examples.PAYLOADS,
        "model": [Random(seed).randbytes(300) for seed in range(20)],
    }[target]


if __name__ == "__main__":
    sys.exit(main())
