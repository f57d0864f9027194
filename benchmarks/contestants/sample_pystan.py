"""pystan, with Stan's defaults. It says neither how long its phases took nor how many gradients the warmup needed."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path

import numpy as np
import stan
from serving import CHAINS, DRAWS, Result, Sample, serve

PROGRAMS = Path(__file__).resolve().parent / "stan"
WHOLE = {"logistic": "y", "radon": "county"}


def prepare(model: str, data: dict[str, np.ndarray]) -> Sample:
    values = dict(data)
    if model in WHOLE:
        values[WHOLE[model]] = values[WHOLE[model]].astype(int)
    if "X" in data:
        values["columns"] = data["X"].shape[1]
    if model not in ("eight_schools", "funnel"):
        values["rows"] = len(data["y"])
    program = (PROGRAMS / f"{model}.stan").read_text()
    posterior = stan.build(program, data=values, random_seed=1)

    def sample(_variant: str, seed: int) -> Result:
        seeded = dataclasses.replace(posterior, random_seed=seed)
        started = time.perf_counter()
        fit = seeded.sample(num_chains=CHAINS, num_samples=DRAWS, num_warmup=1000, save_warmup=True)
        total = time.perf_counter() - started
        # (elements, warmup and draws, chains)
        steps, diverging = (fit[name].reshape(-1, fit.num_chains) for name in ("n_leapfrog__", "divergent__"))
        return Result(
            variables={name: _chains_first(fit[name], fit.num_chains) for name in fit.param_names},
            seconds={"warmup": None, "sample": None, "total": total},
            gradients={"warmup": int(steps[:-DRAWS].sum()), "sample": int(steps[-DRAWS:].sum())},
            divergences=int(diverging[-DRAWS:].sum()),
        )

    return sample


def _chains_first(values: np.ndarray, chains: int) -> np.ndarray:
    """(elements, iterations x chains) -> the draws (chains, draws, elements)."""
    return np.moveaxis(values.reshape(-1, values.shape[-1] // chains, chains), (0, 1, 2), (2, 1, 0))[:, -DRAWS:]


if __name__ == "__main__":
    serve(prepare, ("pystan", "httpstan"))
