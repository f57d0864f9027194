"""Nx.serialize bytes: the files that real Nx wrote, written again by us, and files meant to hurt."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nutkin.errors import InvalidData, LimitExceeded
from nutkin.model.types import DTYPES
from nutkin_port import nx_serialize, terms
from nutkin_port.terms import Atom
from port.nx_files import GOLDEN, tensor_term, version_1

REFUSED = {
    "bad_header_len": "length of its header; expected at most 39 bytes; found 99999 bytes",
    "bad_truncated_buffer": "place of a buffer; expected within the 3 bytes",
    "bad_version_9": "its version; expected 1; found 9",
    "rank_260": "rank of a tensor; expected at most 64; found 260",
}
READ = sorted(path for path in GOLDEN.glob("*.nx") if path.stem not in REFUSED)
LIMIT = 1 << 20


def read(data: bytes) -> nx_serialize.Node:
    return nx_serialize.read(data, max_bytes=LIMIT)


def shared_fields(tree: dict[str, Any]) -> dict[str, Any]:
    """The fields of a sidecar's tree that `to_json` has, the items of maps (which have no order) sorted."""
    kept = {"kind", "type", "shape", "names", "vectorized_axes", "values", "items", "module", "keep"}
    tree = {key: value for key, value in tree.items() if key in kept}
    if tree["kind"] == "tuple":
        tree["items"] = [shared_fields(item) for item in tree["items"]]
    elif tree["kind"] in ("map", "struct"):
        tree["items"] = sorted(([key, shared_fields(item)] for key, item in tree["items"]), key=repr)
    return tree


@pytest.mark.parametrize("path", READ, ids=lambda path: path.stem)
def test_golden_file_is_its_sidecar(path: Path) -> None:
    expected = shared_fields(json.loads(path.with_suffix(".json").read_text())["tree"])
    found = shared_fields(json.loads(json.dumps(read(path.read_bytes()).to_json())))
    assert found == expected
    assert repr(found["values"]) == repr(expected["values"]) if "values" in found else True  # 1 is not 1.0


@pytest.mark.parametrize("path", READ, ids=lambda path: path.stem)
def test_golden_file_survives_our_writer(path: Path) -> None:
    node = read(path.read_bytes())
    assert read(nx_serialize.write(node)).to_json() == node.to_json()


def test_our_writer_writes_the_very_bytes_of_nx() -> None:
    compared = 0
    for path in READ:
        sidecar = json.loads(path.with_suffix(".json").read_text())
        if (
            sidecar["otp"] == "27"
            and "handmade" not in sidecar
            and "written_by" not in sidecar
            and path.stem != "minor_version_1"
        ):
            assert nx_serialize.write(read(path.read_bytes())) == path.read_bytes(), path.stem
            compared += 1
    assert compared == 45


@pytest.mark.parametrize(("name", "message"), REFUSED.items())
def test_refused_golden_files(name: str, message: str) -> None:
    with pytest.raises(InvalidData, match=message):
        read((GOLDEN / f"{name}.nx").read_bytes())


def test_all_golden_files_are_tested() -> None:
    assert len(READ) + len(REFUSED) == len(list(GOLDEN.glob("*.nx"))) == 67


