"""Proportions with intervals that behave at 0, at 1 and with few cases."""

from __future__ import annotations

import math

from statsmodels.stats.proportion import proportion_confint

from analysis.results import Interval


def wilson(successes: float, n: float, level: float = 0.95) -> Interval:
    """A proportion with its Wilson score interval. `successes` may hold halves (ties)."""
    assumes = "the n cases are independent of each other"
    if n == 0:
        return Interval(math.nan, math.nan, math.nan, level, 0, None, "Wilson", assumes)
    low, high = proportion_confint(successes, n, alpha=1 - level, method="wilson")
    return Interval(successes / n, float(low), float(high), level, int(n), None, "Wilson", assumes)
