"""The shape and type of every node of a model, worked out and checked for the shapes of its data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from nutkin.errors import InvalidData, InvalidModel
from nutkin.model.applications import Applied, Effort, check_single, check_size, plan_node
from nutkin.model.distributions import DISTRIBUTIONS, Family, find_family, spoken
from nutkin.model.distributions.shapes import event_sizes, observed_batch, variable_shape
from nutkin.model.growth import lengths
from nutkin.model.ir import (
    SINKS,
    Call,
    Cond,
    Constant,
    CustomGradient,
    Data,
    Deterministic,
    Drawn,
    Element,
    Factor,
    LogProbability,
    Model,
    Node,
    Observe,
    Ode,
    Predict,
    RandomVariable,
    Scan,
    While,
    expression,
    is_unbounded,
    label,
    references,
)
from nutkin.model.operations import close_matches
from nutkin.model.plan import SEVERAL, broadcasts_to
from nutkin.model.program import Precision, Program, ValueCheck
from nutkin.model.steps import (
    Application,
    Centering,
    DrawnParameter,
    Input,
    Number,
    Observation,
    Output,
    Predicted,
    Step,
    Term,
    Variable,
)
from nutkin.model.supports import INTERVAL, Support, above, finite
from nutkin.model.transforms import TRANSFORMS
from nutkin.model.types import DTYPES, Spec, is_complex, is_float, literal_spec, narrow, show_shape

_ABOVE_LOWER = above("lower")


def check(
    model: Model, data: Mapping[str, Spec], constants: Mapping[bytes, Spec], *, precision: Precision = "f64"
) -> Program:
    """Work out every node's shape and type for data and blobs of these specs.

    Raises InvalidModel or InvalidData with the node's name (or operation), its index, what was expected, and found.
    """
    check_slots(model, data)
    for name in model.slots:
        if name not in data:
            expected, given = (", ".join(names) or "no data" for names in (model.slots, data))
            raise InvalidData(f"the data slot {name} is not given", node=name, expected=expected, found=given)
    lengths(model, data)
    checker = _Checker(model, data, constants, precision)
    for index, node in enumerate(model.nodes):
        with located(model, index):
            if isinstance(node, (RandomVariable, LogProbability, *SINKS)):
                _check_real(node, checker.steps)
            if not isinstance(node, Element):
                check_single(references(node).values(), model.nodes, checker.steps)
            step = checker.step(node, index)
            check_size(step)
            checker.append(step)
    return Program(model, precision, (*checker.steps, *checker.centerings), tuple(checker.checks))


def check_slots(model: Model, names: Iterable[str]) -> None:
    """Raises InvalidData for a name that is no data slot of the model."""
    slots = dict.fromkeys(model.slots)
    for name in names:
        if name not in slots:
            expected = ", ".join(slots) or "no data"
            hint = close_matches(name, slots) if slots else None
            raise InvalidData(f"the model has no data slot {name}", node=name, expected=expected, found=name, hint=hint)


@contextmanager
def located(model: Model, index: int) -> Iterator[None]:
    """Errors that arise within say which node it was; a node without a name is known by what it computes."""
    try:
        yield
    except (InvalidModel, InvalidData) as error:
        if error.index is None:
            error.node, error.index = label(model.nodes[index]), index
            error.message = f"{expression(model.nodes, index)}: {error.message}"
        raise


class _Checker:
    def __init__(
        self, model: Model, data: Mapping[str, Spec], constants: Mapping[bytes, Spec], precision: Precision
    ) -> None:
        self.model, self.data, self.constants, self.precision = model, data, constants, precision
        self.effort = Effort()
        self.steps: list[Step] = []
        self.checks: list[ValueCheck] = []
        self.centerings: list[Centering] = []  # behind the steps of the nodes
        self.given: set[int] = set()  # the nodes that are inputs, or computed without parameters

    def append(self, step: Step) -> None:
        if isinstance(step, Input) or (isinstance(step, Application) and self._is_known(step.args)):
            self.given.add(len(self.steps))
        self.steps.append(step)

    def _is_known(self, references: Iterable[int]) -> bool:
        """Whether they are given or numbers."""
        return all(index in self.given or isinstance(self.steps[index], Number) for index in references)

    def step(self, node: Node, index: int) -> Step:
        match node:
            case Data():
                spec = self.data[node.name]
                _check_declared(node, spec, InvalidData)
                return Input(node.name, self._input_spec(spec))
            case Constant(value=None):
                if node.blob not in self.constants:
                    raise InvalidData("the blob of the constant is not given", found=node.blob.hex())
                return Input(label(node), self._input_spec(self.constants[node.blob]))
            case Constant():
                return Number(literal_spec(node.value, precision=self.precision))
            case Call() | Element() | LogProbability() | Scan() | While() | Cond() | Ode() | CustomGradient():
                return self._application(node, index)
            case RandomVariable():
                return self._variable(node, index)
            case Observe():
                return self._observation(node, index)
            case Drawn():
                return DrawnParameter(node.name, Spec(node.shape, self.precision))
            case Predict():
                return self._prediction(node, index)
            case Factor():
                return Term(node.name, node.value, self.steps[node.value].spec)
            case Deterministic():
                return Output(node.name, node.value, replace(self.steps[node.value].spec, literal=None))

    def _application(self, node: Applied, index: int) -> Application:
        application = plan_node(node, self.model.nodes, self.steps, self.precision, self.effort)
        if is_unbounded(node) and not self._is_known(application.args):
            raise InvalidModel(
                "a loop over what depends on parameters must have a bound, for the sake of its gradient",
                expected="the option max_steps",
                found="none",
            )
        if isinstance(node, Call):
            _check_declared(node, application.spec, InvalidModel, precision=self.precision)
        paths = tuple(references(node))
        for position, support in application.plan.supports.items():
            value = application.args[position]
            name = paths[position].removeprefix("args.")
            named = self.model.nodes[value].name or position + 1
            what = f"the operand {named}" if isinstance(node, Call) else f"the parameter {spoken(name)}"
            self._check_values(what, node, index, value, support, (), None)
        return application

    def _input_spec(self, spec: Spec) -> Spec:
        if 0 in spec.shape:
            raise InvalidData(
                "the tensor is empty", expected="axes of at least one element", found=show_shape(spec.shape)
            )
        return Spec(spec.shape, narrow(spec.type, precision=self.precision))

    def _variable(self, node: RandomVariable, index: int) -> Variable:
        family, args, specs = self._arguments(node, index)
        if family.support.discrete:
            raise InvalidModel(
                "a discrete distribution cannot be sampled",
                expected="a continuous distribution",
                found=str(node.dist),
                hint="observe it, or marginalise it: sum the density over its values and add that as a factor",
            )
        if not family.support.transforms:
            raise InvalidModel(
                f"no transform maps onto the values of {node.dist}, so that it can be observed only",
                expected="a distribution whose values have one, such as components of one support",
                found=family.support.description,
            )
        shape = variable_shape(family, specs, node.shape)
        name = node.transform or family.transform
        transform = TRANSFORMS.get(name)
        if transform is None:
            raise InvalidModel("there is no such transform", found=name, hint=close_matches(name, TRANSFORMS))
        if name not in family.support.transforms:
            raise InvalidModel(
                f"the transform does not map onto the support of {node.dist}",
                expected=" or ".join(family.support.transforms),
                found=name,
            )
        if len(shape) < transform.event_rank:
            raise InvalidModel(
                f"the transform {name} needs a vector", expected="a shape {…, k}", found=show_shape(shape)
            )
        if node.centered is not True and family.location_scale is None:
            raise InvalidModel(
                f"centered: {node.centered or 'false'} needs a location-scale distribution",
                expected=", ".join(other for other, known in DISTRIBUTIONS.items() if known.location_scale),
                found=str(node.dist),
            )
        if node.centered is not True and name != "identity":
            raise InvalidModel(
                f"centered: {node.centered or 'false'} is for values on the real line, without a transform",
                expected="no transform",
                found=name,
            )
        bounds = tuple(node.args[bound] for bound in family.support.bounds)
        identity = transform is TRANSFORMS["identity"]
        spec, centering = Spec(shape, self.precision), None
        if node.centered == "auto":
            centering = len(self.model.nodes) + len(self.centerings)
            self.centerings.append(Centering(node.name, spec))
        transform = None if identity else transform
        return Variable(node.name, family, args, spec, transform, bounds, node.centered is True, centering)

    def _observation(self, node: Observe, index: int) -> Observation:
        family, args, specs = self._arguments(node, index)
        shape = observed_batch(family, specs, self.steps[node.value].spec)
        for field in ("weight", "mask"):
            reference = getattr(node, field)
            if reference is not None and not broadcasts_to(self.steps[reference].spec.shape, shape):
                raise InvalidModel(
                    f"the {field} does not broadcast to the log density",
                    expected=show_shape(shape),
                    found=show_shape(self.steps[reference].spec.shape),
                )
        what, support = "the observed value", family.support
        bounds = tuple(node.args[bound] for bound in support.bounds)
        if not support.has_infinities and is_float(self.steps[node.value].spec.type):
            self._check_values(what, node, index, node.value, finite(family.event_rank), (), node.mask)
        is_checked = self._check_values(what, node, index, node.value, support, bounds, node.mask)
        return Observation(
            node.name,
            family,
            args,
            Spec(shape, self.precision),
            node.value,
            bounds,
            node.weight,
            node.mask,
            node.reduce == "mean",
            is_checked,
            node.dist,
        )

    def _prediction(self, node: Predict, index: int) -> Predicted:
        family, args, specs = self._arguments(node, index)
        if family.draw is None:
            raise InvalidModel(
                f"there are no random draws of {node.dist}",
                expected="a distribution that can be drawn",
                hint=f"leave {node.name} out: the option `variables` names what is asked for",
            )
        if node.value is None:
            shape = variable_shape(family, specs, None)
        else:
            value = self.steps[node.value].spec
            batch = observed_batch(family, specs, value)
            shape = (*batch, *value.shape[len(value.shape) - family.event_rank :])
        counts = "s64" if self.precision == "f64" else "s32"
        return Predicted(node.name, family, args, Spec(shape, counts if family.support.discrete else self.precision))

    def _arguments(
        self, node: RandomVariable | Observe | Predict, index: int
    ) -> tuple[Family, tuple[int, ...], dict[str, Spec]]:
        """The family, for event axes of the sizes that parameters and value have, and the parameters in its order."""
        family = find_family(node.dist, node.args)
        args = {name: node.args[name] for name in family.parameters}
        specs = {name: self.steps[reference].spec for name, reference in args.items()}
        family = family.of_sizes(event_sizes(family, specs, self._value_shape(node)))
        for name, reference in args.items():
            support = family.parameters[name].support
            self._check_values(f"the parameter {spoken(name)}", node, index, reference, support, (), None)
        self._check_bounds(node, index, family, args)
        return family, tuple(args.values()), specs

    def _value_shape(self, node: RandomVariable | Observe | Predict) -> tuple[int, ...] | None:
        """None where only the parameters tell."""
        if isinstance(node, RandomVariable):
            return node.shape
        return None if node.value is None else self.steps[node.value].spec.shape

    def _check_bounds(
        self, node: RandomVariable | Observe | Predict, index: int, family: Family, args: dict[str, int]
    ) -> None:
        """An interval must not be empty."""
        limits = [self.steps[args[name]].spec.literal for name in INTERVAL.bounds if name in args]
        mode = self.steps[args["c"]].spec.literal if "c" in args else None
        if len(limits) == 2 and None not in (*limits, mode) and not limits[0] <= mode <= limits[1]:
            raise InvalidModel(
                "the mode c is outside of the interval",
                expected=f"a number from {limits[0]} to {limits[1]}",
                found=str(mode),
            )
        if len(limits) == 2 and None not in limits and not limits[0] < limits[1]:
            raise InvalidModel(
                "the interval is empty", expected="lower below upper", found=f"lower {limits[0]}, upper {limits[1]}"
            )
        if family.support == INTERVAL:
            self._check_values("the parameter upper", node, index, args["upper"], _ABOVE_LOWER, (args["lower"],), None)
            if "c" in args:
                ends = args["lower"], args["upper"]
                self._check_values("the parameter c", node, index, args["c"], INTERVAL, ends, None)

    def _check_values(
        self,
        what: str,
        node: RandomVariable | Observe | Predict | Applied,
        index: int,
        value: int,
        support: Support,
        bounds: tuple[int, ...],
        mask: int | None,
    ) -> bool:
        """Check a number at once, note a check of what is given for later; False if neither is possible."""
        if support.contains is None:
            return True
        needed = (value, *bounds) if mask is None else (value, *bounds, mask)
        if not self._is_known(needed):
            return False
        if all(isinstance(self.steps[reference], Number) for reference in needed):
            literal, *limits = (np.float64(self.steps[reference].spec.literal) for reference in (value, *bounds))
            if not support.contains(literal, *limits) and (mask is None or self.steps[mask].spec.literal != 0):
                raise InvalidModel(
                    f"{what} is outside its range",
                    expected=support.description,
                    found=str(self.steps[value].spec),
                    hint=support.hint,
                )
            return True
        self.checks.append(
            ValueCheck(index, f"{what} of {expression(self.model.nodes, index)}", value, support, bounds, mask)
        )
        return True


def _check_real(node: Node, steps: Sequence[Step]) -> None:
    for path, index in references(node).items():
        if steps[index].spec.type != SEVERAL and is_complex(steps[index].spec.type):
            raise InvalidModel(
                f"the {spoken(path.removeprefix('args.'))} is complex",
                expected="real numbers",
                found=str(steps[index].spec),
                hint="real, imag, abs and phase give real numbers",
            )


def _check_declared(
    node: Data | Call, found: Spec, error: type[InvalidModel] | type[InvalidData], *, precision: str | None = None
) -> None:
    """Compare shape and type that a node declares with what they are."""
    if node.type is not None and node.type not in DTYPES:
        raise InvalidModel("there is no such type", found=node.type, hint=close_matches(node.type, DTYPES))
    if node.shape is not None and (
        len(node.shape) != len(found.shape)
        or any(size not in (None, actual) for size, actual in zip(node.shape, found.shape, strict=True))
    ):
        raise error("the shape is not the declared one", expected=show_shape(node.shape), found=show_shape(found.shape))
    declared = node.type if node.type is None or precision is None else narrow(node.type, precision=precision)
    if declared not in (None, found.type):
        raise error("the type is not the declared one", expected=declared, found=found.type)
