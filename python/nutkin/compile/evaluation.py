"""What the nodes of a model without parameters are on one set of data: functions, computed by XLA."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import jax
import numpy as np

from nutkin.compile.constants import gather, inlined
from nutkin.compile.executables import EXECUTABLES
from nutkin.compile.placement import placed
from nutkin.compile.target import Source, program_key, specs
from nutkin.errors import InvalidModel
from nutkin.model import Model, Program, Spec, check
from nutkin.model.applications import check_single
from nutkin.model.evaluator import Evaluator


@dataclass(frozen=True)
class Evaluation:
    """`results`: the nodes that are asked for; `arrays`: the host array of every input that they need."""

    evaluator: Evaluator
    results: tuple[int, ...]
    arrays: Mapping[int, np.ndarray]
    inlined: Mapping[int, np.ndarray]
    key: str

    @property
    def _program_key(self) -> tuple:
        return (self.key, "evaluate", self.results)

    def is_compiled(self) -> bool:
        """Whether `run` would compile nothing."""
        return self._program_key in EXECUTABLES

    def run(self) -> tuple[list[np.ndarray], bool]:
        """-> the values of the results, and whether nothing was compiled. Errors: CompileFailed."""
        arguments = placed({index: array for index, array in self.arrays.items() if index not in self.inlined})
        program, cached = EXECUTABLES.get(self._program_key, self._values, (arguments,))
        return [np.asarray(value) for value in program(arguments)], cached

    def _values(self, arguments: dict[int, Any]) -> list[jax.Array]:
        values = self.evaluator.data_values(self.results, {**self.inlined, **arguments})
        return [values[index] for index in self.results]


def bind_evaluation(
    model: Model,
    results: Sequence[int],
    data: Mapping[str, np.ndarray],
    tensors: Mapping[bytes, np.ndarray],
    *,
    precision: str = "f64",
) -> Evaluation:
    """Check a model without parameters against its data. Values are not checked: what they do not fit gives is NaN.

    Errors: InvalidModel, InvalidData.
    """
    if model.parameters:
        raise InvalidModel(
            "what depends on parameters has no value of its own",
            node=model.parameters[0],
            expected="a model of data and operations",
            found=f"the parameter {model.parameters[0]}",
            hint="predict and log_density take values of the parameters",
        )
    evaluator = _evaluator(Source.of(model, specs(data), specs(tensors), precision, None), tuple(results))
    program = evaluator.program
    arrays = gather(program, data, tensors)
    needed = {index: arrays[index] for index in evaluator.inputs_of(results)}
    constants = inlined(program, needed)
    return Evaluation(evaluator, tuple(results), needed, constants, program_key(program, constants))


@lru_cache(maxsize=64)
def _evaluator(source: Source, results: tuple[int, ...]) -> Evaluator:
    """A function that is called again finds its nodes checked."""
    program = check(source.model, source.data, source.tensors, precision=source.precision)
    _check_asked(program, results)
    return Evaluator(program, program.needed_by(results))


def shapes(
    model: Model,
    nodes: Sequence[int],
    data: Mapping[str, np.ndarray],
    tensors: Mapping[bytes, np.ndarray],
    *,
    precision: str = "f64",
) -> list[Spec]:
    """Shape and type of nodes. Errors: InvalidModel, InvalidData."""
    program = check(model, specs(data), specs(tensors), precision=precision)
    _check_asked(program, nodes)
    return [program.steps[index].spec for index in nodes]


def _check_asked(program: Program, nodes: Sequence[int]) -> None:
    count = len(program.model.nodes)
    for index in nodes:
        if index >= count:
            raise InvalidModel("there is no such node", expected=f"an index below {count}", found=str(index))
    check_single(nodes, program.model.nodes, program.steps)
