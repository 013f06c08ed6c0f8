"""Contingency tables: the chi-square test, which the paper uses.

It takes every count as an independent verdict. Verdicts of judges who discuss the same texts are not: also show a
p-value that respects clusters (see permutation.py). Empty rows and columns are left out.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import chdtrc

from parley.analysis.stats.effects import cramers_v, missing_interval_note
from parley.analysis.stats.results import Line
from parley.analysis.stats.tables import Floats

ASSUMES = "every count is an independent verdict"
Table: TypeAlias = pd.DataFrame | NDArray[Any] | list[list[float]]


def chi_square(table: Table) -> Line:
    """Pearson's chi-square test of independence with Cramér's V.

    Args:
        table: Counts, rows by columns; every count is taken as an independent verdict.
    """
    counts, note = _valid_counts(table)
    unknown = Line(
        method="chi-square",
        measure="Cramér's V",
        assumes=ASSUMES,
        n=int(np.nansum(counts)),
    )
    if note:
        return replace(unknown, note=note)
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / counts.sum()
    statistic, df = float(((counts - expected) ** 2 / expected).sum()), float(np.prod(np.subtract(counts.shape, 1)))
    v, low, high = cramers_v(statistic, unknown.n, *counts.shape)
    return replace(
        unknown,
        statistic=statistic,
        df=df,
        p=float(chdtrc(df, statistic)),
        estimate=v,
        low=low,
        high=high,
        note=missing_interval_note(high, small=statistic < df),
    )


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
