"""A part run of the benchmarks replaces its own records only, and the page is made of all of them."""

from __future__ import annotations

import pytest

from benchmarks import records, report
from benchmarks.contest import ELIXIR, ENGINE


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "FILE", tmp_path / "benchmarks.json")
    monkeypatch.setattr(report, "FILE", tmp_path / "benchmarks.md")


def _raced(ess_per_second: float, ess_per_1000_gradients: float) -> dict:
    def always(value):
        return {"median": value, "min": value, "max": value}

    names = ("total", "warmup_gradients", "sample_gradients", "ess_bulk", "ess_tail", "divergences", "r_hat")
    return {
        "seeds": 5,
        "compile": 1.5,
        "versions": {"jax": "1"},
        "warmup": None,
        "sample": None,
        "ess_per_sampling_second": None,
        **{name: always(1.0) for name in names},
        "ess_per_second": always(ess_per_second),
        "ess_per_1000_gradients": always(ess_per_1000_gradients),
        "ess_per_1000_sampling_gradients": always(1.0),
        "error": 1.25,
    }


def test_an_update_keeps_what_it_does_not_name():
    records.update("radon", ENGINE, {"total": {"median": 1.0}})
    records.update("radon", "NumPyro", {"total": {"median": 3.0}})
    records.update("radon", ENGINE, {"leapfrog": {"ratio": 1.23456789}})
    records.update("radon", "NumPyro", {"total": {"median": 2.0}})
    ours, theirs = records.load()
    assert (ours["sampler"], ours["total"], ours["leapfrog"]) == (ENGINE, {"median": 1.0}, {"ratio": 1.23457})
    assert (theirs["sampler"], theirs["total"]) == ("NumPyro", {"median": 2.0})


def test_the_ratios_are_those_to_the_best_peer():
    for model, speed in (("radon", 4000.0), ("funnel", 9000.0)):
        records.update(model, ENGINE, _raced(speed, 30.0))
        records.update(model, ELIXIR, _raced(0.95 * speed, 30.0))
        records.update(model, "NumPyro", _raced(1000.0, 10.0))
        records.update(model, "nutpie", _raced(500.0, 20.0))
        records.update(model, "nutpie, tune 1000", _raced(800.0, 25.0))
    report.write()
    summary = report.FILE.read_text()
    rows = [line.split(" | ") for line in summary.splitlines() if line.startswith(("| Radon", "| Funnel"))]
    # The best at its defaults for the gradients, the best of all for the time.
    assert rows[0][2:6] == ["1,000 (NumPyro)", "**4.00**", "0.95", "1.50 (nutpie)"]
    assert rows[1][3] == "**9.00**"
    assert "first 2 models: **6.00**" in summary


def test_a_model_without_peers_has_no_ratio():
    records.update("radon", ENGINE, _raced(4000.0, 30.0))
    report.write()
    assert "**" not in report.FILE.read_text()
    assert f"| {ENGINE} |" in report.FILE.read_text()
