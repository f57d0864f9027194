"""Models damaged at random: whatever is wrong with them, the answer is one of the documented errors."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any

import pytest

from engine.model.densities import bind
from engine.model.exmc_models import EXMC_MODELS
from nutkin.errors import InvalidData, InvalidModel

JUNK = [None, True, 0, 7, -1, 2**70, 1.5, float("nan"), "", "normal", b"x", bytes(32), [], [0], {}, {"mu": 0}, {3: 4}]
FIELDS = ["shape", "transform", "centered", "weight", "opts", "type", "extra", 3]


def places(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Every (container, key) of a tree."""
    keys = tree if isinstance(tree, dict) else range(len(tree)) if isinstance(tree, list) else ()
    for key in keys:
        yield tree, key
        yield from places(tree[key])


def damage(tree: dict[str, Any], rng: random.Random) -> None:
    container, key = rng.choice(list(places(tree)))
    match rng.randrange(4):
        case 0 if isinstance(container, dict):
            del container[key]
        case 1 if isinstance(container, dict):
            container[rng.choice(FIELDS)] = copy.deepcopy(rng.choice(JUNK))
        case _:
            container[key] = copy.deepcopy(rng.choice(JUNK))


@pytest.mark.parametrize("name", EXMC_MODELS)
def test_damaged_models_are_read_or_refused(name: str) -> None:
    model, data = EXMC_MODELS[name]()
    rng = random.Random(name)
    refused = 0
    for _ in range(400):
        tree = copy.deepcopy(model)
        for _ in range(rng.choice([1, 1, 2, 3])):
            if any(places(tree)):
                damage(tree, rng)
        try:
            bind(tree, data)
        except (InvalidModel, InvalidData):
            refused += 1
    assert refused > 200
