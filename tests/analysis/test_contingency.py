"""Tables of counts against R, textbooks and enumeration."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parley.analysis.stats.contingency import chi_square
from parley.analysis.stats.effects import cramers_v, partial_eta_squared

# R's help page of chisq.test, "From Agresti (2007) p. 39": party by gender.
PARTY = pd.DataFrame([[762, 327, 468], [484, 239, 477]], index=["F", "M"], columns=["Dem", "Ind", "Rep"])


def test_chi_square_by_hand() -> None:
    # rows 30 and 30, columns 40 and 20, so 20 and 10 are expected in each row: (5² / 20 + 5² / 10) · 2 = 7.5
    result = chi_square([[25, 5], [15, 15]])
    assert result.statistic == pytest.approx(7.5)
    assert result.df == 1
    assert result.p == pytest.approx(math.erfc(math.sqrt(7.5 / 2)))
    assert result.estimate == pytest.approx(math.sqrt(7.5 / 60))
    assert (result.n, result.clusters, result.assumption) == (60, None, "independent")


def test_chi_square_of_a_textbook_table() -> None:
    result = chi_square(PARTY)
    # expected counts 703.7, 319.6, 533.7; 542.3, 246.4, 411.3 (Agresti 2007, table 2.5); X² = 30.1, df = 2
    assert round(result.statistic, 1) == 30.1
    assert result.df == 2
    assert result.p == pytest.approx(math.exp(-result.statistic / 2)), "the tail of chi-square with 2 df"


def test_cramers_v_has_the_interval_of_r() -> None:
    # R, package statpsych, help page: ci.cramer(.05, 19.21, 2, 3, 200) gives 0.3099, 0.1601, 0.4417
    assert [round(value, 4) for value in cramers_v(19.21, 200, 2, 3)] == [0.3099, 0.1601, 0.4417]


@pytest.mark.parametrize(
    ("f", "df1", "df2", "low", "high"),
    # Smithson (2001) p. 619 and Fidler and Thompson (2001) p. 596, 90% intervals, as in the tests of R's apaTables
    [
        (6.0, 1, 42, 0.0117, 0.2801),
        (2.65, 6, 42, 0.0174, 0.3577),
        (1.5, 1, 16, 0, 0.3167),
        (4.0, 3, 16, 0.0357, 0.5671),
    ],
)
def test_eta_squared_has_the_published_intervals(f: float, df1: int, df2: int, low: float, high: float) -> None:
    result = partial_eta_squared(f, df1, df2, level=0.9)
    assert result[0] == pytest.approx(df1 * f / (df1 * f + df2))
    assert (round(result[1], 4), round(result[2], 4)) == (low, high)


@settings(max_examples=60)
@given(st.lists(st.lists(st.integers(0, 30), min_size=3, max_size=3), min_size=2, max_size=4))
def test_v_lies_within_its_interval_and_labels_do_not_matter(table: list[list[int]]) -> None:
    result = chi_square(table)
    if math.isnan(result.p):
        assert result.note
        return
    assert math.isnan(result.high) or 0 <= result.low <= result.estimate <= result.high <= 1
    shuffled = chi_square(np.array(table)[::-1, [2, 0, 1]].T)
    assert (shuffled.statistic, shuffled.p, shuffled.estimate) == pytest.approx(
        (result.statistic, result.p, result.estimate)
    )


def test_rows_and_columns_without_counts_change_nothing() -> None:
    result, padded = chi_square([[3, 9], [8, 4]]), chi_square([[3, 0, 9], [0, 0, 0], [8, 0, 4]])
    assert (padded.statistic, padded.df, padded.p) == (result.statistic, result.df, result.p)
