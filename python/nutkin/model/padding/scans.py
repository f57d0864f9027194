"""Loops on padded operands: a scan over the entries of axes that grow, whose last steps change nothing.

Inside of bodies there are no masks: values that grow may be used there entry by entry only.
"""

from __future__ import annotations

from collections.abc import Sequence

from nutkin.model.ir import Argument, Body, Call, Node, Scan
from nutkin.model.padding.axes import Axis
from nutkin.model.padding.writer import Writer, moved


def masked_scan(node: Scan, axis: Axis, writer: Writer) -> Scan:
    """The same over entries of which only those of the mask are there; the references are those of the padded model.

    Behind the last entry, the step of that entry is made again: from what was carried into it, with the entry repeated.
    So what is carried and collected stays as it was. In reverse these steps come first, and start from where the
    loop starts.
    """
    count = len(node.init)
    if node.reverse:
        carried, extra = count, 0
    else:
        carried, extra = 2 * count, count  # the values now, and those that the last step was given
    body = _Body(node.body, count, carried, len(node.xs), len(node.captures))
    if node.reverse:
        results = body.copied([body.argument(place) for place in range(count)])
        following = [body.choose(after, body.argument(place)) for place, after in enumerate(results[:count])]
        given = []
    else:
        given = [body.choose(body.argument(place), body.argument(count + place)) for place in range(count)]
        results = body.copied(given)
        following = results[:count]
    return Scan(
        init=node.init + node.init[:extra],
        xs=(*node.xs, writer.mask(axis)),
        captures=node.captures,
        body=Body(nodes=tuple(body.nodes), results=(*following, *given, *results[count:])),
        reverse=node.reverse,
        name=node.name,
    )


class _Body:
    """The body of a scan, with another number of carried values, and the mask as its last entry."""

    def __init__(self, body: Body, count: int, carried: int, entries: int, captures: int) -> None:
        self.nodes: list[Node | Argument] = [Argument(index=i) for i in range(carried + entries + 1 + captures)]
        self._body, self._count, self._carried, self._mask = body, count, carried, carried + entries

    def argument(self, place: int) -> int:
        """The node of the carried value at this place."""
        return place

    def choose(self, on_true: int, on_false: int) -> int:
        """The first where the entry is there."""
        self.nodes.append(Call(op="select", args=(self._mask, on_true, on_false)))
        return len(self.nodes) - 1

    def copied(self, given: Sequence[int]) -> tuple[int, ...]:
        """The nodes of the body, of these carried values. -> its results."""
        places: list[int] = []
        for node in self._body.nodes:
            if isinstance(node, Argument):
                places.append(self._argument(node.index, given))
            else:
                self.nodes.append(moved(node, places))
                places.append(len(self.nodes) - 1)
        return tuple(places[result] for result in self._body.results)

    def _argument(self, index: int, given: Sequence[int]) -> int:
        if index < self._count:
            return given[index]
        place = index - self._count + self._carried
        return place if place < self._mask else place + 1
