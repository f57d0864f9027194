"""Who runs which model."""

from __future__ import annotations

from benchmarks import contest, race


def _samplers(model: str) -> set[str]:
    return {name for _program, samplers in race._entered(model, contest.PROGRAMS) for name in samplers}


def test_models_run_with_the_samplers_that_have_them():
    everyone = {name for program in contest.PROGRAMS for name in program.samplers}
    assert _samplers("radon") == everyone
    assert _samplers("ar5") == everyone - {"pystan"}


def test_a_model_may_name_its_peers_and_nutkin_always_runs():
    assert _samplers("diamonds") == {*contest.NUTKIN, "nutpie"}
