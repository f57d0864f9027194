"""Why a model cannot be padded, in the words of its author."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nutkin.errors import InvalidModel
from nutkin.model.ir import Argument, Call, Data, Node, RandomVariable, references
from nutkin.model.padding.axes import Axes, show_growing
from nutkin.model.steps import Step

_KEPT_APART = (
    "the entries of {axes}, which grows, are not kept apart here",
    "operations entry by entry, and sums, means, extremes, cumulative ones, or a scan",
)

# What is to be told of an operation, with what there is instead.
_BY_OPERATION = {
    "concatenate": (
        "nothing can be joined behind the entries of {axes}, which grows",
        "what grows in the last place, as in concatenate([first, x]); or sums and log densities of each part, added",
    ),
    "flatten": (
        "the axis {axes}, which grows, cannot become one with another axis",
        "the tensor as it is: sums, means and observations take any number of axes, and x[[.., 0]] is a column",
    ),
}


@dataclass(frozen=True)
class Refusals:
    """`nodes` of the model or of a body, with the steps of those so far; `slots`: the data slots that grow.

    `axes`: of each step those that grow, None where something grows in another way.
    """

    nodes: Sequence[Node | Argument]
    steps: Sequence[Step]
    axes: Sequence[Axes | None]
    slots: Sequence[Data]

    def fixed_size(self, index: int) -> InvalidModel:
        """At this node, a fixed size must agree with an axis that grows."""
        node = self.nodes[index]
        if isinstance(node, Call) and node.shape is not None:
            return self._error(
                index,
                f"a function over Nx is traced for one size, and cannot meet {self._names(index)}, which grows",
                "what does not grow, such as a sum; or operations of the model's own language",
            )
        return self._error(
            index,
            f"a fixed size cannot meet {self._names(index)}, which grows",
            "sizes that agree for any number of entries",
        )

    def mixed(self, index: int) -> InvalidModel:
        """This node does not keep the entries of an axis that grows apart."""
        if isinstance(self.nodes[index], RandomVariable):
            message = f"a free variable cannot grow, and its parameters have the axis {self._names(index)}"
            return self._error(index, message, "a variable of a fixed size, of which take(x, index) picks entries")
        node = self.nodes[index]
        message, expected = _BY_OPERATION.get(node.op if isinstance(node, Call) else "", _KEPT_APART)
        return self._error(index, message.format(axes=self._names(index)), expected)

    def masked(self, index: int) -> InvalidModel:
        """This node of a body needs to know which entries of an axis are there."""
        message = f"inside a body the entries of {self._names(index)}, which grows, can only be kept apart"
        return self._error(index, message, "operations entry by entry")

    def _error(self, index: int, message: str, expected: str) -> InvalidModel:
        slots = ", ".join(slot.name for slot in self.slots)
        hint = f"leave out `grows` of {slots}, and each length is compiled on its own"
        return InvalidModel(message, expected=expected, found=self._operands(index) or None, hint=hint)

    def _names(self, index: int) -> str:
        """The axes that grow of the operands, all there are if these are not known."""
        axes = (self.axes[reference] or {} for reference in references(self.nodes[index]).values())
        names = dict.fromkeys(axis.name for grown in axes for axis in grown.values())
        return " and ".join(names or dict.fromkeys(slot.grows for slot in self.slots))

    def _operands(self, index: int) -> str:
        shown = []
        for path, reference in references(self.nodes[index]).items():
            name = "" if "[" in path else f"{path.removeprefix('args.')} "
            shown.append(name + show_growing(self.steps[reference].spec.shape, self.axes[reference] or {}))
        return ", ".join(shown)
