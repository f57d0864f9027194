"""The other side of the model language's tests: the engine.

    model_peer.py MESSAGE    prints the named values of a model as JSON, at the origin of its parameters

MESSAGE is a file with the frame ["model", 0, {"model", "data", "blobs"}], blobs being a list of [address, tensor].
"""

import json
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from nutkin.errors import NutkinError
from nutkin.model import Density, Spec, check, read
from nutkin.model.ir import Data
from nutkin.model.types import DTYPES, NAMES
from nutkin_port import codec


def main(path):
    _, _, body = codec.unpack(Path(path).read_bytes())
    data, blobs = body["data"], {bytes(address): tensor for address, tensor in body["blobs"]}
    program = check(read(body["model"]), specs(data), specs(blobs))

    inputs = {}
    for index, step in program.inputs.items():
        node = program.model.nodes[index]
        array = data[node.name] if isinstance(node, Data) else blobs[node.blob]
        inputs[index] = np.asarray(array, DTYPES[step.spec.type])

    density = Density(program)
    evaluate = jax.jit(lambda position: (density.outputs(position, inputs), density.log_density(position, inputs)))
    values, log_density = evaluate(jnp.zeros(density.dimension))
    return {"values": {name: value.tolist() for name, value in values.items()}, "log_density": float(log_density)}


def specs(arrays):
    return {key: Spec(array.shape, NAMES[array.dtype]) for key, array in arrays.items()}


if __name__ == "__main__":
    try:
        print(json.dumps(main(sys.argv[1])))
    except NutkinError as error:
        print(json.dumps({"error": error.body()}))
