"""Power of the test of a mean difference over clusters.

    detectable(20, sd=0.5, tests=13)                  # the smallest difference that 20 clusters find with 80%
    clusters_needed(0.3, sd=0.5, tests=13)            # the clusters that a difference of 0.3 needs

`sd` is the standard deviation of a cluster's mean difference between two identities, over clusters. A test of a family
is taken at Holm's first step (alpha / tests): where other tests of the family are significant too, it is found a little
more easily. All figures are for differences that are normally distributed over clusters, by Student's t, whose
distribution is then noncentral. With few clusters sign flips find less than t does, so there are no figures: with 12
clusters, and five more than can be significant at all, 80% by t are 73 to 80% of simulated studies.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from scipy.special import nctdtr, nctdtrinc, stdtrit

from parley.analysis.stats.results import clusters_to_reject
from parley.base.text import plural

MAX_CLUSTERS = 10_000_000
LEAST_LEVEL = 1e-50
FAR = 1e6
"""Noncentrality above which the power is 1 and cannot be computed."""


def power_of(clusters: int, effect: float, sd: float, *, tests: int = 1, alpha: float = 0.05) -> float:
    """The chance to find an effect: the test is significant, in the effect's direction; NaN with too few clusters.

    Args:
        clusters: Number of clusters.
        effect: The true mean difference.
        sd: Standard deviation of a cluster's difference; NaN gives NaN.
        tests: Number of tests in the Holm-corrected family.
        alpha: Significance level of the family.
    """
    _check(clusters=clusters, sd=sd, tests=tests, alpha=alpha)
    if clusters < fewest(tests=tests, alpha=alpha) or sd != sd:
        return math.nan
    if sd == 0:  # all differences are equal: significant unless they are 0
        return float(effect != 0)
    distance = min(abs(effect) / sd * math.sqrt(clusters), FAR)
    return 1 - float(nctdtr(clusters - 1, distance, _critical(clusters, tests, alpha)))


def detectable(clusters: int, sd: float, *, tests: int = 1, alpha: float = 0.05, power: float = 0.8) -> float:
    """The smallest effect that is found with this power; infinite where the clusters are too few (see `too_few`).

    Args:
        clusters: Number of clusters.
        sd: Standard deviation of a cluster's difference; NaN gives NaN.
        tests: Number of tests in the Holm-corrected family.
        alpha: Significance level of the family.
        power: The chance to find the effect.
    """
    _check(clusters=clusters, sd=sd, tests=tests, alpha=alpha, power=power)
    if clusters < fewest(tests=tests, alpha=alpha):
        return math.inf
    distance = float(nctdtrinc(clusters - 1, 1 - power, _critical(clusters, tests, alpha)))
    return max(0.0, distance) * sd / math.sqrt(clusters)  # false alarms alone may reach a power that is low


def clusters_needed(effect: float, sd: float, *, tests: int = 1, alpha: float = 0.05, power: float = 0.8) -> int | None:
    """The fewest clusters that find an effect with this power; None for an effect of 0 or more than 10 million.

    Args:
        effect: The true mean difference.
        sd: Standard deviation of a cluster's difference.
        tests: Number of tests in the Holm-corrected family.
        alpha: Significance level of the family.
        power: The least chance to find the effect.
    """
    _check(sd=sd, tests=tests, alpha=alpha, power=power)
    if not effect or sd != sd:
        return None
    least = fewest(tests=tests, alpha=alpha)
    return _first(lambda clusters: power_of(clusters, effect, sd, tests=tests, alpha=alpha) >= power, least)


def fewest(*, tests: int = 1, alpha: float = 0.05) -> int:
    """The fewest clusters for which there are figures.

    Args:
        tests: Number of tests in the Holm-corrected family.
        alpha: Significance level of the family.
    """
    return max(12, clusters_to_reject(alpha, tests) + 5)


def too_few(clusters: int, *, tests: int = 1, alpha: float = 0.05) -> str:
    """A sentence on clusters that are too few for figures; "" where there are enough.

    Args:
        clusters: Number of clusters.
        tests: Number of tests in the Holm-corrected family.
        alpha: Significance level of the family.
    """
    _check(clusters=clusters, tests=tests, alpha=alpha)
    needed, possible = fewest(tests=tests, alpha=alpha), clusters_to_reject(alpha, tests)
    if clusters >= needed:
        return ""
    family = f" in a family of {tests:,} tests" if tests > 1 else ""
    none = f"; with fewer than {possible} no difference can be significant{family}" if clusters < possible else ""
    return f"{plural(clusters, 'base')} are too few to compute the power, which needs {needed}{none}"


def _check(*, clusters: int = 1, sd: float = 1.0, tests: int = 1, alpha: float = 0.05, power: float = 0.8) -> None:
    problems = {
        "the number of clusters must be at least 0": clusters < 0,
        "sd must be at least 0 and finite": sd < 0 or math.isinf(sd),
        "tests must be at least 1": tests < 1,
        "alpha must lie between 0 and 1": not 0 < alpha < 1,
        f"alpha divided by the number of tests must be at least {LEAST_LEVEL:g}": alpha < LEAST_LEVEL * tests,
        "power must lie between 0 and 1": not 0 < power < 1,
    }
    for message, wrong in problems.items():
        if wrong:
            raise ValueError(message)


def _critical(clusters: int, tests: int, alpha: float) -> float:
    """The critical value of t."""
    return -float(stdtrit(clusters - 1, alpha / tests / 2))


def _first(enough: Callable[[int], bool], least: int) -> int | None:
    """The smallest sufficient number of clusters, from `least` on; power increases with it."""
    low, high = least - 1, least
    while not enough(high):
        low, high = high, high * 2
        if high > MAX_CLUSTERS:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
