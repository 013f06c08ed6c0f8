"""Effect sizes whose interval comes from turning a noncentral distribution round."""

from __future__ import annotations

import math
from collections.abc import Callable

from scipy import optimize, stats

from analysis.results import Estimate


def cramers_v(statistic: float, n: int, rows: int, columns: int, level: float = 0.95) -> Estimate:
    """Cramér's V of a chi-square statistic (without correction) of a table with n counts.

    Interval: the noncentralities between which the statistic is likely, as V = sqrt(ncp / (n (k - 1))), as in
    `ci.cramer` of the R package statpsych, after Smithson (2003). The upper end is never below the estimate.
    """
    method, assumes = "noncentral chi-square", "the n counts are independent of each other"
    df, scale = (rows - 1) * (columns - 1), n * (min(rows, columns) - 1)
    if scale <= 0 or not math.isfinite(statistic):
        note = "the table has fewer than two rows or two columns with counts"
        return Estimate(math.nan, math.nan, math.nan, level, n, None, method, assumes, note)
    low, high = _noncentralities(lambda ncp: float(stats.ncx2.cdf(statistic, df, ncp)), level)
    estimate = math.sqrt(statistic / scale)
    ends = min(1.0, math.sqrt(low / scale)), min(1.0, max(estimate, math.sqrt(high / scale)))
    return Estimate(estimate, *ends, level, n, None, method, assumes)


def partial_eta_squared(f: float, df1: float, df2: float, level: float = 0.95) -> tuple[float, float, float]:
    """Partial eta squared of an F statistic, with its interval ncp / (ncp + df1 + df2 + 1) (Smithson 2001).

    The upper end is never below the estimate.
    """
    if not math.isfinite(f) or df1 <= 0 or df2 <= 0:
        return math.nan, math.nan, math.nan
    low, high = _noncentralities(lambda ncp: float(stats.ncf.cdf(f, df1, df2, ncp)), level)
    estimate = df1 * f / (df1 * f + df2)
    total = df1 + df2 + 1
    return estimate, low / (low + total), max(estimate, high / (high + total))


def _noncentralities(below: Callable[[float], float], level: float) -> tuple[float, float]:
    """The noncentralities at which the statistic lies at the upper and at the lower edge of what is likely."""
    return _solve(below, (1 + level) / 2), _solve(below, (1 - level) / 2)


def _solve(below: Callable[[float], float], share: float) -> float:
    """Where `below`, which falls with the noncentrality, comes down to `share`; 0 where it starts under it."""
    if below(0.0) <= share:
        return 0.0
    top = 1.0
    while below(top) > share:
        top *= 2
    return float(optimize.brentq(lambda ncp: below(ncp) - share, 0.0, top, xtol=1e-10))
