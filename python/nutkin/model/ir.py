"""The model as plain data: a version and a flat list of nodes, read from decoded messages and checked for form.

A reference is the index of an earlier node. Shapes, types, operations and distributions are checked later
(`program.py`), when the shapes of the data are known.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec

from nutkin.errors import InvalidModel, LimitExceeded

VERSION = 1

Reference = Annotated[int, msgspec.Meta(ge=0)]
Name = Annotated[str, msgspec.Meta(min_length=1)]
Size = Annotated[int, msgspec.Meta(ge=1)]
Address = Annotated[bytes, msgspec.Meta(min_length=32, max_length=32)]


class _Form(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind"):
    pass


class Combination(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A distribution made of others, such as a mixture. The arguments of component i have the prefix `i.`."""

    name: str
    components: Annotated[tuple[str | Combination, ...], msgspec.Meta(min_length=1)]

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.components))})"


class Data(_Form, tag="data", kw_only=True):
    """A named slot, filled by the caller. A size of None is free. `grows` names its first axis."""

    name: Name
    shape: tuple[Size | None, ...] | None = None
    type: str | None = None
    grows: Name | None = None


class Constant(_Form, tag="constant", kw_only=True):
    """A number, which takes the type of what it meets, or the address of a blob."""

    name: Name | None = None
    value: int | float | None = None
    blob: Address | None = None


class RandomVariable(_Form, tag="rv", kw_only=True):
    """A free parameter. `shape` is the whole shape, event axes included. `centered` is auto where a pilot decides."""

    name: Name
    dist: str | Combination
    args: dict[str, Reference]
    shape: tuple[Size, ...] | None = None
    transform: str | None = None
    centered: bool | Literal["auto"] = True


class Observe(_Form, tag="observe", kw_only=True):
    """The log density of `value` under a distribution."""

    name: Name
    dist: str | Combination
    args: dict[str, Reference]
    value: Reference
    weight: Reference | None = None
    mask: Reference | None = None
    reduce: Literal["sum", "mean"] = "sum"


class Predict(_Form, tag="predict", kw_only=True):
    """Draws from the distribution of an observation: what it becomes in a prediction, and not on the wire.

    `value` is the observed one, whose shape they have; None where it is not given.
    """

    name: Name
    dist: str | Combination
    args: dict[str, Reference]
    value: Reference | None = None


class Drawn(_Form, tag="drawn", kw_only=True):
    """A parameter whose draws are given to a prediction: what its `rv` node becomes in one, and not on the wire."""

    name: Name
    shape: tuple[Size, ...]


class Factor(_Form, tag="factor", kw_only=True):
    """A term added to the log density."""

    name: Name
    value: Reference


class Deterministic(_Form, tag="deterministic", kw_only=True):
    """A named value that is sent with the draws."""

    name: Name
    value: Reference


class Call(_Form, tag="call", kw_only=True):
    """An operation. `shape` and `type`, if given, are checked against what is inferred."""

    op: str
    name: Name | None = None
    args: tuple[Reference, ...]
    opts: dict[str, Any] = {}
    shape: tuple[Size, ...] | None = None
    type: str | None = None


class Element(_Form, tag="elem", kw_only=True):
    """One value of a node that gives several."""

    of: Reference
    index: Reference
    name: Name | None = None


class Argument(_Form, tag="argument", kw_only=True):
    """What a body is given at this place. Only bodies have such nodes."""

    index: Reference
    name: Name | None = None


class LogProbability(_Form, tag="log_prob", kw_only=True):
    """The log density, or the log probability up to `value` (cdf) or above it (sf), element by element."""

    dist: str | Combination
    args: dict[str, Reference]
    value: Reference
    of: Literal["density", "cdf", "sf"] = "density"
    name: Name | None = None


