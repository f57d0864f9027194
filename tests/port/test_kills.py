"""Programs that are killed while they sample: the runs go on in the next one, and draw what they would have drawn."""

from __future__ import annotations

import random
import signal
from collections.abc import Sequence
from typing import Any

import numpy as np

from port.kept import Draws, whole
from port.models import gaussian
from port.port_client import Message, PortClient, address, encode

UNLIMITED = 10**9
SHAPES: list[dict[str, Any]] = [
    {},
    {"keep_warmup": False, "chains": 1},
    {"adaptation": "windowed", "warmup": 60},
    {"mass_matrix": "dense"},
    {"mass_matrix": "dense", "adaptation": "windowed", "warmup": 80, "chains": 3},
    {"precision": "f32"},
    {"thin": 3, "chains": 5, "draws": 100},
    {"target_ess": 150.0, "draws": 10_000},
    {"max_rhat": 1.02, "draws": 10_000, "chains": 4},
    {"warmup": 0},
]


class Reader:
    """One run, and what its client does while it reads: acks, pauses and checkpoints as chance has it."""

    def __init__(self, id: int, shape: dict[str, Any], chance: random.Random) -> None:
        self.id = id
        self.options = {"chains": 2, "warmup": 190, "draws": 300, "seed": id, "keep_warmup": True, **shape}
        self.draws = Draws(self.options["chains"])
        self.status: str | None = None
        self._chance = chance
        self._state = self._begun_from = b""
        self._pieces: list[Message] = []

    def start(self, port: PortClient) -> None:
        """From the last checkpoint, if there is one."""
        changing = {"credit": self._chance.choice([0, 1, 3]), "checkpoint_every": self._chance.choice([None, 0.02])}
        body = {**gaussian(), "options": {**self.options, **changing}, "delivered": self.draws.delivered()}
        self._pieces = []
        if self._state:
            body["checkpoint"] = address(_blob(self._state))
        self._begun_from = self._state
        port.send("sample", self.id, body)
        port.send("ack", self.id, {"chunks": 1})

    def supply(self, port: PortClient, chunk: int) -> None:
        """The checkpoint that the program needs."""
        port.put(self.id, _blob(self._begun_from), chunk=chunk)

    def read(self, message: Message) -> None:
        match message.kind:
            case "draws":
                self.draws.add(message)
            case "checkpoint":
                self._pieces.append(message)
                if message.body["offset"] + len(message.body["bytes"]) == message.body["size"]:
                    self._state, self._pieces = whole(self._pieces), []
            case "done":
                self.status = message.body["status"]
            case kind:
                assert kind in ("compiling", "compiled", "progress"), message

    def patience(self, most: int) -> int:
        """How many messages of draws it reads before the program is killed."""
        return most if most == UNLIMITED else self._chance.randint(1, most)

    def answer(self, port: PortClient) -> None:
        """What the client says after draws."""
        if self._chance.random() < 0.3:
            for kind in self._chance.sample(["pause", "checkpoint"], 2):
                port.send(kind, self.id)
            port.send("resume", self.id)
        port.send("ack", self.id, {"chunks": self._chance.randint(1, 2)})


def _blob(state: bytes) -> bytes:
    return encode(np.frombuffer(state, np.uint8), "u1")


def read(port: PortClient, readers: Sequence[Reader], chunk: int, most: int) -> None:
    """Until every run is done, or has sent as many messages of draws as chance has it, at most so many."""
    left = {reader.id: reader.patience(most) for reader in readers}
    by_id = {reader.id: reader for reader in readers}
    while left:
        message = port.receive()
        assert message is not None
        reader = by_id[message.id]
        if message.kind == "need":
            reader.supply(port, chunk)
            continue
        reader.read(message)
        if message.kind == "done":
            left.pop(message.id, None)
        elif message.kind == "draws" and message.id in left:
            left[message.id] -= 1
            if left[message.id]:
                reader.answer(port)
            else:
                del left[message.id]


def undisturbed(port: PortClient, reader: Reader) -> tuple[str, Draws]:
    draws = Draws(reader.options["chains"])
    port.send("sample", reader.id, {**gaussian(), "options": {**reader.options, "credit": UNLIMITED}})
    done, before = port.until("done", id=reader.id)
    for message in before:
        if message.kind == "draws":
            draws.add(message)
    return done.body["status"], draws


def test_runs_go_on_in_the_next_program() -> None:
    """Two runs of each shape at once, in three programs with chunks of different sizes, the first two killed."""
    chance = random.Random(1)
    readers = [Reader(id, shape, chance) for id, shape in enumerate(SHAPES * 2, start=1)]
    expected: list[tuple[str, Draws]] = []
    for chunk, most in ((2000, 9), (1 << 20, 5), (900, UNLIMITED)):
        with PortClient("--limit", f"chunk={chunk}") as port:
            port.hello()
            expected = expected or [undisturbed(port, reader) for reader in readers]
            going_on = [reader for reader in readers if reader.status is None]
            for reader in going_on:
                reader.start(port)
            read(port, going_on, chunk, most)
            if most < UNLIMITED:
                port.signal(signal.SIGKILL)
                for message in port.rest():
                    readers[message.id - 1].read(message)
    for reader, (status, draws) in zip(readers, expected, strict=True):
        assert reader.status == status
        reader.draws.check_same(draws)
