"""The state of a run as plain data: maps, lists, texts, numbers and arrays.

It says which run it belongs to, by what decides about the draws: the program, the data, the options, the versions and
the processor. Draws that come later are those of an uninterrupted run, to the last bit, only where all of them agree.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from nutkin.compile import surroundings
from nutkin.errors import InvalidCheckpoint
from nutkin.sampler.compiled import Sampler
from nutkin.sampler.kernel import STATISTICS
from nutkin.sampler.metric import Metric
from nutkin.sampler.options import Options
from nutkin.sampler.record import Record, array, count, from_tree, mapping, number, sequence, to_tree, wrong
from nutkin.sampler.state import packed_size
from nutkin.versions import versions

FORMAT = 1

# These may differ from those of the run that a checkpoint is of.
_FREE = ("draws", "variables", "target_ess", "max_rhat", "max_time", "init", "rewrites")


@dataclass(frozen=True)
class Checkpoint:
    """`schemes`: the state of that of each group; `records`: of each chain; `rule`: that of the stop rule, None without
    one."""

    schemes: Sequence[Mapping[str, Any]]
    records: Sequence[Record]
    rule: Mapping[str, Any] | None


def fingerprint(sampler: Sampler, options: Options) -> dict[str, Any]:
    """Of the model, the data and the options, as far as they decide about the draws: texts."""
    target = sampler.target
    crc = 0
    for index in sorted(set(target.written.arrays) - set(target.written.density.centerings.values())):
        crc = zlib.crc32(np.ascontiguousarray(target.written.arrays[index]).data, crc)
    start = [options.init.radius, sorted(options.init.values)]
    for name in start[1]:
        crc = zlib.crc32(np.ascontiguousarray(options.init.values[name]).data, crc)
    taken = {name: str(getattr(options, name)) for name in Options.__struct_fields__ if name not in _FREE}
    engine = hashlib.sha256(msgspec.msgpack.encode(surroundings())).hexdigest()
    return {
        "model": target.key,
        "data": f"{crc:08x}",
        "options": {**taken, "init": str(start)},
        "versions": versions(),
        "engine": engine,
    }


def write(checkpoint: Checkpoint, of: Mapping[str, Any], pilot: Mapping[str, Any] | None) -> dict[str, Any]:
    """As plain data. `of`: the fingerprint of its run; `pilot`: what `read_pilot` reads."""
    metrics: list[Metric] = []
    chains = []
    for record in checkpoint.records:
        place = next((i for i, metric in enumerate(metrics) if metric is record.metric), None)
        if place is None and record.metric is not None:
            place = len(metrics)
            metrics.append(record.metric)
        chains.append({**to_tree(record), "metric": place})
    return {
        "format": FORMAT,
        "of": dict(of),
        "pilot": pilot,
        "metrics": [{"inverse_mass": metric.inverse_mass, "factor": metric.factor} for metric in metrics],
        "schemes": [*checkpoint.schemes],
        "chains": chains,
        "rule": checkpoint.rule,
    }


def read_pilot(tree: Any, sampler: Sampler) -> tuple[dict[str, np.ndarray], int, float]:
    """Of a run that had one: the weights that it has decided, its gradients and seconds. Errors: InvalidCheckpoint."""
    pilot = mapping(mapping(tree, "checkpoint").get("pilot"), "pilot")
    found = mapping(pilot.get("weights"), "weights")
    shapes = {parameter.name: parameter.shape for parameter in sampler.target.parameters}
    if set(found) != set(sampler.target.centerings):
        raise wrong("weights", f"those of {', '.join(sampler.target.centerings)}")
    weights = {name: array(weight, f"weights.{name}", shapes[name]) for name, weight in found.items()}
    gradients, seconds = sequence(pilot.get("cost"), "cost", 2)
    return weights, count(gradients, "cost"), number(seconds, "cost")


def read(tree: Any, of: Mapping[str, Any], sampler: Sampler, options: Options, groups: int) -> Checkpoint:
    """The inverse of `write`, for a run with this fingerprint and so many groups. Errors: InvalidCheckpoint."""
    tree = mapping(tree, "checkpoint")
    if count(tree.get("format"), "format") != FORMAT:
        raise InvalidCheckpoint("the checkpoint has another form", expected=f"format {FORMAT}")
    _compare(mapping(tree.get("of"), "of"), of)
    dimension = sampler.target.dimension
    metrics = []
    for one in sequence(tree.get("metrics"), "metrics"):
        fields = mapping(one, "metrics")
        factor = fields.get("factor")
        metrics.append(
            Metric(
                array(fields.get("inverse_mass"), "inverse_mass", (dimension,)),
                None if factor is None else array(factor, "factor", (dimension, dimension)),
            )
        )
    records = []
    for chain in sequence(tree.get("chains"), "chains", options.chains):
        place = mapping(chain, "chains").get("metric")
        if place is not None and count(place, "metric") >= len(metrics):
            raise wrong("metric", f"below {len(metrics)}")
        metric = None if place is None else metrics[place]
        record = from_tree(chain, metric, dimension, packed_size(dimension), len(STATISTICS))
        _check_draws(record, options)
        records.append(record)
    schemes = [mapping(one, "schemes") for one in sequence(tree.get("schemes"), "schemes", groups)]
    rule = tree.get("rule")
    return Checkpoint(schemes, records, None if rule is None else mapping(rule, "rule"))


def _check_draws(record: Record, options: Options) -> None:
    done, sent = record.done, record.sent
    if done[1] > options.draws * options.thin:
        raise InvalidCheckpoint(
            "the run has made more draws than are asked for",
            expected=f"at most {options.draws}",
            found=str(sent[1]),
            hint="ask for as many, or for more",
        )
    if sent != (done[0] if options.keep_warmup else 0, done[1] // options.thin):
        raise wrong("sent", "the draws that were made")


_PARTS = {
    "model": "the model, or the shapes of its data, are not those of the run",
    "data": "the data are not those of the run",
    "options": "the options are not those of the run",
    "versions": "it was made with other versions, whose draws would differ",
    "engine": "it was made by another engine, with other flags, or on another processor, whose draws would differ",
}


def _compare(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    for part, text in _PARTS.items():
        theirs, ours = found.get(part), wanted[part]
        if isinstance(ours, str):
            theirs, ours = {part: theirs}, {part: ours}
        theirs = {name: text if isinstance(text, str) else None for name, text in mapping(theirs, part).items()}
        if names := [name for name in ours if theirs.get(name) != ours[name]]:
            raise InvalidCheckpoint(
                f"the checkpoint does not fit: {text}",
                expected=", ".join(f"{name} {ours[name]}" for name in names),
                found=", ".join(f"{name} {theirs.get(name)}" for name in names),
            )
