"""The layout of rows in blocks: shapes that depend on the structure only, and what goes where."""

from __future__ import annotations

import numpy as np
import pytest

from engine.model.native.regressions import FAMILIES, regression
from nutkin.model.native.rows import Layout, prepare


def design_of(layout: Layout, prepared: tuple[np.ndarray, ...]) -> np.ndarray:
    return dict(zip(layout.fields, prepared, strict=True))["design"]


@pytest.mark.parametrize("rows", [1, 15, 16, 17, 64, 96, 97, 500, 919, 5000])
def test_blocks_hold_all_rows_and_little_else(rows):
    layout = Layout(family="normal", rows=rows, columns=1)
    assert layout.lanes % 16 == 0
    assert layout.blocks * layout.lanes == rows + layout.padding
    assert 0 <= layout.padding < max(layout.lanes, 16 * layout.blocks)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("weighted", [False, True])
def test_prepared_arrays_have_the_declared_shapes_and_types(family, weighted):
    r = regression(family, 130, 3, groups=((4, True), (2, False)), offset=True, weighted=weighted, dtype="float32")
    declared = list(r.layout.fields.values())
    assert [(a.shape, a.dtype) for a in r.prepared()] == declared


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("rows", [5, 64, 40_000])
def test_the_design_is_the_matrix_with_a_column_of_ones(rows, order):
    X = np.asarray(np.random.default_rng(0).normal(size=(rows, 3)), order=order)
    layout = Layout(family="normal", rows=rows, columns=3)
    design = design_of(layout, prepare(layout, np.zeros(rows), X)).transpose(0, 2, 1).reshape(-1, 4)
    np.testing.assert_array_equal(design[:rows], np.column_stack([np.ones(rows), X]))
    assert not design[rows:].any()


def test_indices_beyond_the_ends_are_moved_to_them():
    layout = Layout(family="normal", rows=3, columns=0, groups=((4, False),))
    index = dict(zip(layout.fields, prepare(layout, np.zeros(3), indices=[np.array([-2, 9, 1])]), strict=True))[
        "index_0"
    ]
    assert index[0, :3].tolist() == [0, 3, 1]
    assert set(index[0, 3:]) == {4}


def test_distinct_counts_are_weighted_and_leave_out_masked_rows():
    layout = Layout(family="neg_binomial", rows=5, columns=0, weighted=True)
    y, weight = np.array([2.0, 7.0, 2.0, 9.0, 0.0]), np.array([1.0, 2.0, 0.5, 0.0, 1.0])
    prepared = dict(zip(layout.fields, prepare(layout, y, weight=weight), strict=True))
    assert prepared["count"][0, :3].tolist() == [0.0, 2.0, 7.0]
    assert prepared["multiplicity"][0, :4].tolist() == [1.0, 1.5, 2.0, 0.0]
    assert prepared["count_blocks"] == 1
    assert prepared["total_weight"] == 4.5
