"""Reading models: what is accepted, and where each malformed tree is said to be wrong."""

from __future__ import annotations

from typing import Any

import pytest

from engine.builder import Builder
from engine.model.exmc_models import EXMC_MODELS
from nutkin.errors import InvalidModel, LimitExceeded
from nutkin.model import read

ADDRESS = bytes(range(32))
DATA = {"kind": "data", "name": "y"}
ONE = {"kind": "constant", "value": 1}
NORMAL = {"kind": "rv", "name": "x", "dist": "normal", "args": {"mu": 0, "sigma": 0}}


def tree(*nodes: dict[str, Any]) -> dict[str, Any]:
    return {"version": 1, "nodes": list(nodes)}


@pytest.mark.parametrize("name", EXMC_MODELS)
def test_reads_models(name: str) -> None:
    model_tree, data = EXMC_MODELS[name]()
    model = read(model_tree)
    assert set(model.slots) == set(data)
    assert model.blobs() == frozenset()
    assert [node.__struct_config__.tag for node in model.nodes] == [node["kind"] for node in model_tree["nodes"]]


def test_blobs_and_slots() -> None:
    b = Builder()
    b.data("b", shape=[3, None], type="f64")
    b.constant(ADDRESS)
    b.constant(ADDRESS)
    b.data("a")
    model = read(b.tree())
    assert model.blobs() == {ADDRESS}
    assert model.slots == ("b", "a")
    assert model.nodes[0].shape == (3, None)


def test_nil_is_an_absent_optional_field() -> None:
    fields = {"shape": None, "transform": None}
    assert read(tree(ONE, {**NORMAL, **fields})) == read(tree(ONE, NORMAL))


# tree, path, words of the message
MALFORMED = [
    (3, "$", "Expected `object`"),
    ({"nodes": []}, "$", "version"),
    ({"version": 2, "nodes": []}, "$.version", "version"),
    ({"version": "1", "nodes": []}, "$.version", "Expected `int`"),
    ({"version": 1}, "$", "nodes"),
    ({"version": 1, "nodes": {}}, "$.nodes", "Expected `array`"),
    ({"version": 1, "nodes": [], "extra": 1}, "$", "extra"),
    (tree(7), "$.nodes[0]", "Expected `object`"),
    (tree({"name": "y"}), "$.nodes[0]", "kind"),
    (tree({"kind": "datum", "name": "y"}), "$.nodes[0].kind", "datum"),
    (tree({"kind": "data"}), "$.nodes[0]", "name"),
    (tree({"kind": "data", "name": ""}), "$.nodes[0].name", "length >= 1"),
    (tree({"kind": "data", "name": b"y"}), "$.nodes[0].name", "Expected `str`"),
    (tree({**DATA, "shape": [3, 0]}), "$.nodes[0].shape[1]", ">= 1"),
    (tree({**DATA, "size": 3}), "$.nodes[0]", "size"),
    (tree(DATA, {"kind": "constant", "value": True}), "$.nodes[1].value", "bool"),
    (tree({"kind": "constant", "value": "1"}), "$.nodes[0].value", "str"),
    (tree({"kind": "constant", "blob": b"short"}), "$.nodes[0].blob", "length"),
    (tree({"kind": "constant", "blob": "A" * 44}), "$.nodes[0].blob", "got `str`"),
    (tree({"kind": "constant"}), "$.nodes[0].value", "either"),
    (tree({"kind": "constant", "value": 1, "blob": ADDRESS}), "$.nodes[0].value", "either"),
    (tree({"kind": "constant", "value": float("nan")}), "$.nodes[0].value", "finite"),
    (tree({"kind": "constant", "value": 2**64}), "$.nodes[0].value", "64 bits"),
    (tree(ONE, {**NORMAL, "args": {"mu": 0, "sigma": "0"}}), "$.nodes[1].args.sigma", "Expected `int`"),
    (tree(ONE, {**NORMAL, "args": {"mu": 0, "sigma": -1}}), "$.nodes[1].args.sigma", ">= 0"),
    (tree(ONE, {**NORMAL, "args": {"mu": 0, "sigma": 1}}), "$.nodes[1].args.sigma", "earlier"),
    (tree(ONE, {**NORMAL, "args": [0, 0]}), "$.nodes[1].args", "Expected `object`"),
    (tree(ONE, {**NORMAL, "centered": 1}), "$.nodes[1].centered", "Expected `bool | str`"),
    (tree(ONE, NORMAL, {"kind": "call", "op": "exp", "args": [2]}), "$.nodes[2].args[0]", "earlier"),
    (tree(ONE, {"kind": "call", "op": "exp", "args": 0}), "$.nodes[1].args", "Expected `array`"),
    (tree(ONE, {"kind": "factor", "name": "f", "value": 0}, {"kind": "call", "op": "exp", "args": [1]}),
     "$.nodes[2].args[0]", "no value"),
    (tree(ONE, {"kind": "observe", "name": "o", "dist": "exponential", "args": {"rate": 0}, "value": 0, "mask": 5}),
     "$.nodes[1].mask", "earlier"),
    (tree(ONE, {"kind": "observe", "name": "o", "dist": "d", "args": {}, "value": 0, "reduce": "max"}),
     "$.nodes[1].reduce", "max"),
    (tree(DATA, ONE, {"kind": "factor", "name": "y", "value": 1}), "$.nodes[2].name", "taken"),
]  # fmt: skip


@pytest.mark.parametrize(("malformed", "path", "words"), MALFORMED)
def test_malformed_models_are_refused_with_their_path(malformed: Any, path: str, words: str) -> None:
    with pytest.raises(InvalidModel) as caught:
        read(malformed)
    assert caught.value.path == path
    assert words in str(caught.value)
    if path.startswith("$.nodes["):
        assert caught.value.index == int(path.split("[")[1].split("]")[0])


def test_the_error_names_the_node() -> None:
    with pytest.raises(InvalidModel) as caught:
        read(tree(ONE, {**NORMAL, "args": {"mu": 0, "sigma": "0"}}))
    assert caught.value.body() == {
        "code": "invalid_model",
        "message": "the model is malformed: Expected `int`, got `str`",
        "node": "x",
        "index": 1,
        "path": "$.nodes[1].args.sigma",
        "expected": "int",
        "found": "str",
    }


def test_call_and_constant_may_share_a_name() -> None:
    named = {"kind": "call", "op": "exp", "args": [0], "name": "x"}
    assert len(read(tree(ONE, NORMAL, named, named)).nodes) == 4


def test_the_limit_of_nodes() -> None:
    assert len(read(tree(ONE, ONE), limit=2).nodes) == 2
    with pytest.raises(LimitExceeded) as caught:
        read(tree(ONE, ONE, ONE), limit=2)
    assert (caught.value.expected, caught.value.found) == ("at most 2", "3")
