"""How far the parameters that ask for it are centered, decided by a pilot: a warmup of its own, before the run.

The pilot samples z of location + scale z. The more the data say about an element, the smaller is the variance of its z
against the prior's 1. Its coordinates are best centered by the weight 1 minus that variance: in a normal hierarchy with
known location and scale this makes them independent of both (Papaspiliopoulos, Roberts and Skold 2003). A weight near
an end is that end: from so few draws it cannot be told from it, and a small one brings back the funnel of a scale near
0 that z does not have.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np

from nutkin.sampler.advancing import all_chunks
from nutkin.sampler.checkpoint import read_pilot
from nutkin.sampler.compiled import Sampler
from nutkin.sampler.options import POOLED, Options
from nutkin.sampler.run import Pilot, Run

CHAINS = 4  # at most
NEAR = 0.2


def centered(
    sampler: Sampler,
    options: Options,
    is_stopped: Callable[[], bool] = lambda: False,
    checkpoint: Mapping[str, Any] | None = None,
) -> tuple[Sampler, Pilot | None]:
    """The sampler for a run with these options, and what its pilot was, None where none was needed.

    Without a warmup there is no pilot, and z is sampled. A run that goes on from a `checkpoint` has had its pilot.
    Errors: those of a run; Cancelled once `is_stopped` says so; InvalidCheckpoint.
    """
    target = sampler.target
    if not target.centerings or options.warmup == 0:
        return sampler, None
    if checkpoint is not None:
        pilot = Pilot(*read_pilot(checkpoint, sampler))
        return replace(sampler, target=target.centered(pilot.weights)), pilot
    started = time.monotonic()
    pilot = msgspec.structs.replace(
        options, chains=min(options.chains, CHAINS), draws=1, thin=1, adaptation=POOLED, keep_warmup=False
    )
    run = Run(sampler, pilot)
    all_chunks(run, is_stopped)
    chains = [chain.summary() for chain in run.chains]
    variance = np.mean([chain.inverse_mass for chain in chains], axis=0)
    weights = {}
    for parameter in target.parameters:
        if parameter.name in target.centerings:
            own = variance[parameter.offset : parameter.offset + parameter.size]
            weights[parameter.name] = _weights(own).reshape(parameter.shape)
    gradients = sum(chain.gradients for chain in chains)
    decided = replace(sampler, target=target.centered(weights))
    return decided, Pilot(weights, gradients, time.monotonic() - started)


def _weights(variance: np.ndarray) -> np.ndarray:
    """By the variances of z."""
    weights = 1 - variance
    return np.where(weights < NEAR, 0.0, np.where(weights > 1 - NEAR, 1.0, weights))
