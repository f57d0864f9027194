"""The pass over the nodes of a model: each is written anew for padded data, by what grows of its operands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from nutkin.errors import InvalidData, InvalidModel
from nutkin.model.applications import plan_body
from nutkin.model.checking import check, located
from nutkin.model.distributions import find_family
from nutkin.model.growth import resized, rooms
from nutkin.model.ir import (
    Argument,
    Body,
    Call,
    Cond,
    CustomGradient,
    Data,
    Element,
    Factor,
    LogProbability,
    Model,
    Node,
    Observe,
    Ode,
    RandomVariable,
    Scan,
    While,
    expression,
    references,
)
from nutkin.model.padding.axes import Axes, Sizes
from nutkin.model.padding.padding import Padding
from nutkin.model.padding.refusals import Refusals
from nutkin.model.padding.rules import RULES, Mixed, Operand, Operation
from nutkin.model.padding.scans import masked_scan
from nutkin.model.padding.writer import BodyWriter, NoMasks, Writer, moved
from nutkin.model.steps import Input, Step
from nutkin.model.types import Spec

Pair = tuple[Spec, Spec]
"""The specs of a value at both sizes of the data."""


def pad(model: Model, data: Mapping[str, Spec], constants: Mapping[bytes, Spec], precision: str) -> Padding:
    """The model for data whose axes that grow have their rooms; it has passed the check for `data`, the specs of all
    slots. What comes out depends on the rooms, not on the lengths.

    Raises InvalidModel where a fixed size must agree with an axis that grows, and for what mixes its entries.
    """
    sizes = Sizes(rooms(model, data))
    slots = [node for node in model.nodes if isinstance(node, Data) and node.grows is not None]

    def checked(nodes: Sequence[Node]) -> list[tuple[Step, ...]]:
        part = Model(version=model.version, nodes=tuple(nodes))
        specs = {name: data[name] for name in part.slots}
        both = (resized(part, specs, known) for known in (sizes.rooms, sizes.larger))
        return [check(part, known, constants, precision=precision).steps for known in both]

    try:
        steps, larger = checked(model.nodes)
    except (InvalidModel, InvalidData) as error:
        steps, larger = checked(model.nodes[: error.index])
        axes = [sizes.of(*_shapes(pair)) for pair in zip(steps, larger, strict=True)]
        with located(model, error.index):
            raise Refusals(model.nodes, steps, axes, slots).fixed_size(error.index) from None
    writer = Writer(sizes.rooms, (node.name for node in model.nodes if node.name is not None))
    padder = _Padder(model.nodes, steps, larger, sizes, slots, writer, precision)
    for index in range(len(model.nodes)):
        with located(model, index):
            padder.write(index)
    result = Model(version=model.version, nodes=tuple(writer.nodes))
    shapes = tuple(step.spec.shape for step in steps)
    return Padding(model, result, tuple(padder.places), shapes, tuple(padder.axes), writer.slots, sizes.rooms)


def _shapes(pair: tuple[Step, Step]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return pair[0].spec.shape, pair[1].spec.shape


class _Padder:
    """Writes the nodes of a model or a body, of which `steps` and `larger` are the steps at both sizes."""

    def __init__(
        self,
        nodes: Sequence[Node | Argument],
        steps: Sequence[Step],
        larger: Sequence[Step],
        sizes: Sizes,
        slots: Sequence[Data],
        writer: Writer,
        precision: str,
    ) -> None:
        self.nodes, self.steps, self.larger = nodes, steps, larger
        self.sizes, self.slots, self.writer, self.precision = sizes, slots, writer, precision
        self.axes: list[Axes | None] = []
        self.places: list[int] = []
        self.carried: dict[int, tuple[int, int]] = {}  # by scan, its carried values, and those that were added
        self.refusals = Refusals(nodes, steps, self.axes, slots)

    def write(self, index: int) -> None:
        self.axes.append(self.sizes.of(*_shapes((self.steps[index], self.larger[index]))))
        try:
            self.places.append(self._written(index))
        except Mixed:
            raise self.refusals.mixed(index) from None
        except NoMasks:
            raise self.refusals.masked(index) from None

    def _written(self, index: int) -> int:
        node, axes = self.nodes[index], self.axes[index]
        if axes is None:
            raise Mixed
        match node:
            case Data():
                return self.writer.copy(node, (), grows=None)
            case Element():
                return self._element(node)
        if not axes and not any(self.axes[operand] for operand in references(node).values()):
            return self.writer.copy(node, self.places)
        match node:
            case Call():
                return self._call(index, node)
            case Observe():
                return self._observation(index, node)
            case Factor():
                return self._factor(node)
            case Scan():
                return self._scan(index, node)
            case LogProbability():
                self._check_events(node)
            case While():
                carried = self._elements(index)
                for body in (node.condition, node.body):
                    self._check_body(body, [*carried, *self._pairs(node.captures)])
            case Cond():
                for body in (node.on_true, node.on_false):
                    self._check_body(body, self._pairs(node.captures))
            case RandomVariable() | Ode() | CustomGradient():
                raise Mixed
        return self.writer.copy(node, self.places)

    def _element(self, node: Element) -> int:
        count, added = self.carried.get(node.of, (0, 0))
        return self.writer.copy(node, self.places, index=node.index + (added if node.index >= count else 0))

    def _call(self, index: int, call: Call) -> int:
        rule = RULES.get(call.op)
        if rule is None:
            raise Mixed
        operands = tuple(Operand(self.places[i], self.steps[i].spec, self.axes[i]) for i in call.args)
        spec, axes = self.steps[index].spec, self.axes[index]
        return rule(Operation(self.writer, call, operands, spec, axes, self.precision))

    def _factor(self, node: Factor) -> int:
        value = self.writer.filled(
            self.places[node.value], self.steps[node.value].spec.shape, self.axes[node.value], self.writer.number(0)
        )
        return self.writer.copy(node, self.places, value=value)

    def _observation(self, index: int, node: Observe) -> int:
        self._check_events(node)
        shape, axes = self.steps[index].spec.shape, self.axes[index]
        changes = {"mask": self._mask(node, shape, axes)}
        if node.reduce == "mean":
            weight = self.writer.number(1.0) if node.weight is None else self.places[node.weight]
            count = self.writer.count(shape, axes, range(len(shape)))
            changes |= {"reduce": "sum", "weight": self.writer.call("divide", weight, count)}
        return self.writer.copy(node, self.places, **changes)

    def _mask(self, node: Observe, shape: tuple[int, ...], axes: Axes) -> int:
        """What is there of a log density of this shape, and is not masked in the model."""
        masks = []
        if node.mask is not None:
            step, own = self.steps[node.mask], self.axes[node.mask]
            is_along = {len(shape) - len(step.spec.shape) + place: axis for place, axis in own.items()} == axes
            if isinstance(step, Input) and is_along and tuple(own) == (0,):
                return self.writer.zeroed(self.nodes[node.mask].name, step.spec.shape)
            masks.append(self.places[node.mask])
        for place, axis in axes.items():
            mask, behind = self.writer.mask(axis), len(shape) - 1 - place
            masks.append(self.writer.call("reshape", mask, shape=(shape[place], *(1,) * behind)) if behind else mask)
        result = masks[0]
        for mask in masks[1:]:
            result = self.writer.call("logical_and", result, mask)
        return result

    def _check_events(self, node: Observe | LogProbability) -> None:
        """The event axes of a distribution must not grow."""
        family = find_family(node.dist, node.args)
        ranks = {node.args[name]: len(parameter.event) for name, parameter in family.parameters.items()}
        for reference, rank in [*ranks.items(), (node.value, family.event_rank)]:
            if any(place >= len(self.steps[reference].spec.shape) - rank for place in self.axes[reference]):
                raise Mixed

    def _scan(self, index: int, node: Scan) -> int:
        count, known = len(node.init), self._pairs(node.captures)
        entries = [tuple(replace(spec, shape=spec.shape[1:]) for spec in pair) for pair in self._pairs(node.xs)]
        self._check_body(node.body, [*self._elements(index)[:count], *entries, *known])
        steps = [axis for x in node.xs if (axis := self.axes[x].get(0)) is not None]
        if not steps:
            return self.writer.copy(node, self.places)
        scan = masked_scan(moved(node, self.places), steps[0], self.writer)
        self.carried[index] = (count, len(scan.init) - count)
        return self.writer.append(scan)

    def _elements(self, index: int) -> list[Pair]:
        """The values that a loop gives."""
        return list(zip(self.steps[index].plan.elements, self.larger[index].plan.elements, strict=True))

    def _pairs(self, references: Sequence[int]) -> list[Pair]:
        return [(self.steps[reference].spec, self.larger[reference].spec) for reference in references]

    def _check_body(self, body: Body, arguments: Sequence[Pair]) -> None:
        """In a body what grows must be kept entry by entry: it holds no masks."""
        if all(spec.shape == other.shape for spec, other in arguments):
            return
        both = (plan_body(body, specs, self.precision) for specs in zip(*arguments, strict=True))
        steps, larger = (function.steps for function in both)
        writer = BodyWriter(self.sizes.rooms)
        padder = _Padder(body.nodes, steps, larger, self.sizes, self.slots, writer, self.precision)
        for index in range(len(body.nodes)):
            try:
                padder.write(index)
            except InvalidModel as error:
                error.message = f"in its body: {expression(body.nodes, index)}: {error.message}"
                raise
