"""Models damaged at random: whatever is wrong with them, the answer is one of the documented errors."""

from __future__ import annotations

import copy
import random

import pytest

from engine.model.densities import bind
from engine.model.exmc_models import EXMC_MODELS
from fuzz.damage import damage_tree
from nutkin.errors import InvalidData, InvalidModel, LimitExceeded


@pytest.mark.parametrize("name", EXMC_MODELS)
def test_damaged_models_are_read_or_refused(name: str) -> None:
    model, data = EXMC_MODELS[name]()
    rng = random.Random(name)
    refused = 0
    for _ in range(400):
        tree = copy.deepcopy(model)
        for _ in range(rng.choice([1, 1, 2, 3])):
            damage_tree(tree, rng)
        try:
            bind(tree, data)
        except (InvalidModel, InvalidData, LimitExceeded):
            refused += 1
    assert refused > 200