class Scan(_Form, tag="scan", kw_only=True):
    """A loop over the first axis of `xs`, or of `length` steps.

    The body takes the carried values, the entries of `xs`, and the values of `captures`; it gives the next carried
    values, and what is collected. The node gives the last carried values, and the collected ones stacked.
    """

    init: tuple[Reference, ...]
    body: Body
    xs: tuple[Reference, ...] = ()
    captures: tuple[Reference, ...] = ()
    length: Size | None = None
    reverse: bool = False
    name: Name | None = None


class While(_Form, tag="while", kw_only=True):
    """A loop while `condition` gives a number that is not 0. Both bodies take the carried values and `captures`.

    The node gives the last carried values; floats are NaN where the loop has not ended after `max_steps`.
    """

    init: tuple[Reference, ...]
    condition: Body
    body: Body
    max_steps: Size
    captures: tuple[Reference, ...] = ()
    name: Name | None = None


class Cond(_Form, tag="cond", kw_only=True):
    """The values of `on_true` where the predicate is not 0, else those of `on_false`. Both take `captures`."""

    predicate: Reference
    on_true: Body
    on_false: Body
    captures: tuple[Reference, ...] = ()
    name: Name | None = None


class Ode(_Form, tag="ode", kw_only=True):
    """The solution of d state / d t = body(t, *state, *captures) from `init` at the time `start`, at the `times`.

    The node gives each part of the state at all times; NaN where the solver needs more than `max_steps`.
    """

    init: tuple[Reference, ...]
    start: Reference
    times: Reference
    body: Body
    captures: tuple[Reference, ...] = ()
    method: Literal["tsit5", "dopri5", "dopri8", "kvaerno3", "kvaerno5"] = "tsit5"
    rtol: Annotated[float, msgspec.Meta(gt=0)] = 1e-6
    atol: Annotated[float, msgspec.Meta(gt=0)] = 1e-6
    max_steps: Size = 4096
    name: Name | None = None


class Body(_Form, tag=False, kw_only=True):
    """The nodes of a function of its arguments, and the references to its results among them."""

    nodes: tuple[Constant | Call | Element | Argument | LogProbability | Scan | While | Cond | Ode, ...]
    results: tuple[Reference, ...]


Node = (
    Data
    | Constant
    | RandomVariable
    | Observe
    | Factor
    | Deterministic
    | Call
    | Element
    | LogProbability
    | Scan
    | While
    | Cond
    | Ode
)

SINKS = (Observe, Factor, Deterministic)
_NAMED = (Data, RandomVariable, *SINKS)


