"""The error of a chain that found no starting point: what is wrong with the model at the points that it tried."""

from __future__ import annotations

from collections import Counter

import numpy as np

from nutkin.compile import Target
from nutkin.errors import InitFailed
from nutkin.model import Diagnosis
from nutkin.model.types import DTYPES
from nutkin.sampler.starts import MAX_STARTS, start_tried
from nutkin.sampler.state import State

_LOOKED_AT = 6  # of the last tries, far from the centre and close to it in turn

_EXPECTED = "a finite log density with a finite gradient"
_HINT = "check the data against the supports of the distributions, or give starting values with `init`"


def no_start(target: Target, chain: int, state: State, spread: np.ndarray) -> InitFailed:
    """`state`: that of the chain after its last try; `spread` (d,): of its random starts.

    The report is that of the last try at which what was wrong most often was wrong."""
    dtype = DTYPES[target.precision]
    centre, spread = state.point.position.astype(dtype), spread.astype(dtype)
    ticks = range(MAX_STARTS - (_LOOKED_AT if spread.any() else 1), MAX_STARTS)
    found = [target.diagnose(start_tried(state.key, tick, centre, spread)) for tick in ticks]
    counts = Counter(map(_key, found))
    key, count = counts.most_common(1)[0]
    last = next(diagnosis for diagnosis in reversed(found) if _key(diagnosis) == key)
    often = f" (so at {count} of the last {len(found)} tries)" if count < len(found) else ""
    message = f"chain {chain} found no starting point in {MAX_STARTS} tries: {_what(last)}{often}, {last.at}"
    cause = last.cause
    if cause is None:
        return InitFailed(message, expected=_EXPECTED, hint=_HINT)
    return InitFailed(
        message,
        node=cause.name,
        index=cause.index,
        expected=cause.expected or _EXPECTED,
        found=cause.found,
        hint=cause.hint or _HINT,
    )


def _key(diagnosis: Diagnosis) -> tuple | None:
    cause = diagnosis.cause
    return cause and (cause.index, cause.node, cause.what)


def _what(diagnosis: Diagnosis) -> str:
    if diagnosis.finite:
        largest = np.abs(diagnosis.gradient).max()
        return f"{diagnosis.headline}, but no step is small enough for a gradient of {largest:.3g}"
    inputs = ", ".join(map(str, diagnosis.cause.inputs)) if diagnosis.cause else ""
    return f"{diagnosis.headline}, where {inputs}" if inputs else diagnosis.headline
