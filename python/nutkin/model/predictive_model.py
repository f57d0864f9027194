"""The model from which predictions are made: that of the posterior, with the draws of its parameters as given.

Observations become random values of their distributions, parameters become what was drawn of them, or random values
too. What nobody asks for is left out, so that slots that only it needs may be empty. The nodes keep their places.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from msgspec.structs import replace

from nutkin.errors import InvalidData, InvalidOption
from nutkin.model.ir import (
    Constant,
    Data,
    Deterministic,
    Drawn,
    Factor,
    Model,
    Node,
    Observe,
    Predict,
    RandomVariable,
    references,
)
from nutkin.model.operations import close_matches
from nutkin.model.types import show_shape

Of = Literal["predictions", "log_likelihood"]


@dataclass(frozen=True)
class PredictiveModel:
    """`wanted`: the nodes that are asked for; `left_out`: names of factors that depend on random parameters, whose
    values they do not change."""

    model: Model
    wanted: tuple[int, ...]
    left_out: tuple[str, ...]


def predictive_model(
    model: Model,
    data: Collection[str],
    drawn: Mapping[str, tuple[int, ...]],
    *,
    redraw: Collection[str] | None = (),
    variables: Collection[str] | None = None,
    of: Of = "predictions",
) -> PredictiveModel:
    """`data`: the slots that are given; `drawn`: the parameters that are, with the shape of one draw.

    `redraw`: the parameters that become random values of their distributions, None for all that are not drawn.
    `variables`: names of what is asked for, None for all: observations, deterministic values and random parameters.
    `of`: what an observation gives, random values or the log likelihood of each of its own; then only observations are
    asked for.
    Errors: InvalidOption for an unknown name, InvalidData for what is needed and not there.
    """
    sources = _Sources(model, data, drawn, redraw)
    wanted = sources.named(variables, of)
    asked = {index: sources.asked(index, of) for index in wanted}
    for index in wanted:
        sources.check(index, asked[index])
    values = [node.value for node in asked.values() if isinstance(node, Predict) and node.value is not None]
    needed = sources.behind(asked.values())
    # Observed values are there for their shapes.
    kept = {index: sources.given(index) for index in needed | sources.through(values)}
    written = {**kept, **asked}
    nodes = tuple(written.get(index, Constant(value=0)) for index in range(len(model.nodes)))
    return PredictiveModel(Model(version=model.version, nodes=nodes), wanted, sources.left_out(needed | {*wanted}))


class _Sources:
    """Where the values of a model's nodes come from."""

    def __init__(
        self, model: Model, data: Collection[str], drawn: Mapping[str, tuple[int, ...]], redraw: Collection[str] | None
    ) -> None:
        self.nodes, self.data = model.nodes, data
        self.drawn = {name: shape for name, shape in drawn.items() if name not in (redraw or ())}
        self.parameters = {node.name: i for i, node in enumerate(model.nodes) if isinstance(node, RandomVariable)}
        _check_names((*drawn, *(redraw or ())), self.parameters, "parameter")
        self.is_prior = redraw is None
        names = self.parameters if redraw is None else redraw
        self.random = {self.parameters[name] for name in names if name not in self.drawn}

    @cached_property
    def absent(self) -> dict[int, int]:
        """The nodes that have no value, each with the slot or the parameter that is not given."""
        absent: dict[int, int] = {}
        for index, node in enumerate(self.nodes):
            if isinstance(node, Data):
                is_given = node.name in self.data
            else:
                is_given = not isinstance(node, RandomVariable) or node.name in self.drawn or index in self.random
            missing = [absent[parent] for parent in self._parents(index) if parent in absent]
            if not is_given or missing:
                absent[index] = missing[0] if is_given else index
        return absent

    def _parents(self, index: int) -> Iterable[int]:
        node = self.nodes[index]
        is_drawn = isinstance(node, RandomVariable) and node.name in self.drawn
        return () if is_drawn else references(node).values()

    def through(self, indices: Iterable[int]) -> set[int]:
        """These nodes, and all that their values depend on."""
        pending, found = list(indices), set()
        while pending:
            index = pending.pop()
            if index not in found:
                found.add(index)
                pending.extend(self._parents(index))
        return found

    def behind(self, nodes: Iterable[Node | Predict]) -> set[int]:
        """All that the values of these nodes depend on."""
        return self.through(reference for node in nodes for reference in references(node).values())

    def named(self, variables: Collection[str] | None, of: Of) -> tuple[int, ...]:
        """The nodes that are asked for."""
        kinds = Observe if of == "log_likelihood" else Observe | Deterministic
        choice = {node.name: index for index, node in enumerate(self.nodes) if isinstance(node, kinds)}
        if of == "predictions":
            choice |= {self.nodes[index].name: index for index in self.random - self._imputed()}
        _check_names(variables or (), choice, "observation" if of == "log_likelihood" else "value to predict")
        return tuple(sorted(choice[name] for name in (choice if variables is None else set(variables))))

    def _imputed(self) -> set[int]:
        """The random parameters of a prior that stand for observed values alone."""
        if not self.is_prior:
            return set()
        observed = self.through(node.value for node in self.nodes if isinstance(node, Observe))
        others = self.behind(
            Predict(name=node.name, dist=node.dist, args=node.args) if isinstance(node, Observe) else node
            for node in self.nodes
            if isinstance(node, Observe | Deterministic | Factor | RandomVariable)
        )
        return observed - others

    def asked(self, index: int, of: Of) -> Node | Predict:
        node = self.given(index)
        if not isinstance(node, Observe) or of == "log_likelihood":
            return node
        value = None if node.value in self.absent else node.value
        return Predict(name=node.name, dist=node.dist, args=node.args, value=value)

    def check(self, index: int, asked: Node | Predict) -> None:
        """Raises InvalidData where something is not given that the value of this node depends on."""
        missing = sorted({self.absent[needed] for needed in self.behind([asked]) if needed in self.absent})
        if not missing:
            return
        name, needs = self.nodes[index].name, self.nodes[missing[0]]
        hint = f"or leave {name} out: the option `variables` names what is asked for"
        if isinstance(needs, Data):
            what, expected, hint = "data slot", f"values for {needs.name}", f"give them, {hint}"
        else:
            what, expected = "parameter", f"draws of {needs.name}"
            hint = f"give them, name it in `redraw` to draw it anew, {hint}"
        found = ", ".join(self.data if isinstance(needs, Data) else self.drawn) or "none"
        message = f"the {what} {needs.name} is needed for {name}"
        raise InvalidData(message, node=name, index=index, expected=expected, found=found, hint=hint)

    def given(self, index: int) -> Node | Drawn:
        node = self.nodes[index]
        if not isinstance(node, RandomVariable):
            return node
        if node.name not in self.drawn:
            return replace(node, centered=True)  # a random value has no coordinates
        shape = self.drawn[node.name]
        if node.shape not in (None, shape):
            raise InvalidData(
                f"the draws of {node.name} have not its shape",
                node=node.name,
                index=index,
                expected=show_shape(node.shape),
                found=show_shape(shape),
                hint="predict with the model that was sampled, or name the parameter in `redraw` to draw it anew",
            )
        return Drawn(name=node.name, shape=shape)

    def left_out(self, used: set[int]) -> tuple[str, ...]:
        random = used & self.random
        factors = [node for node in self.nodes if isinstance(node, Factor)]
        return tuple(node.name for node in factors if random & self.behind([node]))


def _check_names(names: Sequence[str] | Collection[str], known: Mapping[str, int], what: str) -> None:
    for name in names:
        if name not in known:
            raise InvalidOption(
                f"the model has no {what} {name}",
                expected=", ".join(known) or "none",
                found=name,
                hint=close_matches(name, dict.fromkeys(known)) if known else None,
            )
