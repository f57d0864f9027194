"""nutpie on the PyMC model, compiled by numba. The variant is its number of warmup iterations, or `default`.

Timed until its trace is in memory, without the conversion to ArviZ. nutpie does not say how long each phase took.
"""

from __future__ import annotations

import time
import warnings

warnings.filterwarnings("ignore")

import numpy as np  # noqa: E402
import nutpie  # noqa: E402
import pyarrow  # noqa: E402
import pymc as pm  # noqa: E402
from pymc_models import MODELS  # noqa: E402
from serving import CHAINS, DRAWS, Result, Sample, serve  # noqa: E402


def _column(batch: pyarrow.RecordBatch, name: str) -> np.ndarray:
    """(rows,) or (rows, size), also of a variable with more axes."""
    column = batch.column(name)
    if pyarrow.types.is_large_list(column.type):
        return column.flatten().to_numpy().reshape(len(column), -1)
    return column.to_numpy(zero_copy_only=False)


def prepare(model: str, data: dict[str, np.ndarray]) -> Sample:
    with pm.Model() as program:
        MODELS[model](**data)
    names = [variable.name for variable in (*program.free_RVs, *program.deterministics)]
    compiled = nutpie.compile_pymc_model(program, backend="numba")

    def sample(variant: str, seed: int) -> Result:
        warmup = {} if variant == "default" else {"tune": int(variant)}
        started = time.perf_counter()
        trace = nutpie.sample(
            compiled,
            draws=DRAWS,
            chains=CHAINS,
            cores=2,
            seed=seed,
            progress_bar=False,
            return_raw_trace=True,
            **warmup,
        )
        total = time.perf_counter() - started
        draws, stats = ([pyarrow.record_batch(chain) for chain in group] for group in trace.get_arrow_trace())
        steps = np.stack([_column(chain, "n_steps") for chain in stats])
        diverging = np.stack([_column(chain, "diverging") for chain in stats])
        return Result(
            variables={name: np.stack([_column(chain, name)[-DRAWS:] for chain in draws]) for name in names},
            seconds={"warmup": None, "sample": None, "total": total},
            gradients={"warmup": int(steps[:, :-DRAWS].sum()), "sample": int(steps[:, -DRAWS:].sum())},
            divergences=int(diverging[:, -DRAWS:].sum()),
        )

    return sample


if __name__ == "__main__":
    serve(prepare, ("nutpie", "pymc", "numba"))
