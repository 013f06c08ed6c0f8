"""Two systems (or two labels) on the same items, two groups, and the correlation of two columns.

Repeats are nested: pass the item, or the scenario it belongs to, as `clusters`, and differences are averaged within
each cluster before they are tested.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from scipy.special import bdtr, ndtri, stdtr

from parley.analysis.stats.mean_test import mean_test
from parley.analysis.stats.results import LEVEL, Estimate
from parley.analysis.stats.tables import Column, Floats, as_floats, cluster_sums, finite

INDEPENDENT_PAIRS = "pairs are independent of each other"
DECIMALS = 9  # differences are rounded to these, so that floating-point noise does not break ties


def mcnemar_p(first: Column, second: Column) -> float:
    """The p-value of McNemar's exact test of two columns of right (1) and wrong (0) on the same items.

    NaN where no item was answered differently.

    Args:
        first: The first system's results, one per item.
        second: The second system's results on the same items. Items are taken as independent.
    """
    x, y = _complete(first, second)
    if np.any((x != 0) & (x != 1)) or np.any((y != 0) & (y != 1)):
        raise ValueError("McNemar's test needs columns of 0 and 1 (or false and true)")
    only_first, discordant = int((x > y).sum()), int((x != y).sum())
    fewer = min(only_first, discordant - only_first)
    return min(1.0, 2 * float(bdtr(fewer, discordant, 0.5))) if discordant else math.nan


def paired_difference(first: Column, second: Column, clusters: Column) -> Estimate:
    """The mean difference over clusters, first minus second, with its test and interval.

    Args:
        first: The first system's values.
        second: The second system's values on the same items. Pairs with a missing value are left out.
        clusters: The cluster of each pair. Clusters are taken as independent.
    """
    gaps, n = _differences(first, second, clusters)
    return replace(mean_test(gaps, farthest=widest(first, second)), n=n)


def widest(*columns: Column) -> float:
    """The largest difference between any two of the values: no other is known to be possible; infinite if it is 0."""
    values = np.concatenate([finite(column) for column in columns])
    return float(np.ptp(values)) or math.inf if len(values) else math.inf


def _complete(first: Column, second: Column) -> tuple[Floats, Floats]:
    """The pairs in which neither value is missing."""
    x, y = as_floats(first), as_floats(second)
    complete = np.isfinite(x) & np.isfinite(y)
    return x[complete], y[complete]


def _differences(first: Column, second: Column, clusters: Column) -> tuple[Floats, int]:
    """The mean difference of every cluster, and the number of complete pairs."""
    gaps = np.round(as_floats(first) - as_floats(second), DECIMALS)
    reduced = cluster_sums(gaps, clusters)
    return np.round(reduced.means, DECIMALS), reduced.n


def pearson(first: Column, second: Column) -> Estimate:
    """Pearson's r over complete pairs; interval by Fisher's transformation, as in R's `cor.test`.

    Args:
        first: One column.
        second: The other column, in the same order. Pairs are taken as independent.
    """
    x, y = _complete(first, second)
    n = len(x)
    unknown = Estimate(method="Pearson", measure="r", assumes=INDEPENDENT_PAIRS, n=n)
    if n < 3:
        return replace(unknown, note="fewer than three pairs")
    if not np.ptp(x) or not np.ptp(y):
        return replace(unknown, note="one of the two columns is constant")
    r = float(np.clip(np.corrcoef(x, y)[0, 1], -1, 1))
    p = 2 * float(stdtr(n - 2, -abs(r) * math.sqrt((n - 2) / (1 - r**2)))) if abs(r) < 1 else 0.0
    test = replace(unknown, statistic=r, df=float(n - 2), p=p, estimate=r)
    if n == 3 or not abs(r) < 1:
        return replace(test, note="fewer than four pairs, or a perfect line: no interval")
    half = float(ndtri((1 + LEVEL) / 2)) / math.sqrt(n - 3)
    return replace(test, low=math.tanh(math.atanh(r) - half), high=math.tanh(math.atanh(r) + half))
