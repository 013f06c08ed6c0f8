"""Effect sizes whose interval comes from turning a noncentral distribution round.

Where the statistic is so small that no noncentrality at all would rarely give less, there is no such interval.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from scipy import optimize, special

from parley.analysis.stats.results import Estimate, no_estimate

TOO_SMALL = "the groups are more alike than chance would make them: no interval for the size of the effect"
TOO_LARGE = "the effect is too large against the noise for an interval to be computed"


def cramers_v(statistic: float, n: int, rows: int, columns: int, level: float = 0.95) -> Estimate:
    """Cramér's V of a chi-square statistic (without correction) of a table with n counts.

    Interval: the noncentralities between which the statistic is likely, as V = sqrt(ncp / (n (k - 1))), as in
    `ci.cramer` of the R package statpsych, after Smithson (2003). The upper end is never below the estimate.
    """
    method, assumes = "noncentral chi-square", "the n counts are independent of each other"
    df, scale = (rows - 1) * (columns - 1), n * (min(rows, columns) - 1)
    if scale <= 0 or not math.isfinite(statistic):
        note = "the table has fewer than two rows or two columns with counts"
        return no_estimate(method, assumes, note, level, n)
    low, high = (math.sqrt(ncp / scale) for ncp in _likely(lambda ncp: special.chndtr(statistic, df, ncp), level))
    estimate = math.sqrt(statistic / scale)
    note = missing_ends(high, statistic < df)
    return Estimate(estimate, low, _upper(estimate, high), level, n, None, method, assumes, note)


def partial_eta_squared(f: float, df1: float, df2: float, level: float = 0.95) -> tuple[float, float, float]:
    """Partial eta squared of an F statistic, with its interval ncp / (ncp + df1 + df2 + 1) (Smithson 2001).

    The upper end is never below the estimate.
    """
    if not math.isfinite(f) or df1 <= 0 or df2 <= 0:
        return math.nan, math.nan, math.nan
    low, high = _likely(lambda ncp: special.ncfdtr(df1, df2, ncp, f), level)
    estimate, total = df1 * f / (df1 * f + df2), df1 + df2 + 1
    return estimate, low / (low + total), _upper(estimate, high / (high + total))


def missing_ends(high: float, small: bool) -> str:
    """Why an interval has no ends, or ""."""
    return "" if not math.isnan(high) else TOO_SMALL if small else TOO_LARGE


def _upper(estimate: float, end: float) -> float:
    return end if math.isnan(end) else min(1.0, max(estimate, end))


def _likely(below: Callable[[float], float], level: float) -> tuple[float, float]:
    """The least and the greatest noncentrality that go with the statistic; NaN, NaN where none does."""
    if below(0.0) <= (1 - level) / 2:
        return math.nan, math.nan
    try:
        return _solve(below, (1 + level) / 2), _solve(below, (1 - level) / 2)
    except ValueError:  # the distribution runs out of numbers
        return math.nan, math.nan


def _solve(below: Callable[[float], float], share: float) -> float:
    """Where `below`, which falls with the noncentrality, comes down to `share`; 0 where it starts under it."""
    if below(0.0) <= share:
        return 0.0
    top = 1.0
    while below(top) > share:
        top *= 2
    return float(optimize.brentq(lambda ncp: below(ncp) - share, 0.0, top, xtol=1e-10))
