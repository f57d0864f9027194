"""The pass `joined`: nodes that are alike, such as loops in Elixir write them, become one step on all of them.

Two hundred variables of a number each, written one by one, take minutes to compile; as one vector they take seconds.
Variables, observations, factors and operations are alike if all that they are made of agrees in shape, type and form.
Those of a kind that do not depend on each other are stacked along a first axis; what they refer to is stacked likewise,
where it is not the same for all. The nodes stay, for whoever needs one of them alone: nothing else is evaluated.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace

import jax
import jax.numpy as jnp
import msgspec
import numpy as np
from jax import Array, lax

from nutkin.model import elementwise
from nutkin.model.ir import Call
from nutkin.model.operations import plan_call
from nutkin.model.plan import Plan
from nutkin.model.program import Program, Rewrite
from nutkin.model.steps import Application, Covered, Joined, Number, Observation, Step, Term, Variable
from nutkin.model.types import Spec

NAME = "joined"

MIN_MEMBERS = 8

_ELEMENTWISE = elementwise.BINARY.keys() | elementwise.UNARY.keys() | {"as_type"}

Members = tuple[int, ...]


def joined(program: Program) -> Program:
    """Join the observations, factors and variables of each kind, and the stacks of nodes of one kind."""
    return _Joining(program).result()


class _Joining:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.steps: list[Step] = list(program.steps)
        self.replaced: dict[int, Step] = {}
        self.stacks: dict[Members, int] = {}
        self.coordinates: dict[Members, int] = {}
        self.numbers: dict[int, int] = {}
        self.levels: list[int] = []
        self.kinds: dict[int, Members] = {}
        self.variables: dict[int, Members] = {}
        by_kind: dict[Hashable, list[int]] = defaultdict(list)
        by_value: dict[Hashable, list[int]] = defaultdict(list)
        for index, step in enumerate(program.steps):
            self.levels.append(self._level(step))
            if (kind := self._kind(step)) is not None:
                by_kind[kind].append(index)
            if isinstance(step, Variable) and kind is not None:
                # Values of variables without bounds and scales of their own need only be of one shape.
                is_free = step.transform is None and step.centered
                by_value[("free", step.spec) if is_free else kind].append(index)
        self.kinds, self.variables = _groups(by_kind), _groups(by_value)

    def result(self) -> Program:
        applied = []
        for index, members in sorted(self.kinds.items()):
            step = self.steps[index]
            if index == members[0] and isinstance(step, Variable | Observation | Term):
                self._term(step, members)
                applied.append(Rewrite(NAME, self._name(members)))
        for index, step in enumerate(self.program.steps):
            if isinstance(step, Application) and step.op == "stack" and self._is_one_group(step):
                self.replaced[index] = _view(step.spec, self._stack(step.args), lambda x: x)
                applied.append(Rewrite(NAME, self.program.label(index)))
        if not applied:
            return self.program
        for first, members in self.variables.items():
            if first == members[0] and members in self.stacks:
                for place, member in enumerate(members):
                    variable = self.replaced.get(member, self.steps[member])
                    self.replaced[member] = replace(variable, of=(self.stacks[members], place))
        added = dict(enumerate(self.steps[len(self.program.steps) :], len(self.program.steps)))
        return self.program.rewritten({**self.replaced, **added}, *applied)

    def _name(self, members: Members) -> str:
        return f"{self.program.label(members[0])} … {self.program.label(members[-1])}"

    def _is_one_group(self, step: Application) -> bool:
        """Whether a stack along the first axis is of steps of one group; those of data are cheap as they are."""
        group = self._group_of(step.args[0])
        return (
            (step.node.opts.get("axis") or 0) == 0
            and group is not None
            and all(self._group_of(index) is group for index in step.args)
            and (not self.program.parameter_free.issuperset(step.args))
        )

    def _group_of(self, index: int) -> Members | None:
        return self.variables.get(index) or self.kinds.get(index)

    def _level(self, step: Step) -> int:
        """How many operations a value is made by: values of one level do not depend on each other."""
        if isinstance(step, Variable):
            parents = step.bounds if step.centered else step.args
        else:
            parents = step.args if isinstance(step, Application) else ()
        return 1 + max((self.levels[parent] for parent in parents), default=-1) if parents else 0

    def _kind(self, step: Step) -> Hashable | None:
        """What those have in common that can be joined; None if the step cannot."""
        match step:
            case Variable(centering=None):
                node = self.program.model.nodes[len(self.levels) - 1]
                level = 0 if step.centered and not step.bounds else self.levels[-1]
                return ("rv", node.dist, step.spec, node.transform, step.centered, level, *self._forms(step.args))
            case Observation(mean=False):
                optional = tuple(self._forms((i,)) if i is not None else None for i in (step.weight, step.mask))
                forms = self._forms((*step.args, step.value))
                return ("observe", step.dist, step.spec, step.is_checked, *forms, *optional)
            case Term():
                return ("factor", *self._forms((step.value,)))
            case Application(node=Call() as call) if step.op == "slice":
                # Entries of one tensor, at other places.
                opts = {name: value for name, value in call.opts.items() if name != "starts"}
                return ("slice", step.args, msgspec.msgpack.encode(opts), step.spec)
            case Application(node=Call() as call) if not step.plan.elements and step.args:
                opts = msgspec.msgpack.encode(call.opts)
                return ("call", call.op, opts, self.levels[-1], step.spec, *self._forms(step.args))
        return None

    def _forms(self, indices: Sequence[int]) -> tuple[Hashable, ...]:
        specs = (self.steps[index].spec for index in indices)
        return tuple("number" if spec.literal is not None and spec.type != "u64" else spec for spec in specs)

    def _append(self, step: Step) -> int:
        self.steps.append(step)
        return len(self.steps) - 1

    def _term(self, step: Step, members: Members) -> None:
        """The log density of all members as one step."""
        name = self._name(members)
        for member in members:
            self.replaced[member] = (
                replace(self.steps[member], is_counted=False)
                if isinstance(step, Variable)
                else Covered(self.steps[member].name, self.steps[member].spec)
            )
        if isinstance(step, Term):
            value = self._stack(tuple(self.steps[member].value for member in members))
            self._append(Term(name, value, self.steps[value].spec))
            return
        batch = step.batch_shape if isinstance(step, Variable) else step.spec.shape
        rank = len(batch)
        named = zip(
            step.family.parameters.items(), zip(*(self.steps[m].args for m in members), strict=True), strict=True
        )
        args = {key: self._operand(one, rank, len(parameter.event)) for (key, parameter), one in named}
        if isinstance(step, Variable):
            value = self._coordinates(members) if not step.centered else self._stack(members)
            if not step.centered:
                standard = dict(zip(step.family.location_scale, (0, 1), strict=True))
                args |= {key: self._number(number) for key, number in standard.items()}
            weight = mask = None
        else:
            value, weight, mask = (self._field(members, field, rank, step) for field in ("value", "weight", "mask"))
        self._append(
            Observation(
                name,
                step.family,
                tuple(args.values()),
                Spec((len(members), *batch), self.program.precision),
                value,
                tuple(args[bound] for bound in step.family.support.bounds),
                weight,
                mask,
                False,
                isinstance(step, Variable) or step.is_checked,
                self.program.model.nodes[members[0]].dist,
            )
        )

    def _field(self, members: Members, field: str, rank: int, step: Observation) -> int | None:
        indices = tuple(getattr(self.steps[member], field) for member in members)
        if indices[0] is None:
            return None
        index = self._operand(indices, rank, step.family.event_rank if field == "value" else 0)
        if field != "value" or index not in indices:
            return index
        # A value that is the same for all is repeated: a distribution does not spread its value.
        shape = (len(members), *self.steps[index].spec.shape)
        return self._apply(Call(op="broadcast", args=(index,), opts={"shape": shape}), (index,))

    def _operand(self, indices: Members, rank: int, event_rank: int = 0) -> int:
        """The step of an operand of all members: the same, or stacked, with its axes aligned behind the first."""
        if len(set(indices)) == 1:
            return indices[0]
        index = self._stack(indices)
        shape = self.steps[index].spec.shape
        missing = rank + event_rank - (len(shape) - 1)
        if missing <= 0:
            return index
        shape = (shape[0], *(1,) * missing, *shape[1:])
        return self._apply(Call(op="reshape", args=(index,), opts={"shape": shape}), (index,))

    def _stack(self, indices: Members) -> int:
        """The step of these values, of one shape and type, stacked along a first axis."""
        if indices not in self.stacks:
            self.stacks[indices] = self._append(self._stacked(indices))
        return self.stacks[indices]

    def _stacked(self, indices: Members) -> Step:
        first = self.steps[indices[0]]
        if all(isinstance(self.steps[index], Number) for index in indices):
            return _constant(np.array([self.steps[index].spec.literal for index in indices]), self.program.precision)
        spec = Spec((len(indices), *first.spec.shape), first.spec.type)
        group = self.variables.get(indices[0])
        if group == indices:
            return self._values(first, indices, spec)
        if group is not None and set(indices) <= set(group):
            return self._part(group, indices, spec)
        kind = self.kinds.get(indices[0])
        is_one = len(set(indices)) == 1 if kind is None else all(self.kinds.get(index) is kind for index in indices)
        if isinstance(first, Application) and is_one:
            return self._applied(first, indices, spec)
        return _each(spec, indices)

    def _part(self, group: Members, indices: Members, spec: Spec) -> Step:
        """Some of the variables of a group."""
        whole, place_of = self._stack(group), {member: place for place, member in enumerate(group)}
        places = [place_of[index] for index in indices]
        start, end = places[0], places[0] + len(places)
        if places == list(range(start, end)):
            return _view(spec, whole, lambda x: lax.slice_in_dim(x, start, end))
        call = Call(op="take", args=(whole, self._append(_constant(np.array(places), self.program.precision))), opts={})
        plan = plan_call(call.op, self._specs(call.args), {}, precision=self.program.precision)
        return Application(plan, call.args, call)

    def _applied(self, first: Application, members: Members, spec: Spec) -> Step:
        """The applications of one kind at once."""
        if first.op == "slice":
            return self._slices(first, members, spec)
        columns = tuple(zip(*(self.steps[member].args for member in members), strict=True))
        if first.op in _ELEMENTWISE:
            args = tuple(self._operand(column, len(first.spec.shape)) for column in columns)
            call = Call(op=first.op, args=args, opts=first.node.opts)
            plan = plan_call(call.op, self._specs(args), call.opts, precision=self.program.precision)
            if plan.spec == spec:
                return Application(plan, args, call)
        if any(len(set(column)) > 1 and isinstance(self.steps[column[0]], Number) for column in columns):
            return _each(spec, members)  # a plan may be made for the numbers of one member
        args = tuple(column[0] if len(set(column)) == 1 else self._stack(column) for column in columns)
        axes = tuple(None if len(set(column)) == 1 else 0 for column in columns)
        if all(axis is None for axis in axes):
            return _view(spec, members[0], lambda x: jnp.broadcast_to(x, spec.shape))
        return Application(Plan(spec.shape, spec.type, first.plan.casts, jax.vmap(first.plan.run, in_axes=axes)), args)

    def _values(self, first: Variable, members: Members, spec: Spec) -> Step:
        if first.centered:
            return self._coordinates_step(first, members)
        z = self._coordinates(members)
        named = dict(
            zip(first.family.parameters, zip(*(self.steps[m].args for m in members), strict=True), strict=True)
        )
        location, scale = (self._operand(named[name], len(first.spec.shape)) for name in first.family.location_scale)
        precision = self.program.precision
        return Application(
            Plan(spec.shape, precision, (precision,) * 3, lambda z, location, scale: location + scale * z),
            (z, location, scale),
        )

    def _coordinates(self, members: Members) -> int:
        """The standardised variables of those that are not centered."""
        if members not in self.coordinates:
            self.coordinates[members] = self._append(self._coordinates_step(self.steps[members[0]], members))
        return self.coordinates[members]

    def _coordinates_step(self, first: Variable, members: Members) -> Joined:
        rank = len(first.spec.shape)
        bounds = zip(*(self.steps[member].bounds for member in members), strict=True)
        return Joined(
            self._name(members),
            members,
            Spec((len(members), *first.spec.shape), first.spec.type),
            first.transform,
            tuple(self._operand(column, rank) for column in bounds) if first.centered else (),
        )

    def _slices(self, first: Application, members: Members, spec: Spec) -> Step:
        """Entries of a tensor: all of its first axis, or those at some places."""
        (x,) = first.args
        starts = [tuple(self.steps[member].node.opts["starts"]) for member in members]
        shape = self.steps[x].spec.shape
        lengths, strides = first.node.opts["lengths"], first.node.opts.get("strides") or [1]
        rest = [start[1:] for start in starts]
        if lengths[0] == 1 and strides[0] == 1 and len(set(rest)) == 1 and len(starts[0]) == 1:
            places = np.array([start[0] % shape[0] for start in starts])
            if np.array_equal(places, np.arange(shape[0])):
                return _view(spec, x, lambda values: jnp.reshape(values, spec.shape))
            index = self._append(_constant(places, self.program.precision))
            taken = self._apply(Call(op="take", args=(x, index), opts={}), (x, index))
            return _view(spec, taken, lambda values: jnp.reshape(values, spec.shape))
        runs = [self.steps[member].plan.run for member in members]
        plan = Plan(spec.shape, spec.type, (spec.type,), lambda values: jnp.stack([run(values) for run in runs]))
        return Application(plan, (x,))

    def _number(self, number: int) -> int:
        if number not in self.numbers:
            self.numbers[number] = self._append(Number(Spec((), self.program.precision, float(number))))
        return self.numbers[number]

    def _apply(self, call: Call, args: tuple[int, ...]) -> int:
        plan = plan_call(call.op, self._specs(args), call.opts, precision=self.program.precision)
        return self._append(Application(plan, args, call))

    def _specs(self, indices: Sequence[int]) -> tuple[Spec, ...]:
        return tuple(self.steps[index].spec for index in indices)


def _groups(alike: Mapping[Hashable, Sequence[int]]) -> dict[int, Members]:
    """By each member of a group that is worth it, the group: one tuple, which all of them share."""
    groups = (tuple(group) for group in alike.values() if len(group) >= MIN_MEMBERS)
    return {index: group for group in groups for index in group}


def _each(spec: Spec, indices: Members) -> Application:
    """Values that are worked out one by one, stacked."""
    return Application(Plan(spec.shape, spec.type, (spec.type,) * len(indices), lambda *xs: jnp.stack(xs)), indices)


def _view(spec: Spec, index: int, run: Callable[[Array], Array]) -> Application:
    return Application(Plan(spec.shape, spec.type, (spec.type,), run), (index,))


def _constant(array: np.ndarray, precision: str) -> Application:
    """Numbers that stand in the program."""
    type_name = precision if array.dtype.kind == "f" else "s64"
    return Application(Plan(array.shape, type_name, (), lambda: array), ())
