"""What is fuzzed: each function takes hostile input, and raises only where there is a defect.

Anything but the documented errors is one, and so is a result that contradicts what was said before it.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Mapping
from random import Random
from typing import Any

import jax
import numpy as np

import nutkin.compile
from fuzz.damage import damage_tree
from fuzz.models import ModelWriter, arrays
from nutkin.errors import InvalidData, InvalidModel, InvalidOption, LimitExceeded, ProtocolError
from nutkin.model import Program, Spec, check, read
from nutkin.model.evaluation import apply
from nutkin.model.plan import SEVERAL
from nutkin.model.steps import Application, Likelihood, Step, Variable
from nutkin.model.types import DTYPES
from nutkin_port import codec, messages, nx_serialize, tensors, terms
from nutkin_port.store import Upload

MAX_BYTES = 1 << 20
SMALL = 10_000  # elements: models of larger tensors are checked, not bound
ERRORS = (InvalidModel, InvalidData, InvalidOption, LimitExceeded)


def fuzz_frame(data: bytes) -> None:
    """A frame is no message, or has no readable body, or the model in it is read or refused."""
    with contextlib.suppress(ProtocolError, *ERRORS):
        kind, _, body = codec.unpack(data)
        message = messages.read(kind, body)
        if isinstance(message, messages.Put):
            Upload(message.blob, message.encoding, message.size, limit=MAX_BYTES).add(
                message.encoding, message.size, message.offset, message.content
            )
        if hasattr(message, "model"):
            check(read(message.model), {}, {})


def fuzz_nx_file(data: bytes) -> None:
    """A file is read, printed, written and read again."""
    with contextlib.suppress(InvalidData, LimitExceeded):
        node = nx_serialize.read(data, max_bytes=MAX_BYTES)
        tree = node.to_json()
        assert nx_serialize.read(nx_serialize.write(node), max_bytes=MAX_BYTES).to_json() == tree
        assert nx_serialize.read_tensor(data, max_bytes=MAX_BYTES).to_json() == tree


def fuzz_term(data: bytes) -> None:
    """A term is read and printed."""
    with contextlib.suppress(InvalidData):
        terms.inspect(terms.read(data, max_bytes=MAX_BYTES))


def fuzz_payload(data: bytes) -> None:
    """A tensor is read, and its bytes are written again: but for what fills up the last byte."""
    with contextlib.suppress(InvalidData, LimitExceeded):
        array = tensors.decode(data)
        again = tensors.decode(tensors.encode(array))
        assert again.dtype == array.dtype
        assert again.shape == array.shape
        assert again.tobytes() == array.tobytes()


def fuzz_model(random: Random) -> str:
    """A model is read and checked, or refused. Where it is small, it is traced too, and every step is what was said.

    -> how far it came: `refused`, `checked`, or `traced`.
    """
    writer = ModelWriter(random)
    tree = copy.deepcopy(writer.tree)
    if random.random() < 0.4:
        for _ in range(random.choice([1, 1, 2])):
            damage_tree(tree, random)
    outcome = "refused"
    with contextlib.suppress(*ERRORS):
        precision = random.choice(["f64", "f64", "f32"])
        program = check(read(tree), writer.data, writer.blobs, precision=precision)
        outcome = "checked"
        if all(spec.size <= SMALL for step in program.steps for spec in _specs(step)):
            data, blobs = (arrays(specs, random) for specs in (writer.data, writer.blobs))
            if random.random() < 0.7:
                trace(program, data, blobs)
            else:
                trace_prediction(program, data, blobs, random.choice(["predictions", "log_likelihood"]))
            outcome = "traced"
    return outcome


def trace(program: Program, data: Mapping[str, np.ndarray], blobs: Mapping[bytes, np.ndarray]) -> None:
    """What XLA would compile of a checked model: each step, the log density, its gradient, the outputs."""
    for step in program.steps:
        if isinstance(step, Application) and all(program.steps[index].spec.type != SEVERAL for index in step.args):
            _trace_step(program, step)
    target = nutkin.compile.bind(program.model, data, blobs, precision=program.precision)
    steps = target.density.program.steps
    if any(isinstance(step, Likelihood) for step in steps):
        return  # what it prepares of the data is known only when they are
    given = {index: _abstract(steps[index].spec) for index in target.density.given if index not in target.inlined}
    position = _abstract(Spec((target.dimension,), program.precision))
    jax.eval_shape(jax.value_and_grad(target.log_density), position, given)
    jax.eval_shape(target.outputs, position, given)


def trace_prediction(
    program: Program, data: Mapping[str, np.ndarray], blobs: Mapping[bytes, np.ndarray], of: str
) -> None:
    """What XLA would compile for random values or for the log likelihood, of given draws of all parameters."""
    variables = [step for step in program.steps if isinstance(step, Variable)]
    draws = {step.name: np.ones((1, 2, *step.spec.shape)) for step in variables} if of == "log_likelihood" else {}
    prediction = nutkin.compile.bind_prediction(
        program.model, draws, data, blobs, shape=None if draws else (1, 2), of=of, redraw=None if not draws else ()
    )
    predictive = prediction.predictive
    steps = predictive.program.steps
    given = {index: _abstract(steps[index].spec) for index in predictive.given if index not in prediction.inlined}
    drawn = {index: _abstract(Spec(array.shape[2:], "f64")) for index, array in prediction.drawn.items()}

    def draw(drawn: dict[int, Any], given: dict[int, Any]) -> dict[str, Any]:
        return predictive.draw(jax.random.key(0), drawn, {**prediction.inlined, **given})

    jax.eval_shape(draw, drawn, given)


def _trace_step(program: Program, step: Application) -> None:
    """Of operands as they were planned for, it gives what its plan says."""
    specs = {index: program.steps[index].spec for index in step.args}
    operands = {index: _abstract(spec) for index, spec in specs.items() if spec.literal is None}
    found = jax.eval_shape(lambda values: apply(program.steps, step, values), operands)
    found = found if step.spec.type == SEVERAL else (found,)
    assert [(x.shape, x.dtype) for x in found] == [(spec.shape, DTYPES[spec.type]) for spec in _specs(step)], step.node


def _specs(step: Step) -> tuple[Spec, ...]:
    return step.plan.elements if step.spec.type == SEVERAL else (step.spec,)


def _abstract(spec: Spec) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(spec.shape, DTYPES[spec.type])
