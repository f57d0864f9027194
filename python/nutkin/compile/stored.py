"""Compiled programs on disk, found by what they were made from.

JAX's own disk cache knows a program by its code, which must be traced and lowered first. Here the name of an entry is
a digest of the program's key and of all else that the code depends on: the sources of the engine, the versions, the
flags, the processor. An entry is the executable as XLA serialises it, the structure of its results, and whether it
calls LAPACK. One that is damaged, or that XLA refuses, counts as absent.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import platform
import tempfile
import time
import zlib
from functools import cache
from pathlib import Path
from typing import Any

import jax
import msgspec
import numpy as np
from jaxlib import lapack, xla_client

from nutkin.compile.placement import device, placed
from nutkin.versions import versions

LARGEST_FOLDER = 1 << 30  # bytes; a program takes some 30 kB
_DIGEST_BYTES = 32
_LOG = logging.getLogger(__name__)


class RestoredProgram:
    """An executable that was read from disk, called as `jax.stages.Compiled` is: with arrays of the types and shapes
    that it was compiled for."""

    def __init__(self, executable: Any, results: Any) -> None:
        self._executable = executable
        self._structure = jax.tree.structure(results)

    def __call__(self, *arguments: Any) -> Any:
        buffers = jax.tree.leaves(placed(arguments))
        return jax.tree.unflatten(self._structure, self._executable.execute(buffers))


class StoredPrograms:
    """A folder of programs for the CPU. Processes may share it: an entry appears whole or not at all.

    Beyond `largest` bytes, the programs that were not used for longest are removed.
    """

    def __init__(self, folder: Path, *, largest: int = LARGEST_FOLDER) -> None:
        self._folder, self._largest = folder, largest

    def load(self, key: tuple) -> RestoredProgram | None:
        """The program of this key, None if there is none that can be used."""
        if device().platform != "cpu":
            return None
        path = self._path(key)
        try:
            content = path.read_bytes()
        except OSError:
            return None
        with contextlib.suppress(OSError):
            _used_now(path)
        digest, packed = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
        if hashlib.sha256(packed).digest() != digest:
            return None
        results, calls_lapack, serialized = msgspec.msgpack.decode(zlib.decompress(packed))
        if calls_lapack:  # JAX looks its functions up when it lowers a call of them: until then they are null
            lapack.prepare_lapack_call("potrf_ffi", np.float64)
        try:
            devices = xla_client.DeviceList((device(),))
            executable = device().client.deserialize_executable(serialized, devices, None)
        except jax.errors.JaxRuntimeError as error:
            _LOG.warning("a stored program cannot be loaded and is compiled again: %s", error)
            return None
        return RestoredProgram(executable, _with_tuples(results))

    def save(self, key: tuple, compiled: jax.stages.Compiled) -> None:
        """Keep a program that takes all arguments of its function (`keep_unused`) and has no callbacks."""
        executable = compiled.runtime_executable()
        if device().platform != "cpu":
            return
        count = compiled.out_tree.num_leaves
        results = jax.tree.unflatten(compiled.out_tree, range(count))
        serialized = executable.client.serialize_executable(executable)
        text = compiled.as_text()
        calls_lapack = any(f'"{name}"' in text for name, _, _ in lapack.registrations()["cpu"])
        packed = zlib.compress(msgspec.msgpack.encode((results, calls_lapack, serialized)), 1)
        try:
            self._write(self._path(key), hashlib.sha256(packed).digest() + packed)
            self._remove_unused()
        except OSError as error:
            _LOG.warning("a compiled program cannot be stored: %s", error)

    def _path(self, key: tuple) -> Path:
        name = hashlib.sha256(msgspec.msgpack.encode((key, surroundings())))
        return self._folder / f"{name.hexdigest()}.program"

    def _write(self, path: Path, content: bytes) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=self._folder, prefix=".", suffix=".partial")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
            _used_now(Path(name))
            os.replace(name, path)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(name)
            raise

    def _remove_unused(self) -> None:
        found = []
        for path in self._folder.iterdir():
            with contextlib.suppress(OSError):  # another process removes too
                status = path.stat()
                found.append((status.st_mtime_ns, status.st_size, path))
        excess = sum(size for _, size, _ in found) - self._largest
        for _, size, path in sorted(found):
            if excess <= 0:
                break
            path.unlink(missing_ok=True)
            excess -= size


def _used_now(path: Path) -> None:
    now = time.time_ns()  # the file system's own clock is coarser
    os.utime(path, ns=(now, now))


def _with_tuples(results: Any) -> Any:
    """msgpack has one kind of sequence."""
    if isinstance(results, list):
        return tuple(_with_tuples(result) for result in results)
    if isinstance(results, dict):
        return {name: _with_tuples(result) for name, result in results.items()}
    return results


@cache
def surroundings() -> tuple:
    """What decides about the code of a program besides its key: plain data."""
    engine = Path(__file__).parents[1]
    sources = hashlib.sha256()
    for path in sorted(engine.rglob("*.py")):
        sources.update(path.read_bytes())
    flags = {
        name: value
        for name, value in os.environ.items()
        if name.startswith(("JAX_", "XLA_", "EQX_")) and "DIR" not in name
    }
    return (sorted(versions().items()), sources.digest(), sorted(flags.items()), platform.machine(), _cpu_features())


def _cpu_features() -> str:
    """The instructions that code on this machine may use, as far as the system tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line for line in lines if line.startswith(("flags", "Features"))), "")
