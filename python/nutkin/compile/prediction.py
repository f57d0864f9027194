"""A model bound to the draws of its parameters: what predictions are made from, batch by batch."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nutkin.compile.constants import gather, inlined
from nutkin.compile.executables import EXECUTABLES
from nutkin.compile.preparation import Preparation
from nutkin.compile.target import program_key, specs
from nutkin.compile.written import Written
from nutkin.errors import InvalidData
from nutkin.model import Model, OutputValue, Predictive, check, check_drawn, predictive_model
from nutkin.model.checking import check_slots
from nutkin.model.predictive_model import Of
from nutkin.model.types import NAMES, show_shape
from nutkin.model.values import show_value

_BATCH_ELEMENTS = 1 << 18
_LARGEST_BATCH = 256
_DOMAIN = 0x70726564  # so that no random number is one of the sampler's, under the same seed


@dataclass(frozen=True)
class Prediction:
    """What one model predicts on one set of data, for each of (chains, draws) draws of its parameters.

    `drawn`: those draws by the step of the parameter; `left_out`: factors that have no part in random parameters.
    The draw i of the chain c is the same in any batch.
    """

    predictive: Predictive
    arrays: Mapping[int, np.ndarray]
    inlined: Mapping[int, np.ndarray]
    key: str
    drawn: Mapping[int, np.ndarray]
    chains: int
    draws: int
    seed: int
    left_out: tuple[str, ...]

    @property
    def outputs(self) -> tuple[OutputValue, ...]:
        return self.predictive.outputs

    @property
    def observed(self) -> tuple[str, ...]:
        """The observations among the outputs."""
        return self.predictive.observed

    @property
    def batch(self) -> int:
        """The draws that are made in one call: a power of two."""
        affordable = max(1, min(_LARGEST_BATCH, _BATCH_ELEMENTS // self.predictive.elements))
        return 1 << min(int(math.log2(affordable)), (self.draws - 1).bit_length())

    @cached_property
    def _preparation(self) -> Preparation:
        written = Written(self.predictive, self.arrays, range(len(self.predictive.program.steps)))
        return Preparation(self.predictive, self.key, written)

    @cached_property
    def _arguments(self) -> Mapping[int, Any]:
        return self._preparation.arguments(self.arrays, self.inlined)

    def is_compiled(self) -> bool:
        """Whether `compile` would compile nothing."""
        return self._preparation.has_program() and self._program_key in EXECUTABLES

    @property
    def _program_key(self) -> tuple:
        return (self.key, "predict", self.batch, self.predictive.wanted)

    def compile(self) -> bool:
        """Compile what is not compiled, and say whether nothing was. Errors: CompileFailed, InvalidData."""
        was_compiled = self.is_compiled()
        self._program()
        return was_compiled

    def predict(self, chain: int, start: int) -> dict[str, np.ndarray]:
        """A batch of draws of a chain from `start` on: arrays (count, ...) by name."""
        stop = min(start + self.batch, self.draws)
        found = self._program()(*self._operands(chain, start))
        return {output.name: np.asarray(found[output.name])[: stop - start] for output in self.outputs}

    def _program(self) -> Any:
        return EXECUTABLES.get(self._program_key, self._batch_of_draws, self._operands(0, 0))[0]

    def _operands(self, chain: int, start: int) -> tuple:
        drawn = {index: self._rows(array[chain], start) for index, array in self.drawn.items()}
        words = np.asarray([self.seed >> 32, self.seed & 0xFFFFFFFF], np.uint32)
        return words, np.asarray([_DOMAIN, chain], np.uint32), np.asarray(start, np.uint32), drawn, self._arguments

    def _rows(self, array: np.ndarray, start: int) -> np.ndarray:
        rows = array[start : start + self.batch]
        # The last batch is filled up, and what comes of it thrown away.
        return (
            rows if len(rows) == self.batch else np.concatenate([rows, np.repeat(rows[-1:], self.batch - len(rows), 0)])
        )

    def _batch_of_draws(
        self,
        words: jax.Array,
        path: jax.Array,
        start: jax.Array,
        drawn: dict[int, jax.Array],
        arguments: dict[int, Any],
    ) -> dict[str, jax.Array]:
        key = jax.random.wrap_key_data(words, impl="threefry2x32")
        for step in path:
            key = jax.random.fold_in(key, step)
        keys = jax.vmap(jax.random.fold_in, (None, 0))(key, start + jnp.arange(self.batch, dtype=np.uint32))
        inputs = {**self.inlined, **arguments}
        return jax.vmap(lambda own, values: self.predictive.draw(own, values, inputs))(keys, drawn)


def bind_prediction(
    model: Model,
    draws: Mapping[str, np.ndarray],
    data: Mapping[str, np.ndarray],
    tensors: Mapping[bytes, np.ndarray],
    *,
    shape: tuple[int, int] | None = None,
    redraw: Collection[str] | None = (),
    variables: Collection[str] | None = None,
    of: Of = "predictions",
    seed: int = 0,
    precision: str = "f64",
) -> Prediction:
    """Check a model against draws of its parameters, (chains, draws, ...) by name, and the data for its predictions.

    `shape`: how many chains and draws, where no draws are given. The rest is that of `nutkin.model.predictive_model`.
    Errors: InvalidModel, InvalidData, InvalidOption.
    """
    chains, count = _form(draws, shape)
    check_slots(model, data)
    one = {name: array.shape[2:] for name, array in draws.items()}
    written = predictive_model(model, data, one, redraw=redraw, variables=variables, of=of)
    used = {name: data[name] for name in written.model.slots}
    program = check(written.model, specs(used), specs(tensors), precision=precision)
    predictive = Predictive(program, written.wanted)
    check_drawn(model, predictive.drawn, draws)
    arrays = gather(program, used, tensors)
    predictive.check_values(arrays)
    constants = inlined(program, arrays)
    drawn = {index: draws[name] for index, name in predictive.drawn.items()}
    key = program_key(program, constants)
    return Prediction(predictive, arrays, constants, key, drawn, chains, count, seed, written.left_out)


def _form(draws: Mapping[str, np.ndarray], shape: tuple[int, int] | None) -> tuple[int, int]:
    """-> how many chains and draws there are. Raises InvalidData."""
    for name, array in draws.items():
        shape = shape or array.shape[:2]
        if array.ndim < 2 or array.shape[:2] != shape or 0 in shape or array.dtype.kind not in "fiu":
            expected = show_shape(shape) if len(shape) == 2 else "{chains, draws, …}"
            raise InvalidData(
                f"the draws of {name} do not fit",
                node=name,
                expected=f"real numbers, whose first axes are {expected}",
                found=f"{NAMES.get(array.dtype, array.dtype)} {show_shape(array.shape)}",
            )
        if not np.isfinite(array).all():
            wrong = np.argwhere(~np.isfinite(array))[0]
            raise InvalidData(
                f"the draws of {name} are not all numbers",
                node=name,
                expected="finite numbers",
                found=f"{show_value(array[tuple(wrong)])} at {wrong.tolist()}",
                hint="the first places are the chain and the draw",
            )
    if shape is None:
        raise InvalidData("there are no draws to predict from", expected="draws of the parameters", found="none")
    return shape
