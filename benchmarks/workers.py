"""What a warm worker does for Elixir: refits on new data, memory after many, a large matrix to the first gradient."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from typing import Any

import numpy as np

from benchmarks import data, environments
from benchmarks.race import spread

REFIT_MODELS = ("eight_schools", "logistic", "radon")


def refits(model: str, count: int, at: int) -> dict[str, Any]:
    """Seconds of a call and of the sampling in it, compilations, resident bytes after `at` refits and at the end."""
    command = [*environments.elixir("Benchmarks.Refit"), model, str(data.write(model)), str(count), str(at)]
    done = subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)


def transfer(repeats: int) -> dict[str, Any]:
    """Seconds of 80 MB from Elixir to the first gradient, and of one copy of as much through a pipe, in turns."""
    process = subprocess.Popen(
        environments.elixir("Benchmarks.Transfer"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    gradients, copies = [], []
    for _ in range(repeats):
        process.stdin.write("again\n")
        process.stdin.flush()
        answer = json.loads(process.stdout.readline())
        gradients.append(answer["seconds"])
        copies.append(_through_a_pipe(answer["bytes"]))
    process.stdin.close()
    process.wait(timeout=60)
    ratio = statistics.median(gradients) / statistics.median(copies)
    return {"bytes": answer["bytes"], "gradient": spread(gradients), "pipe": spread(copies), "ratio": ratio}


def _through_a_pipe(size: int) -> float:
    """Another process writes, this one reads into memory that is there."""
    source = "import os, sys; d = bytes(1 << 20)\nsys.stdin.read(1)\nn = int(sys.argv[1])\n"
    source += "while n: n -= os.write(1, d[: min(n, 1 << 20)])"
    writer = subprocess.Popen([sys.executable, "-c", source, str(size)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    target = memoryview(np.ones(size, np.uint8))
    started = time.perf_counter()
    writer.stdin.write(b"1")
    writer.stdin.flush()
    done = 0
    while done < size:
        done += os.readv(writer.stdout.fileno(), [target[done:]])
    seconds = time.perf_counter() - started
    writer.communicate()
    return seconds
