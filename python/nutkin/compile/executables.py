"""Compiled XLA programs, kept in memory by what they were made from.

A key names everything that can change a program and nothing else: the graph, shapes, types, options. The values of data
are no part of it, so fresh data of the same shape finds its program here. On disk the same programs are kept by JAX's
persistent cache, which adds the versions and the device to the key.
"""

from __future__ import annotations

import ctypes
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import jax

from nutkin.errors import CompileFailed

CAPACITY = 64  # a program holds 5 to 10 MB

_COMPILATION_EVENT = "/jax/core/compile/backend_compile_duration"
_count = 0


def _count_compilation(event: str, _seconds: float, **_: Any) -> None:
    global _count
    if event == _COMPILATION_EVENT:
        _count += 1


jax.monitoring.register_event_duration_secs_listener(_count_compilation)


def compilations() -> int:
    """How often this process asked XLA for an executable, whether it compiled it or read it from the disk cache."""
    return _count


def _return_free_memory() -> None:
    """XLA frees some 60 MB after a compilation that glibc would keep."""
    if (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)) is not None:
        trim(0)


class Executables:
    """A bounded LRU of compiled programs. Threads that ask for the same key at once compile it once."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._capacity = capacity
        self._lock = threading.Lock()
        self._entries: OrderedDict[tuple, Any] = OrderedDict()
        self._building: dict[tuple, threading.Lock] = {}

    def _find(self, key: tuple) -> Any | None:
        with self._lock:
            if key in self._entries:
                self._entries.move_to_end(key)
                return self._entries[key]
            return None

    def __contains__(self, key: tuple) -> bool:
        return key in self._entries

    def get(self, key: tuple, function: Callable, arguments: tuple) -> tuple[Any, bool]:
        """-> (the executable of `function` for the shapes of `arguments`, whether it was there already)."""
        if (found := self._find(key)) is not None:
            return found, True
        with self._lock:
            building = self._building.setdefault(key, threading.Lock())
        with building:
            if (found := self._find(key)) is not None:
                return found, True
            try:
                compiled = jax.jit(function).lower(*arguments).compile()
            except jax.errors.JaxRuntimeError as error:
                raise CompileFailed(f"XLA refused the program: {str(error).splitlines()[0]}") from error
            finally:
                self._building.pop(key, None)
                _return_free_memory()
            with self._lock:
                self._entries[key] = compiled
                while len(self._entries) > self._capacity:
                    self._entries.popitem(last=False)
            return compiled, False


EXECUTABLES = Executables()
