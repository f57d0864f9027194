"""A model bound to its tensors: what a sampler samples."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any

import jax
import msgspec
import numpy as np

from nutkin.compile.constants import gather, inlined
from nutkin.compile.executables import EXECUTABLES
from nutkin.compile.preparation import Preparation
from nutkin.compile.written import Written
from nutkin.errors import InvalidOption
from nutkin.model import (
    Density,
    Diagnosis,
    Model,
    OutputValue,
    Padding,
    Parameter,
    Program,
    Rewrite,
    Spec,
    check,
    diagnose,
    grows,
    pad,
    resized,
    rewrite,
    rooms,
)
from nutkin.model.ir import Constant
from nutkin.model.types import DTYPES, NAMES


@dataclass(frozen=True)
class Target:
    """The log density of one model on one set of data, over a flat vector of `dimension` unconstrained coordinates.

    `source`: what it was made from; `written`: the model as it was given; `arrays`: the host array of every input and
    every centering of the density, by the index of its step; `inlined`: those of them that are part of the program.
    Where data grow, the density is that of a padded model.
    `key` names the program: all that can change the compiled code, and none of the values in `arguments`.
    """

    source: Source
    written: Written
    density: Density
    arrays: Mapping[int, np.ndarray]
    inlined: Mapping[int, np.ndarray]
    key: str

    @property
    def precision(self) -> str:
        return self.density.program.precision

    @property
    def dimension(self) -> int:
        return self.density.dimension

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        return self.density.parameters

    @cached_property
    def deterministic(self) -> tuple[OutputValue, ...]:
        return self.written.density.deterministic

    @cached_property
    def observed(self) -> tuple[str, ...]:
        return self.written.density.observed

    @property
    def rewrites(self) -> tuple[Rewrite, ...]:
        """What was rewritten for speed."""
        return self.density.program.rewrites

    @cached_property
    def centerings(self) -> Mapping[str, int]:
        """By the name of each parameter whose centering a pilot decides, the step that holds it."""
        return self.density.centerings

    def centered(self, weights: Mapping[str, np.ndarray]) -> Target:
        """The same, with these weights of the parameters in `centerings`."""
        written = self.written
        given = {**written.arrays, **_weights(written.density, weights)}
        arrays = {**self.arrays, **_weights(self.density, weights)}
        return replace(self, arrays=arrays, written=replace(written, arrays=given))

    @cached_property
    def arguments(self) -> Mapping[int, Any]:
        """What the executables are given of the data: worked out at the first use, which may compile.

        Errors: CompileFailed, InvalidData.
        """
        return self._preparation.arguments(self.arrays, self.inlined)

    def has_arguments(self) -> bool:
        """Whether `arguments` would compile nothing."""
        return self._preparation.has_program()

    @cached_property
    def _preparation(self) -> Preparation:
        return Preparation(self.density, self.key, self.written)

    def log_density(self, position: jax.Array, arguments: Mapping[int, Any]) -> jax.Array:
        """Scalar, to be traced; `arguments` stands for `self.arguments`."""
        return self.density.log_density(position, {**self.inlined, **arguments})

    def outputs(self, position: jax.Array, arguments: Mapping[int, Any]) -> dict[str, jax.Array]:
        """Constrained parameters and deterministic values at one position, to be traced; padded where data grow."""
        return self.density.outputs(position, {**self.inlined, **arguments})

    def value_and_gradient(self, position: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The log density (scalar array) and its gradient (d,) at an unconstrained position (d,)."""
        value, gradient = self._run("value_and_gradient", jax.value_and_grad(self.log_density), position)
        return np.asarray(value), np.asarray(gradient)

    def has_gradient_program(self) -> bool:
        """Whether `value_and_gradient` would compile nothing."""
        return self.has_arguments() and (self.key, "value_and_gradient") in EXECUTABLES

    def diagnose(self, position: np.ndarray) -> Diagnosis:
        """What is NaN or infinite at an unconstrained position (d,), if anything. Nothing is compiled as a whole."""
        return diagnose(_density(self.source.as_written()), position, self.written.arrays)

    def unconstrain(self, values: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """-> (position (d,), which coordinates `values` gave (d,)). Errors: InvalidOption."""
        try:
            return self.density.unconstrain(values, {**self.inlined, **self.arguments})
        except InvalidOption as error:
            if error.index is not None:
                error.index = self.written.index(error.node)
            raise

    def _run(self, name: str, function: Any, position: np.ndarray) -> Any:
        position = np.asarray(position, DTYPES[self.precision])
        program, _ = EXECUTABLES.get((self.key, name), function, (position, self.arguments))
        return program(position, self.arguments)


def bind(
    model: Model,
    data: Mapping[str, np.ndarray],
    tensors: Mapping[bytes, np.ndarray],
    *,
    precision: str = "f64",
    rewrites: Sequence[str] | None = None,
) -> Target:
    """Check a model against its tensors and put them in place. Nothing is compiled yet.

    `data`: arrays by slot; `tensors`: arrays of the model's constants by address; `rewrites`: names of those of
    `nutkin.model.REWRITES` that may be applied, None for all. Errors: InvalidModel, InvalidData, InvalidOption.
    """
    source = Source.of(model, specs(data), specs(tensors), precision, rewrites)
    if grows(model):
        original, given = _checked(source.as_written(), data, tensors)
        padding = _padding(source.with_room())
        padding.check(original.program, source.data)
        written = Written(original, given, padding.places)
        data = padding.data(data, source.data)
        density = _density(Source.of(padding.model, specs(data), source.tensors, precision, rewrites))
        arrays = gather(density.program, data, tensors)
    else:
        density, arrays = _checked(source, data, tensors)
        written = Written(density, arrays, range(len(density.program.steps)))
    program = density.program
    constants = inlined(program, arrays)
    return Target(source, written, density, arrays, constants, program_key(program, constants))


def _weights(density: Density, weights: Mapping[str, np.ndarray]) -> dict[int, np.ndarray]:
    return {
        index: np.asarray(weights[name], DTYPES[density.program.precision])
        for name, index in density.centerings.items()
    }


def _checked(
    source: Source, data: Mapping[str, np.ndarray], tensors: Mapping[bytes, np.ndarray]
) -> tuple[Density, dict[int, np.ndarray]]:
    """The density, and the arrays of its inputs, whose values are possible."""
    density = _density(source)
    arrays = gather(density.program, data, tensors)
    density.check_values(arrays)
    return density, arrays


@dataclass(frozen=True)
class Source:
    """What a density is made from. Two are equal if their encodings are."""

    encoded: bytes
    model: Model = field(compare=False)
    data: Mapping[str, Spec] = field(compare=False)
    tensors: Mapping[bytes, Spec] = field(compare=False)
    precision: str = field(compare=False)
    rewrites: Sequence[str] | None = field(compare=False)

    @classmethod
    def of(
        cls,
        model: Model,
        data: dict[str, Spec],
        tensors: dict[bytes, Spec],
        precision: str,
        rewrites: Sequence[str] | None,
    ) -> Source:
        specs = [[(name, spec.shape, spec.type) for name, spec in group.items()] for group in (data, tensors)]
        encoded = msgspec.msgpack.encode((model, specs, precision, rewrites))
        return cls(encoded, model, data, tensors, precision, rewrites)

    def as_written(self) -> Source:
        """The same without rewrites."""
        return Source.of(self.model, self.data, self.tensors, self.precision, ())

    def with_room(self) -> Source:
        """The same for data that fill their rooms."""
        data = resized(self.model, self.data, rooms(self.model, self.data))
        return Source.of(self.model, data, self.tensors, self.precision, self.rewrites)


@lru_cache(maxsize=64)
def _density(source: Source) -> Density:
    """A refit on new data of the same shape finds its model checked and rewritten."""
    program = check(source.model, source.data, source.tensors, precision=source.precision)
    return Density(rewrite(program, source.rewrites))


@lru_cache(maxsize=64)
def _padding(source: Source) -> Padding:
    """One for all lengths that have these rooms."""
    return pad(source.model, source.data, source.tensors, source.precision)


def specs(arrays: Mapping[Any, np.ndarray]) -> dict[Any, Spec]:
    return {name: Spec(array.shape, NAMES[array.dtype]) for name, array in arrays.items()}


def program_key(program: Program, constants: Mapping[int, np.ndarray]) -> str:
    """Models share their programs if their nodes, the types of their inputs, their inlined constants and what was
    rewritten agree."""
    nodes = [
        msgspec.structs.replace(node, blob=bytes(32)) if isinstance(node, Constant) and node.blob else node
        for node in program.model.nodes
    ]
    inputs = [(index, step.spec.shape, step.spec.type) for index, step in program.inputs.items()]
    inline = [(index, array.tobytes()) for index, array in constants.items()]
    applied = [(applied.name, applied.node) for applied in program.rewrites]
    digest = hashlib.sha256(msgspec.msgpack.encode((program.precision, nodes, inputs, inline, applied)))
    return digest.hexdigest()
