"""Writes bridge/golden: recorded frames and their meaning.

Run it after a change of the protocol: `PYTHONPATH=python:bridge:tests python -m port.record_golden`.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np

from nutkin.model.types import DTYPES
from nutkin_port import codec, inspect
from nutkin_port.limits import Limits
from port.models import SCHOOLS_Y, schools
from port.port_client import address

GOLDEN = Path(__file__).parents[2] / "bridge" / "golden"

Recorded = tuple[str, int, dict[str, Any]]

INTEGERS = [0, 1, 127, 128, 255, 256, 2**15, 2**16 - 1, 2**16, 2**31, 2**32 - 1, 2**32, 2**63 - 1, 2**63, 2**64 - 1]
NEGATIVE = [-1, -32, -33, -(2**7), -(2**7) - 1, -(2**15), -(2**15) - 1, -(2**31), -(2**31) - 1, -(2**63)]
FLOATS = [0.0, -0.0, 0.1, 1.5, -1e-300, 5e-324, 1.7976931348623157e308, 3.0]
STATISTICS = ("lp", "energy", "acceptance_rate", "step_size")


def recorded() -> dict[str, Recorded]:
    """All messages by name."""
    return {**_client(), **_port(), **_edges()}


def files(message: Recorded) -> tuple[bytes, str]:
    """The contents of NAME.frame and NAME.json."""
    (meaning,) = inspect.to_json([message])
    frame = codec.pack(*message, limit=Limits.frame)
    return frame, json.dumps(meaning, ensure_ascii=False, separators=(",", ":")) + "\n"


def _client() -> dict[str, Recorded]:
    body = schools()
    all_options = {
        "chains": 2,
        "draws": 500,
        "warmup": 300,
        "adaptation": "windowed",
        "seed": 2**64 - 1,
        "target_accept": 0.9,
        "max_tree_depth": 8,
        "init": {"radius": 1.0, "values": {"mu": np.array(4.0), "theta": np.zeros(8)}},
        "mass_matrix": "dense",
        "thin": 2,
        "keep_warmup": True,
        "variables": ["mu", "theta"],
        "credit": 4,
        "precision": "f32",
        "rewrites": ["parameter_free"],
        "target_ess": 400,
        "max_rhat": 1.01,
        "max_time": 60.0,
        "checkpoint_every": 1.0,
    }
    upload = {"blob": address(SCHOOLS_Y), "encoding": "tensor", "size": len(SCHOOLS_Y), "offset": 0}
    return {
        "client_compile": (
            "compile",
            1,
            {**body, "options": {"precision": "f64", "max_tree_depth": 10, "mass_matrix": "dense", "rewrites": []}},
        ),
        "client_compile_defaults": ("compile", 2, body),
        "client_sample": ("sample", 3, {**body, "options": all_options}),
        "client_sample_nil": ("sample", 4, {**body, "options": {"variables": None}}),
        "client_log_density_position": ("log_density", 5, {**body, "position": np.arange(10.0)}),
        "client_log_density_values": (
            "log_density",
            6,
            {**body, "options": {}, "values": {"mu": np.array(1, np.float32)}},
        ),
        "client_debug": ("debug", 7, {**body, "values": {"mu": np.array(1.0)}}),
        "client_predict": (
            "predict",
            8,
            {
                **body,
                "posterior": {"mu": address(SCHOOLS_Y)},
                "options": {
                    "of": "predictions",
                    "redraw": ["theta"],
                    "variables": ["obs"],
                    "seed": 7,
                    "precision": "f64",
                    "credit": 4,
                },
            },
        ),
        "client_predict_prior": (
            "predict",
            9,
            {**body, "posterior": {}, "options": {"chains": 1, "draws": 100, "redraw": None}},
        ),
        "client_shapes": ("shapes", 10, {**body, "nodes": [0, 4], "options": {"precision": "f32"}}),
        "client_evaluate": ("evaluate", 11, {**body, "results": [0]}),
        "client_put": ("put", 3, {**upload, "bytes": SCHOOLS_Y}),
        "client_ack": ("ack", 3, {"chunks": 2}),
        "client_sample_resumed": (
            "sample",
            12,
            {**body, "checkpoint": address(SCHOOLS_Y), "delivered": [[0, 17], [20, 0]]},
        ),
        "client_pause": ("pause", 3, {}),
        "client_resume": ("resume", 3, {}),
        "client_checkpoint": ("checkpoint", 3, {}),
        "client_info": ("info", 3, {}),
        "client_cancel": ("cancel", 3, {}),
        "client_ping": ("ping", 2**64 - 1, {}),
        "client_shutdown": ("shutdown", 0, {}),
    }


def _port() -> dict[str, Recorded]:
    versions = dict.fromkeys(("nutkin", "python", "jax", "jaxlib", "numpy"), "1.2.3")
    limits = dataclasses.asdict(Limits())
    progress = {
        "chain": 1,
        "phase": "warmup",
        "iteration": 150,
        "total": 2000,
        "divergences": 0,
        "step_size": 0.25,
        "tree_depth": 2.5,
        "gradients": 1234,
        "draws": 0,
        "gradients_per_second": 250000.0,
        "seconds_left": None,
    }
    stats = {name: np.array([-1.5, np.nan]) for name in STATISTICS}
    stats |= {"diverging": np.array([0, 1], np.uint8)}
    stats |= {name: np.array([3, 10], np.int32) for name in ("tree_depth", "n_steps")}
    mu = {"name": "mu", "shape": [], "type": "f64", "size": 1}
    theta = {"name": "theta", "shape": [8], "type": "f64", "size": 8}
    chain = {"chain": 0, "draws": 2, "warmup": 190, "divergences": 1, "step_size": 0.5}
    chain |= {"inverse_mass": np.ones(2), "gradients": 2046}
    error = {
        "code": "invalid_model",
        "message": "obs: the shapes do not fit",
        "node": "obs",
        "index": 7,
        "path": "$.nodes[7].args.sigma",
        "expected": "[8] or []",
        "found": "[7]",
        "hint": "give every school its sigma",
    }
    variance = {"node": "variance", "role": "operand 1", "type": "f64", "shape": [200], "place": [3], "nonfinite": 0}
    variance |= {"element": np.array(-0.12), "least": np.array(-0.12), "greatest": np.array(4.1)}
    unknown = {"node": "x", "role": "operand 2", "type": "s32", "shape": [7], "place": None, "nonfinite": 0}
    unknown |= {"element": None, "least": None, "greatest": None}
    cause = {
        "node": "sqrt(variance)",
        "name": "scan",
        "index": 5,
        "kind": "call",
        "what": "value",
        "within": ["step 3 of scan(y)"],
        "found": "NaN at [3]",
        "place": [3],
        "element": np.array(np.nan),
        "by": None,
        "affects": "obs",
        "expected": None,
        "hint": "see that its operand cannot become negative",
        "inputs": [variance, unknown],
    }
    return {
        "port_hello": (
            "hello",
            0,
            {
                "protocol": 1,
                "versions": versions,
                "limits": limits,
                "pid": 4321,
            },
        ),
        "port_need": ("need", 3, {"blobs": [address(SCHOOLS_Y), bytes(range(32))]}),
        "port_compiled": (
            "compiled",
            3,
            {
                "parameters": [mu, theta],
                "deterministic": [{"name": "diff", "shape": [2, 1], "type": "f64"}],
                "observed": ["obs"],
                "predicted": [],
                "dimension": 9,
                "rewrites": [{"name": "parameter_free", "node": "obs"}],
                "cached": False,
                "seconds": 1.25,
            },
        ),
        "port_compiled_prediction": (
            "compiled",
            8,
            {
                "parameters": [],
                "deterministic": [],
                "observed": ["obs"],
                "predicted": [{"name": "obs", "shape": [8], "type": "f64"}],
                "dimension": 0,
                "rewrites": [],
                "cached": True,
                "seconds": 0.0,
            },
        ),
        "port_shapes": ("shapes", 10, {"nodes": [{"shape": [8], "type": "f64"}, {"shape": [], "type": "s32"}]}),
        "port_part": ("part", 11, {"value": 0, "offset": 16, "bytes": bytes(8)}),
        "port_evaluated": (
            "evaluated",
            11,
            {"values": [{"shape": [3], "type": "c64"}], "cached": True, "seconds": 0.5},
        ),
        "port_compiling": ("compiling", 3, {}),
        "port_progress": ("progress", 3, progress),
        "port_info": (
            "info",
            3,
            {
                "stage": "running",
                "paused": True,
                "credit": 2,
                "seconds": 1.5,
                "chains": [progress, {**progress, "phase": "sample", "draws": 17, "seconds_left": 0.5}],
            },
        ),
        "port_checkpoint": ("checkpoint", 3, {"size": 20, "offset": 12, "bytes": bytes(8)}),
        "port_draws": (
            "draws",
            3,
            {
                "chain": 0,
                "phase": "sample",
                "start": 998,
                "count": 2,
                "variables": {"mu": np.array([4.5, np.inf]), "theta": np.arange(16.0).reshape(2, 8)},
                "stats": stats,
            },
        ),
        "port_done": (
            "done",
            3,
            {
                "status": "complete",
                "chains": [chain],
                "pilot": {"centering": {"theta": np.array([0.0, 0.5])}, "gradients": 4000, "seconds": 0.25},
                "seconds": {"compile": 1.25, "warmup": 0.25, "sample": 0.5},
            },
        ),
        "port_done_cancelled": (
            "done",
            3,
            {
                "status": "cancelled",
                "chains": [],
                "pilot": None,
                "seconds": {"compile": 0.0, "warmup": 0.0, "sample": 0.0},
            },
        ),
        "port_value": (
            "value",
            5,
            {"value": np.array(-43.5), "gradient": np.array([1.0, np.nan]), "position": np.zeros(2)},
        ),
        "port_diagnosis": (
            "diagnosis",
            7,
            {
                "finite": False,
                "value": np.array(np.nan),
                "gradient": np.array([1.0, np.nan]),
                "position": np.array([0.5, -1.0]),
                "point": {"mu": np.array(0.5), "beta": np.array([-1.0])},
                "cause": cause,
                "text": "sqrt(variance) is NaN at [3]\nat mu = 0.5",
            },
        ),
        "port_diagnosis_finite": (
            "diagnosis",
            8,
            {
                "finite": True,
                "value": np.array(-1.5),
                "gradient": np.array([1.0]),
                "position": np.array([0.5]),
                "point": {"mu": np.array(0.5)},
                "cause": None,
                "text": "the log density, -1.5, and its gradient are finite\nat mu = 0.5",
            },
        ),
        "port_pong": (
            "pong",
            2**64 - 1,
            {
                "resident": 200_000_000,
                "requests": 1,
                "blobs": {"count": 2, "bytes": 128},
                "compilations": 3,
                "seconds": 12.5,
                "devices": [{"platform": "cpu", "kind": "cpu"}],
            },
        ),
        "port_log": ("log", 0, {"level": "warning", "source": "stderr", "text": "µ: a line of another program"}),
        "port_error": ("error", 3, error),
        "port_error_short": ("error", 0, {"code": "protocol", "message": "a frame is not msgpack"}),
    }


def _edges() -> dict[str, Recorded]:
    tensors = {name: np.array([0, 1], np.uint8).astype(dtype) for name, dtype in DTYPES.items()}
    shapes = {
        "scalar": np.array(-0.5),
        "nonfinite": np.array([np.nan, np.inf, -np.inf, -0.0]),
        "cube": np.arange(24, dtype=np.int32).reshape(2, 3, 4),
        "odd_s2": np.array([-2, -1, 0, 1, 1], np.int8).astype(DTYPES["s2"]),
        "odd_u4": np.array([15, 0, 7], np.uint8).astype(DTYPES["u4"]),
        "complex": np.array([1.5 - 2j, 3j]),
        "empty": np.zeros((0, 2)),
    }
    extensions = {f"payload_{size}": np.zeros(size - 12, np.uint8) for size in (16, 255, 256, 65536)}
    return {
        "edge_plain": ("plain", 1, {"nil": None, "true": True, "false": False, "map": {}, "list": [], "": ""}),
        "edge_integers": ("integers", 2**32, {"positive": INTEGERS, "negative": NEGATIVE}),
        "edge_floats": ("floats", 1, {"values": FLOATS}),
        "edge_strings": (
            "strings",
            1,
            {"lengths": ["é" * (size // 2) + "s" * (size % 2) for size in (31, 32, 255, 256)]},
        ),
        "edge_bytes": ("bytes", 1, {"lengths": [bytes([255]) * size for size in (0, 255, 256)]}),
        "edge_lists": (
            "lists",
            1,
            {"lengths": [[0] * size for size in (15, 16, 256)], "nested": [[[[]]], {"a": [{}]}]},
        ),
        "edge_maps": ("maps", 1, {str(size): {str(key): key for key in range(size)} for size in (15, 16, 256)}),
        "edge_long_string": ("long_string", 1, {"65536": "s" * 65536}),
        "edge_long_bytes": ("long_bytes", 1, {"65536": bytes(65536)}),
        "edge_long_list": ("long_list", 1, {"65536": [7] * 65536}),
        "edge_tensor_types": ("tensor_types", 1, tensors),
        "edge_tensor_shapes": ("tensor_shapes", 1, shapes),
        "edge_tensor_lengths": ("tensor_lengths", 1, extensions),
    }


def main() -> None:
    for old in [*GOLDEN.glob("*.frame"), *GOLDEN.glob("*.json")]:
        old.unlink()
    for name, message in recorded().items():
        frame, meaning = files(message)
        (GOLDEN / f"{name}.frame").write_bytes(frame)
        (GOLDEN / f"{name}.json").write_text(meaning)


if __name__ == "__main__":
    main()
