"""The real program, given damaged frames after a valid start: typed errors, or its end with status 65."""

from __future__ import annotations

import copy
import itertools
from pathlib import Path
from random import Random
from typing import Any

import msgpack
import pytest

from fuzz.damage import damage_bytes, damage_tree
from fuzz.models import ModelWriter, arrays
from fuzz.targets import SMALL
from nutkin.errors import ProtocolError
from nutkin_port import codec, tensors
from nutkin_port.messages import OF_A_REQUEST
from port.models import gaussian
from port.port_client import DEADLINE, Message, PortClient, address

GOLDEN = Path(__file__).parents[2] / "bridge" / "golden"
FRAMES = [path.read_bytes() for path in sorted(GOLDEN.glob("client_*.frame"))]
MESSAGES = [codec.unpack(frame) for frame in FRAMES]
LAST = {"compiled", "done", "value", "diagnosis", "shapes", "evaluated", "pong", "error"}


def packed(kind: Any, id: int, body: Any) -> bytes | None:
    """None for what no frame can hold, or would be the end of the program."""
    try:
        frame = codec.pack(kind, id, body, limit=1 << 24)
        codec.unpack(frame)
    except (OverflowError, TypeError, ValueError, ProtocolError):
        return None
    return frame


def hostile(random: Random, blobs: dict[bytes, bytes]) -> tuple[str, dict[str, Any]]:
    """A message of a type that there is, with a body that is wrong somewhere, mostly. `blobs`: what it may need."""
    kind, _, body = random.choice([message for message in MESSAGES if message[0] != "shutdown"])
    body = copy.deepcopy(body)
    if "model" in body and random.random() < 0.6:  # of which nothing is compiled
        writer = ModelWriter(random)
        small = {name: spec for name, spec in writer.data.items() if spec.size <= SMALL}
        encoded = {name: tensors.encode(array) for name, array in arrays(small, random).items()}
        data = {name: address(content) for name, content in encoded.items()}
        blobs |= {address(content): content for content in encoded.values()}
        kind, body = "shapes", {"model": writer.tree, "data": data, "nodes": [0]}
    for _ in range(random.choice([0, 1, 1, 2])):
        damage_tree(body, random)
    return kind, body


def framed(frame: bytes) -> bytes:
    return len(frame).to_bytes(4, "big") + frame


def check(messages: list[Message]) -> None:
    defects = [message.body for message in messages if message.body.get("code") == "internal"]
    assert not defects, defects[:3]


def settled(port: PortClient, ids: set[int], blobs: dict[bytes, bytes]) -> list[Message]:
    """What is received until each of these requests is answered; one that needs other blobs is cancelled."""
    messages, waiting = [], set(ids)
    while waiting:
        message = port.receive()
        assert message is not None, messages[-1:]
        messages.append(message)
        if message.kind == "need":
            for needed in message.body["blobs"]:
                if needed in blobs:
                    port.put(message.id, blobs[needed])
                else:
                    port.send("cancel", message.id)
        elif message.kind in LAST:
            waiting.discard(message.id)
    return messages


@pytest.mark.parametrize("seed", [1, 2])
def test_one_program_answers_many_damaged_messages(seed: int) -> None:
    random, ids, messages, blobs = Random(seed), itertools.count(1), [], {}
    with PortClient() as port:
        port.hello()
        for _ in range(10):
            opened = set()
            for id in itertools.islice(ids, 60):
                kind, body = hostile(random, blobs)
                frame = packed(kind, id, body)
                if frame is not None:
                    opened |= {id} if kind not in OF_A_REQUEST else set()
                    port.send_bytes(framed(frame))
            messages += settled(port, opened, blobs)
        last = next(ids)
        port.send("log_density", last, {**gaussian(), "values": {}})
        messages += settled(port, {last}, blobs)
        port.send("shutdown", 0)
        messages += port.rest()
        assert port.exit_status() == 0
    check(messages)
    answers = [message.id for message in messages if message.kind in LAST]
    assert len(answers) == len(set(answers))
    assert sum(message.kind == "shapes" for message in messages) > 20
    assert [message.body["code"] for message in messages if message.id == last and message.kind == "error"] == [
        "invalid_data"
    ]


def test_damaged_frames_are_answered_or_end_the_program() -> None:
    ends = set()
    for seed in range(4):
        random = Random(seed)
        with PortClient() as port:
            port.hello()
            for _ in range(40):
                frame = damage_bytes(random.choice(FRAMES), random)
                try:
                    is_message = codec.unpack(frame) is not None
                except Exception:
                    is_message = False
                port.send_bytes(framed(frame))
                if not is_message:
                    break
            else:
                port.close_input()
            messages = port.rest()
            check(messages)
            ends.add(port.exit_status(DEADLINE))
            if not is_message:
                assert messages[-1].body["code"] in ("protocol", "limit")
    assert ends <= {0, 65}
    assert 65 in ends


def test_golden_frames_are_all_of_them() -> None:
    assert len(FRAMES) > 10
    assert all(isinstance(msgpack.unpackb(frame, ext_hook=lambda *_: None), list) for frame in FRAMES)
