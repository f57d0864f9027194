"""From the arrays of a data set to the arguments of its executables: once for each data set, before the first call.

What depends on no parameter is not worked out again for every gradient: XLA computes such values in a program of their
own, and the likelihoods that rewrites have found prepare their sums and layouts on the host. Only what the log
density and the outputs still need becomes an argument: a matrix of which only its sums are used does not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import numpy as np

from nutkin.compile.executables import EXECUTABLES
from nutkin.compile.placement import placed
from nutkin.compile.written import Written
from nutkin.model.evaluator import Evaluator
from nutkin.model.steps import Centering, Computed, Input, Likelihood, Number


@dataclass(frozen=True)
class Preparation:
    """`key` names the program of the density, `written` is the model that it was made from."""

    density: Evaluator
    key: str
    written: Written

    @cached_property
    def _computed(self) -> tuple[int, ...]:
        """The nodes whose values XLA computes."""
        steps, found = self.density.program.steps, set(self.written.checked)
        for index in self.density.given:
            step = steps[index]
            candidates = step.data if isinstance(step, Likelihood) else (index,)
            found.update(
                node for node in candidates if not isinstance(steps[node], Input | Number | Likelihood | Centering)
            )
        return tuple(sorted(found))

    def has_program(self) -> bool:
        """Whether `arguments` compiles nothing."""
        return not self._computed or (self.key, "prepare") in EXECUTABLES

    def arguments(self, arrays: Mapping[int, np.ndarray], inlined: Mapping[int, np.ndarray]) -> dict[int, Any]:
        """Arrays on the device, and pytrees of them, by the index of the step that is given them.

        `arrays`: those of all inputs; `inlined`: the ones that are part of the program. Errors: InvalidData for a
        value computed from them that is impossible.
        """
        computed = self._compute(arrays)
        self.written.check(computed)
        arguments = {}
        for index in self.density.given:
            step = self.density.program.steps[index]
            if isinstance(step, Likelihood):
                data = (self._host_value(node, arrays, computed) for node in step.data)
                arguments[index] = step.prepare(*data)
            elif isinstance(step, Computed):
                arguments[index] = computed[index]
            elif index not in inlined:
                arguments[index] = arrays[index]
        return placed(arguments)

    def _compute(self, arrays: Mapping[int, np.ndarray]) -> Mapping[int, jax.Array]:
        if not self._computed:
            return {}
        needed = placed({index: arrays[index] for index in self.density.inputs_of(self._computed)})
        program, _ = EXECUTABLES.get(
            (self.key, "prepare"), lambda inputs: self.density.data_values(self._computed, inputs), (needed,)
        )
        return program(needed)

    def _host_value(
        self, index: int, arrays: Mapping[int, np.ndarray], computed: Mapping[int, jax.Array]
    ) -> np.ndarray:
        step = self.density.program.steps[index]
        if isinstance(step, Number):
            return np.asarray(step.spec.literal)
        return arrays[index] if isinstance(step, Input) else np.asarray(computed[index])
