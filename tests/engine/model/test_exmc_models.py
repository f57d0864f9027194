"""The benchmark models against eXMC's recorded log densities, and their gradients against finite differences."""

from __future__ import annotations

import numpy as np
import pytest

from engine.model.densities import bind, finite_differences, log_density_and_gradient, outputs, terms
from engine.model.exmc_models import EXMC_MODELS, eight_schools, eight_schools_noncentered, reference

POINTS = {
    "zeros": np.zeros,
    "lin": lambda d: np.linspace(-0.5, 0.5, d),
    "alt": lambda d: 0.3 * np.cos(np.arange(d)),
}
FIXTURES = reference("fixtures")


@pytest.mark.parametrize("name", EXMC_MODELS)
def test_log_density_and_gradient(name: str) -> None:
    density, inputs = bind(*EXMC_MODELS[name]())
    density.check_values(inputs)
    evaluate = log_density_and_gradient(density, inputs)
    assert set(FIXTURES[name]) == set(POINTS)
    for point, make in POINTS.items():
        position = make(density.dimension)
        value, gradient = evaluate(position)
        assert float(value) == pytest.approx(FIXTURES[name][point], rel=1e-9)
        numeric = finite_differences(lambda q: evaluate(q)[0], position)
        np.testing.assert_allclose(gradient, numeric, rtol=1e-6, atol=1e-6)


def test_noncentred_density_differs_by_the_jacobian() -> None:
    centred, inputs = bind(*eight_schools())
    noncentred, _ = bind(*eight_schools_noncentered())
    position = np.linspace(-1, 1, 10)
    found = outputs(noncentred, position, inputs)
    constrained = {name: np.asarray(found[name]) for name in ("mu", "tau", "theta")}
    moved, _ = centred.unconstrain(constrained, inputs)
    log_jacobian = 8 * np.log(constrained["tau"])
    expected = sum(terms(centred, moved, inputs).values()) + log_jacobian
    assert float(sum(terms(noncentred, position, inputs).values())) == pytest.approx(float(expected), rel=1e-12)
