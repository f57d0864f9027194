"""What the engine imports: time at every start of a worker."""

from __future__ import annotations

import os
import subprocess
import sys

PROGRAM = """
import sys
import numpy as np
import nutkin
from engine.builder import Builder

b = Builder()
p = b.rv("p", "beta", {"alpha": 2, "beta": 2})
b.observe("obs", "bernoulli", {"p": p}, b.data("y"))
nutkin.sample(b.tree(), {"y": np.array([0.0, 1.0, 1.0])}, chains=1, draws=5, warmup=5)
print(sorted({"numpyro", "scipy", "arviz_stats", "pandas"} & sys.modules.keys()))
"""


def test_sampling_imports_no_statistics_packages() -> None:
    command = [sys.executable, "-c", PROGRAM]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=True)
    assert result.stdout.strip() == "[]"
