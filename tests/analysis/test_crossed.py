"""A mean over two crossed samples: the analysis of variance by hand, incomplete tables, and what cannot be computed."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from parley.analysis.stats.crossed import crossed_equivalence_p, crossed_mean


def test_a_full_table_by_hand() -> None:
    """Three rows, two columns: row means 2, 4, 6, column means 3, 5, grand mean 4, one residual of ±1 in two rows."""
    table = np.array([[1.0, 3.0], [4.0, 4.0], [4.0, 8.0]])
    rows, columns = np.indices(table.shape)
    found = crossed_mean(table.ravel(), rows.ravel(), columns.ravel())
    ms_rows, ms_columns = 2 * (4 + 0 + 4) / 2, 3 * (1 + 1) / 1
    # Residuals: row 1: 1-2-3+4 = 0, 0; row 2: 4-4-3+4 = 1, -1; row 3: 4-6-3+4 = -1, 1: sum of squares 4, df 2.
    ms_rest = 4 / 2
    variance = (ms_rows + ms_columns - ms_rest) / 6
    df = math.floor(variance**2 / ((ms_rows / 6) ** 2 / 2 + (ms_columns / 6) ** 2 / 1))
    assert found.estimate == 4.0
    assert found.standard_error == pytest.approx(math.sqrt(variance))
    assert found.df == pytest.approx(df)
    assert found.p == pytest.approx(2 * stats.t.sf(4 / math.sqrt(variance), df))
    assert found.high - 4 == pytest.approx(stats.t.ppf(0.975, df) * math.sqrt(variance))
    assert found.clusters == 2


def test_values_of_one_cell_are_averaged_first() -> None:
    rows, columns = [0, 0, 0, 1, 1], ["x", "x", "y", "x", "y"]
    once = crossed_mean([2.0, 3.0, 5.0, 4.0], [0, 0, 1, 1], ["x", "y", "x", "y"])
    assert crossed_mean([1.0, 3.0, 3.0, 5.0, 4.0], rows, columns) == once


def test_columns_that_differ_widen_the_interval_although_all_rows_agree() -> None:
    table = np.tile([-0.3, 0.0, 0.3, 0.1], (20, 1)) + 0.001 * np.random.default_rng(0).normal(size=(20, 4))
    rows, columns = np.indices(table.shape)
    found = crossed_mean(table.ravel(), rows.ravel(), columns.ravel())
    by_column = table.mean(axis=0)
    assert found.standard_error == pytest.approx(by_column.std(ddof=1) / 2, rel=0.01), "the error of four columns"
    assert found.df == 3
    assert found.p > 0.5


def test_equivalence_is_two_one_sided_tests() -> None:
    table = np.random.default_rng(1).normal(0, 0.05, (8, 8))
    rows, columns = np.indices(table.shape)
    found = crossed_mean(table.ravel(), rows.ravel(), columns.ravel(), level=0.90)
    edge = max(abs(found.low), abs(found.high))
    assert crossed_equivalence_p(found, edge) == pytest.approx(0.05), "the margin that the 90% interval just fits in"
    assert crossed_equivalence_p(found, 0.3) < 0.001


@pytest.mark.parametrize(("values", "rows", "columns"), [([], [], []), ([1.0], [0], [0]), ([1.0, 2.0], [0, 1], [0, 0])])
def test_one_row_or_column_gives_no_error(values: list[float], rows: list[int], columns: list[int]) -> None:
    found = crossed_mean(values, rows, columns)
    assert (math.isnan(found.p), found.low, found.high) == (True, -math.inf, math.inf)
    assert found.clusters == len(set(columns))
    assert math.isnan(crossed_equivalence_p(found, 0.1))
