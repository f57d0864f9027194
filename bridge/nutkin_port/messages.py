"""The messages of a client, as types: what PROTOCOL.md calls their bodies.

Models stay plain data, which `nutkin.model.read` checks; options of `sample` are the engine's, which checks them too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from msgspec import Meta

from nutkin.errors import InvalidOption, NutkinError, ProtocolError
from nutkin.sampler import Options
from nutkin_port import codec

Address = Annotated[bytes, Meta(min_length=32, max_length=32)]
Count = Annotated[int, Meta(ge=0)]


class Body(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What all bodies have in common: nothing but their strictness."""


class LogDensityOptions(Body):
    precision: str = "f64"

    def __post_init__(self) -> None:
        Options(precision=self.precision)  # the engine's check


class CompileOptions(Body):
    precision: str = "f64"
    max_tree_depth: int = 10
    mass_matrix: str = "diagonal"
    rewrites: Sequence[str] | None = None

    def __post_init__(self) -> None:
        Options(
            precision=self.precision,
            max_tree_depth=self.max_tree_depth,
            mass_matrix=self.mass_matrix,
            rewrites=self.rewrites,
        )


Delivered = Sequence[Annotated[Sequence[Count], Meta(min_length=2, max_length=2)]]


class SampleOptions(Options, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The engine's options, how many `draws` messages may be sent before the first `ack`, and the seconds between
    checkpoints."""

    credit: Count = 16
    checkpoint_every: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.checkpoint_every is not None and not self.checkpoint_every > 0.0:
            raise InvalidOption(
                "option `checkpoint_every` is out of range",
                path="$.options.checkpoint_every",
                expected="a number above 0, or nil",
                found=str(self.checkpoint_every),
            )


class Compile(Body):
    model: Any
    data: dict[str, Address]
    options: CompileOptions = CompileOptions()


class Sample(Body):
    """`checkpoint`: what to go on from; `delivered`: of each chain, how many draws of the warmup and of the sampling
    the client has already."""

    model: Any
    data: dict[str, Address]
    options: SampleOptions = SampleOptions()
    checkpoint: Address | None = None
    delivered: Delivered = ()


class LogDensity(Body):
    """At `position` (flat, unconstrained) or at `values` (constrained, by name): one of the two."""

    model: Any
    data: dict[str, Address]
    options: LogDensityOptions = LogDensityOptions()
    position: np.ndarray | None = None
    values: dict[str, np.ndarray] | None = None


class Debug(LogDensity):
    """Why the model is not finite at such a point."""


class Shapes(Body):
    """Shape and type of these nodes."""

    model: Any
    data: dict[str, Address]
    nodes: Sequence[Count]
    options: LogDensityOptions = LogDensityOptions()


class Evaluate(Body):
    """The values of these nodes, of a model without parameters."""

    model: Any
    data: dict[str, Address]
    results: Sequence[Count]
    options: LogDensityOptions = LogDensityOptions()


class PredictOptions(Body):
    """`chains` and `draws`: how many there are where the request brings none."""

    chains: int = 1
    draws: int = 1000
    of: Literal["predictions", "log_likelihood"] = "predictions"
    redraw: Sequence[str] | None = ()
    variables: Sequence[str] | None = None
    seed: int = 0
    precision: str = "f64"
    credit: Count = 16

    def __post_init__(self) -> None:
        Options(chains=self.chains, draws=self.draws, seed=self.seed, precision=self.precision)


class Predict(Body):
    """What follows from draws of the parameters: tensors {chains, draws, …} by name."""

    model: Any
    data: dict[str, Address]
    posterior: dict[str, Address] = {}
    options: PredictOptions = PredictOptions()
    delivered: Delivered = ()


class Put(Body):
    blob: Address
    encoding: Literal["tensor", "nx"]
    size: Count
    offset: Count
    content: bytes = msgspec.field(name="bytes")


class Ack(Body):
    chunks: Count


class Pause(Body):
    pass


class Resume(Body):
    pass


class Checkpoint(Body):
    pass


class Info(Body):
    pass


class Cancel(Body):
    pass


class Ping(Body):
    pass


class Shutdown(Body):
    pass


TYPES: dict[str, type[Body]] = {
    "compile": Compile,
    "sample": Sample,
    "log_density": LogDensity,
    "debug": Debug,
    "predict": Predict,
    "shapes": Shapes,
    "evaluate": Evaluate,
    "put": Put,
    "ack": Ack,
    "pause": Pause,
    "resume": Resume,
    "checkpoint": Checkpoint,
    "info": Info,
    "cancel": Cancel,
    "ping": Ping,
    "shutdown": Shutdown,
}

# These carry the id of an open request, the others one of their own.
OF_A_REQUEST = ("put", "ack", "pause", "resume", "checkpoint", "info", "cancel")


def read(kind: str, body: dict[str, Any], nesting: int = codec.MAX_DEPTH) -> Body:
    """The typed body of a message, of at most so many levels.

    ProtocolError for an unknown type, or a wrong, missing or unknown field; InvalidOption for one within `options`;
    InvalidData for a tensor that cannot be read.
    """
    if kind not in TYPES:
        raise ProtocolError("a message has an unknown type", expected=f"one of {', '.join(TYPES)}", found=kind[:100])
    codec.check(body, nesting)
    try:
        message = msgspec.convert(body, TYPES[kind], builtin_types=(bytes,))
    except msgspec.ValidationError as error:
        raise _field_error(kind, str(error)) from error
    except IndexError as error:  # msgspec looks for fields in a tensor, which has none
        path = "$.options" if isinstance(body["options"], np.ndarray) else "$.options.init"
        raise _field_error(kind, f"Expected `object`, got a tensor - at `{path}`") from error
    if isinstance(message, LogDensity) and (message.position is None) == (message.values is None):
        raise ProtocolError(
            f"a field of `{kind}` is wrong", path="$.position", expected="either `position` or `values`"
        )
    if isinstance(message, Sample):
        _check_tensors(message.options.init.values)
    return message


def _check_tensors(values: Mapping[str, Any]) -> None:
    for name, value in values.items():
        if not isinstance(value, np.ndarray):
            path = f"$.options.init.values.{name}"
            raise InvalidOption(
                "a starting value is not a tensor", path=path, expected="a tensor", found=type(value).__name__
            )


def _field_error(kind: str, text: str) -> NutkinError:
    """msgspec's text, `what - at \\`$.path\\``, as one of our errors."""
    reason, _, path = text.partition(" - at ")
    path = path.strip("`") or "$"
    for theirs, ours in (
        ("Object contains ", ""),
        ("Object ", ""),
        ("`numpy.ndarray`", "a tensor"),
        ("Expected", "expected"),
    ):
        reason = reason.replace(theirs, ours)
    known = _field_names(TYPES[kind], path) if reason.startswith("unknown field") else []
    expected = f"one of {', '.join(known)}" if known else None
    if path.startswith("$.options"):
        return InvalidOption(f"an option of `{kind}` is wrong: {reason}", path=path, expected=expected)
    return ProtocolError(f"a field of `{kind}` is wrong: {reason}", path=path, expected=expected)


def _field_names(struct: type[msgspec.Struct], path: str) -> list[str]:
    """The fields of the struct at a path."""
    for step in path.split(".")[1:]:
        inner = {field.encode_name: field.type for field in msgspec.structs.fields(struct)}.get(step)
        if not (isinstance(inner, type) and issubclass(inner, msgspec.Struct)):
            return []
        struct = inner
    return [field.encode_name for field in msgspec.structs.fields(struct)]
