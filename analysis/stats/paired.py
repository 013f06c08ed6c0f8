"""Paired tests: two systems (or two labels) on the same items, and the correlation of two columns.

Repeats are nested: pass the item, or the scenario it belongs to, as `clusters`, and differences are averaged within
each cluster before they are tested. Without clusters every pair is taken as independent.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from scipy import stats

from parley.analysis.stats.clustered import INDEPENDENT_CLUSTERS
from parley.analysis.stats.results import Test
from parley.analysis.stats.signflips import clusters_to_reject, sign_flip_test, smallest_p
from parley.analysis.stats.tables import Column, Floats, as_floats, cluster_sums

INDEPENDENT_PAIRS = "pairs are independent of each other"
DECIMALS = 9  # differences are rounded to these, so that floating-point noise does not break ties


def mcnemar(first: Column, second: Column, *, level: float = 0.95) -> Test:
    """McNemar's exact test of two columns of right (1) and wrong (0) on the same items.

    Args:
        first: The first system's results, one per item.
        second: The second system's results on the same items. Items are taken as independent.
        level: Confidence level of the difference of proportions.
    """
    x, y = as_floats(first), as_floats(second)
    complete = np.isfinite(x) & np.isfinite(y)
    x, y = x[complete], y[complete]
    if np.any((x != 0) & (x != 1)) or np.any((y != 0) & (y != 1)):
        raise ValueError("McNemar's test needs columns of 0 and 1 (or false and true)")
    return mcnemar_counts(int((x > y).sum()), int((x < y).sum()), len(x), level)


def mcnemar_counts(only_first: int, only_second: int, n: int, level: float = 0.95) -> Test:
    """McNemar's exact test from counts. The effect is the difference of proportions.

    Its interval is the adjusted Wald interval of Bonett and Price (2012).

    Args:
        only_first: Items that only the first system got right.
        only_second: Items that only the second system got right.
        n: All items, which are taken as independent.
        level: Confidence level.
    """
    unknown = Test(
        name="McNemar, exact",
        effect_name="difference of proportions",
        assumption="independent",
        assumes=INDEPENDENT_PAIRS,
        level=level,
        n=n,
    )
    if n == 0:
        return replace(unknown, note="there are no pairs")
    discordant = only_first + only_second
    up, down = (only_first + 1) / (n + 2), (only_second + 1) / (n + 2)
    half = float(stats.norm.ppf((1 + level) / 2) * math.sqrt((up + down - (up - down) ** 2) / (n + 2)))
    return replace(
        unknown,
        statistic=float(min(only_first, only_second)),
        p=float(stats.binomtest(only_first, discordant).pvalue) if discordant else math.nan,
        effect=(only_first - only_second) / n,
        low=max(-1.0, up - down - half),
        high=min(1.0, up - down + half),
        note="" if discordant else "no item was answered differently: there is nothing to test",
    )


def paired_permutation(first: Column, second: Column, clusters: Column | None = None, *, level: float = 0.95) -> Test:
    """The sign-flip test of the mean difference, first minus second, with the interval that agrees with it.

    Args:
        first: The first system's values.
        second: The second system's values on the same items. Pairs with a missing value are left out.
        clusters: The cluster of each pair, taken as independent; None: pairs are.
        level: Confidence level.
    """
    gaps, unknown = _differences(first, second, clusters, "paired sign-flip test", "mean difference", level)
    return flip_signs(gaps, unknown)


def flip_signs(gaps: Floats, unknown: Test) -> Test:
    """The sign-flip test of differences, one per cluster, as a `Test`.

    Args:
        gaps: The differences, without missing ones.
        unknown: The test before it is made: its name, its level and what it assumes.
    """
    if not len(gaps):
        return replace(unknown, note="no pair or cluster has values on both sides")
    flips = sign_flip_test(gaps, unknown.level)
    spread = np.ptp(gaps) > 1e-12 * np.abs(gaps).max()
    return replace(
        unknown,
        name=f"{unknown.name}, {flips.method.partition(', ')[2]}",
        statistic=flips.estimate / float(stats.sem(gaps)) if spread else math.nan,
        p=flips.p,
        effect=flips.estimate,
        low=flips.low,
        high=flips.high,
        note=_flip_note(gaps, unknown, spread=bool(spread)),
    )


def _flip_note(gaps: Floats, unknown: Test, *, spread: bool) -> str:
    """What limits the test: too few clusters to ever reject, or differences that are all the same."""
    unit = "pair" if unknown.clusters is None else "cluster"
    needed, count = clusters_to_reject(1 - unknown.level), len(gaps)
    if count < needed:
        return (
            f"{count} {unit}{'s' if count > 1 else ''}: p cannot be below {smallest_p(count):.2g}; "
            f"an interval needs {needed}"
        )
    return "" if spread else f"every {unit} has the same difference"


def wilcoxon(first: Column, second: Column, clusters: Column | None = None, *, level: float = 0.95) -> Test:
    """Wilcoxon's signed-rank test, for ordinal scores; pairs without a difference are left out.

    The effect is the matched-pairs rank-biserial correlation: the share of ranks in favour of the first minus the
    share in favour of the second (Kerby 2014). Its interval is by Fisher's transformation as in the R package
    effectsize.

    Args:
        first: The first system's values.
        second: The second system's values on the same items.
        clusters: The cluster of each pair, taken as independent; None: pairs are.
        level: Confidence level.
    """
    gaps, unknown = _differences(first, second, clusters, "Wilcoxon signed rank", "rank-biserial correlation", level)
    nonzero = gaps[gaps != 0]
    size = len(nonzero)
    if size == 0:
        return replace(unknown, note="all pairs are equal" if len(gaps) else "there are no pairs")
    ranks = stats.rankdata(np.abs(nonzero))
    rank_sum = size * (size + 1) / 2
    above = float(ranks[nonzero > 0].sum())
    r = 2 * above / rank_sum - 1
    test = replace(unknown, statistic=above, p=float(stats.wilcoxon(nonzero).pvalue), effect=r)
    if abs(r) == 1:
        return replace(test, note="all differences have the same sign: no interval for their correlation")
    half = float(stats.norm.ppf((1 + level) / 2)) * math.sqrt((2 * size**3 + 3 * size**2 + size) / 6) / rank_sum
    return replace(test, low=math.tanh(math.atanh(r) - half), high=math.tanh(math.atanh(r) + half))


def _differences(
    first: Column, second: Column, clusters: Column | None, name: str, effect_name: str, level: float
) -> tuple[Floats, Test]:
    """The differences of complete pairs, one per pair or per cluster, and their test before it is made."""
    gaps = np.round(as_floats(first) - as_floats(second), DECIMALS)
    n = int(np.isfinite(gaps).sum())
    clustered = clusters is not None
    gaps = gaps[np.isfinite(gaps)] if clusters is None else np.round(cluster_sums(gaps, clusters).means, DECIMALS)
    return gaps, Test(
        name=name,
        effect_name=effect_name,
        assumption="clustered" if clustered else "independent",
        assumes=INDEPENDENT_CLUSTERS if clustered else INDEPENDENT_PAIRS,
        level=level,
        n=n,
        clusters=len(gaps) if clustered else None,
    )


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
    unknown = Test(
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
