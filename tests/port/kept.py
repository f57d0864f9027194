"""What a client keeps of a run: its draws, each once and in order, and its checkpoints."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from port.port_client import Message


class Draws:
    """Those of the variable `x`, of so many chains."""

    def __init__(self, chains: int) -> None:
        self._chains = chains
        self._kept: dict[tuple[int, str], list[np.ndarray]] = {}

    def count(self, chain: int, phase: str) -> int:
        return sum(len(draws) for draws in self._kept.get((chain, phase), []))

    def add(self, message: Message) -> None:
        body = message.body
        assert body["start"] == self.count(body["chain"], body["phase"]), "a gap, or a repeat"
        self._kept.setdefault((body["chain"], body["phase"]), []).append(body["variables"]["x"])

    def delivered(self) -> list[list[int]]:
        return [[self.count(chain, phase) for phase in ("warmup", "sample")] for chain in range(self._chains)]

    def check_same(self, other: Draws) -> None:
        """To the last bit."""
        assert self._kept.keys() == other._kept.keys()
        for key, draws in self._kept.items():
            np.testing.assert_array_equal(np.concatenate(draws), np.concatenate(other._kept[key]))


def whole(pieces: Sequence[Message]) -> bytes:
    """The bytes of one checkpoint from its messages."""
    content = b""
    for piece in pieces:
        assert piece.body["offset"] == len(content)
        content += piece.body["bytes"]
        assert piece.body["size"] == pieces[0].body["size"]
    assert len(content) == pieces[0].body["size"]
    return content
