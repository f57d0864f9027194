"""BlackJAX: window adaptation and NUTS on the density of the NumPyro model, compiled once, in two threads."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import blackjax
import jax
import numpyro
from blackjax.adaptation.base import get_filter_adapt_info_fn

numpyro.enable_x64()

import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from numpyro.infer.util import initialize_model  # noqa: E402
from numpyro_models import MODELS  # noqa: E402
from serving import CHAINS, DRAWS, Result, Sample, serve  # noqa: E402

WARMUP = 1000


def prepare(model: str, data: dict[str, np.ndarray]) -> Sample:
    about = initialize_model(jax.random.PRNGKey(0), MODELS[model], model_kwargs=data, dynamic_args=True)
    start = about.param_info.z

    def log_density(data):
        potential = about.potential_fn(**data)
        return lambda position: -potential(position)

    def warm_up(key, data):
        place, adapt = jax.random.split(key)
        keys = jax.random.split(place, len(start))
        position = {
            name: jax.random.uniform(k, value.shape, minval=-2.0, maxval=2.0)
            for k, (name, value) in zip(keys, start.items(), strict=True)
        }
        adaptation = blackjax.window_adaptation(
            blackjax.nuts,
            log_density(data),
            adaptation_info_fn=get_filter_adapt_info_fn(info_keys={"num_integration_steps"}),
        )
        (state, parameters), trace = adaptation.run(adapt, position, num_steps=WARMUP)
        return state, parameters, trace.info.num_integration_steps.sum()

    def draw(key, state, parameters, data):
        step = blackjax.nuts(log_density(data), **parameters).step

        def one(state, key):
            state, info = step(key, state)
            return state, (state.position, info.num_integration_steps, info.is_divergent)

        _, (positions, steps, diverging) = jax.lax.scan(one, state, jax.random.split(key, DRAWS))
        return jax.vmap(about.postprocess_fn(**data))(positions), steps.sum(), diverging.sum()

    data = jax.device_put(data)
    key = jax.random.PRNGKey(0)
    state, parameters, _ = jax.eval_shape(warm_up, key, data)
    warm_up = jax.jit(warm_up).lower(key, data).compile()
    draw = jax.jit(draw).lower(key, state, parameters, data).compile()
    threads = ThreadPoolExecutor(2)

    def sample(_variant: str, seed: int) -> Result:
        started = time.perf_counter()
        keys = jax.random.split(jax.random.PRNGKey(seed), (2, CHAINS))
        warmed = list(threads.map(lambda k: jax.block_until_ready(warm_up(k, data)), keys[0]))
        warm = time.perf_counter()
        drawn = list(
            threads.map(lambda k, w: jax.block_until_ready(draw(k, w[0], w[1], data)), keys[1], warmed),
        )
        ended = time.perf_counter()
        return Result(
            variables={name: jnp.stack([chain[0][name] for chain in drawn]) for name in drawn[0][0]},
            seconds={"warmup": warm - started, "sample": ended - warm, "total": ended - started},
            gradients={"warmup": sum(int(w[2]) for w in warmed), "sample": sum(int(chain[1]) for chain in drawn)},
            divergences=sum(int(chain[2]) for chain in drawn),
        )

    return sample


if __name__ == "__main__":
    serve(prepare, ("blackjax", "numpyro", "jax", "jaxlib"))
