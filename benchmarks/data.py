"""The data of every benchmark model: arrays by the name of their slot, and their files.

Files are `.npy`, a folder a model, so that contestants in any environment, and the one in Elixir, read the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "benchmarks" / ".environments" / "data"
_REFERENCES = ROOT / "tests" / "references"

Arrays = dict[str, np.ndarray]

_EIGHT_SCHOOLS = {
    "y": np.array([28.0, 8, -3, 7, -1, 1, 18, 12]),
    "sigma": np.array([15.0, 10, 16, 11, 9, 11, 10, 18]),
}


def _eight_schools() -> Arrays:
    return _EIGHT_SCHOOLS


def _logistic(rows: int, columns: int) -> Arrays:
    rng = np.random.default_rng(1234)
    X = rng.normal(size=(rows, columns))
    logits = X @ (rng.normal(size=columns) * 0.5) + 0.3
    return {"X": X, "y": (rng.uniform(size=rows) < 1 / (1 + np.exp(-logits))).astype(float)}


def _radon() -> Arrays:
    """919 houses in 85 counties, each with one house at least; `x` marks measurements on the first floor."""
    rng = np.random.default_rng(1234)
    counties, houses = 85, 919
    others = rng.choice(counties, size=houses - counties, p=rng.dirichlet(np.ones(counties)))
    county = np.concatenate([np.arange(counties), others])
    rng.shuffle(county)
    x = (rng.uniform(size=houses) < 0.17).astype(float)
    level = 1.5 + 0.35 * rng.normal(size=counties)
    y = level[county] - 0.6 * x + 0.75 * rng.normal(size=houses)
    return {"county": county.astype(np.int32), "x": x, "y": y}


def _stochastic_volatility() -> Arrays:
    rng = np.random.default_rng(1234)
    log_scale = np.cumsum(rng.normal(size=100)) * 0.2
    return {"y": np.exp(log_scale) * rng.standard_t(8, size=100)}


def _nothing() -> Arrays:
    return {}


def _exmc(model: str, *slots: str) -> Callable[[], Arrays]:
    def load() -> Arrays:
        values = json.loads((_REFERENCES / "exmc" / "bench_data.json").read_text())[model]
        return {slot: np.asarray(values[slot], float) for slot in slots}

    return load


def _posteriordb(name: str) -> dict[str, np.ndarray]:
    values = json.loads((_REFERENCES / "posteriordb" / f"{name}.json").read_text())["data"]
    return {slot: np.asarray(value, float) for slot, value in values.items()}


def _diamonds() -> Arrays:
    """The design matrix without its column of ones, centred, as the model of posteriordb does."""
    values = _posteriordb("diamonds-diamonds")
    X = values["X"][:, 1:]
    return {"X": X - X.mean(axis=0), "y": values["Y"]}


def _ar5() -> Arrays:
    """Column k of `lags` is the series k + 1 steps before `y`."""
    series = _posteriordb("arK-arK")["y"]
    return {"lags": np.stack([series[4 - k : -1 - k] for k in range(5)], axis=1), "y": series[5:]}


def _blr() -> Arrays:
    values = _posteriordb("sblrc-blr")
    return {"X": values["X"], "y": values["y"]}


DATA: dict[str, Callable[[], Arrays]] = {
    "eight_schools": _eight_schools,
    "logistic": lambda: _logistic(500, 20),
    "logistic_large": lambda: _logistic(20000, 50),
    "radon": _radon,
    "stochastic_volatility": _stochastic_volatility,
    "funnel": _nothing,
    "exmc_simple": _exmc("simple", "y"),
    "exmc_medium": _exmc("medium", "y_a", "y_b"),
    "exmc_stress": _exmc("stress", "y_1", "y_2", "y_3"),
    "exmc_eight_schools": _eight_schools,
    "exmc_funnel": _nothing,
    "exmc_logistic": _exmc("logistic", "X", "y"),
    "exmc_sv": _exmc("sv", "returns"),
    "diamonds": _diamonds,
    "ar5": _ar5,
    "blr": _blr,
}


def write(model: str) -> Path:
    """Write the data of a model, one file a slot, and return their folder."""
    folder = FOLDER / model
    folder.mkdir(parents=True, exist_ok=True)
    for slot, array in DATA[model]().items():
        np.save(folder / f"{slot}.npy", np.ascontiguousarray(array))
    return folder
