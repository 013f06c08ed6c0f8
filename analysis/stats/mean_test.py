"""The test of a mean difference over clusters, with the interval that inverts it.

    test = mean_test([0.5, 0.25, -0.1, 0.4, 0.3, 0.2])
    test.p, test.low, test.high

p is that of Student's t, which is corrected where the differences are skewed by more than chance (Hall 1992, Journal of
the Royal Statistical Society B 54, 221-228). Where at most 24 clusters differ from 0, p is not below that of sign
flips: if labels are treated alike, each difference is as likely to have the opposite sign, and p is the share of all 2ᵏ
sign patterns whose sum is at least as far from 0 as that of the data. Where more do, p is not below that of t without
correction. For k clusters that differ from 0, p is never below 2^(1-k). Where all that differ do so by the same amount,
as preferences of whole bases do, p is that of sign flips alone: such differences are 0 on average only if both signs
are as likely.

Each part is needed. In simulated studies of 12 to 80 clusters without a mean difference t alone finds one in 8 to 14%
if differences are lognormal (here: 5 to 11%), and Hall's t in 7 to 16% if one cluster lies ten standard deviations from
the others (here: 1 to 5%), and in up to 19% if nine of ten clusters do not differ at all (here: up to 3%). Two kinds of
data remain: where at least half of the differences are exactly 0 and the others skewed it finds one in 6 to 15%, and so
it does where a kind of cluster rarer than 3 in n has all of the effect, which most samples do not contain.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache

import numpy as np
from scipy.special import bdtr, betaincinv, stdtr, stdtrit

from parley.analysis.stats.clustered import INDEPENDENT_CLUSTERS, agreeing_ends
from parley.analysis.stats.results import LEVEL, Estimate, clusters_to_reject
from parley.analysis.stats.tables import Column, Floats, finite
from parley.base.text import plural

MAX_COUNTED = 24
TOLERANCE = 1e-9
"""Relative to their size, differences that are no farther apart are equal, and so are sums of them."""
UNKNOWN = Estimate(measure="mean difference", assumes=INDEPENDENT_CLUSTERS)


def mean_test(differences: Column, level: float = LEVEL, farthest: float = math.inf) -> Estimate:
    """The two-sided test that the mean difference is 0, with its interval.

    Args:
        differences: One per cluster, independent of each other; missing ones are left out.
        level: Confidence level.
        farthest: The largest possible difference, which an interval needs if all differences are 0.
    """
    return _tested(finite(differences).tobytes(), level, farthest)


@lru_cache(maxsize=10_000)  # a report may test a difference as a contrast, as a pair and after a debate
def _tested(differences: bytes, level: float, farthest: float) -> Estimate:
    values = np.frombuffer(differences)
    count = len(values)
    if not count:
        return replace(UNKNOWN, clusters=0, level=level, note="nothing to compare")
    sample, needed = _Sample(values), clusters_to_reject(1 - level)
    note = "" if sample.varies else "every cluster has the same difference"
    if sample.sizes_vary and 2 * (zeros := count - sample.differing) >= count:
        note = f"{zeros} of {count} differences are exactly 0, so that p may be too small"
    if count < needed:
        note = f"{plural(count, 'cluster')}: p cannot be below {smallest_p(count):.2g}; an interval needs {needed}"
    p = sample.two_sided()
    low, high = _interval(sample, level, p, farthest)
    tests = "t and sign flips" if count <= MAX_COUNTED else "t"
    return replace(
        UNKNOWN,
        estimate=float(values.mean()),
        p=p,
        low=low,
        high=high,
        level=level,
        n=count,
        clusters=count,
        method=f"{tests if sample.sizes_vary else 'sign flips'} over clusters",
        note=note,
        statistic=sample.t if sample.varies else math.nan,
    )


def mean_p(differences: Column) -> float:
    """The two-sided p-value of the hypothesis that the mean difference is 0; NaN without differences.

    Args:
        differences: One per cluster, independent of each other; missing ones are left out.
    """
    values = finite(differences)
    return _Sample(values).two_sided() if len(values) else math.nan


def alike_p(differences: Column, margin: float, farthest: float = math.inf) -> float:
    """The p-value of two one-sided tests: whether the mean difference lies within ±margin; NaN without differences.

    Args:
        differences: One per cluster, independent of each other; missing ones are left out.
        margin: The difference that still counts as none, above 0.
        farthest: The largest possible difference. If all are the same, clusters that are not in the sample may have it.
    """
    values = finite(differences)
    if not len(values):
        return math.nan
    if not varies(values) and (size := abs(float(values[0]))) < margin:
        share = (margin - size) / (farthest - size) if farthest > size else 1.0  # so many at the farthest give margin
        return max(0.0, 1 - share) ** len(values)
    return max(upper_tail(values + margin), upper_tail(margin - values))


def upper_tail(values: Floats) -> float:
    """The one-sided p-value of the hypothesis that the mean is at most 0.

    Args:
        values: One per cluster, without missing ones.
    """
    return _Sample(values).upper_tail()


def tested_over(cluster: str) -> str:
    """The name of the test, for notes."""
    return f"t over {cluster}s, with sign flips up to {MAX_COUNTED}"


def smallest_p(clusters: int) -> float:
    """The smallest two-sided p-value that this many clusters with a difference can give: 2 of the 2ⁿ patterns."""
    return min(1.0, 2.0 ** (1 - clusters))


def skewness(values: Floats) -> float:
    """The third standardised moment."""
    errors = values - values.mean()
    return float((errors**3).mean() / (errors**2).mean() ** 1.5)


def varies(values: Floats, least: int = 2) -> bool:
    """Whether there are as many values as `least`, and they are not all the same."""
    if len(values) < least:
        return False
    low, high = float(values.min()), float(values.max())
    return high - low > TOLERANCE * max(-low, high)


@dataclass(frozen=True)
class _Sample:
    """Differences of clusters, none of them missing, with what p and both ends of the interval are computed from."""

    values: Floats

    @cached_property
    def negated(self) -> _Sample:
        """The sample with every sign changed."""
        return _Sample(-self.values)

    @cached_property
    def varies(self) -> bool:
        return varies(self.values)

    @cached_property
    def sizes_vary(self) -> bool:
        """Whether the differences that are not 0 do not all have the same size."""
        return varies(np.abs(self.values[self.values != 0]))

    @cached_property
    def spread(self) -> float:
        """The standard deviation; NaN where all values are the same."""
        return float(self.values.std(ddof=1)) if self.varies else math.nan

    @cached_property
    def t(self) -> float:
        """Student's t; infinite where all values are the same, 0 where all are 0."""
        mean = float(self.values.mean())
        if self.varies:
            return math.sqrt(len(self.values)) * mean / self.spread
        return math.copysign(math.inf, mean) if len(self.values) > 1 and mean else 0.0

    @cached_property
    def skew(self) -> float:
        """The skewness that Hall's transformation corrects: 0 unless it exceeds twice the standard error of a normal
        sample's.
        """
        n = len(self.values)
        if not varies(self.values, 3):
            return 0.0
        skew, error = skewness(self.values), math.sqrt(6 * n * (n - 1) / ((n - 2) * (n + 1) * (n + 3)))
        return skew / math.sqrt(n) if abs(skew) > 2 * error else 0.0

    @cached_property
    def differing(self) -> int:
        """The number of clusters that differ from 0."""
        return int(np.count_nonzero(self.values))

    @cached_property
    def subsets(self) -> list[tuple[Floats, Floats]]:
        """The sums of all subsets of either half of the differences that are counted, and the sizes of the subsets."""
        values = self.values if len(self.values) <= MAX_COUNTED else self.values[self.values != 0]
        halves = (values[: len(values) // 2], values[len(values) // 2 :])
        return [(members @ part, members.sum(axis=1)) for part in halves for members in [_subsets(len(part))]]

    def flipped_tail(self, shift: float = 0.0) -> float:
        """The one-sided p-value of sign flips of `values - shift`.

        A pattern reaches the observed sum exactly if the differences that it flips do not sum to more than 0. For each
        sum of one half of the differences, the matching sums of the other half are counted.
        """
        (first, first_sizes), (second, second_sizes) = self.subsets
        sums, needed = second - shift * second_sizes, self.limit - first + shift * first_sizes
        sums.sort()
        needed = needed[needed >= sums[0]]
        needed.sort()  # a search for sorted values takes half the time
        return float(sums.searchsorted(needed, side="right").sum() / (len(first) * len(second)))

    @cached_property
    def limit(self) -> float:
        """The largest sum that counts as 0."""
        return TOLERANCE * float(np.abs(self.values).sum())

    def upper_tail(self) -> float:
        """The one-sided p-value of the hypothesis that the mean is at most 0."""
        count, t, g = self.differing, self.t, self.skew
        if not self.sizes_vary:  # of -d, 0 and d, the mean is 0 only if both signs are as likely
            return float(bdtr(int((self.values < 0).sum()), count, 0.5))
        corrected = t + g * t**2 / 3 + g**2 * t**3 / 27 + g / 6
        few = count <= MAX_COUNTED
        statistic, counted = (corrected, self.flipped_tail()) if few else (min(t, corrected), 0.0)
        return max(float(stdtr(max(len(self.values) - 1, 1), -statistic)), counted, 2.0**-count)

    def two_sided(self) -> float:
        """The two-sided p-value of the hypothesis that the mean is 0."""
        return min(1.0, 2 * (self if self.values.sum() >= 0 else self.negated).upper_tail())

    def lower_end(self, tail: float) -> float:
        """The largest shift at which the upper tail of the shifted differences is at most `tail`."""
        least, mean, n = float(self.values.min()), float(self.values.mean()), len(self.values)
        g, critical = self.skew, -float(stdtrit(n - 1, tail))
        if g:  # Hall's transformation, ((1 + g·t/3)³ - 1) / g + g/6, the other way round
            corrected = 3 / g * (float(np.cbrt(1 + g * (critical - g / 6))) - 1)
            critical = corrected if n <= MAX_COUNTED else max(critical, corrected)  # shifted, every cluster differs
        high = mean - critical * self.spread / math.sqrt(n)
        if n > MAX_COUNTED or self.flipped_tail(high) <= tail:
            return high
        low, step = least, 1e-4 * (mean - least)
        if self.flipped_tail(low) > tail:
            return low
        while high - low > step:
            middle = (low + high) / 2
            low, high = (middle, high) if self.flipped_tail(middle) <= tail else (low, middle)
        return low


@cache
def _subsets(count: int) -> Floats:
    """All subsets of so many values, one row each with 1 for its members."""
    return (np.arange(2**count)[:, None] >> np.arange(count) & 1).astype(float)


def _interval(sample: _Sample, level: float, p: float, farthest: float) -> tuple[float, float]:
    """The shifts that are not rejected. Ends by sign flips are found to a ten-thousandth of the range, outwards."""
    values, tail = sample.values, (1 - level) / 2
    if 2.0 ** -len(values) > tail:
        return -math.inf, math.inf
    size = float(np.abs(values[0]))
    if not sample.varies:
        reach = farthest if math.isfinite(farthest) else size or math.inf
        low, high = agreeing_ends(float(values[0]), len(values), (-reach, reach), level)
    elif varies(np.abs(values)):
        low, high = sample.lower_end(tail), -sample.negated.lower_end(tail)
    else:  # Clopper and Pearson's interval of the share above 0
        above, below = int((values > 0).sum()), int((values < 0).sum())
        least = betaincinv(above, below + 1, tail) if above else 0.0
        most = betaincinv(above + 1, below, 1 - tail) if below else 1.0
        low, high = size * (2 * float(least) - 1), size * (2 * float(most) - 1)
    if p > 1 - level:  # a shift makes clusters differ that did not, so that fewer are needed than for p
        return min(low, 0.0), max(high, 0.0)
    edge = TOLERANCE * float(np.abs(values).max())
    return (max(low, edge), high) if values.sum() > 0 else (low, min(high, -edge))
