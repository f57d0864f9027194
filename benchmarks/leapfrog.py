"""Microseconds of a leapfrog step against those of the bare gradient, one chain in one thread, in turns.

`python -m benchmarks.leapfrog MODEL` prints a line of JSON. The gradient is that of the compiled model, with its value,
in a loop in which each step needs the one before it, compiled as the sampler is; the chain's is that of a whole run,
warmup and all else included, of 1000 draws or as many more as take as long as that loop.
"""

from __future__ import annotations

import json
import sys
import time
from functools import partial

import jax
import msgspec
import numpy as np
from jax import lax

import nutkin
from benchmarks import data, environments
from nutkin.compile import Target, bind
from nutkin.model import read
from nutkin.sampler.compiled import COMPILER_OPTIONS

_TURNS, _SECONDS, _ENOUGH_SECONDS = 8, 0.25, 60.0
_DRAWS = 1000


def measure(model: str) -> dict[str, float]:
    """-> {"gradient": us, "leapfrog": us, "ratio": leapfrog / gradient}: the best of several turns each."""
    tree = msgspec.msgpack.decode((environments.FOLDER / "models" / f"{model}.msgpack").read_bytes())
    arrays = data.DATA[model]()
    target = bind(read(tree), arrays, {})
    loop = jax.jit(partial(_gradients, target), compiler_options=COMPILER_OPTIONS)
    position = np.full(target.dimension, 0.01)
    count = _count_for(lambda n: loop(position, np.int32(n), target.arguments).block_until_ready())

    gradients, leapfrogs = [], []
    chain = partial(nutkin.sample, tree, arrays, chains=1)
    chain(draws=1)  # compiles
    started = time.perf_counter()
    chain(draws=_DRAWS)
    draws = int(_DRAWS * max(1.0, _SECONDS / (time.perf_counter() - started)))
    begun = time.perf_counter()
    while len(gradients) < _TURNS and time.perf_counter() - begun < _ENOUGH_SECONDS:
        started = time.perf_counter()
        loop(position, np.int32(count), target.arguments).block_until_ready()
        gradients.append((time.perf_counter() - started) / count)
        started = time.perf_counter()
        sampled = chain(draws=draws, seed=len(leapfrogs))
        leapfrogs.append((time.perf_counter() - started) / sampled.chains[0].gradients)
    gradient, leapfrog = 1e6 * min(gradients), 1e6 * min(leapfrogs)
    return {"gradient": gradient, "leapfrog": leapfrog, "ratio": leapfrog / gradient}


def _gradients(target: Target, position: jax.Array, count: jax.Array, arguments) -> jax.Array:
    def step(_, position):
        value, gradient = jax.value_and_grad(target.log_density)(position, arguments)
        # Far too little to leave the place, and enough that no step can be left out.
        return position + 1e-12 * (gradient + value)

    return lax.fori_loop(0, count, step, position)


def _count_for(run) -> int:
    """How many steps take about `_SECONDS`."""
    run(1)
    count = 1
    while True:
        started = time.perf_counter()
        run(count)
        if (elapsed := time.perf_counter() - started) > _SECONDS / 8:
            return max(1, int(count * _SECONDS / elapsed))
        count *= 4


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1])))
