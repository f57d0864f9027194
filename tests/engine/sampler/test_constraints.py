"""Variables on constrained sets, against their exact moments: a wrong Jacobian moves them."""

from __future__ import annotations

import numpy as np
import pytest

from engine.builder import Builder
from engine.sampler.known import Known, worst_error

BOUND = 4.0


def known(
    dist: str,
    args: dict,
    mean: np.ndarray | float,
    variance: np.ndarray,
    *,
    of: tuple[int, list[int]] | None = None,
    **fields,
) -> Known:
    """A variable; `of`: how many elements it has, and which of them, row by row, are compared; all by default."""
    tree = Builder()
    arguments = {name: tree.constant(np.array(value)) if np.ndim(value) else value for name, value in args.items()}
    x = tree.rv("whole", dist, arguments, **fields)
    if of is not None:
        size, places = of
        x = tree.call("take", tree.call("reshape", x, shape=[size]), tree.constant(np.array(places)))
    tree.deterministic("x", x)
    return Known(tree, np.broadcast_to(mean, np.shape(variance)), variance)


# Marginals of LKJ are beta(eta - 1 + k / 2, the same) on (-1, 1) (Lewandowski, Kurowicka and Joe 2009).
CONSTRAINED = {
    "ordered": known(
        "normal",
        {"mu": 0, "sigma": 1},
        np.array([-0.84628, 0.0, 0.84628]),
        np.array([0.55947, 0.44867, 0.55947]),
        shape=[3],
        transform="ordered",
    ),
    "simplex": known("dirichlet", {"alpha": [2.0, 3.0, 4.0]}, np.array([2, 3, 4]) / 9, np.array([14, 18, 20]) / 810),
    "zero sum": known("zero_sum_normal", {"sigma": 2.0}, 0.0, np.full(4, 3.0), shape=[4]),
    "sphere": known("uniform_on_sphere", {}, 0.0, np.full(3, 1 / 3), shape=[3]),
    "correlation": known("lkj_corr", {"eta": 2.0}, 0.0, np.full(3, 1 / 6), shape=[3, 3], of=(9, [1, 2, 5])),
    "correlation, factor": known("lkj_cholesky", {"eta": 2.0}, 0.0, np.full(2, 1 / 6), shape=[3, 3], of=(9, [3, 6])),
    "covariance": known(
        "wishart",
        {"nu": 5.0, "scale": np.eye(2)},
        np.array([5.0, 0.0, 5.0]),
        np.array([10.0, 5.0, 10.0]),
        of=(4, [0, 1, 3]),
    ),
    "above a bound": known("pareto", {"y_min": 2.0, "alpha": 9.0}, 2.25, np.array([4 * 9 / (64 * 7)])),
    "angle": known("von_mises", {"mu": 0.0, "kappa": 0.0001}, 0.0, np.array([np.pi**2 / 3])),
}


@pytest.mark.statistical
@pytest.mark.parametrize("name", CONSTRAINED)
def test_moments(name: str) -> None:
    assert worst_error(CONSTRAINED[name]) < BOUND
