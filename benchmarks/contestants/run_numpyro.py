"""NumPyro as a program uses it that samples one model once: `MCMC.run`, which compiles one program. For cold starts."""

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


def prepare(model: str, data: dict[str, np.ndarray]) -> Sample:
    def sample(_variant: str, seed: int) -> Result:
        started = time.perf_counter()
        run = MCMC(NUTS(MODELS[model]), num_warmup=1000, num_samples=DRAWS, num_chains=CHAINS, progress_bar=False)
        run.run(jax.random.PRNGKey(seed), **data)
        samples = jax.block_until_ready(run.get_samples(group_by_chain=True))
        return Result(
            variables=samples,
            seconds={"warmup": None, "sample": None, "total": time.perf_counter() - started},
            gradients={"warmup": None, "sample": None},
            divergences=int(run.get_extra_fields()["diverging"].sum()),
        )

    return sample


if __name__ == "__main__":
    serve(prepare, ("numpyro", "jax", "jaxlib"))