def test_little_endian_tensors_alias_the_file() -> None:
    data = bytearray(version_1(tensor_term(), np.float32([1, 2]).tobytes()))
    node = read(data)
    assert isinstance(node, nx_serialize.Tensor)
    data[-1] = 0
    assert node.array[1] != 2
    assert not node.array.flags.writeable


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tag": Atom("u")}, "a node of its header"),
        ({"shape": [2]}, "a node of its header"),
        ({"shape": (3,)}, "do not fit its shape"),
        ({"shape": (-2,)}, "shape of a tensor"),
        ({"shape": (2.0,)}, "shape of a tensor"),
        ({"shape": (2**62, 2**62), "names": [Atom("nil")] * 2}, "do not fit its shape"),
        ({"type": (Atom("f"), 33)}, "type of a tensor"),
        ({"type": (Atom("q"), 32)}, "type of a tensor"),
        ({"type": Atom("f32")}, "type of a tensor"),
        ({"names": []}, "names of the axes"),
        ({"names": [b"x"]}, "names of the axes"),
        ({"axes": [(Atom("a"), 3)]}, "vectorized axes"),
        ({"axes": [Atom("a")]}, "items of a container"),
        ({"offset": 1}, "place of a buffer"),
        ({"offset": -8}, "place of a buffer"),
        ({"size": 2**70}, "size of its tensors"),
        ({"size": 2**19}, "place of a buffer"),
        ({"size": 4}, "do not fit its shape"),
    ],
)
def test_wrong_tensors(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidData, match=message):
        read(version_1(tensor_term(**changes), bytes(8)))


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (Atom("t"), "a node of its header"),
        ((Atom("Elixir.Nx.Container.Map"), [Atom("a")], Atom("ok")), "items of a container"),
        ((Atom("Elixir.A"), [(b"a", tensor_term())], []), "a field of a struct"),
        ((Atom("Elixir.A"), [], Atom("ok")), "items of a container"),
    ],
)
def test_wrong_containers(header: Any, message: str) -> None:
    with pytest.raises(InvalidData, match=message):
        read(version_1(header, bytes(8)))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "first bytes"),
        (b"PK\x03\x04", "first bytes"),
        (b"nx\x01", "its length"),
        (version_1(tensor_term(), bytes(8), endianness=2), "endianness byte"),
        (b"nx\x01\x00" + b"\xff" * 8, "length of its header"),
        (b"nx\x01\x00" + (2**21).to_bytes(8, "big") + bytes(2**21), "length of its header"),
        (terms.write((2, Atom("little"), Atom("x"))), "its term"),
        (terms.write((1, Atom("middle"), Atom("x"))), "its term"),
        (terms.write((1, Atom("little"), Atom("x"))), "a node of its term"),
    ],
)
def test_wrong_files(data: bytes, message: str) -> None:
    with pytest.raises(InvalidData, match=message):
        read(data)


def test_big_endian_tensors_of_one_buffer_are_each_swapped_once() -> None:
    pair = (Atom("Elixir.Nx.Container.Tuple"), [([], tensor_term()), ([], tensor_term())], Atom("ok"))
    data = bytearray(version_1(pair, np.array([1, 2], ">f4").tobytes(), endianness=1))
    node = read(data)
    assert isinstance(node, nx_serialize.Tuple)
    assert [item.array.tolist() for item in node.items] == [[1, 2], [1, 2]]


@pytest.mark.parametrize("type_term", [(Atom("f"), 32), (Atom("u"), 2)])
def test_tensors_of_one_buffer_are_no_more_than_the_limit(type_term: tuple[Any, ...]) -> None:
    size = 1 << 16
    tensor = tensor_term(shape=(size * 8 // type_term[1],), type=type_term, size=size)
    file = version_1((Atom("Elixir.Nx.Container.Tuple"), [([], tensor)] * 1000, Atom("ok")), bytes(size), endianness=1)
    with pytest.raises(InvalidData, match=f"size of its tensors; expected at most {LIMIT} bytes in all"):
        read(file)
    with pytest.raises(InvalidData, match=f"size of its tensors; expected at most {len(file)} bytes in all"):
        nx_serialize.read_tensor(file, max_bytes=1 << 40)


@pytest.mark.parametrize("name", DTYPES)
def test_every_type_survives(name: str) -> None:
    node = nx_serialize.tensor(np.array([[0, 1, 1], [1, 0, 1]], np.uint8).astype(DTYPES[name]), ("row", None))
    again = read(nx_serialize.write(node))
    assert again.to_json() == node.to_json()
    assert again.array.dtype == DTYPES[name]


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(READ), st.data())
def test_damaged_files_are_read_or_invalid(path: Path, data: st.DataObject) -> None:
    contents = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        contents[data.draw(st.integers(0, min(len(contents), 200) - 1))] = data.draw(st.integers(0, 255))
    try:
        found = read(contents)
    except (InvalidData, LimitExceeded):
        return
    assert found.to_json() is not None
