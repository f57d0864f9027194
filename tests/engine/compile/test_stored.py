"""Programs on disk: they come back as they were, and whatever else lies there is compiled anew."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import threading
import zlib
from pathlib import Path

import jax
import jax.numpy as jnp
import msgspec
import numpy as np
import pytest

import nutkin
from engine.schools import DATA, eight_schools
from nutkin.compile import Executables, compilations, stored, target
from nutkin.compile.stored import RestoredProgram, StoredPrograms
from nutkin.sampler import compiled

KEY = ("a model", "advance", 10, 1024)
ARGUMENTS = (np.arange(3.0), np.int32(2), {7: np.ones(2, np.float32), 11: jnp.arange(2)})


def function(x, n, inputs):
    return {"b": (x * n, inputs[7] + 1), "a": x.sum()}, inputs[11]


def refuse_to_trace(*_):
    raise AssertionError("traced")


def compiled_anew(folder: Path) -> tuple[object, object]:
    """-> (the program of a process that finds the folder as it is, what it gives)."""
    program, _ = Executables(stored=StoredPrograms(folder)).get(KEY, function, ARGUMENTS)
    await_store()
    return program, program(*ARGUMENTS)


def await_store() -> None:
    for thread in threading.enumerate():
        if thread.name == "store":
            thread.join(10)


def entry(folder: Path) -> Path:
    (path,) = folder.iterdir()  # and nothing half written beside it
    return path


def assert_same(found, expected) -> None:
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    for mine, theirs in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert mine.dtype == theirs.dtype
        np.testing.assert_array_equal(mine, theirs)


def test_a_stored_program_comes_back_without_tracing(tmp_path: Path) -> None:
    program, expected = compiled_anew(tmp_path / "programs")
    assert isinstance(program, jax.stages.Compiled)
    assert_same(expected, function(*ARGUMENTS))
    before = compilations()
    restored, at_hand = Executables(stored=StoredPrograms(tmp_path / "programs")).get(KEY, refuse_to_trace, ARGUMENTS)
    assert isinstance(restored, RestoredProgram)
    assert not at_hand
    assert compilations() == before + 1
    assert_same(restored(*ARGUMENTS), expected)
    fresh = (np.full(3, 5.0), np.int32(-1), ARGUMENTS[2])
    assert_same(restored(*fresh), function(*fresh))


def refused_by_xla(_content: bytes) -> bytes:
    packed = zlib.compress(msgspec.msgpack.encode((0, False, b"no executable")))
    return hashlib.sha256(packed).digest() + packed


DAMAGES = {
    "empty": lambda content: b"",
    "cut": lambda content: content[:-100],
    "changed": lambda content: content[:500] + bytes([content[500] ^ 1]) + content[501:],
    "foreign": lambda content: b"#!/bin/sh\necho not a program\n" * 10,
    "refused": refused_by_xla,
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_what_cannot_be_used_is_compiled_anew(tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture) -> None:
    compiled_anew(tmp_path)
    path = entry(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(DAMAGES[damage](whole))
    program, found = compiled_anew(tmp_path)
    assert isinstance(program, jax.stages.Compiled)
    assert_same(found, function(*ARGUMENTS))
    assert ("cannot be loaded" in caplog.text) == (damage == "refused")
    assert isinstance(compiled_anew(tmp_path)[0], RestoredProgram)  # the entry is whole again
    assert entry(tmp_path) == path


def test_the_folder_stays_within_its_size(tmp_path: Path) -> None:
    programs = Executables(stored=StoredPrograms(tmp_path))
    program = programs.get(KEY, function, ARGUMENTS)[0]
    await_store()
    size = entry(tmp_path).stat().st_size
    store = StoredPrograms(tmp_path, largest=2 * size + size // 2)
    for number in range(3):
        store.save(("another", number), program)
        store.load(KEY)  # used, so that the others go first
    assert store.load(KEY) is not None
    assert [store.load(("another", number)) is not None for number in range(3)] == [False, False, True]
    assert len(list(tmp_path.iterdir())) == 2


def test_another_key_or_other_surroundings_are_another_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled_anew(tmp_path)
    other = Executables(stored=StoredPrograms(tmp_path))
    with pytest.raises(AssertionError, match="traced"):
        other.get((*KEY[:-1], 512), refuse_to_trace, ARGUMENTS)
    surroundings = stored.surroundings()
    for i in range(len(surroundings)):
        changed = (*surroundings[:i], "other", *surroundings[i + 1 :])
        monkeypatch.setattr(stored, "surroundings", lambda changed=changed: changed)
        with pytest.raises(AssertionError, match="traced"):
            other.get(KEY, refuse_to_trace, ARGUMENTS)


def test_the_surroundings_are_all_that_code_depends_on(monkeypatch: pytest.MonkeyPatch) -> None:
    versions, sources, flags, machine, features = stored.surroundings()
    assert dict(versions) == nutkin.versions()
    assert machine
    assert features
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=true")
    monkeypatch.setenv("NUTKIN_CACHE_DIR", "elsewhere")
    monkeypatch.setattr(stored.Path, "read_bytes", lambda self: b"other sources")
    changed = stored.surroundings.__wrapped__()
    assert changed[0] == versions
    assert changed[1] != sources
    assert dict(changed[2]) == {**dict(flags), "XLA_FLAGS": "--xla_cpu_enable_fast_math=true"}


def test_a_folder_that_cannot_be_written_is_said_once_and_does_no_harm(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("in the way")
    assert_same(compiled_anew(tmp_path / "file" / "programs")[1], function(*ARGUMENTS))
    assert "cannot be stored" in caplog.text


def test_draws_of_restored_programs_are_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def draws() -> tuple[nutkin.Draws, set[type]]:
        programs = Executables(stored=StoredPrograms(tmp_path))
        for module in (compiled, target):
            monkeypatch.setattr(module, "EXECUTABLES", programs)
        found = nutkin.sample(eight_schools().tree(), DATA, chains=2, draws=50, warmup=50)
        await_store()
        return found, {type(program) for program in programs._entries.values()}

    first, kinds = draws()
    assert kinds == {jax.stages.Compiled}
    second, kinds = draws()
    assert kinds == {RestoredProgram}
    assert_same(second.variables, first.variables)
    assert_same(second.stats, first.stats)


PROGRAM = """
import nutkin
from engine.schools import DATA, eight_schools
print(nutkin.sample(eight_schools().tree(), DATA, chains=1, draws=20, warmup=20).variables["mu"].sum())
"""


def test_a_program_of_jaxs_own_cache_is_not_stored(tmp_path: Path) -> None:
    """XLA would write it without its code."""
    jaxs = {
        "JAX_COMPILATION_CACHE_DIR": str(tmp_path / "jax"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }

    def run(folder: str) -> str:
        path = {"PYTHONPATH": os.pathsep.join(sys.path)}
        environment = {**os.environ, **jaxs, **path, "NUTKIN_CACHE_DIR": str(tmp_path / folder)}
        command = [sys.executable, "-c", PROGRAM]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=True).stdout

    first = run("one")
    assert len(list((tmp_path / "one").glob("*.program"))) == 1
    assert run("two") == first
    assert list(tmp_path.glob("two/*.program")) == []
    assert run("one") == first


LAPACK = """
import jax, numpy as np
from nutkin.compile.stored import RestoredProgram, StoredPrograms
from nutkin.compile import Executables
from pathlib import Path

def solve(matrix, vector):
    factor = jax.numpy.linalg.cholesky(matrix)
    return jax.lax.linalg.triangular_solve(factor, vector, left_side=True, lower=True)

arguments = (4 * np.eye(40) + 1, np.ones((40, 1)))
program, _ = Executables(stored=StoredPrograms(Path({folder!r}))).get(("solve",), solve, arguments)
print(type(program).__name__, round(float(program(*arguments).sum()), 6))
import threading
for thread in threading.enumerate():
    if thread.name == "store":
        thread.join(10)
"""


def test_a_stored_program_finds_lapack(tmp_path: Path) -> None:
    """In a process that has not lowered a call of it."""
    command = [sys.executable, "-c", LAPACK.format(folder=str(tmp_path))]
    kinds, values = zip(
        *(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split() for _ in range(2)),
        strict=True,
    )
    assert kinds == ("Compiled", "RestoredProgram")
    assert values[0] == values[1]
