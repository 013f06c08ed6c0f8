"""Proportions with intervals that behave at 0, at 1 and with few cases."""

from __future__ import annotations

import math

from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from parley.analysis.stats.results import Estimate, Interval, no_estimate
from parley.analysis.stats.tables import Column, cluster_sums


def wilson(successes: float, n: float, level: float = 0.95) -> Interval:
    """A proportion with its Wilson score interval. `successes` may hold halves (ties)."""
    assumes = "the n cases are independent of each other"
    if n == 0:
        return Interval(math.nan, math.nan, math.nan, level, 0, None, "Wilson", assumes)
    low, high = proportion_confint(successes, n, alpha=1 - level, method="wilson")
    return Interval(successes / n, *_ends(successes / n, low, high), level, int(n), None, "Wilson", assumes)


def cluster_proportion(successes: Column, clusters: Column, level: float = 0.95) -> Estimate:
    """The proportion of wins (1, a tie ½, a loss 0) over all rows, its error from clusters.

    The proportion is a ratio of cluster sums, its variance c / (c - 1) · Σ (wins - p·size)² / n² over the c clusters.
    That variance gives an effective number of cases p (1 - p) / variance, which goes into Wilson's interval with
    Student's t (c - 1) in place of z. Where all rows agree, the effective number is the number of clusters.
    """
    method, assumes = "Wilson, effective n from the spread between clusters", "clusters are independent of each other"
    found = cluster_sums(successes, clusters)
    count, n = len(found.counts), found.n
    if count == 0:
        return no_estimate(method, assumes, "there are no values", level, 0, 0)
    p = float(found.sums.sum() / n)
    if count < 2:
        note = "a single cluster tells nothing about the spread between clusters"
        return Estimate(p, math.nan, math.nan, level, n, count, method, assumes, note)
    variance = count / (count - 1) * float(((found.sums - p * found.counts) ** 2).sum()) / n**2
    if p in (0.0, 1.0):
        effective = float(count)
    elif variance <= 1e-15:
        note = "all clusters have the same proportion: the data show no spread to judge by"
        return Estimate(p, math.nan, math.nan, level, n, count, method, assumes, note)
    else:
        effective = p * (1 - p) / variance
    t = float(stats.t.ppf((1 + level) / 2, count - 1))
    centre = (p + t**2 / (2 * effective)) / (1 + t**2 / effective)
    half = t / (1 + t**2 / effective) * math.sqrt(p * (1 - p) / effective + t**2 / (4 * effective**2))
    return Estimate(p, *_ends(p, centre - half, centre + half), level, n, count, method, assumes)


def _ends(p: float, low: float, high: float) -> tuple[float, float]:
    """Wilson's interval of 0 begins at 0 and that of 1 ends at 1, whatever the last bit of the sum says."""
    return 0.0 if p == 0 else max(0.0, float(low)), 1.0 if p == 1 else min(1.0, float(high))