class Model(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A model that has been read: every reference points to an earlier node that has a value, and names are unique."""

    version: int
    nodes: tuple[Node, ...]

    def blobs(self) -> frozenset[bytes]:
        """Addresses of the blobs that the constants need."""
        return frozenset(node.blob for node in self.nodes if isinstance(node, Constant) and node.blob is not None)

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the free parameters, in their order."""
        return tuple(node.name for node in self.nodes if isinstance(node, RandomVariable))

    @property
    def slots(self) -> tuple[str, ...]:
        """Names of the data nodes, in their order."""
        return tuple(node.name for node in self.nodes if isinstance(node, Data))


def label(node: Node) -> str:
    """What an error calls the node: its name, or its operation, a choice `if` as it is written."""
    match node:
        case Call(name=None):
            return node.op
        case Cond(name=None):
            return "if"
    return node.name or node.__struct_config__.tag


def expression(nodes: Sequence[Node], index: int, *, depth: int = 3) -> str:
    """A node as it is written, to find it by: its name, its number, or its operation applied to its operands.

    Operands deeper than `depth`, and beyond the fourth, are left out.
    """
    node = nodes[index]
    if node.name is not None:
        return node.name
    match node:
        case Constant():
            return "tensor" if node.value is None else str(node.value)
        case Argument():
            return f"argument {node.index}"
        case Element():
            return f"{expression(nodes, node.of, depth=depth)}[{node.index}]"
    operands = tuple(references(node).values())
    shown = operands[:4] if depth else ()
    texts = [expression(nodes, reference, depth=depth - 1) for reference in shown]
    return f"{label(node)}({', '.join(texts + ['…'] * (len(shown) < len(operands)))})"


def references(node: Node | Predict | Argument) -> dict[str, int]:
    """The references of a node by their path within it, such as `args.sigma` or `args[0]`."""
    match node:
        case Call():
            return _listed("args", node.args)
        case Element():
            return {"of": node.of}
        case Scan():
            return {**_listed("init", node.init), **_listed("xs", node.xs), **_listed("captures", node.captures)}
        case Ode():
            fixed = {"start": node.start, "times": node.times}
            return {**_listed("init", node.init), **fixed, **_listed("captures", node.captures)}
        case While():
            return {**_listed("init", node.init), **_listed("captures", node.captures)}
        case Cond():
            return {"predicate": node.predicate, **_listed("captures", node.captures)}
        case LogProbability():
            return {"value": node.value, **{f"args.{name}": reference for name, reference in node.args.items()}}
        case RandomVariable() | Predict():
            return {f"args.{name}": reference for name, reference in node.args.items()}
        case Observe():
            optional = {"weight": node.weight, "mask": node.mask}
            return {
                **{f"args.{name}": reference for name, reference in node.args.items()},
                "value": node.value,
                **{field: reference for field, reference in optional.items() if reference is not None},
            }
        case Factor() | Deterministic():
            return {"value": node.value}
        case _:
            return {}


def _listed(field: str, items: Sequence[int]) -> dict[str, int]:
    return {f"{field}[{i}]": reference for i, reference in enumerate(items)}


_BODY_FIELDS = ("condition", "body", "on_true", "on_false")


def bodies(node: Node) -> dict[str, Body]:
    """The bodies of a node by the names of their fields."""
    return {field: body for field in _BODY_FIELDS if (body := getattr(node, field, None)) is not None}


def read(tree: object, *, limit: int = 100_000) -> Model:
    """Read a model from dicts, lists, strings, bytes and numbers, as msgpack decodes them.

    Raises InvalidModel with the path of what is wrong (`$.nodes[3].args.sigma`), the node's name and its index;
    LimitExceeded for more than `limit` nodes.
    """
    if (count := _count_nodes(tree)) > limit:
        raise LimitExceeded("the model has too many nodes", expected=f"at most {limit}", found=str(count))
    if isinstance(tree, dict) and type(tree.get("version")) is int and tree["version"] != VERSION:
        raise InvalidModel(
            "this engine does not know the model's version",
            path="$.version",
            expected=str(VERSION),
            found=str(tree["version"]),
            hint="use a client and an engine of the same release",
        )
    try:
        # bytes as a builtin: otherwise a str would be accepted for a blob address, as base64.
        model = msgspec.convert(tree, Model, builtin_types=(bytes,))
    except msgspec.ValidationError as error:
        raise _form_error(str(error), tree) from None
    _check_nodes(model)
    return model


def _count_nodes(tree: object) -> int:
    """The nodes of a model or a body, and of the bodies in it, before anything is known of its form."""
    nodes = tree.get("nodes") if isinstance(tree, dict) else None
    if not isinstance(nodes, list | tuple):
        return 0
    inner = (node.get(field) for node in nodes if isinstance(node, dict) for field in _BODY_FIELDS)
    return len(nodes) + sum(map(_count_nodes, inner))


def _check_nodes(model: Model) -> None:
    named: dict[str, int] = {}
    for index, node in enumerate(model.nodes):
        _check_node(model.nodes, index, "$", index)
        if isinstance(node, _NAMED):
            if node.name in named:
                raise InvalidModel(
                    f"{node.name}: the name is taken",
                    node=node.name,
                    index=index,
                    path=f"$.nodes[{index}].name",
                    expected="a name of its own for every data, rv, observe, factor and deterministic node",
                    found=f"the name of node {named[node.name]} again",
                )
            named[node.name] = index


def _check_node(nodes: Sequence[Node], place: int, path: str, index: int) -> None:
    """Check the references of a node, and those in its bodies. `index`: of the node of the model that holds it."""
    node = nodes[place]

    def wrong(message: str, *, at: str, **fields: str) -> InvalidModel:
        where = f"{path}.nodes[{place}].{at}"
        return InvalidModel(f"{label(node)}: {message}", node=label(node), index=index, path=where, **fields)

    for at, reference in references(node).items():
        if reference >= place:
            raise wrong(
                "a reference must be the index of an earlier node",
                at=at,
                expected=f"an index below {place}",
                found=str(reference),
            )
        target = nodes[reference]
        if isinstance(target, SINKS):
            raise wrong(
                "this node has no value to refer to",
                at=at,
                expected="a data, constant, rv or call node",
                found=f"the {target.__struct_config__.tag} node {target.name!r}",
            )
    if isinstance(node, Constant):
        if (node.value is None) == (node.blob is None):
            found = "neither" if node.value is None else "both"
            raise wrong("a constant has either a value or a blob", at="value", expected="one of them", found=found)
        if node.value is not None and not _is_representable(node.value):
            raise wrong(
                "the value of a constant must be finite and fit 64 bits",
                at="value",
                expected="a finite number, integers from -2^63 to 2^64 - 1",
                found=str(node.value),
                hint="send other values as a blob",
            )
    for field, body in bodies(node).items():
        inner = f"{path}.nodes[{place}].{field}"
        for position in range(len(body.nodes)):
            _check_node(body.nodes, position, inner, index)
            if isinstance(body.nodes[position], Constant) and body.nodes[position].blob is not None:
                raise wrong(
                    "a body holds no tensors",
                    at=f"{field}.nodes[{position}].blob",
                    expected="a number",
                    found="a blob",
                    hint="make the tensor a node of the model, and a capture of the body",
                )
        for number, reference in enumerate(body.results):
            if reference >= len(body.nodes):
                raise wrong(
                    "a result of a body must be the index of one of its nodes",
                    at=f"{field}.results[{number}]",
                    expected=f"an index below {len(body.nodes)}",
                    found=str(reference),
                )


def _is_representable(value: int | float) -> bool:
    return math.isfinite(value) if isinstance(value, float) else -(2**63) <= value < 2**64


_PLACE = re.compile(r" - at (?:`key` in )?`(.+)`$")
_INDEX = re.compile(r"^\$\.nodes\[(\d+)\]")
_GOT = re.compile(r"^Expected `(.+?)`, got `(.+?)`$")


def _form_error(text: str, tree: object) -> InvalidModel:
    """msgspec says where and what; the fields of our error are taken from its sentence."""
    place = _PLACE.search(text)
    path = place.group(1) if place else "$"
    message = _PLACE.sub("", text)
    found_index = _INDEX.match(path)
    index = int(found_index.group(1)) if found_index else None
    node = tree["nodes"][index] if index is not None else None
    name = node.get("name") if isinstance(node, dict) else None
    if path.endswith("args[...]"):
        # msgspec does not name the key of a mapping.
        args = _at(tree, path.removesuffix("[...]"))
        key = next(key for key, value in args.items() if type(value) is not int or value < 0)
        path = path.removesuffix("[...]") + f".{key}"
    got = _GOT.match(message)
    return InvalidModel(
        f"the model is malformed: {message}",
        node=name if isinstance(name, str) else None,
        index=index,
        path=path,
        expected=got.group(1) if got else None,
        found=got.group(2) if got else None,
        hint=_KINDS if path.endswith(".kind") else None,
    )


def _at(tree: Any, path: str) -> Any:
    """What is at a path such as `$.nodes[3].args`."""
    for key, place in re.findall(r"\.(\w+)|\[(\d+)\]", path):
        tree = tree[key] if key else tree[int(place)]
    return tree


_KINDS = (
    "the kinds are data, constant, rv, observe, factor, deterministic, call, elem, log_prob, scan, while, cond, ode, "
    "and in a body argument"
)
