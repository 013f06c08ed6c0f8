"""Pearson's correlation with its interval."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from scipy import stats

from parley.analysis.stats.paired import INDEPENDENT_PAIRS
from parley.analysis.stats.results import Test, no_test
from parley.analysis.stats.tables import Column, as_floats


def pearson(first: Column, second: Column, *, level: float = 0.95) -> Test:
    """Pearson's r over complete pairs; interval by Fisher's transformation, as in R's `cor.test`.

    Args:
        first: One column.
        second: The other column, in the same order. Pairs are taken as independent.
        level: Confidence level.
    """
    x, y = as_floats(first), as_floats(second)
    complete = np.isfinite(x) & np.isfinite(y)
    x, y = x[complete], y[complete]
    n = len(x)
    unknown = no_test(
        name="Pearson", effect_name="r", assumption="independent", assumes=INDEPENDENT_PAIRS, level=level, n=n
    )
    if n < 3:
        return replace(unknown, note="fewer than three pairs")
    if not np.ptp(x) or not np.ptp(y):
        return replace(unknown, note="one of the two columns is constant")
    result = stats.pearsonr(x, y)
    r = float(result.statistic)
    test = replace(unknown, statistic=r, df=float(n - 2), p=float(result.pvalue), effect=r)
    if n == 3 or not abs(r) < 1:
        return replace(test, note="fewer than four pairs, or a perfect line: no interval")
    half = float(stats.norm.ppf((1 + level) / 2)) / math.sqrt(n - 3)
    return replace(test, low=math.tanh(math.atanh(r) - half), high=math.tanh(math.atanh(r) + half))
