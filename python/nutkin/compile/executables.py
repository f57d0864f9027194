"""Compiled XLA programs, kept in memory by what they were made from.

A key names everything that can change a program and nothing else: the graph, shapes, types, options. The values of data
are no part of it, so fresh data of the same shape finds its program here, or on disk.
"""

from __future__ import annotations

import ctypes
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

import jax

from nutkin import settings
from nutkin.compile.stored import RestoredProgram, StoredPrograms
from nutkin.errors import CompileFailed

CAPACITY = 64  # a program holds 5 to 10 MB
_COMPILED_BETWEEN = 16  # compilations after which JAX forgets its own

_COMPILATION_EVENT = "/jax/core/compile/backend_compile_duration"
_CACHE_HIT_EVENT = "/jax/compilation_cache/cache_hits"
_count = 0
_cache_hits = 0


def _count_compilation(event: str, _seconds: float, **_: Any) -> None:
    global _count
    if event == _COMPILATION_EVENT:
        _count += 1


def _count_cache_hit(event: str, **_: Any) -> None:
    global _cache_hits
    if event == _CACHE_HIT_EVENT:
        _cache_hits += 1


jax.monitoring.register_event_duration_secs_listener(_count_compilation)
jax.monitoring.register_event_listener(_count_cache_hit)


def compilations() -> int:
    """How often this process asked XLA for an executable, whether it compiled it or read it from the disk cache."""
    return _count


def is_out_of_memory(error: Exception) -> bool:
    """Whether XLA could not get the memory that a program needs."""
    return isinstance(error, jax.errors.JaxRuntimeError) and str(error).startswith("RESOURCE_EXHAUSTED")


def return_free_memory() -> None:
    """XLA frees some 60 MB after a compilation that glibc would keep."""
    if (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)) is not None:
        trim(0)


class Executables:
    """A bounded LRU of compiled programs, over those stored on disk, if any.

    Threads that ask for the same key at once compile it once.
    """

    def __init__(self, capacity: int = CAPACITY, stored: StoredPrograms | None = None) -> None:
        self._capacity = capacity
        self._stored = stored
        self._lock = threading.Lock()
        self._entries: OrderedDict[tuple, Any] = OrderedDict()
        self._building: dict[tuple, threading.Lock] = {}
        self._compiled = 0

    def _find(self, key: tuple) -> Any | None:
        with self._lock:
            if key in self._entries:
                self._entries.move_to_end(key)
                return self._entries[key]
            return None

    def __contains__(self, key: tuple) -> bool:
        return key in self._entries

    def get(
        self, key: tuple, function: Callable, arguments: tuple, *, options: Mapping[str, str] | None = None
    ) -> tuple[Any, bool]:
        """-> (the executable of `function` for the shapes of `arguments`, whether it was there already).

        `options`: those of XLA's compiler."""
        if (found := self._find(key)) is not None:
            return found, True
        with self._lock:
            building = self._building.setdefault(key, threading.Lock())
        with building:
            if (found := self._find(key)) is not None:
                return found, True
            try:
                program = self._restore(key) or self._compile(key, function, arguments, options)
                with self._lock:
                    self._entries[key] = program
                    while len(self._entries) > self._capacity:
                        self._entries.popitem(last=False)
            finally:
                with self._lock:
                    self._building.pop(key, None)
                return_free_memory()
            return program, False

    def _restore(self, key: tuple) -> RestoredProgram | None:
        program = None if self._stored is None else self._stored.load(key)
        if program is not None:
            _count_compilation(_COMPILATION_EVENT, 0.0)
        return program

    def _compile(
        self, key: tuple, function: Callable, arguments: tuple, options: Mapping[str, str] | None
    ) -> jax.stages.Compiled:
        hits = _cache_hits
        self._make_jax_forget()
        try:
            compiled = jax.jit(function, keep_unused=True).lower(*arguments).compile(dict(options or {}))
        except jax.errors.JaxRuntimeError as error:
            raise CompileFailed(f"XLA refused the program: {str(error).splitlines()[0]}") from error
        # XLA serialises no code of an executable that JAX's own cache, where a user has one, has read itself.
        if self._stored is not None and _cache_hits == hits:  # in a thread: the program is used meanwhile
            threading.Thread(target=self._stored.save, args=(key, compiled), name="store").start()
        return compiled

    def _make_jax_forget(self) -> None:
        """JAX keeps every program that it has compiled, and what it was traced from, thousands of them, whoever else
        lets go of it. Those that are kept here go on without it."""
        with self._lock:
            self._compiled += 1
            due = self._compiled % _COMPILED_BETWEEN == 0
        if due:
            jax.clear_caches()


_FOLDER = settings.cache_dir()

EXECUTABLES = Executables(stored=None if _FOLDER is None else StoredPrograms(_FOLDER))
