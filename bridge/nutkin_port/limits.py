"""The limits of one port program, as `hello` reports them."""

from __future__ import annotations

import dataclasses

MiB = 1 << 20
GiB = 1 << 30


@dataclasses.dataclass(frozen=True)
class Limits:
    """Sizes are in bytes."""

    frame: int = 16 * MiB  # one frame
    chunk: int = MiB  # the payload of one `put` or `draws`
    store: int = GiB  # the blobs that are kept
    tensor: int = 4 * GiB  # one tensor
    rank: int = 64  # axes of one tensor: numpy allows no more
    nodes: int = 100_000  # nodes of one model
    requests: int = 256  # open requests
