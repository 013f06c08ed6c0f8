"""Tables of counts: chi-square, Fisher's exact test, and a permutation test where counts are small.

All of them take every count for an independent verdict. Verdicts of judges who talk about the same texts are not:
beside each of these p-values belongs one that respects clusters (see permutation.py).
Rows and columns without any count are left out.
"""

from __future__ import annotations

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
TOO_SMALL = 5.0
Table: TypeAlias = pd.DataFrame | NDArray[Any] | list[list[float]]


def chi_square(table: Table, *, yates: bool = False, level: float = 0.95) -> Test:
    """Pearson's chi-square of independence with Cramér's V. No continuity correction unless `yates` (2×2 only)."""
    counts, note = _counts(table)
    name = "chi-square, Yates' correction" if yates else "chi-square"
    if note:
        return no_test(name, "Cramér's V", "independent", ASSUMES, note, level, int(np.nansum(counts)))
    found = stats.chi2_contingency(counts, correction=yates)
    return _with_v(name, counts, float(found.statistic), float(found.dof), float(found.pvalue), level)


def fisher(table: Table, *, level: float = 0.95) -> Test:
    """Fisher's exact test of a 2×2 table, with the conditional odds ratio and its exact interval."""
    counts, note = _counts(table, whole=True)
    name, effect = "Fisher's exact test", "odds ratio"
    if not note and counts.shape != (2, 2):
        note = "Fisher's exact test is given for tables of two rows and two columns only"
    if note:
        return no_test(name, effect, "independent", ASSUMES, note, level, int(np.nansum(counts)))
    whole = counts.astype(np.int64)
    odds = stats.contingency.odds_ratio(whole, kind="conditional")
    ends = odds.confidence_interval(level)
    p = float(stats.fisher_exact(whole).pvalue)
    ratio, n = float(odds.statistic), int(whole.sum())
    low, high = float(ends.low), float(ends.high)
    return Test(name, ratio, None, p, ratio, effect, low, high, level, n, None, "independent", ASSUMES)


def table_permutation(table: Table, *, draws: int = DRAWS, seed: int = 0, level: float = 0.95) -> Test:
    """Chi-square against random tables with the same margins: right however small the expected counts."""
    counts, note = _counts(table, whole=True)
    name = f"permutation of the table, {draws} draws, seed {seed}"
    if note:
        return no_test(name, "Cramér's V", "independent", ASSUMES, note, level, int(np.nansum(counts)))
    expected = stats.contingency.expected_freq(counts)
    rows, columns = counts.sum(axis=1).astype(np.int64), counts.sum(axis=0).astype(np.int64)
    drawn = stats.random_table(rows, columns).rvs(size=draws, random_state=np.random.default_rng(seed))
    statistic = float(((counts - expected) ** 2 / expected).sum())
    p = monte_carlo_p(((drawn - expected) ** 2 / expected).sum(axis=(1, 2)), statistic)
    return _with_v(name, counts, statistic, None, p, level)


def association(table: Table, *, draws: int = DRAWS, seed: int = 0, level: float = 0.95) -> Test:
    """Chi-square where every expected count is at least 5; below that Fisher (2×2) or the permutation test."""
    counts, note = _counts(table)
    if note or stats.contingency.expected_freq(counts).min() >= TOO_SMALL:
        return chi_square(table, level=level)
    if counts.shape == (2, 2):
        return fisher(table, level=level)
    return table_permutation(table, draws=draws, seed=seed, level=level)


def _with_v(name: str, counts: Floats, statistic: float, df: float | None, p: float, level: float) -> Test:
    expected = stats.contingency.expected_freq(counts)
    plain = float(((counts - expected) ** 2 / expected).sum())
    v = cramers_v(plain, int(counts.sum()), counts.shape[0], counts.shape[1], level)
    return Test(
        name,
        statistic,
        df,
        p,
        v.estimate,
        "Cramér's V",
        v.low,
        v.high,
        level,
        v.n,
        None,
        "independent",
        ASSUMES,
        v.note,
    )


def _counts(table: Table, whole: bool = False) -> tuple[Floats, str]:
    """The counts without empty rows and columns; and why there is no test, or ""."""
    counts = np.asarray(table, dtype=float)
    if counts.size == 0:
        return np.zeros((0, 0)), "the table is empty"
    if not np.all(counts >= 0):
        return counts, "a count is missing or negative"
    if whole and np.any(counts != np.floor(counts)):
        return counts, "the test needs whole counts (ties cannot be halves here)"
    counts = counts[counts.sum(axis=1) > 0][:, counts.sum(axis=0) > 0]
    if min(counts.shape) < 2:
        return counts, "the table has fewer than two rows or two columns with counts"
    return counts, ""
