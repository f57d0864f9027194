"""The shapes of variables and observations, from those of the parameters of their distributions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nutkin.errors import InvalidModel
from nutkin.model.distributions.family import Family
from nutkin.model.plan import broadcast_shapes, broadcasts_to
from nutkin.model.supports import SIMPLEX
from nutkin.model.types import Spec, show_shape


def variable_shape(family: Family, specs: Mapping[str, Spec], declared: tuple[int, ...] | None) -> tuple[int, ...]:
    """The shape of a variable: the declared one, or what the parameters broadcast to. Raises InvalidModel."""
    batch, sizes = batch_shape(family, specs), event_sizes(family, specs)
    if declared is None:
        if not set(family.event) <= set(sizes):
            raise InvalidModel(
                f"the size of the axis {_unknown(family, sizes)} is not known",
                expected=f"a shape {_show_axes(family.event)}",
                found="no shape",
            )
        return batch + tuple(sizes[axis] for axis in family.event)
    rank = len(declared) - family.event_rank
    hint = "the shape is that of the whole variable, event axes included"
    if rank < 0 or not _fits(family, sizes, declared[rank:]):
        raise InvalidModel(
            "the declared shape does not end in the axes of a value",
            expected=_show_axes([str(sizes.get(axis, axis)) for axis in family.event]),
            found=show_shape(declared),
            hint=hint,
        )
    if not broadcasts_to(batch, declared[:rank]):
        raise InvalidModel(
            "the parameters do not broadcast to the declared shape",
            expected=show_shape(declared),
            found=_show_parameters(specs),
            hint=hint,
        )
    return declared


def observed_batch(family: Family, specs: Mapping[str, Spec], value: Spec) -> tuple[int, ...]:
    """The shape of the log density of an observed value. Raises InvalidModel.

    The parameters broadcast to the value, never the value to the parameters, lest {n} with {n, 1} give {n, n};
    but a scalar may be observed under parameters of any shape.
    """
    batch, sizes = batch_shape(family, specs), event_sizes(family, specs)
    rank = len(value.shape) - family.event_rank
    if rank >= 0 and _fits(family, sizes, value.shape[rank:]):
        if rank == 0:
            return batch
        if broadcasts_to(batch, value.shape[:rank]):
            return value.shape[:rank]
    raise InvalidModel(
        "the parameters do not broadcast to the observed value",
        expected=f"parameters that broadcast to {show_shape(value.shape)}",
        found=_show_parameters(specs),
        hint="reshape the parameter that does not fit, or broadcast the value if it is to be repeated",
    )


def event_sizes(family: Family, specs: Mapping[str, Spec], value: tuple[int, ...] | None = None) -> dict[str, int]:
    """The sizes of the event axes that parameters have, and those that only a value of this shape has, if it is given.

    Raises InvalidModel.
    """
    sizes: dict[str, int] = {}
    for name, parameter in family.parameters.items():
        shape = specs[name].shape
        rank = len(shape) - len(parameter.event)
        if parameter.repeats and not shape:
            continue
        if rank < 0:
            raise InvalidModel(
                f"the parameter {name} has too few axes",
                expected=_show_axes(parameter.event),
                found=show_shape(shape),
            )
        for axis, size in zip(parameter.event, shape[rank:], strict=True):
            if sizes.setdefault(axis, size) != size:
                raise InvalidModel(
                    "the event axes of the parameters differ",
                    expected=f"one size {axis}",
                    found=_show_parameters(specs),
                )
    if family.support is SIMPLEX and sizes["k"] == 1:
        raise InvalidModel("a simplex has at least two parts", expected="k of at least 2", found="1")
    rank = 0 if value is None else len(value) - family.event_rank
    return sizes if value is None or rank < 0 else {**dict(zip(family.event, value[rank:], strict=True)), **sizes}


def batch_shape(family: Family, specs: Mapping[str, Spec]) -> tuple[int, ...]:
    """What the parameters broadcast to, without their event axes."""
    shapes = [(specs[name].shape, len(parameter.event)) for name, parameter in family.parameters.items()]
    return broadcast_shapes([shape[: max(len(shape) - rank, 0)] for shape, rank in shapes] or [()])


def _fits(family: Family, sizes: Mapping[str, int], event: Sequence[int]) -> bool:
    """Whether a value may have event axes of these sizes."""
    known = dict(sizes)
    return all(known.setdefault(axis, size) == size for axis, size in zip(family.event, event, strict=True))


def _unknown(family: Family, sizes: Mapping[str, int]) -> str:
    return next(axis for axis in family.event if axis not in sizes)


def _show_axes(axes: Sequence[str]) -> str:
    return "{" + ", ".join(("…", *axes)) + "}"


def _show_parameters(specs: Mapping[str, Spec]) -> str:
    return ", ".join(f"{name} {show_shape(spec.shape)}" for name, spec in specs.items())
