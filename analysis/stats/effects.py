"""Effect sizes with intervals from a noncentral distribution: the noncentralities that fit the observed statistic.

Where the statistic is so small that even a noncentrality of 0 would rarely give less, there is no such interval.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from scipy import special

from parley.analysis.stats.results import LEVEL

TOO_SMALL = "the groups are more alike than chance would make them: no interval for the effect size"
TOO_LARGE = "the effect is too large relative to the noise: its interval cannot be computed"


def cramers_v(statistic: float, n: int, rows: int, columns: int) -> tuple[float, float, float]:
    """Cramér's V with the interval of `ci.cramer` in the R package statpsych, after Smithson (2003).

    The interval consists of the noncentralities that fit the statistic, as V = sqrt(ncp / (n (k - 1))). Its upper end
    is never below the estimate.

    Args:
        statistic: Chi-square without continuity correction.
        n: Sum of the counts, which are taken as independent.
        rows: Rows of the table that are not empty.
        columns: Columns of the table that are not empty.

    Returns:
        The estimate, and the lower and upper end.
    """
    df, scale = (rows - 1) * (columns - 1), n * (min(rows, columns) - 1)
    fitting = _fitting_noncentralities(lambda ncp: special.chndtr(statistic, df, ncp), LEVEL)
    low, high = (math.sqrt(ncp / scale) for ncp in fitting)
    estimate = math.sqrt(statistic / scale)
    return estimate, low, _upper_end(estimate, high)


def partial_eta_squared(f: float, df1: float, df2: float, level: float = LEVEL) -> tuple[float, float, float]:
    """Partial eta squared of an F statistic, with its interval ncp / (ncp + df1 + df2 + 1) (Smithson 2001).

    Args:
        f: The F statistic.
        df1: Degrees of freedom of the effect.
        df2: Degrees of freedom of the error.
        level: Confidence level.

    Returns:
        The estimate, and the lower and upper end, which is never below the estimate. All NaN without an F.
    """
    if not math.isfinite(f) or df1 <= 0 or df2 <= 0:
        return math.nan, math.nan, math.nan
    low, high = _fitting_noncentralities(lambda ncp: special.ncfdtr(df1, df2, ncp, f), level)
    estimate, total = df1 * f / (df1 * f + df2), df1 + df2 + 1
    return estimate, low / (low + total), _upper_end(estimate, high / (high + total))


def missing_interval_note(high: float, *, small: bool) -> str:
    """Why an effect has no interval, or ""; `small` where its statistic is below what chance would give."""
    return "" if not math.isnan(high) else TOO_SMALL if small else TOO_LARGE


def _upper_end(estimate: float, high: float) -> float:
    return high if math.isnan(high) else min(1.0, max(estimate, high))


def _fitting_noncentralities(cdf: Callable[[float], float], level: float) -> tuple[float, float]:
    """The least and the greatest noncentrality that fit the statistic; NaN where none does.

    `cdf` is the chance of a smaller statistic, as a function of the noncentrality.
    """
    if cdf(0.0) <= (1 - level) / 2:
        return math.nan, math.nan
    try:
        return _solve(cdf, (1 + level) / 2), _solve(cdf, (1 - level) / 2)
    except ValueError:  # the distribution cannot be computed so far out
        return math.nan, math.nan


def _solve(cdf: Callable[[float], float], share: float) -> float:
    """The noncentrality at which `cdf`, which falls with it, is `share`; 0 where it starts below."""
    if cdf(0.0) <= share:
        return 0.0
    top = 1.0
    while cdf(top) > share:
        top *= 2
    from scipy.optimize import brentq  # it takes longer to load than most tables take to make

    return float(brentq(lambda ncp: cdf(ncp) - share, 0.0, top, xtol=1e-10))
