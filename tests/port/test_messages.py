"""Typed messages: what is wrong with a body, and where."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nutkin.errors import InvalidOption, NutkinError, ProtocolError
from nutkin_port import messages

JOB = {"model": {}, "data": {"y": bytes(32)}}
PUT = {"blob": bytes(32), "encoding": "tensor", "size": 10, "offset": 0, "bytes": b"x"}


def test_defaults() -> None:
    sample = messages.read("sample", JOB)
    assert isinstance(sample, messages.Sample)
    assert (sample.options.credit, sample.options.chains, sample.options.precision) == (16, 4, "f64")
    compile_ = messages.read("compile", JOB)
    assert isinstance(compile_, messages.Compile)
    assert (compile_.options.precision, compile_.options.max_tree_depth) == ("f64", 10)


def test_starting_values_are_tensors() -> None:
    options = {"init": {"radius": 0, "values": {"x": np.zeros(2)}}, "seed": 2**64 - 1}
    sample = messages.read("sample", {**JOB, "options": options})
    assert isinstance(sample, messages.Sample)
    assert sample.options.init.values["x"].tolist() == [0, 0]


@pytest.mark.parametrize(
    ("kind", "body", "path", "message"),
    [
        ("launch", {}, None, "expected one of compile, sample"),
        ("ping", {"now": 1}, "$", "unknown field `now`"),
        ("ack", {}, "$", "missing required field `chunks`"),
        ("ack", {"chunks": -1}, "$.chunks", ">= 0"),
        ("ack", {"chunks": True}, "$.chunks", "got `bool`"),
        ("ack", {"chunks": 1.5}, "$.chunks", "expected `int`"),
        ("put", {**PUT, "blob": b"x"}, "$.blob", "length >= 32"),
        ("put", {**PUT, "blob": "x" * 32}, "$.blob", "got `str`"),
        ("put", {**PUT, "bytes": "x"}, "$.bytes", "got `str`"),
        ("put", {**PUT, "encoding": "npy"}, "$.encoding", "npy"),
        ("put", {**PUT, "size": None}, "$.size", "got `null`"),
        ("put", {**PUT, "sha": b""}, "$", "expected one of blob, encoding, size, offset, bytes"),
        ("sample", {"model": {}}, "$", "missing required field `data`"),
        ("sample", {**JOB, "data": {"y": b"x"}}, "$.data[...]", "length >= 32"),
        ("sample", {**JOB, "data": [b"x"]}, "$.data", "got `array`"),
        ("log_density", JOB, "$.position", "either `position` or `values`"),
        ("log_density", {**JOB, "position": np.zeros(1), "values": {}}, "$.position", "either"),
        ("log_density", {**JOB, "position": [1.0]}, "$.position", "a tensor"),
        ("debug", JOB, "$.position", "a field of `debug` is wrong; expected either `position` or `values`"),
        ("ping", {"x - at `$.y`": 1}, "$", "unknown field"),
    ],
)
def test_wrong_fields(kind: str, body: dict[str, Any], path: str | None, message: str) -> None:
    with pytest.raises(ProtocolError, match=message.replace("$", r"\$")) as raised:
        messages.read(kind, body)
    assert raised.value.path == path or "y" in str(body)


@pytest.mark.parametrize(
    ("kind", "options", "path", "message"),
    [
        ("sample", {"chain": 1}, "$.options", "expected one of chains, draws"),
        ("sample", {"chains": 0}, "$.options.chains", "from 1 to 1024; found 0"),
        ("sample", {"chains": 4.0}, "$.options.chains", "expected `int`"),
        ("sample", {"draws": "many"}, "$.options.draws", "got `str`"),
        ("sample", {"credit": -1}, "$.options.credit", ">= 0"),
        ("sample", {"seed": -1}, "$.options.seed", "from 0"),
        ("sample", {"target_accept": 1}, "$.options.target_accept", "between 0 and 1"),
        ("sample", {"init": {"radius": -1}}, "$.options.init.radius", "at least 0"),
        ("sample", {"init": {"centre": 1}}, "$.options.init", "expected one of radius, values"),
        ("sample", {"init": {"values": {"x": 1.0}}}, "$.options.init.values.x", "expected a tensor; found float"),
        ("sample", {"mass_matrix": "round"}, "$.options.mass_matrix", "`diagonal`"),
        ("sample", {"variables": "mu"}, "$.options.variables", "got `str`"),
        ("compile", {"draws": 1}, "$.options", "expected one of precision, max_tree_depth, mass_matrix"),
        ("compile", {"max_tree_depth": 16}, "$.options.max_tree_depth", "from 1 to 15"),
        ("log_density", {"precision": "f16"}, "$.options.precision", "`f64` or `f32`"),
        ("log_density", None, "$.options", "got `null`"),
        ("sample", np.zeros(2), "$.options", "expected `object`, got a tensor"),
        ("sample", {"init": np.zeros(())}, "$.options.init", "expected `object`, got a tensor"),
    ],
)
def test_wrong_options(kind: str, options: Any, path: str, message: str) -> None:
    body = {**JOB, "options": options} | ({"position": np.zeros(1)} if kind == "log_density" else {})
    with pytest.raises(InvalidOption, match=message) as raised:
        messages.read(kind, body)
    assert raised.value.path == path


def test_the_body_is_checked_before_it_is_converted() -> None:
    with pytest.raises(NutkinError, match="not finite"):
        messages.read("ack", {"chunks": float("nan")})
