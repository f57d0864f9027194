"""NumPyro with parallel chains, a device each, as two programs that are compiled once.

`MCMC.run`, which is made of the same parts, compiles at each call; see run_numpyro.py.
"""

from __future__ import annotations

import time

import numpyro

numpyro.enable_x64()
numpyro.set_host_device_count(4)

import jax  # noqa: E402
import numpy as np  # noqa: E402
from numpyro.infer import MCMC, NUTS  # noqa: E402
from numpyro_models import MODELS  # noqa: E402
from serving import CHAINS, DRAWS, Result, Sample, serve  # noqa: E402

WARMUP = 1000
FIELDS = ("num_steps", "diverging")


def prepare(model: str, data: dict[str, np.ndarray]) -> Sample:
    def one_chain() -> MCMC:
        return MCMC(NUTS(MODELS[model]), num_warmup=WARMUP, num_samples=DRAWS, num_chains=1, progress_bar=False)

    def warm_up(key, data):
        chain = one_chain()
        chain.warmup(key, extra_fields=FIELDS, collect_warmup=True, **data)
        return chain.last_state, chain.get_extra_fields()["num_steps"].sum()

    def draw(state, data):
        chain = one_chain()
        chain.post_warmup_state = state
        chain.run(state.rng_key, extra_fields=FIELDS, **data)
        return chain.get_samples(), chain.get_extra_fields()

    keys = jax.random.split(jax.random.PRNGKey(0), CHAINS)
    warm_up, draw = (jax.pmap(phase, in_axes=(0, None)) for phase in (warm_up, draw))
    state, _ = jax.eval_shape(warm_up, keys, data)
    warm_up = warm_up.lower(keys, data).compile()
    draw = draw.lower(state, data).compile()

    def sample(_variant: str, seed: int) -> Result:
        started = time.perf_counter()
        state, warmup_steps = jax.block_until_ready(warm_up(jax.random.split(jax.random.PRNGKey(seed), CHAINS), data))
        warm = time.perf_counter()
        samples, fields = jax.block_until_ready(draw(state, data))
        ended = time.perf_counter()
        return Result(
            variables=samples,
            seconds={"warmup": warm - started, "sample": ended - warm, "total": ended - started},
            gradients={"warmup": int(warmup_steps.sum()), "sample": int(fields["num_steps"].sum())},
            divergences=int(fields["diverging"].sum()),
        )

    return sample


if __name__ == "__main__":
    serve(prepare, ("numpyro", "jax", "jaxlib"))
