"""Sign-flip tests over clusters, without random draws.

If two identities are treated alike, each cluster's difference is as likely to have the opposite sign. The
p-value is the share of all 2ⁿ sign patterns whose sum is at least as far from 0 as that of the data. The interval
consists of the shifts that the test does not reject when they are subtracted from every difference, so the interval
excludes 0 exactly where p ≤ 1 - level.

    test = sign_flip_test([0.5, 0.25, -0.1, 0.4, 0.3, 0.2])
    test.p, test.low, test.high

Up to 36 clusters all patterns are counted, by meeting in the middle: the sums of either half are listed and sorted,
and for each sum of one half the matching sums of the other are counted. Up to 5,000 clusters the differences are
rounded to a fine grid, on which the distribution of the sum is computed exactly; a test of rounded differences is as
valid as one of the differences themselves. Beyond that, and for the ends of intervals from 25 clusters on, the tail is
the saddlepoint approximation of Robinson (1982, Journal of the Royal Statistical Society B 44, 91-101) in the form of
Lugannani and Rice.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.special import ndtr, ndtri, stdtrit

from parley.analysis.stats.results import LEVEL, Estimate
from parley.analysis.stats.tables import Column, Floats, Ints, finite

# Patterns are counted, not drawn: with 2,000 draws p cannot fall below 1/2001, so that a family of more than 100 tests
# rejects nothing, and p depends on a seed. Counting takes 16 ms at 36 clusters.
MAX_COUNTED = 36
MAX_COUNTED_INTERVAL = 24
MAX_ON_GRID = 5000  # at 5,000 the saddlepoint differs from the grid by 0.4%
GRID_CELLS = 2**14
TOLERANCE = 1e-9
"""Sums that differ by less than this, relative to the sum of sizes, count as equal."""


def sign_flip_test(differences: Column, level: float = LEVEL) -> Estimate:
    """The two-sided test that the mean difference is 0, with its interval.

    Args:
        differences: One per cluster, independent of each other; missing ones are left out.
        level: Confidence level.
    """
    given = finite(differences)
    if not len(given):
        return Estimate(low=-math.inf, high=math.inf, level=level, clusters=0, method="no clusters")
    p = sign_flip_p(given)
    low, high = _interval(given, level, p)
    return Estimate(
        estimate=float(given.mean()),
        p=p,
        low=low,
        high=high,
        level=level,
        n=len(given),
        clusters=len(given),
        method=_method(int(np.count_nonzero(given))),
    )


def sign_flip_p(differences: Column) -> float:
    """The two-sided p-value of the hypothesis that the mean difference is 0; NaN without differences.

    Args:
        differences: One per cluster, independent of each other; missing ones are left out.
    """
    given = finite(differences)
    if not len(given):
        return math.nan
    return min(1.0, 2 * upper_tail(given if given.sum() >= 0 else -given))


def upper_tail(differences: Floats) -> float:
    """The one-sided p-value: the share of sign patterns whose sum is at least that of the data.

    Args:
        differences: One per cluster, without missing values.
    """
    nonzero = differences[differences != 0]
    count = len(nonzero)
    if count <= MAX_COUNTED:
        return _counted_tail(nonzero)
    if (nonzero > 0).all():
        return float(2.0**-count)
    return _grid_tail(nonzero) if count <= MAX_ON_GRID else _saddlepoint_tail(nonzero)


def equivalence_p(differences: Column, margin: float) -> float:
    """The p-value of two one-sided tests: whether the mean difference lies within ±margin; NaN without differences.

    Args:
        differences: One per cluster, independent of each other; missing ones are left out.
        margin: The difference that still counts as none, above 0.
    """
    given = finite(differences)
    if not len(given):
        return math.nan
    return max(upper_tail(given + margin), upper_tail(margin - given))


def smallest_p(clusters: int) -> float:
    """The smallest two-sided p-value that this many clusters with a difference can give: 2 of the 2ⁿ patterns."""
    return min(1.0, 2.0 ** (1 - clusters))


def clusters_to_reject(alpha: float, tests: int = 1) -> int:
    """The fewest clusters with which a test of a Holm-corrected family can be significant.

    Args:
        alpha: Significance level of the family.
        tests: Number of tests in the family.
    """
    return math.ceil(1 - math.log2(alpha / tests) - TOLERANCE)


def _method(count: int) -> str:
    how = "exact" if count <= MAX_COUNTED else "exact on a grid" if count <= MAX_ON_GRID else "saddlepoint"
    return f"sign flips over clusters, {how}"


def _counted_tail(values: Floats) -> float:
    """A pattern reaches the observed sum exactly if the differences it flips do not sum to more than 0."""
    half = len(values) // 2
    first, second = _subset_sums(values[:half]), _subset_sums(values[half:])
    return _share_below(first, second, TOLERANCE * float(np.abs(values).sum()))


def _subset_sums(values: Floats) -> Floats:
    sums = np.zeros(1)
    for value in values:
        sums = np.concatenate([sums, sums + value])
    return sums


def _share_below(first: Floats, second: Floats, limit: float) -> float:
    """The share of pairs, one number from each list, whose sum is at most the limit."""
    second = np.sort(second)
    counts = np.searchsorted(second, np.sort(limit - first), side="right")
    return float(counts.sum() / (len(first) * len(second)))


def _grid_tail(values: Floats) -> float:
    """Like `_counted_tail`, but adds one difference at a time to the distribution of the sum on a grid.

    A pattern's sum is W - 2·T, where W is the sum of all sizes and T that of the sizes which are negative in it. The
    tail is the chance that T is at most what it is in the data.
    """
    if values.sum() < 0:  # the tail is above one half, where no test is significant: its own ties do not matter
        return max(0.5, 1 - _grid_tail(-values))
    steps = _on_grid(np.abs(values))
    top = int(steps[values < 0].sum())
    chance = np.zeros(top + 1)
    chance[0] = 1.0
    for step in steps:
        moved = 0.5 * chance
        if step <= top:
            moved[step:] += 0.5 * chance[: top + 1 - step]
        chance = moved
    return float(chance.sum())


def _on_grid(sizes: Floats) -> Ints:
    """The sizes in units of a grid: without rounding where they have a common unit that is not too small."""
    millionths = np.rint(1e6 * sizes).astype(np.int64)
    unit = int(np.gcd.reduce(millionths))
    if unit and millionths.sum() <= GRID_CELLS * unit and np.allclose(millionths, 1e6 * sizes, rtol=0, atol=1e-3):
        exact: Ints = millionths // unit
        return exact
    cells = max(GRID_CELLS, 32 * len(sizes))
    steps: Ints = np.maximum(np.rint(sizes * (cells / sizes.sum())), 1).astype(np.int64)
    return steps


def _saddlepoint_tail(values: Floats) -> float:
    """Lugannani and Rice's approximation of the upper tail; K(u) = Σ log cosh(u·d) generates the sum's cumulants."""
    total = float(values.sum())
    if total < 0:
        return 1 - _saddlepoint_tail(-values)
    if total <= 1e-9 * math.sqrt(float(values @ values)):
        return 0.5
    if (values >= 0).all():
        return float(2.0 ** -np.count_nonzero(values))
    squares = values**2
    u = total / float(squares.sum())
    for _ in range(100):
        slope = np.tanh(u * values)
        step = (total - float(values @ slope)) / float(squares @ (1 - slope**2))
        u += min(max(step, -0.5 * u), 2 * u)
        if abs(step) <= 1e-10 * u:
            break
    size = np.abs(u * values)
    log_cosh = float((size + np.log1p(np.exp(-2 * size)) - math.log(2)).sum())
    w = math.sqrt(max(2 * (u * total - log_cosh), 1e-12))
    v = u * math.sqrt(float(squares @ (1 - np.tanh(size) ** 2)))
    density = math.exp(-w * w / 2) / math.sqrt(2 * math.pi)
    correction = 0.0 if w < 1e-3 else density * (1 / v - 1 / w)  # near 0 the two reciprocals cancel
    return min(max(float(ndtr(-w)) + correction, 0.0), 1.0)


def _interval(values: Floats, level: float, p: float) -> tuple[float, float]:
    """The shifts that are not rejected. Ends are found to a ten-thousandth of the range of the values, outwards."""
    alpha = 1 - level
    if 2.0 ** -len(values) > alpha / 2:
        return -math.inf, math.inf
    low, high = _lower_end(values, alpha / 2), -_lower_end(-values, alpha / 2)
    if p <= alpha:  # the approximation and the rounding of the ends must not contradict the p-value
        edge = TOLERANCE * float(np.abs(values).max())
        low, high = (max(low, edge), high) if values.sum() > 0 else (low, min(high, -edge))
    else:
        low, high = min(low, 0.0), max(high, 0.0)
    return low, high


def _lower_end(values: Floats, alpha: float) -> float:
    """The largest shift at which the upper tail of the shifted differences is at most alpha."""
    tail = _shifted_tail(values)
    low, high = float(values.min()), float(values.mean())
    width, target = high - low, float(ndtri(alpha))
    if width <= TOLERANCE * abs(high) or tail(low) > alpha:  # below the least difference the tail is 2⁻ⁿ
        return low
    z_low, z_high = math.nan, -target
    half = -float(stdtrit(len(values) - 1, alpha)) * float(values.std(ddof=1)) / math.sqrt(len(values))
    guesses = [high - 0.9 * half, high - 1.1 * half]  # Student's t is close, and brackets the end with a little room
    for step in range(60):
        if high - low <= 1e-4 * width:
            break
        # z is almost linear in the shift, so the secant is close; every third step halves the bracket.
        share = 0.5 if step % 3 == 2 or math.isnan(z_low) else min(max(-z_low / (z_high - z_low), 0.01), 0.99)
        middle = low + share * (high - low)
        if guesses and low < guesses[0] < high:
            middle = guesses[0]
        guesses = guesses[1:]
        z = float(ndtri(min(max(tail(middle), 1e-300), 1 - 1e-9))) - target
        if z <= 0:
            low, z_low = middle, z
        else:
            high, z_high = middle, z
    return low


def _shifted_tail(values: Floats) -> Callable[[float], float]:
    """The upper tail of `values - shift`, as a function of the shift."""
    if len(values) > MAX_COUNTED_INTERVAL:
        return lambda shift: _saddlepoint_tail(values - shift)
    half = len(values) // 2
    (first, first_sizes), (second, second_sizes) = (
        (_subset_sums(part), _subset_sums(np.ones(len(part)))) for part in (values[:half], values[half:])
    )
    limit = TOLERANCE * float(np.abs(values).sum())
    return lambda shift: _share_below(first - shift * first_sizes, second - shift * second_sizes, limit)
