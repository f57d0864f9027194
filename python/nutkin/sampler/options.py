"""Options of a sampling run, under the names that samplers use, and their checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from nutkin.errors import InvalidOption
from nutkin.model.rewrites import check_names

MAX_CHAINS = 1024
MAX_ITERATIONS = 2 * 10**9  # of one chain; random numbers repeat after 2^32 transitions
_MAX_COUNT = 10**9
MAX_TREE_DEPTH = 15
POOLED, WINDOWED = "pooled", "windowed"
DIAGONAL, DENSE = "diagonal", "dense"


class Init(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Where chains start: unconstrained coordinates uniform in (-radius, radius), except of parameters in `values`
    (constrained arrays by name), which start there."""

    radius: float = 2.0
    values: Mapping[str, Any] = msgspec.field(default_factory=dict)


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`draws` and `warmup` are counted a chain; `thin` keeps every n-th draw and does not shorten `draws`.

    `adaptation`: "pooled" (`nutkin.sampler.pooled`), for which `warmup` is the most iterations, or "windowed"
    (`nutkin.sampler.windowed`), for which it is their number. `rewrites`: the names of those of
    `nutkin.model.REWRITES` that may be applied, None for all. `target_ess`, `max_rhat`: sampling ends as soon as they
    hold (`nutkin.sampler.stop_rule`), or, if whoever advances the chains sees to it, after `max_time` seconds."""

    chains: int = 4
    draws: int = 1000
    warmup: int = 1000
    seed: int = 0
    target_accept: float = 0.8
    max_tree_depth: int = 10
    init: Init = msgspec.field(default_factory=Init)
    adaptation: str = POOLED
    mass_matrix: str = DIAGONAL
    thin: int = 1
    keep_warmup: bool = False
    variables: Sequence[str] | None = None
    precision: str = "f64"
    rewrites: Sequence[str] | None = None
    target_ess: float | None = None
    max_rhat: float | None = None
    max_time: float | None = None

    def __post_init__(self) -> None:
        _within("chains", self.chains, 1, MAX_CHAINS)
        _within("draws", self.draws, 1, _MAX_COUNT)
        _within("warmup", self.warmup, 0, _MAX_COUNT)
        _within("seed", self.seed, 0, 2**64 - 1)
        _within("max_tree_depth", self.max_tree_depth, 1, MAX_TREE_DEPTH)
        _within("thin", self.thin, 1, _MAX_COUNT)
        if self.warmup + self.draws * self.thin > MAX_ITERATIONS:
            found = f"{self.warmup} + {self.draws} x {self.thin}"
            raise _wrong("draws", f"at most {MAX_ITERATIONS} iterations in all, warmup + draws x thin", found)
        _one_of("adaptation", self.adaptation, (POOLED, WINDOWED))
        _one_of("mass_matrix", self.mass_matrix, (DIAGONAL, DENSE))
        _one_of("precision", self.precision, ("f64", "f32"))
        check_names(self.rewrites)
        _above("target_ess", self.target_ess, 0.0)
        _above("max_rhat", self.max_rhat, 1.0)
        _above("max_time", self.max_time, 0.0)
        if not 0.0 < self.target_accept < 1.0:
            raise _wrong("target_accept", "a number between 0 and 1, both excluded", self.target_accept)
        if not (0.0 <= self.init.radius < np.inf):
            raise _wrong("init.radius", "a finite number, at least 0", self.init.radius)


def _within(name: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise _wrong(name, f"an integer from {low} to {high}", value)


def _above(name: str, value: float | None, low: float) -> None:
    if value is not None and not low < value < np.inf:
        raise _wrong(name, f"a finite number above {low:g}, or nil", value)


def _one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise _wrong(name, " or ".join(f"`{choice}`" for choice in allowed), value)


def _wrong(name: str, expected: str, found: Any) -> InvalidOption:
    return InvalidOption(
        f"option `{name}` is out of range", path=f"$.options.{name}", expected=expected, found=str(found)
    )
