"""The other side of the model language's tests: the engine.

    model_peer.py MESSAGE    prints the named values of a model as JSON, at the origin of its parameters

MESSAGE is a file with the frame ["model", 0, {"model", "data", "blobs"}], blobs being a list of [address, tensor].
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


def main(path):
    _, _, body = codec.unpack(Path(path).read_bytes())
    blobs = {bytes(address): tensor for address, tensor in body["blobs"]}
    target = nutkin.compile.bind(read(body["model"]), body["data"], blobs)
    origin = np.zeros(target.dimension)
    values = jax.jit(target.outputs)(origin, target.arguments)
    log_density = jax.jit(target.log_density)(origin, target.arguments)
    return {"values": {name: value.tolist() for name, value in values.items()}, "log_density": float(log_density)}


if __name__ == "__main__":
    try:
        print(json.dumps(main(sys.argv[1])))
    except NutkinError as error:
        print(json.dumps({"error": error.body()}))
