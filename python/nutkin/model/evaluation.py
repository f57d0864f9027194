"""The values of applications, from those of the steps that they refer to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jax import Array

from nutkin.model.plan import cast
from nutkin.model.steps import Application, Number, Step
from nutkin.model.types import DTYPES


def operand(steps: Sequence[Step], index: int, type_name: str, values: Mapping[int, Any]) -> Any:
    """The value of a step in a type; numbers written in the model are converted exactly."""
    step = steps[index]
    if isinstance(step, Number):
        return np.asarray(step.spec.literal).astype(DTYPES[type_name])
    return cast(values[index], type_name)


def apply(steps: Sequence[Step], application: Application, values: Mapping[int, Any]) -> Array | tuple[Array, ...]:
    """The value of an application to earlier steps, or the tuple of its values."""
    typed = zip(application.args, application.plan.casts, strict=True)
    return application.plan.run(*(operand(steps, index, name, values) for index, name in typed))
