"""The pass `parameter_free`: what depends on no parameter is computed once for each data set.

Values that operations give of data, and the parts of log densities that depend on data alone (log y! of a Poisson), are
taken out of the density, and become arguments of its executable. XLA moves such work out of the loops of a chain by
itself, but does it again in every call, a few times a second: only work on many elements is worth a program of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from jax import Array

from nutkin.model.ir import Element
from nutkin.model.observations import observation_sum
from nutkin.model.plan import Plan
from nutkin.model.program import Program, Rewrite
from nutkin.model.steps import Application, Computed, Input, Observation

NAME = "parameter_free"

MIN_ELEMENTS = 1 << 14

_VIEWS = ("reshape", "squeeze", "broadcast", "transpose", "slice", "as_type")  # no work of their own


def parameter_free(program: Program) -> Program:
    """Mark the values of data that are worth keeping, and take the parts out of observations that are."""
    for index, step in enumerate(program.steps):
        if isinstance(step, Observation) and (parts := _constant_parts(program, step)):
            program = _split(program, index, step, parts)
    values = {index: Computed(program.steps[index]) for index in sorted(set(_kept(program)))}
    return program.rewritten(values, *(Rewrite(NAME, program.label(index)) for index in values))


def _constant_parts(program: Program, step: Observation) -> tuple[str, ...]:
    """The parts that depend on data alone, and on much of it."""
    free, steps = program.parameter_free, program.steps
    each = [index for index in (step.weight, step.mask) if index is not None]
    return tuple(
        part
        for part in step.parts
        if step.is_checked
        and getattr(step.family.density, part) is not None
        and free.issuperset((*(needed := _needed(step, part)), *each))
        and max(steps[index].spec.size for index in needed) >= MIN_ELEMENTS
    )


def _needed(step: Observation, part: str) -> tuple[int, ...]:
    """The nodes on which a part of the log density depends."""
    match part:
        case "carrier":
            return (step.value, *step.bounds)
        case "normalizer":  # no shift changes it
            named = zip(step.family.parameters, step.args, strict=True)
            return tuple(arg for name, arg in named if name not in (step.family.location_scale or ())[:1])
        case _:
            return (step.value, *step.args)


def _split(program: Program, index: int, step: Observation, parts: tuple[str, ...]) -> Program:
    """Put the sum of these parts behind the last step, and leave the others."""
    taken = replace(step, parts=parts)
    needed = tuple(dict.fromkeys(node for part in parts for node in _needed(step, part)))
    optional = {name: node for name in ("weight", "mask") if (node := getattr(step, name)) is not None}
    args = (*needed, *optional.values())

    def run(*operands: Array) -> Array:
        known = dict(zip(needed, operands[: len(needed)], strict=True))
        rest = dict(zip(optional, operands[len(needed) :], strict=True))
        parameters = tuple(known.get(node) for node in step.args)
        return observation_sum(taken, known.get(step.value), parameters, **rest)

    casts = [program.precision] * len(args)
    if step.mask is not None:
        casts[-1] = program.steps[step.mask].spec.type
    plan = Plan((), program.precision, tuple(casts), run)
    place = len(program.steps)
    left = tuple(part for part in step.parts if part not in parts and getattr(step.family.density, part) is not None)
    steps = {place: Computed(Application(plan, args)), index: replace(step, parts=left, constant=place)}
    return program.rewritten(steps, Rewrite(NAME, step.name))


def _kept(program: Program) -> Iterator[int]:
    """The applications to data that are worth keeping, where what depends on parameters meets them."""
    free, steps = program.parameter_free, program.steps
    live = program.needed_by((*program.terms, *program.outputs))
    pending = [reference for index in live if index not in free for reference in steps[index].references]
    seen: set[int] = set()
    while pending:
        index = pending.pop()
        step = steps[index]
        if index in seen or index not in free or not isinstance(step, Application):
            continue
        seen.add(index)
        work, size = _work(program, index)
        if _is_view(program, index) or step.spec.size > size:
            pending.extend(step.args)  # larger than what it is made of
        elif work >= MIN_ELEMENTS:
            yield index


def _is_view(program: Program, index: int) -> bool:
    step = program.steps[index]
    return step.op in _VIEWS or isinstance(step.node, Element)


def _work(program: Program, root: int) -> tuple[int, int]:
    """-> (the most elements that an operation behind a value reads or gives, the size of the inputs it is made of)."""
    pending, seen, work, size = [root], set(), 0, 0
    while pending:
        index = pending.pop()
        if index in seen:
            continue
        seen.add(index)
        step = program.steps[index]
        if isinstance(step, Application):
            pending.extend(step.args)
            if not _is_view(program, index):
                work = max(work, step.spec.size, *(program.steps[arg].spec.size for arg in step.args))
        elif isinstance(step, Input):
            size += step.spec.size
    return work, size
