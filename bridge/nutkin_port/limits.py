"""The limits of one port program, as `hello` reports them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

MiB = 1 << 20
GiB = 1 << 30


@dataclasses.dataclass(frozen=True)
class Limits:
    """Sizes are in bytes, times in seconds; None: no limit."""

    frame: int = 16 * MiB  # one frame
    chunk: int = MiB  # the payload of one `put` or `draws`
    store: int = GiB  # the blobs that are kept
    tensor: int = 4 * GiB  # one tensor
    rank: int = 64  # axes of one tensor: numpy allows no more
    elements: int = 1 << 31  # elements of one tensor
    tensors: int = 16 * GiB  # of all tensors of one request
    nesting: int = 64  # levels of one message: the most that there may be
    nodes: int = 100_000  # nodes of one model
    requests: int = 256  # open requests
    runs: int = 64  # that sample or predict at once, others wait in line
    compile_seconds: int = 600  # of one compilation
    abandoned_seconds: int = 10  # of a compilation that nobody waits for any more
    run_seconds: int | None = None  # of one run, from its first step on
    resident: int | None = None  # memory of the program

    @classmethod
    def parse(cls, settings: Iterable[str]) -> Limits:
        """From texts such as "runs=8". ValueError, with what was expected, for one that is wrong."""
        names = [field.name for field in dataclasses.fields(cls)]
        values = {}
        for setting in settings:
            name, _, text = setting.partition("=")
            if name not in names:
                raise ValueError(f"there is no limit {name!r}; expected one of {', '.join(names)}")
            if not text.isascii() or not text.isdigit() or not 0 < int(text) < 2**63:
                raise ValueError(f"the limit {name} is {text!r}; expected a whole number above 0")
            values[name] = int(text)
        limits = cls(**values)
        for name, most in (("nesting", cls.nesting), ("rank", cls.rank), ("frame", (1 << 31) - 1)):
            if getattr(limits, name) > most:
                raise ValueError(f"the limit {name} is {getattr(limits, name)}; expected at most {most}")
        if limits.chunk > limits.frame // 2:
            raise ValueError(f"the limit chunk is {limits.chunk}; expected at most half of frame, {limits.frame}")
        return limits
