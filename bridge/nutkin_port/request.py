"""One open request: a job of the client, the arrays that it holds on to, and those that it waits for."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from nutkin.errors import LimitExceeded, ProtocolError
from nutkin_port.limits import Limits
from nutkin_port.messages import Compile, Evaluate, LogDensity, Predict, Put, Sample, Shapes
from nutkin_port.runs import Run
from nutkin_port.store import Upload

Job = Compile | Sample | LogDensity | Predict | Shapes | Evaluate
RUNS = Sample | Predict  # answered with draws, as far as there is credit


class Request:
    """What is known of it until its last answer. `Requests` guards all but the uploads, which one thread adds to."""

    def __init__(self, id: int, job: Job) -> None:
        self.id = id
        self.job = job
        self.model: Any = None
        self.arrays: dict[bytes, np.ndarray] = {}
        self.missing: set[bytes] = set()
        self.uploads: dict[bytes, Upload] = {}
        self.credit = job.options.credit if isinstance(job, RUNS) else 0
        self.paused = False
        self.accepted = time.monotonic()
        self.run: Run | None = None

    def add(self, put: Put, limits: Limits) -> np.ndarray | None:
        """The next chunk of a blob; its array once all are there.

        ProtocolError for a blob that is not missing and for chunks that are not in order; LimitExceeded; InvalidData.
        """
        if put.blob not in self.missing:
            raise ProtocolError("a blob was sent that nobody needs", path="$.blob", found=put.blob.hex())
        if len(put.content) > limits.chunk:
            raise LimitExceeded(
                "the bytes of a `put` are too many",
                path="$.bytes",
                expected=f"at most {limits.chunk}",
                found=str(len(put.content)),
            )
        upload = self.uploads.get(put.blob)
        if upload is None:
            self.check_size(limits, put.size)
            upload = Upload(put.blob, put.encoding, put.size, limit=limits.tensor)
            self.uploads[put.blob] = upload
        array = upload.add(put.encoding, put.size, put.offset, put.content)
        if array is not None:
            _check_form(array, limits)
        return array

    def check_size(self, limits: Limits, more: int = 0) -> None:
        """LimitExceeded where all its tensors, and so many bytes more, are too many for a request."""
        held = sum(array.nbytes for array in self.arrays.values())
        total = held + sum(upload.size for upload in self.uploads.values()) + more
        if total > limits.tensors:
            raise LimitExceeded(
                "the tensors of a request are too large",
                expected=f"at most {limits.tensors} bytes in all",
                found=f"{total} bytes",
            )


def _check_form(array: np.ndarray, limits: Limits) -> None:
    for what, found, most in (("axes", array.ndim, limits.rank), ("elements", array.size, limits.elements)):
        if found > most:
            raise LimitExceeded(f"a tensor has too many {what}", expected=f"at most {most}", found=str(found))
