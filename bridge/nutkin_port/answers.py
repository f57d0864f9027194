"""The bodies of the answers to requests, as PROTOCOL.md lists their fields."""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

import nutkin
import nutkin.compile
import nutkin.model
import nutkin.sampler
from nutkin.errors import InvalidData, shortened
from nutkin.model.types import NAMES, show_shape
from nutkin_port import memory, tensors
from nutkin_port.messages import Debug, LogDensity

STARTED = time.monotonic()


def compiled(sampler: nutkin.sampler.Sampler, seconds: float) -> dict[str, Any]:
    target = sampler.target
    return {
        "parameters": [{"name": p.name, "shape": p.shape, "type": p.type, "size": p.size} for p in target.parameters],
        "deterministic": [{"name": o.name, "shape": o.shape, "type": o.type} for o in target.deterministic],
        "observed": list(target.observed),
        "predicted": [],
        "dimension": target.dimension,
        "rewrites": [{"name": r.name, "node": r.node} for r in target.rewrites],
        "cached": sampler.cached,
        "seconds": seconds,
    }


def predicted(prediction: nutkin.compile.Prediction, cached: bool, seconds: float) -> dict[str, Any]:
    outputs = [{"name": o.name, "shape": o.shape, "type": o.type} for o in prediction.outputs]
    return {
        "parameters": [],
        "deterministic": [],
        "observed": list(prediction.observed),
        "predicted": outputs,
        "dimension": 0,
        "rewrites": [],
        "cached": cached,
        "seconds": seconds,
    }


def shapes(specs: Iterable[nutkin.model.Spec]) -> dict[str, Any]:
    return {"nodes": [{"shape": spec.shape, "type": spec.type} for spec in specs]}


def parts(values: Iterable[np.ndarray], chunk: int) -> Iterator[dict[str, Any]]:
    """The bytes of values, one after the other, in pieces of at most so many."""
    for place, value in enumerate(values):
        content = tensors.to_bytes(value)
        for offset in range(0, len(content), chunk):
            yield {"value": place, "offset": offset, "bytes": content[offset : offset + chunk]}


def evaluated(values: Iterable[np.ndarray], cached: bool, seconds: float) -> dict[str, Any]:
    forms = [{"shape": value.shape, "type": NAMES[value.dtype]} for value in values]
    return {"values": forms, "cached": cached, "seconds": seconds}


def value(target: nutkin.compile.Target, job: LogDensity) -> dict[str, Any]:
    position = _position(target, job)
    value, gradient = target.value_and_gradient(position)
    return {"value": value, "gradient": gradient, "position": position}


def diagnosis(target: nutkin.compile.Target, job: Debug) -> dict[str, Any]:
    found = target.diagnose(_position(target, job))
    cause = found.cause
    return {
        "finite": found.finite,
        "value": found.value,
        "gradient": found.gradient,
        "position": found.position,
        "point": dict(found.point),
        "cause": cause
        and {
            **{name: getattr(cause, name) for name in ("node", "name", "index", "kind", "what", "within", "found")},
            **{name: getattr(cause, name) for name in ("by", "affects", "expected", "hint", "place")},
            "element": np.asarray(cause.element),
            "inputs": [_reading(reading) for reading in cause.inputs],
        },
        "text": str(found),
    }


def _reading(reading: nutkin.model.Reading) -> dict[str, Any]:
    plain = ("node", "role", "type", "shape", "place", "nonfinite")
    scalars = {name: getattr(reading, name) for name in ("element", "least", "greatest")}
    return {
        **{name: getattr(reading, name) for name in plain},
        **{name: None if x is None else np.asarray(x) for name, x in scalars.items()},
    }


def _position(target: nutkin.compile.Target, job: LogDensity) -> np.ndarray:
    """The unconstrained point of a request (d,). Errors: InvalidData, InvalidOption."""
    position = target.unconstrain(job.values)[0] if job.position is None else job.position
    missing = [
        parameter.name for parameter in target.parameters if job.position is None and parameter.name not in job.values
    ]
    if missing:
        raise InvalidData("`values` lacks a parameter", path="$.values", expected=f"`{missing[0]}`")
    if position.shape != (target.dimension,) or position.dtype.kind not in "fiu":
        raise InvalidData(
            "`position` does not fit the model",
            path="$.position",
            expected=f"real numbers of shape {show_shape((target.dimension,))}",
            found=f"{NAMES[position.dtype]} {show_shape(position.shape)}",
        )
    return position


def pong(requests: int, blobs: dict[str, int]) -> dict[str, Any]:
    return {
        "resident": memory.resident(),
        "requests": requests,
        "blobs": blobs,
        "compilations": nutkin.compile.compilations(),
        "seconds": time.monotonic() - STARTED,
        "devices": nutkin.devices(),
    }


def defect(error: Exception) -> dict[str, Any]:
    """Of an error that none of ours is: where it was raised."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{os.path.basename(frame.filename)}:{frame.lineno}"
    return {"code": "internal", "message": shortened(f"{type(error).__name__} at {place}: {error}")}
