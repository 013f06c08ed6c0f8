"""Proportions with intervals that are valid near 0, near 1 and with few cases."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from scipy.special import betaincinv, ndtri, stdtr, stdtrit

from parley.analysis.stats.clustered import INDEPENDENT_CLUSTERS, NO_VALUES, ONE_CLUSTER, agreeing_ends
from parley.analysis.stats.results import LEVEL, Estimate
from parley.analysis.stats.tables import ClusterSums, Column, Floats, cluster_sums

SAME = 1e-9
"""Shares that differ by less are equal."""
NEAR, FEW = 0.1, 5
"""Near 0 or 1 (within NEAR), the spread is not used if fewer than FEW clusters differ from the rest."""


def wilson(successes: float, n: float) -> Estimate:
    """A proportion with its Wilson score interval.

    Args:
        successes: Number of successes; a tie may count as half.
        n: Number of cases, taken as independent.
    """
    p, low, high = math.nan, math.nan, math.nan
    if n:
        p = successes / n
        low, high = _wilson(p, n, float(ndtri((1 + LEVEL) / 2)))
    return Estimate(
        estimate=p,
        low=low,
        high=high,
        n=int(n),
        method="Wilson",
        assumes="the n cases are independent of each other",
    )


def at_least(successes: int, n: int) -> float:
    """The lower limit of a proportion, with 95% confidence, by Clopper and Pearson (1934, Biometrika 26, 404-413).

    Args:
        successes: Number of successes.
        n: Number of cases, taken as independent.
    """
    return float(betaincinv(successes, n - successes + 1, 1 - LEVEL)) if successes else 0.0


def cluster_proportion(
    successes: Column,
    clusters: Column,
    *,
    inflation: float = 1.0,
    level: float = LEVEL,
) -> Estimate:
    """The proportion of wins over all rows, with its error from clusters.

    The proportion is a ratio of cluster sums, its variance c / (c - 1) · Σ (wins - p·size)² / n² over the c clusters.
    That variance gives an effective number of cases p (1 - p) / variance, which goes into Wilson's interval with
    Student's t (c - 1) in place of z. Where all rows agree, the effective number is the number of clusters.

    Args:
        successes: 1 for a win, ½ for a tie, 0 for a loss; rows where it is missing are left out.
        clusters: The cluster of each row. Clusters are taken as independent.
        inflation: Factor by which the variance exceeds that from the spread between clusters.
        level: Confidence level.
    """
    reduced = cluster_sums(successes, clusters)
    count, n = len(reduced.counts), reduced.n
    unknown = Estimate(
        method="Wilson, effective n from the spread between clusters",
        assumes=INDEPENDENT_CLUSTERS,
        n=n,
        clusters=count,
        level=level,
    )
    if count == 0:
        return replace(unknown, note=NO_VALUES)
    p = float(reduced.sums.sum() / n)
    if count < 2:
        return replace(unknown, estimate=p, note=ONE_CLUSTER)
    variance = count / (count - 1) * float(((reduced.sums - p * reduced.counts) ** 2).sum()) / n**2
    if p in (0.0, 1.0):
        effective = float(count)
    elif variance <= 1e-15:
        low, high = agreeing_ends(p, count, (0.0, 1.0), level)
        return replace(unknown, estimate=p, low=low, high=high)
    else:
        effective = min(p * (1 - p) / variance, _of_few(p, reduced))
    effective /= inflation
    low, high = _wilson(p, effective, float(stdtrit(count - 1, (1 + level) / 2)))
    return replace(unknown, estimate=p, low=low, high=high)


def _of_few(p: float, reduced: ClusterSums) -> float:
    """The most cases that a proportion near 0 or 1 counts for if fewer than `FEW` clusters differ; else infinite.

    The spread between so few says little: a small cluster that lost all would make the interval too short. What rows
    of a cluster have in common is then taken from within clusters, and counts in those of all sizes.
    """
    sizes, wins = reduced.counts, reduced.sums
    if NEAR < p < 1 - NEAR or int(((wins if p < 0.5 else sizes - wins) > 0).sum()) >= FEW:
        return math.inf
    several = sizes > 1
    within = float((reduced.squares * sizes)[several] @ (1 / (sizes[several] - 1)))
    total = float(sizes[several].sum()) * p * (1 - p)
    alike = min(1.0, max(0.0, 1 - within / total)) if total else 0.0
    # Rows that are clusters of their own count one by one, as shares do.
    typical = float((sizes**2).sum()) / reduced.n
    return reduced.n / (1 + (typical - 1) * alike) if several.any() else math.inf


def proportion_test(shares: Floats, null: float) -> Estimate:
    """The mean of the clusters' shares, with Wilson's interval, and the p-value that agrees with it.

    Args:
        shares: The share of each cluster, none of them NaN.
        null: The share of a judge without the property, such as 0.5.
    """
    line = cluster_proportion(shares, np.arange(len(shares)))
    share, count = line.estimate, len(shares)
    if count and np.ptp(shares) < SAME and 0 < share < 1:  # so many clusters at the far end have the mean `null`
        far = (share - null) / (share if share > null else share - 1)
        return replace(line, p=min(1.0, 2 * (1 - far) ** count))
    variance = float(np.var(shares, ddof=1)) / count if count > 1 else math.nan
    effective = (
        float(count) if share in (0.0, 1.0) else share * (1 - share) / variance if variance > 1e-15 else math.nan
    )
    error = math.sqrt(max(null * (1 - null), 1e-12) / effective) if effective > 0 else math.nan
    above = float(stdtr(count - 1, -(share - null) / error)) if error > 0 else math.nan
    return replace(line, p=min(1.0, 2 * min(above, 1 - above)))


def _wilson(p: float, n: float, z: float) -> tuple[float, float]:
    """Wilson's interval without rounding errors beyond 0 and 1: that of 0 starts at 0, that of 1 ends at 1."""
    centre = (p + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * math.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    return 0.0 if p == 0 else max(0.0, centre - half), 1.0 if p == 1 else min(1.0, centre + half)
