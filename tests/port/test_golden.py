"""bridge/golden: the recorded frames are current, and mean what their JSON says, in both directions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nutkin.model.types import DTYPES
from nutkin_port import codec, inspect, messages, tensors
from nutkin_port.limits import Limits
from port import record_golden

FRAMES = sorted(record_golden.GOLDEN.glob("*.frame"))
CLIENT_FRAMES = [path for path in FRAMES if path.stem.startswith("client_")]
PORT_TYPES = {
    *(
        "hello",
        "need",
        "compiling",
        "compiled",
        "progress",
        "info",
        "checkpoint",
        "draws",
        "done",
        "diagnosis",
        "value",
        "shapes",
        "part",
        "evaluated",
        "pong",
    ),
    *("log", "error"),
}


def from_json(value: Any) -> Any:
    match value:
        case {"$hex": hex}:
            return bytes.fromhex(hex)
        case {"$tensor": {"type": type_name, "shape": shape, "hex": hex}}:
            return tensors.from_bytes(bytes.fromhex(hex), type_name, tuple(shape))
        case dict():
            return {key: from_json(item) for key, item in value.items()}
        case list():
            return [from_json(item) for item in value]
    return value


def test_files_are_current() -> None:
    recorded = record_golden.recorded()
    assert {path.stem for path in FRAMES} == set(recorded)
    for name, message in recorded.items():
        frame, meaning = record_golden.files(message)
        path = record_golden.GOLDEN / name
        assert path.with_suffix(".frame").read_bytes() == frame, f"{name}: run tests/port/record_golden.py"
        assert path.with_suffix(".json").read_text() == meaning


@pytest.mark.parametrize("path", FRAMES, ids=lambda path: path.stem)
def test_frame_means_its_json(path: Path) -> None:
    kind, id, body = codec.unpack(path.read_bytes())
    codec.check(body)
    meaning = json.loads(path.with_suffix(".json").read_text())
    assert inspect.to_json([(kind, id, body)]) == [meaning]


@pytest.mark.parametrize("path", FRAMES, ids=lambda path: path.stem)
def test_json_packs_to_its_frame(path: Path) -> None:
    meaning = json.loads(path.with_suffix(".json").read_text())
    frame = codec.pack(meaning["type"], meaning["id"], from_json(meaning["body"]), limit=Limits.frame)
    assert frame == path.read_bytes()


@pytest.mark.parametrize("path", CLIENT_FRAMES, ids=lambda path: path.stem)
def test_client_messages_are_accepted(path: Path) -> None:
    kind, _, body = codec.unpack(path.read_bytes())
    assert isinstance(messages.read(kind, body), messages.TYPES[kind])


def test_every_message_is_recorded() -> None:
    kinds = {codec.unpack(path.read_bytes())[0] for path in FRAMES if not path.stem.startswith("edge_")}
    assert kinds == set(messages.TYPES) | PORT_TYPES


def test_every_tensor_type_is_recorded() -> None:
    _, _, body = codec.unpack((record_golden.GOLDEN / "edge_tensor_types.frame").read_bytes())
    assert {name: array.dtype for name, array in body.items()} == DTYPES
    for name, array in body.items():
        np.testing.assert_array_equal(array.astype(np.complex128), np.array([0, 1]), err_msg=name)
