"""The other side of the model language's tests: the engine.

    model_peer.py MESSAGE    prints a JSON list: of each model the named values and the log density at the origin of its
                             parameters, or its error

MESSAGE is a file with the frame ["models", 0, {"models": [{"model", "data", "blobs"}, …]}], blobs being lists of
[address, tensor].
"""

import json
import sys
from pathlib import Path

import jax
import numpy as np

import nutkin.compile
from nutkin.errors import NutkinError
from nutkin.model import read
from nutkin_port import codec


def answer(body):
    try:
        return evaluated(body)
    except NutkinError as error:
        return {"error": error.body()}


def evaluated(body):
    blobs = {bytes(address): tensor for address, tensor in body["blobs"]}
    target = nutkin.compile.bind(read(body["model"]), body["data"], blobs)
    origin = np.zeros(target.dimension)

    def at_origin(arguments):
        return target.outputs(origin, arguments), target.log_density(origin, arguments)

    values, log_density = jax.jit(at_origin)(target.arguments)
    named = {name: value.tolist() for name, value in values.items()}
    # JSON has no infinities.
    return {"values": named, "log_density": float(log_density) if np.isfinite(log_density) else None}


if __name__ == "__main__":
    _, _, body = codec.unpack(Path(sys.argv[1]).read_bytes())
    print(json.dumps([answer(model) for model in body["models"]]))
