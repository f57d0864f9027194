"""What must be set before XLA starts. Imported first by `nutkin`, and by nothing else.

- x64: the engine computes in float64 unless a model asks for float32.
- `OPENBLAS_NUM_THREADS=1`: LAPACK calls from two chains at once otherwise fight for the cores.
- the small-loop threshold of XLA:CPU, on jax below 0.12: the loop of a chain becomes one native function.
- the folder of compiled programs: `NUTKIN_CACHE_DIR`, else `JAX_COMPILATION_CACHE_DIR`, else `nutkin/xla` in the
  user's cache folder; `NUTKIN_CACHE_DIR=off` for none. See `nutkin.compile.stored`; JAX's own cache is left alone.
- `EQX_ON_ERROR=nan`: a step of an implicit solver of equations that meets a NaN gives NaN, a point that is rejected;
  by default it raises, and the run ends.
"""

from __future__ import annotations

import os
from importlib.metadata import version
from pathlib import Path

_LOOP_FLAG = "--xla_backend_extra_options=xla_cpu_small_while_loop_byte_threshold=4000000"


def cache_dir() -> Path | None:
    """The folder of compiled programs, None where there is to be none."""
    for variable in ("NUTKIN_CACHE_DIR", "JAX_COMPILATION_CACHE_DIR"):
        if chosen := os.environ.get(variable):
            return None if chosen == "off" else Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "nutkin" / "xla"


def apply() -> None:
    """Set everything. Effects on jax are process-wide."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("EQX_ON_ERROR", "nan")
    major, minor = (int(part) for part in version("jax").split(".")[:2])
    flags = os.environ.get("XLA_FLAGS", "")
    if (major, minor) < (0, 12) and "xla_cpu_small_while_loop_byte_threshold" not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} {_LOOP_FLAG}".strip()

    import jax

    jax.config.update("jax_enable_x64", True)
    # A call then costs 26 us instead of 66 us with large arguments; chains have threads of their own.
    jax.config.update("jax_cpu_enable_async_dispatch", False)


apply()
