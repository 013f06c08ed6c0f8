"""Two systems (or two labels) on the same items.

Repeats are nested: give the item, or the scenario it belongs to, as `clusters`, and each is averaged before anything
is tested. Without clusters every pair counts as independent.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from scipy import stats

from parley.analysis.stats.clustered import t_interval
from parley.analysis.stats.resampling import DRAWS, bca, resampled_sums, sign_flip_p
from parley.analysis.stats.results import Assumption, Test, no_test
from parley.analysis.stats.tables import Column, Floats, cluster_sums, numbers

PAIRS = "pairs are independent of each other"
CLUSTERS = "clusters are independent of each other"
DECIMALS = 9  # differences that rounding alone tells apart are equal


def mcnemar(first: Column, second: Column, *, level: float = 0.95) -> Test:
    """McNemar's exact test of two columns of right (1) and wrong (0) on the same items."""
    one, other = numbers(first), numbers(second)
    kept = np.isfinite(one) & np.isfinite(other)
    one, other = one[kept], other[kept]
    if np.any((one != 0) & (one != 1)) or np.any((other != 0) & (other != 1)):
        raise ValueError("McNemar's test takes zeros and ones (or false and true)")
    return mcnemar_counts(int((one > other).sum()), int((one < other).sum()), len(one), level)


def mcnemar_counts(only_first: int, only_second: int, n: int, level: float = 0.95) -> Test:
    """McNemar's exact test from the items that only the first, and only the second, got right, of n.

    The effect is the difference of proportions; its interval the adjusted Wald one of Bonett and Price (2012).
    """
    name, effect = "McNemar, exact", "difference of proportions"
    if n == 0:
        return no_test(name, effect, "independent", PAIRS, "there are no pairs", level)
    split = only_first + only_second
    p = float(stats.binomtest(only_first, split).pvalue) if split else math.nan
    note = "" if split else "no item was answered differently: there is nothing to test"
    up, down = (only_first + 1) / (n + 2), (only_second + 1) / (n + 2)
    half = float(stats.norm.ppf((1 + level) / 2) * math.sqrt((up + down - (up - down) ** 2) / (n + 2)))
    low, high = max(-1.0, up - down - half), min(1.0, up - down + half)
    difference = (only_first - only_second) / n
    return Test(
        name, float(min(only_first, only_second)), None, p, difference, effect, low, high, level, n, None,
        "independent", PAIRS, note,
    )  # fmt: skip


def paired_permutation(
    first: Column,
    second: Column,
    clusters: Column | None = None,
    *,
    interval: Literal["bca", "t"] = "bca",
    draws: int = DRAWS,
    seed: int = 0,
    level: float = 0.95,
) -> Test:
    """The mean difference, first minus second, by sign flips; its interval BCa or Student's t, over the same units."""
    gaps, n, assumption, assumes = _gaps(first, second, clusters)
    count = None if clusters is None else len(gaps)
    name, effect = "paired sign flips", "mean difference"
    if len(gaps) < 2 or not gaps.any():
        note = "all pairs are equal: there is nothing to flip" if len(gaps) > 1 else "fewer than two pairs or clusters"
        return no_test(name, effect, assumption, assumes, note, level, n, count)
    mean = float(gaps.mean())
    p, how = sign_flip_p(gaps, draws, seed)
    low, high, note = t_interval(gaps, level)
    statistic = math.nan if note else mean / float(stats.sem(gaps))
    if interval == "bca" and not note:
        drawn = resampled_sums(gaps[:, None], draws, seed)[:, 0] / len(gaps)
        left_out = (gaps.sum() - gaps) / (len(gaps) - 1)
        low, high = bca(drawn, mean, left_out, level)
    name = f"{name}, {how}; {'BCa' if interval == 'bca' else 't'} interval"
    return Test(name, statistic, None, p, mean, effect, low, high, level, n, count, assumption, assumes, note)


def wilcoxon(first: Column, second: Column, clusters: Column | None = None, *, level: float = 0.95) -> Test:
    """Wilcoxon's signed rank test, for ordinal scores; pairs without a difference are left out.

    The effect is the matched-pairs rank-biserial correlation: the share of ranks for the first minus that for the
    second (Kerby 2014), its interval by Fisher's transformation as in the R package effectsize.
    """
    gaps, n, assumption, assumes = _gaps(first, second, clusters)
    count = None if clusters is None else len(gaps)
    name, effect = "Wilcoxon signed rank", "rank-biserial correlation"
    moving = gaps[gaps != 0]
    size = len(moving)
    if size == 0:
        note = "all pairs are equal" if len(gaps) else "there are no pairs"
        return no_test(name, effect, assumption, assumes, note, level, n, count)
    ranks = stats.rankdata(np.abs(moving))
    whole = size * (size + 1) / 2
    above = float(ranks[moving > 0].sum())
    r = 2 * above / whole - 1
    p = float(stats.wilcoxon(moving).pvalue)
    if abs(r) == 1:
        low, high, note = math.nan, math.nan, "all differences have the same sign: no interval for their correlation"
    else:
        half = float(stats.norm.ppf((1 + level) / 2)) * math.sqrt((2 * size**3 + 3 * size**2 + size) / 6) / whole
        low, high, note = math.tanh(math.atanh(r) - half), math.tanh(math.atanh(r) + half), ""
    return Test(name, above, None, p, r, effect, low, high, level, n, count, assumption, assumes, note)


def _gaps(first: Column, second: Column, clusters: Column | None) -> tuple[Floats, int, Assumption, str]:
    """Differences of complete pairs, one a pair or one a cluster; how many pairs; and what that assumes."""
    gaps = np.round(numbers(first) - numbers(second), DECIMALS)
    n = int(np.isfinite(gaps).sum())
    if clusters is None:
        return gaps[np.isfinite(gaps)], n, "independent", PAIRS
    return np.round(cluster_sums(gaps, clusters).means, DECIMALS), n, "clustered", CLUSTERS
