"""Reading a model from decoded messages, and checking its form: fields, references, names."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from nutkin.errors import InvalidModel, LimitExceeded
from nutkin.model.ir import (
    BODY_FIELDS,
    NAMED,
    SINKS,
    VERSION,
    Call,
    Combination,
    Constant,
    Model,
    Node,
    bodies,
    label,
    references,
)

MAX_NESTING = 20
"""Of bodies within bodies, and of combinations of distributions: what a message has room for, about."""


def read(tree: object, *, limit: int = 100_000) -> Model:
    """Read a model from dicts, lists, strings, bytes and numbers, as msgpack decodes them.

    Raises InvalidModel with the path of what is wrong (`$.nodes[3].args.sigma`), the node's name and its index;
    LimitExceeded for more than `limit` nodes, and for bodies or distributions nested too deeply.
    """
    if (count := _count_nodes(tree, 1 + MAX_NESTING)) > limit:
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
    except IndexError:  # msgspec looks for fields in an array, which has none
        path, found = next(_foreign(tree, "$"))
        text = f"Expected `object`, got `{found}` - at `{path}`"
        raise _form_error(text, tree) from None
    except RecursionError:
        raise _too_deep("combinations of distributions") from None
    _check_nodes(model)
    return model


def _count_nodes(tree: object, depth: int) -> int:
    """The nodes of a model or a body, and of the bodies in it, before anything is known of its form."""
    if not depth:
        raise _too_deep("bodies")
    nodes = tree.get("nodes") if isinstance(tree, dict) else None
    if not isinstance(nodes, list | tuple):
        return 0
    inner = (node.get(field) for node in nodes if isinstance(node, dict) for field in BODY_FIELDS)
    return len(nodes) + sum(_count_nodes(body, depth - 1) for body in inner if isinstance(body, dict))


def _too_deep(what: str) -> LimitExceeded:
    return LimitExceeded(f"the {what} of the model are nested too deeply", expected=f"at most {MAX_NESTING} levels")


def _check_nodes(model: Model) -> None:
    named: dict[str, int] = {}
    for index, node in enumerate(model.nodes):
        _check_node(model.nodes, index, "$", index)
        if isinstance(node, NAMED):
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

    if not _is_nested(getattr(node, "dist", ""), MAX_NESTING):
        raise _too_deep("combinations of distributions")
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
    if isinstance(node, Call):
        for option, value in node.opts.items():
            if not _is_plain(value):
                raise wrong(
                    f"the option {option} is wrong",
                    at=f"opts.{option}",
                    expected="a number, a text, a boolean, or a list of these",
                    found=type(value).__name__,
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


def _is_nested(dist: str | Combination, depth: int) -> bool:
    """Whether it is of no more levels than these."""
    return isinstance(dist, str) or (depth > 0 and all(_is_nested(inner, depth - 1) for inner in dist.components))


def _is_plain(value: object, depth: int = 2) -> bool:
    """Whether it is what options are made of: text, booleans, nil, numbers of 64 bits, and lists of lists of them."""
    if isinstance(value, list | tuple):
        return depth > 0 and all(_is_plain(item, depth - 1) for item in value)
    if isinstance(value, int):
        return -(2**63) <= value < 2**64
    return value is None or isinstance(value, str | float)


def _foreign(tree: object, path: str) -> Iterator[tuple[str, str]]:
    """Where in a tree there are values that messages hold but models do not, such as tensors, and their types."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from _foreign(value, f"{path}.{key}")
    elif isinstance(tree, list | tuple):
        for place, value in enumerate(tree):
            yield from _foreign(value, f"{path}[{place}]")
    elif not isinstance(tree, str | bytes | int | float | None):
        yield path, type(tree).__name__


_PLACE = re.compile(r" - at (?:`key` in )?`(\$(?:\.\w+|\[(?:\d+|\.\.\.)\])*)`$")
_INDEX = re.compile(r"^\$\.nodes\[(\d+)\]")
_GOT = re.compile(r"^Expected `(.+?)`, got `(.+?)`$")


def _form_error(text: str, tree: object) -> InvalidModel:
    """msgspec says where and what; the fields of our error are taken from its sentence."""
    place = _PLACE.search(text)
    path = place.group(1) if place else "$"
    message = _PLACE.sub("", text)
    found_index = _INDEX.match(path)
    index = int(found_index.group(1)) if found_index else None
    node = _at(tree, f"$.nodes[{index}]") if index is not None else None
    name = node.get("name") if isinstance(node, dict) else None
    args = _at(tree, path.removesuffix("[...]")) if path.endswith("args[...]") else None
    if isinstance(args, dict):
        # msgspec does not name the key of a mapping.
        wrong = (key for key, value in args.items() if type(value) is not int or value < 0)
        path = path.removesuffix("[...]") + f".{next(wrong, '…')}"
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
    """What is at a path such as `$.nodes[3].args`; None where that is the name of a field, made to look like one."""
    for key, place in re.findall(r"\.(\w+)|\[(\d+)\]", path):
        try:
            tree = tree[key] if key else tree[int(place)]
        except (KeyError, IndexError, TypeError):
            return None
    return tree


_KINDS = (
    "the kinds are data, constant, rv, observe, factor, deterministic, call, elem, log_prob, scan, while, cond, ode, "
    "and in a body argument"
)
