"""Pearson's correlation, with its interval."""

from __future__ import annotations

import math

import numpy as np
from scipy import stats

from parley.analysis.stats.paired import PAIRS
from parley.analysis.stats.results import Test, no_test
from parley.analysis.stats.tables import Column, numbers


def pearson(first: Column, second: Column, *, level: float = 0.95) -> Test:
    """Pearson's r of two columns over complete pairs; its interval by Fisher's transformation, as in R's `cor.test`."""
    one, other = numbers(first), numbers(second)
    kept = np.isfinite(one) & np.isfinite(other)
    one, other = one[kept], other[kept]
    name, n = "Pearson", len(one)
    if n < 3:
        return no_test(name, "r", "independent", PAIRS, "fewer than three pairs", level, n)
    if not np.ptp(one) or not np.ptp(other):
        return no_test(name, "r", "independent", PAIRS, "one of the two never varies", level, n)
    found = stats.pearsonr(one, other)
    r = float(found.statistic)
    low, high, note = math.nan, math.nan, "fewer than four pairs, or a perfect line: no interval"
    if n > 3 and abs(r) < 1:
        half = float(stats.norm.ppf((1 + level) / 2)) / math.sqrt(n - 3)
        low, high, note = math.tanh(math.atanh(r) - half), math.tanh(math.atanh(r) + half), ""
    return Test(
        name, r, float(n - 2), float(found.pvalue), r, "r", low, high, level, n, None, "independent", PAIRS, note
    )
