"""What is fuzzed: each function takes hostile input, and raises only where there is a defect.

Anything but the documented errors is one, and so is a result that contradicts what was said before it.
"""

from __future__ import annotations

import contextlib
import copy
from random import Random
from typing import Any

import jax
import numpy as np

import nutkin.compile
from fuzz.damage import damage_tree
from fuzz.models import ModelWriter, arrays
from nutkin.errors import InvalidData, InvalidModel, InvalidOption, LimitExceeded, ProtocolError
from nutkin.model import check, read
from nutkin.model.evaluation import apply
from nutkin.model.plan import SEVERAL
from nutkin.model.steps import Application
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
    precision = random.choice(["f64", "f64", "f32"])
    outcome = "refused"
    with contextlib.suppress(*ERRORS):
        model = read(tree)
        program = check(model, writer.data, writer.blobs, precision=precision)
        outcome = "checked"
        if all(spec.size <= SMALL for step in program.steps for spec in _specs(step)):
            _trace_steps(program)
            data, blobs = (arrays(specs, random) for specs in (writer.data, writer.blobs))
            _trace_density(model, data, blobs, precision)
            outcome = "traced"
    return outcome


def _specs(step: Any) -> tuple[Any, ...]:
    return step.plan.elements if step.spec.type == SEVERAL else (step.spec,)


def _trace_steps(program: Any) -> None:
    """Each application gives, of operands of the shapes that it was planned for, what its plan says."""
    for step in program.steps:
        if not isinstance(step, Application) or any(program.steps[i].spec.type == SEVERAL for i in step.args):
            continue
        operands = {
            i: jax.ShapeDtypeStruct(program.steps[i].spec.shape, DTYPES[program.steps[i].spec.type])
            for i in step.args
            if program.steps[i].spec.literal is None
        }
        found = jax.eval_shape(lambda values, step=step: apply(program.steps, step, values), operands)
        found = found if step.spec.type == SEVERAL else (found,)
        assert [(x.shape, x.dtype) for x in found] == [(s.shape, DTYPES[s.type]) for s in _specs(step)], step.node


def _trace_density(model: Any, data: Any, blobs: Any, precision: str) -> None:
    """The log density, as it is sampled, its gradient, and the outputs."""
    target = nutkin.compile.bind(model, data, blobs, precision=precision)
    if any(step.data for step in target.density.program.steps if hasattr(step, "prepare")):
        return  # what a likelihood prepares is known only to the compiled program
    given = {
        index: jax.ShapeDtypeStruct(target.density.program.steps[index].spec.shape, DTYPES[target.density.program.steps[index].spec.type])
        for index in target.density.given
        if index not in target.inlined
    }
    position = jax.ShapeDtypeStruct((target.dimension,), np.dtype(DTYPES[precision]))
    jax.eval_shape(jax.value_and_grad(target.log_density), position, given)
    jax.eval_shape(target.outputs, position, given)
