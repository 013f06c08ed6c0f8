"""Contingency tables: the chi-square test, which the paper uses.

It treats counts as independent verdicts. Verdicts of judges who discuss the same texts are not: also show a p-value
that respects clusters (see permutation.py). Empty rows and columns are left out. SciPy's `chi2_contingency` gives the
same without an interval of Cramér's V.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import chdtrc, chndtr, chndtrinc

from parley.analysis.stats.results import LEVEL, Estimate
from parley.analysis.stats.tables import Floats

TOO_SMALL = "the groups are more alike than chance would make them: no interval for the effect size"
TOO_LARGE = "the effect is too large relative to the noise: its interval cannot be computed"
ASSUMES = "every count is an independent verdict"
Table: TypeAlias = pd.DataFrame | NDArray[Any] | list[list[float]]


def chi_square_of_counts(table: Table) -> Estimate:
    """Pearson's chi-square test of independence with Cramér's V.

    Args:
        table: Counts, rows by columns; every count is taken as an independent verdict.
    """
    counts, note = _valid_counts(table)
    unknown = Estimate(
        method="chi-square",
        measure="Cramér's V",
        assumes=ASSUMES,
        n=int(np.nansum(counts)),
    )
    if note:
        return replace(unknown, note=note)
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / counts.sum()
    statistic = float(((counts - expected) ** 2 / expected).sum())
    rows, columns = counts.shape
    df = float((rows - 1) * (columns - 1))
    v, low, high = cramers_v(statistic, unknown.n, rows, columns)
    return replace(
        unknown,
        statistic=statistic,
        df=df,
        p=float(chdtrc(df, statistic)),
        estimate=v,
        low=low,
        high=high,
        note="" if not math.isnan(high) else TOO_SMALL if statistic < df else TOO_LARGE,
    )


def cramers_v(statistic: float, n: int, rows: int, columns: int) -> tuple[float, float, float]:
    """Cramér's V with the interval of `ci.cramer` in the R package statpsych, after Smithson (2003).

    The interval consists of the noncentralities that fit the statistic, as V = sqrt(ncp / (n (k - 1))). Its upper end
    is never below the estimate. Where the statistic is so small that even a noncentrality of 0 would rarely give less,
    there is none.

    Args:
        statistic: Chi-square without continuity correction.
        n: Sum of the counts, which are taken as independent.
        rows: Rows of the table that are not empty.
        columns: Columns of the table that are not empty.

    Returns:
        The estimate, and the lower and upper end.
    """
    df, scale = (rows - 1) * (columns - 1), n * (min(rows, columns) - 1)
    estimate, central, tail = math.sqrt(statistic / scale), chndtr(statistic, df, 0.0), (1 - LEVEL) / 2
    # The noncentralities at which so many statistics are smaller; the lower is 0 where fewer are even without one.
    low, high = 0.0 if central <= 1 - tail else chndtrinc(statistic, df, 1 - tail), chndtrinc(statistic, df, tail)
    if central <= tail or math.isnan(low + high):  # NaN: the distribution cannot be computed so far out
        return estimate, math.nan, math.nan
    return estimate, math.sqrt(low / scale), min(1.0, max(estimate, math.sqrt(high / scale)))


def _valid_counts(table: Table) -> tuple[Floats, str]:
    """The counts without empty rows and columns, and why they cannot be tested, or ""."""
    counts = np.asarray(table, dtype=float)
    if counts.size == 0:
        return np.zeros((0, 0)), "the table is empty"
    if not np.all(counts >= 0):
        return counts, "a count is missing or negative"
    counts = counts[counts.sum(axis=1) > 0][:, counts.sum(axis=0) > 0]
    if min(counts.shape) < 2:
        return counts, "the table has fewer than two rows or two columns with counts"
    return counts, ""
