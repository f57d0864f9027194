"""Nutkin's engine alone, with its defaults: `nutkin.sample` on the model that Elixir wrote, each time on new data."""

from __future__ import annotations

import time
from pathlib import Path

import msgspec
import numpy as np
from serving import CHAINS, DRAWS, Result, Sample, serve

import nutkin

MODELS = Path(__file__).resolve().parent.parent / ".environments" / "models"


def prepare(model: str, data: dict[str, np.ndarray]) -> Sample:
    tree = msgspec.msgpack.decode((MODELS / f"{model}.msgpack").read_bytes())
    nutkin.sample(tree, data, chains=1, draws=1, warmup=1)

    def sample(_variant: str, seed: int) -> Result:
        refreshed = {name: _refresh(array, seed) for name, array in data.items()}
        started = time.perf_counter()
        draws = nutkin.sample(tree, refreshed, chains=CHAINS, draws=DRAWS, seed=seed)
        total = time.perf_counter() - started
        gradients, steps = sum(chain.gradients for chain in draws.chains), int(draws.stats["n_steps"].sum())
        return Result(
            variables=draws.variables,
            seconds={"warmup": draws.seconds["warmup"], "sample": draws.seconds["sample"], "total": total},
            gradients={"warmup": gradients - steps, "sample": steps},
            divergences=int(draws.stats["diverging"].sum()),
        )

    return sample


def _refresh(array: np.ndarray, seed: int) -> np.ndarray:
    """Other data of the same meaning: what is neither an index nor 0 or 1 is moved by a billionth."""
    if array.dtype != np.float64 or np.isin(array, (0.0, 1.0)).all():
        return array
    return array + seed * 1e-9


if __name__ == "__main__":
    serve(prepare, ("nutkin", "jax", "jaxlib"))
