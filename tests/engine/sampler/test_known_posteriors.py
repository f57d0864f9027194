"""The sampler against distributions whose moments are known, and the same bounds against samplers that are wrong.

Each bound is in Monte Carlo standard errors with a fixed seed. The defects are put in on purpose: a bound that does not
catch them says nothing.
"""

import pytest

from engine.sampler.known import KNOWN, worst_error
from nutkin.compile import EXECUTABLES, Executables
from nutkin.model import transforms
from nutkin.sampler import compiled, transition

pytestmark = pytest.mark.statistical

BOUND = 4.0  # of 2 comparisons, and of 100 for the Gaussian of 50 dimensions, where chance alone gives 3.0


@pytest.mark.parametrize(
    "options",
    [{}, {"adaptation": "windowed"}, {"chains": 1}, {"mass_matrix": "dense"}],
    ids=["pooled", "windowed", "alone", "dense"],
)
@pytest.mark.parametrize("name", KNOWN)
def test_moments(name, options):
    assert worst_error(KNOWN[name], **options) < BOUND


@pytest.fixture
def fresh_programs(monkeypatch):
    """A defect must be compiled, and must not stay in the cache."""
    monkeypatch.setattr(compiled, "EXECUTABLES", Executables())
    assert compiled.EXECUTABLES is not EXECUTABLES


def merge_invalid_subtrees(whole, weight, subtree_weight, u):
    """What eXMC 0.1 to 0.3 did: a subtree that stopped early is sampled from all the same."""
    return u * weight < subtree_weight


def merge_by_size_alone(whole, weight, subtree_weight, u):
    """A biased choice between subtrees: their weights are not looked at."""
    return whole & (u < 0.5)


@pytest.mark.usefixtures("fresh_programs")
@pytest.mark.parametrize("name", ["normal", "half_normal", "exponential"])
def test_merging_invalid_subtrees_is_caught(name, monkeypatch):
    monkeypatch.setattr(transition, "takes_subtree", merge_invalid_subtrees)
    assert worst_error(KNOWN[name], adaptation="windowed") > 2 * BOUND


@pytest.mark.usefixtures("fresh_programs")
@pytest.mark.parametrize("name", ["half_normal", "exponential"])
def test_a_biased_merge_is_caught(name, monkeypatch):
    monkeypatch.setattr(transition, "takes_subtree", merge_by_size_alone)
    assert worst_error(KNOWN[name], adaptation="windowed") > 2 * BOUND


@pytest.mark.usefixtures("fresh_programs")
@pytest.mark.parametrize("name", ["half_normal", "exponential", "gamma"])
def test_a_missing_jacobian_is_caught(name, monkeypatch):
    monkeypatch.setattr(transforms.Transform, "log_jacobian", lambda self, coordinates, *bounds: 0.0)
    assert worst_error(KNOWN[name], adaptation="windowed") > 2 * BOUND
