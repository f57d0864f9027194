"""Runs in line: at most so many go on at once, the others begin in their order, as places become free."""

from __future__ import annotations

from collections.abc import Callable, Hashable


class Line:
    """For one thread at a time: whoever has it sees to that."""

    def __init__(self, places: int) -> None:
        self._places = places
        self._begun: set[Hashable] = set()
        self._waiting: dict[Hashable, Callable[[], None]] = {}  # in their order

    def join(self, owner: Hashable, begin: Callable[[], None]) -> None:
        """Calls `begin` once there is a place for `owner`: at once, or while another one leaves."""
        self._waiting[owner] = begin
        self._move_up()

    def leave(self, owner: Hashable) -> None:
        """`owner` needs its place no more, or does not wait for one; nothing if it never joined."""
        self._waiting.pop(owner, None)
        self._begun.discard(owner)
        self._move_up()

    def _move_up(self) -> None:
        while self._waiting and len(self._begun) < self._places:
            owner = next(iter(self._waiting))
            self._begun.add(owner)
            self._waiting.pop(owner)()
