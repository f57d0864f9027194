import numpy as np
import pytest
from arviz_stats.base import array_stats

from engine.schools import DATA, eight_schools
from nutkin.errors import InvalidOption
from nutkin.sampler import Chunk, Options, diagnostics, stop_rule
from nutkin.sampler.sample import sample
from nutkin.sampler.stop_rule import StopRule


def autoregressive(rng, chains, length, scalars, correlation):
    noise = rng.standard_normal((chains, length, scalars))
    for i in range(1, length):
        noise[:, i] = correlation * noise[:, i - 1] + np.sqrt(1 - correlation**2) * noise[:, i]
    return noise


CASES = {
    "independent": lambda rng: rng.standard_normal((4, 100, 3)),
    "odd": lambda rng: rng.standard_normal((3, 51, 2)),
    "one chain": lambda rng: rng.standard_normal((1, 40, 2)),
    "few": lambda rng: rng.standard_normal((2, 5, 4)),
    "slow": lambda rng: autoregressive(rng, 4, 200, 3, 0.95),
    "alternating": lambda rng: autoregressive(rng, 4, 200, 3, -0.6),
    "heavy tails": lambda rng: rng.standard_cauchy((4, 300, 3)),
    "ties": lambda rng: rng.poisson(2.0, (4, 150, 3)).astype(float),
    "apart": lambda rng: rng.standard_normal((4, 80, 2)) + np.arange(4.0)[:, None, None],
}


@pytest.mark.parametrize("name", CASES)
def test_diagnostics_are_those_of_arviz(name):
    draws = CASES[name](np.random.default_rng(1))
    scalars = [draws[..., i] for i in range(draws.shape[-1])]
    bulk = [array_stats.ess(x, method="bulk") for x in scalars]
    tail = [array_stats.ess(x, method="tail", prob=(0.05, 0.95)) for x in scalars]
    np.testing.assert_allclose(diagnostics.ess(draws), np.minimum(bulk, tail), rtol=1e-9)
    if len(draws) > 1:
        np.testing.assert_allclose(diagnostics.r_hat(draws), [array_stats.rhat(x) for x in scalars], rtol=1e-9)


def test_a_scalar_that_is_not_finite_never_converges():
    draws = np.random.default_rng(1).standard_normal((4, 100, 2))
    draws[1, 7, 0] = np.nan
    assert np.isnan(diagnostics.ess(draws)).tolist() == [True, False]


def chunk(chain, start, draws):
    return Chunk(chain, "sample", start, len(draws), {"x": draws, "still": np.zeros(len(draws))}, {})


def test_it_is_looked_at_at_fixed_lengths_and_keeps_little(monkeypatch):
    monkeypatch.setattr(stop_rule, "MOST_BYTES", 4000)
    rule = StopRule(Options(chains=2, target_ess=10**6))
    draws = np.random.default_rng(1).standard_normal((2, 2000))
    looked_at, begun = [], 0
    while rule.next_check <= 2000:
        looked_at.append(rule.next_check)
        for chain in range(2):
            for start in range(begun, rule.next_check, 7):
                rule.add(chunk(chain, start, draws[chain, start : min(start + 7, rule.next_check)]))
        begun = rule.next_check
        assert not rule.check()
        assert sum(rows.nbytes for kept in rule._kept for rows in kept) <= 4000
    assert looked_at == [100, 150, 225, 337, 505, 757, 1135, 1702]
    state = rule.state([begun, begun])
    for kept, all_draws in zip(state["kept"], draws, strict=True):
        np.testing.assert_array_equal(kept[:, 0], all_draws[: begun : state["stride"]])


@pytest.mark.parametrize("adaptation", ["pooled", "windowed"])
def test_a_run_ends_when_all_its_scalars_are_good_enough(adaptation):
    asked = {
        "target_ess": 200.0,
        "max_rhat": 1.03,
        "draws": 10_000,
        "adaptation": adaptation,
        "seed": 4,
    }
    found = sample(eight_schools().tree(), DATA, **asked)
    again = sample(eight_schools().tree(), DATA, **asked)
    theta = found.variables["theta"]
    np.testing.assert_array_equal(theta, again.variables["theta"])
    assert theta.shape[1] in (100, 150, 225, 337, 505, 757)
    for values in found.variables.values():
        scalars = values.reshape(*values.shape[:2], -1)
        assert (diagnostics.ess(scalars) >= 200).all()
        assert (diagnostics.r_hat(scalars) <= 1.03).all()
    assert all(chain.draws == theta.shape[1] for chain in found.chains)


def test_a_run_that_does_not_converge_makes_its_draws():
    found = sample(eight_schools().tree(), DATA, target_ess=1e9, draws=130, chains=2)
    assert found.variables["mu"].shape == (2, 130)


@pytest.mark.parametrize(("name", "value"), [("target_ess", 0.0), ("max_rhat", 1.0), ("max_time", -1.0)])
def test_bounds_that_are_none(name, value):
    with pytest.raises(InvalidOption, match=name):
        Options(**{name: value})
