"""The two lock files: `requirements.lock` for work on the project, `requirements-runtime.lock` for what runs it."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]


def entries(name: str) -> dict[str, set[str]]:
    """By the name of a package its pins, each with its marker and digests."""
    found: dict[str, set[str]] = {}
    for entry in re.split(r"(?m)^(?=[a-z0-9])", (ROOT / name).read_text())[1:]:
        pin = re.sub(r"(?m)^ *#.*\n", "", entry)
        found.setdefault(re.match(r"[a-z0-9._-]+", entry)[0], set()).add(pin)
    return found


def needed() -> set[str]:
    """What the package depends on, and theirs, and what builds it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    names: set[str] = set()
    open_ = [Requirement(text) for text in project["project"]["dependencies"] + project["build-system"]["requires"]]
    while open_:
        requirement = open_.pop()
        name = canonicalize_name(requirement.name)
        if name not in names and (requirement.marker is None or requirement.marker.evaluate({"extra": ""})):
            names.add(name)
            open_ += map(Requirement, requires(name) or [])
    return names


def test_what_runs_is_what_is_tested() -> None:
    tested, runs = entries("requirements.lock"), entries("requirements-runtime.lock")
    assert {name: tested.get(name) for name in runs} == runs


def test_everything_that_runs_is_locked_and_nothing_else() -> None:
    assert set(entries("requirements-runtime.lock")) == needed()


def test_every_pin_has_digests() -> None:
    assert all("--hash=sha256:" in pin for pins in entries("requirements-runtime.lock").values() for pin in pins)
