"""`nutkin inspect`: files of tensors and frames, as text and as JSON."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import msgpack
import numpy as np
import pytest

from nutkin_port import cli, tensors
from port.nx_files import GOLDEN as NX_GOLDEN
from port.port_client import environment
from port.record_golden import GOLDEN


def output(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert cli.main(["inspect", *map(str, arguments)]) == 0
    return capsys.readouterr().out


def test_a_tensor_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    text = output(capsys, NX_GOLDEN / "vectorized_2_names.nx")
    assert text.startswith("s64[c: 4] vectorized[a: 2, b: 3]\n  [[[ 0,  1,  2,  3],\n")


def test_containers_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    assert output(capsys, NX_GOLDEN / "struct_derived.nx") == (
        'struct Nx.Container.Golden.Params note="kept é"\n'
        "  a: f32[1]\n    [1.]\n"
        "  b: tuple of 2\n    0: s32[]\n      1\n    1: s32[]\n      2\n"
    )
    assert '"a b": s32[]' in output(capsys, NX_GOLDEN / "map_string_int_keys.nx")


def test_the_tree_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    tree = json.loads(output(capsys, NX_GOLDEN / "names_partial.nx", "--json"))
    assert tree == {
        "kind": "tensor",
        "type": "f32",
        "shape": [2, 2],
        "names": ["row", None],
        "vectorized_axes": [],
        "values": [1.0, 2.0, 3.0, 4.0],
    }


def test_a_tensor_payload(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "x.tensor"
    file.write_bytes(tensors.encode(np.array([[1.5, -2.0]])))
    assert output(capsys, file) == "f64[1, 2]\n  [[ 1.5, -2. ]]\n"


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.frame")), ids=lambda path: path.stem)
def test_a_frame(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    meaning = json.loads(path.with_suffix(".json").read_text())
    assert json.loads(output(capsys, path, "--json")) == [meaning]
    assert output(capsys, path).startswith(f"{meaning['type']} {meaning['id']}\n")


def test_a_stream_of_frames(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frames = [(GOLDEN / f"{name}.frame").read_bytes() for name in ("port_draws", "port_error")]
    file = tmp_path / "frames"
    file.write_bytes(b"".join(len(frame).to_bytes(4, "big") + frame for frame in frames))
    assert [message["type"] for message in json.loads(output(capsys, file, "--json"))] == ["draws", "error"]
    text = output(capsys, file)
    assert "theta: f64[2, 8]\n" in text
    assert "hint: 'give every school its sigma'" in text


@pytest.mark.parametrize("contents", [b"", b"hello", bytes(100)])
def test_files_that_hold_nothing_readable(contents: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "x"
    file.write_bytes(contents)
    assert cli.main(["inspect", str(file)]) == 1
    assert str(file) in capsys.readouterr().err


def test_the_reason_why_a_frame_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "frame"
    path.write_bytes(msgpack.packb(["ping", 1, {"x": float("nan")}]))
    assert cli.main(["inspect", str(path)]) == 1
    assert "finite" in capsys.readouterr().err


def test_escapes_do_not_reach_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "frame"
    path.write_bytes(msgpack.packb(["\x1b[2J", 1, {"\x1b[2J": "\x1b[2J"}]))
    assert "\x1b" not in output(capsys, path)


@pytest.mark.parametrize("encoding", ["ascii", "utf-8"])
def test_any_terminal_and_any_reader(encoding: str) -> None:
    command = [sys.executable, "-m", "nutkin_port.cli", "inspect", NX_GOLDEN / "struct_derived.nx"]
    variables = {**environment(), "PYTHONIOENCODING": encoding}
    with subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()  # as `head` does
        assert process.stderr.read() == b""
        assert process.wait() == 0
    output = subprocess.run(command, env=variables, check=True, capture_output=True).stdout
    assert b"struct" in output


def test_output_that_cannot_be_written() -> None:
    command = [sys.executable, "-m", "nutkin_port.cli", "inspect", NX_GOLDEN / "tuple_2.nx"]
    with open("/dev/full", "w") as full:
        ended = subprocess.run(command, env=environment(), stdout=full, stderr=subprocess.PIPE, text=True)
    assert ended.returncode == 1
    assert ended.stderr.startswith("nutkin: ")
    assert "Traceback" not in ended.stderr


def test_a_missing_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["inspect", str(tmp_path / "none")]) == 1
    assert "No such file" in capsys.readouterr().err
