"""nutpie on PyMC's eight schools, compiled by numba; only `nutpie.sample` is timed.

Argument: iterations of warmup, or `default`.
"""

import json
import sys
import time
import warnings

import numpy as np
import nutpie
import pymc as pm

warnings.filterwarnings("ignore")

with pm.Model() as model:
    mu = pm.Normal("mu", 0, 5)
    tau = pm.HalfCauchy("tau", 5)
    z = pm.Normal("z", 0, 1, shape=8)
    theta = pm.Deterministic("theta", mu + tau * z)
    pm.Normal(
        "obs",
        theta,
        np.array([15.0, 10, 16, 11, 9, 11, 10, 18]),
        observed=np.array([28.0, 8, -3, 7, -1, 1, 18, 12]),
    )

compiled = nutpie.compile_pymc_model(model)
warmup = {} if sys.argv[1] == "default" else {"tune": int(sys.argv[1])}


def sample(seed):
    return nutpie.sample(compiled, draws=1000, chains=4, cores=2, seed=seed, progress_bar=False, **warmup)


sample(0)
print("ready", flush=True)
for line in sys.stdin:
    started = time.perf_counter()
    trace = sample(int(line))
    seconds = time.perf_counter() - started
    print(json.dumps({"seconds": seconds, "mean": float(trace.posterior["mu"].mean())}), flush=True)
