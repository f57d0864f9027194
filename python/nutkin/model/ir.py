"""The model as plain data: a version and a flat list of nodes.

A reference is the index of an earlier node. Shapes, types, operations and distributions are checked later
(`checking.py`), when the shapes of the data are known.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec

VERSION = 1

Reference = Annotated[int, msgspec.Meta(ge=0)]
Name = Annotated[str, msgspec.Meta(min_length=1)]
Size = Annotated[int, msgspec.Meta(ge=1, le=2**31)]
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

    The node gives the last carried values; floats are NaN where the loop has not ended after `max_steps`. Without these
    it has no gradient.
    """

    init: tuple[Reference, ...]
    condition: Body
    body: Body
    max_steps: Size | None = None
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
    atol: Annotated[float, msgspec.Meta(gt=0)] = 1e-9
    max_steps: Size = 4096
    name: Name | None = None


class CustomGradient(_Form, tag="custom_gradient", kw_only=True):
    """`value`, as if its gradient were what the body says: it takes the gradient of what follows by the value, the
    `inputs` and the `captures`, and gives the gradients by the inputs. Nothing else has any."""

    value: Reference
    inputs: tuple[Reference, ...]
    body: Body
    captures: tuple[Reference, ...] = ()
    name: Name | None = None


class Body(_Form, tag=False, kw_only=True):
    """The nodes of a function of its arguments, and the references to its results among them."""

    nodes: tuple[
        Constant | Call | Element | Argument | LogProbability | Scan | While | Cond | Ode | CustomGradient, ...
    ]
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
    | CustomGradient
)

SINKS = (Observe, Factor, Deterministic)
NAMED = (Data, RandomVariable, *SINKS)


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
        case CustomGradient():
            return {"value": node.value, **_listed("inputs", node.inputs), **_listed("captures", node.captures)}
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


def is_unbounded(node: Node) -> bool:
    """Whether there is a loop in it without a bound on its steps."""
    inner = (other for body in bodies(node).values() for other in body.nodes)
    return (isinstance(node, While) and node.max_steps is None) or any(map(is_unbounded, inner))


BODY_FIELDS = ("condition", "body", "on_true", "on_false")


def bodies(node: Node) -> dict[str, Body]:
    """The bodies of a node by the names of their fields."""
    return {field: body for field in BODY_FIELDS if (body := getattr(node, field, None)) is not None}
