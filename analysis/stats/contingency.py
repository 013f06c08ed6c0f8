"""Contingency tables: chi-square, Fisher's exact test, and a permutation test where counts are small.

All of them take every count as an independent verdict. Verdicts of judges who discuss the same texts are not: show a
p-value that respects clusters beside each of these (see permutation.py). Empty rows and columns are left out.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from parley.analysis.stats.effects import cramers_v
from parley.analysis.stats.resampling import DRAWS, monte_carlo_p
from parley.analysis.stats.results import Test, no_test
from parley.analysis.stats.tables import Floats

ASSUMES = "every count is an independent verdict"
MIN_EXPECTED = 5.0  # Cochran's rule: below it the chi-square distribution is a poor approximation
Table: TypeAlias = pd.DataFrame | NDArray[Any] | list[list[float]]


def chi_square(table: Table, *, yates: bool = False, level: float = 0.95) -> Test:
    """Pearson's chi-square test of independence with Cramér's V.

    Args:
        table: Counts, rows by columns; every count is taken as an independent verdict.
        yates: Apply Yates' continuity correction (2×2 tables only).
        level: Confidence level of Cramér's V.
    """
    counts, note = _valid_counts(table)
    unknown = _unknown("chi-square, Yates' correction" if yates else "chi-square", "Cramér's V", counts, level)
    if note:
        return replace(unknown, note=note)
    result = stats.chi2_contingency(counts, correction=yates)
    test = replace(unknown, statistic=float(result.statistic), df=float(result.dof), p=float(result.pvalue))
    return _with_cramers_v(test, counts)


def fisher(table: Table, *, level: float = 0.95) -> Test:
    """Fisher's exact test of a 2×2 table, with the conditional odds ratio and its exact interval.

    Args:
        table: Whole counts; every one is taken as an independent verdict.
        level: Confidence level of the odds ratio.
    """
    counts, note = _valid_counts(table, whole=True)
    unknown = _unknown("Fisher's exact test", "odds ratio", counts, level)
    if not note and counts.shape != (2, 2):
        note = "Fisher's exact test needs a table of two rows and two columns"
    if note:
        return replace(unknown, note=note)
    whole = counts.astype(np.int64)
    odds = stats.contingency.odds_ratio(whole, kind="conditional")
    ends = odds.confidence_interval(level)
    return replace(
        unknown,
        statistic=float(odds.statistic),
        p=float(stats.fisher_exact(whole).pvalue),
        effect=float(odds.statistic),
        low=float(ends.low),
        high=float(ends.high),
    )


def table_permutation(table: Table, *, draws: int = DRAWS, seed: int = 0, level: float = 0.95) -> Test:
    """Chi-square against random tables with the same margins: valid however small the expected counts are.

    Args:
        table: Whole counts; every one is taken as an independent verdict.
        draws: Number of random tables.
        seed: Seed of the draws.
        level: Confidence level of Cramér's V.
    """
    counts, note = _valid_counts(table, whole=True)
    unknown = _unknown(f"permutation of the table, {draws} draws, seed {seed}", "Cramér's V", counts, level)
    if note:
        return replace(unknown, note=note)
    expected = stats.contingency.expected_freq(counts)
    rows, columns = counts.sum(axis=1).astype(np.int64), counts.sum(axis=0).astype(np.int64)
    drawn = stats.random_table(rows, columns).rvs(size=draws, random_state=np.random.default_rng(seed))
    statistic = float(((counts - expected) ** 2 / expected).sum())
    p = monte_carlo_p(((drawn - expected) ** 2 / expected).sum(axis=(1, 2)), statistic)
    return _with_cramers_v(replace(unknown, statistic=statistic, p=p), counts)


def association(table: Table, *, draws: int = DRAWS, seed: int = 0, level: float = 0.95) -> Test:
    """Chi-square where every expected count is at least 5; otherwise Fisher (2×2) or the permutation test.

    Args:
        table: Counts, rows by columns; every count is taken as an independent verdict.
        draws: Number of random tables of the permutation test.
        seed: Seed of the draws.
        level: Confidence level of the effect size.
    """
    counts, note = _valid_counts(table)
    if note or stats.contingency.expected_freq(counts).min() >= MIN_EXPECTED:
        return chi_square(table, level=level)
    if counts.shape == (2, 2):
        return fisher(table, level=level)
    return table_permutation(table, draws=draws, seed=seed, level=level)


def _unknown(name: str, effect_name: str, counts: Floats, level: float) -> Test:
    return no_test(
        name=name,
        effect_name=effect_name,
        assumption="independent",
        assumes=ASSUMES,
        level=level,
        n=int(np.nansum(counts)),
    )


def _with_cramers_v(test: Test, counts: Floats) -> Test:
    expected = stats.contingency.expected_freq(counts)
    uncorrected = float(((counts - expected) ** 2 / expected).sum())
    rows, columns = counts.shape
    v = cramers_v(uncorrected, test.n, rows, columns, test.level)
    return replace(test, effect=v.estimate, low=v.low, high=v.high, note=v.note)


def _valid_counts(table: Table, whole: bool = False) -> tuple[Floats, str]:
    """The counts without empty rows and columns, and why they cannot be tested, or ""."""
    counts = np.asarray(table, dtype=float)
    if counts.size == 0:
        return np.zeros((0, 0)), "the table is empty"
    if not np.all(counts >= 0):
        return counts, "a count is missing or negative"
    if whole and np.any(counts != np.floor(counts)):
        return counts, "the test needs whole counts (ties must not be counted as halves)"
    counts = counts[counts.sum(axis=1) > 0][:, counts.sum(axis=0) > 0]
    if min(counts.shape) < 2:
        return counts, "the table has fewer than two rows or two columns with counts"
    return counts, ""
