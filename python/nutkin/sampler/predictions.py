"""A run of predictions: batches of draws, chain by chain, advanced as a `Run` is."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nutkin.compile import Prediction, bind_prediction
from nutkin.model import read
from nutkin.sampler.chain import Chunk
from nutkin.sampler.warmup import SAMPLE


class PredictedChain:
    """What is predicted from the draws of one chain, in their order."""

    waits = False

    def __init__(self, prediction: Prediction, index: int, first: int) -> None:
        self.index = index
        self._prediction = prediction
        self._done = first

    @property
    def sent(self) -> tuple[int, int]:
        """Draws so far, of a warmup, which it has not, and of the sampling."""
        return 0, self._done

    def settle(self) -> None:
        """There is nothing to take up but the next draw."""

    @property
    def finished(self) -> bool:
        return self._done == self._prediction.draws

    def progress(self) -> None:
        """There is none but its draws."""

    def summary(self) -> None:
        """There is none: nothing was adapted."""

    def advance(self) -> Chunk:
        start = self._done
        variables = self._prediction.predict(self.index, start)
        self._done = min(start + self._prediction.batch, self._prediction.draws)
        return Chunk(self.index, SAMPLE, start, self._done - start, variables, {})


class Predictions:
    """The chains of a prediction, each on its own."""

    pilot = None
    converged = resumable = False

    def __init__(self, prediction: Prediction, first: Sequence[int] = ()) -> None:
        """`first`: of the first chains, the draw that each begins with, 0 of the others."""
        starts = [min(draw, prediction.draws) for draw in first][: prediction.chains]
        starts += [0] * (prediction.chains - len(starts))
        self.chains = tuple(PredictedChain(prediction, index, start) for index, start in enumerate(starts))
        self._started = time.monotonic()

    def first_calls(self) -> tuple[tuple[PredictedChain, ...], ...]:
        return tuple((chain,) for chain in self.chains)

    def advance(self, chains: Sequence[PredictedChain]) -> list[Chunk]:
        return [chain.advance() for chain in chains]

    def seconds(self) -> dict[str, float]:
        return {"warmup": 0.0, "sample": time.monotonic() - self._started}


def predict(
    model: Mapping[str, Any],
    draws: Mapping[str, Any],
    data: Mapping[str, Any] | None = None,
    *,
    tensors: Mapping[bytes, np.ndarray] | None = None,
    **options: Any,
) -> dict[str, np.ndarray]:
    """What a model (a tree as in the wire contract's "The model") predicts from draws of its parameters, and waits.

    `draws`: arrays (chains, draws, ...) by name, such as `Draws.variables`; what is no parameter is left alone.
    `data`: anything numpy takes, by slot; slots that hold observed values only may be left out. `options`: `redraw`,
    `variables`, `of`, `seed`, `precision`, and `shape` (chains, draws) where there are no draws; see
    `nutkin.compile.bind_prediction`. -> arrays (chains, draws, ...) by name. Errors: InvalidModel, InvalidData,
    InvalidOption, CompileFailed.
    """
    read_model = read(model)
    given = {name: np.asarray(draws[name]) for name in read_model.parameters if name in draws}
    arrays = {name: np.asarray(value) for name, value in (data or {}).items()}
    run = Predictions(bind_prediction(read_model, given, arrays, tensors or {}, **options))
    chains = [[] for _ in run.chains]
    for chain in run.chains:
        while not chain.finished:
            chains[chain.index].append(chain.advance().variables)
    return {
        name: np.stack([np.concatenate([batch[name] for batch in batches]) for batches in chains])
        for name in chains[0][0]
    }
