"""The ratio of two mean differences that were measured on the same clusters, with an interval over clusters.

    ratio_of_means([0.3, 0.1, 0.2, 0.4, 0.2, 0.3], [1.0, 0.8, 1.1, 1.3, 0.7, 1.2])

Fieller's method (1954, Journal of the Royal Statistical Society B 16, 175-185): the interval consists of the ratios r
for which no test rejects that the mean of `numerator - r·denominator` is 0. His test is Student's t; here it is the
sign-flip test, so that the interval excludes 0 exactly where the sign-flip test of the numerators is significant.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from parley.analysis.stats.results import LEVEL, Line
from parley.analysis.stats.signflips import clusters_to_reject, sign_flip_p
from parley.analysis.stats.tables import Column, as_floats

STEPS = 60
METHOD = "Fieller's, by sign flips over clusters"


def ratio_of_means(numerators: Column, denominators: Column, level: float = LEVEL) -> Line:
    """The ratio of two means over clusters.

    Args:
        numerators: One per cluster.
        denominators: One per cluster, in the same order; clusters that lack either are left out.
        level: Confidence level.
    """
    x, y = as_floats(numerators), as_floats(denominators)
    known = np.isfinite(x) & np.isfinite(y)
    x, y = x[known], y[known]
    alpha, clusters = 1 - level, len(x)
    estimate = float(x.mean() / y.mean()) if clusters and y.mean() else math.nan
    note = ""
    if clusters < (needed := clusters_to_reject(alpha)):
        note = f"an interval needs {needed} clusters"
    elif not sign_flip_p(y) <= alpha:
        note = "the denominator may be 0"
    if note or math.isnan(estimate):
        return Line(
            estimate=estimate, low=-math.inf, high=math.inf, level=level, clusters=clusters, method=METHOD, note=note
        )
    width = float(np.std(x - estimate * y)) / abs(float(y.mean())) / math.sqrt(clusters)

    def rejected(ratio: float) -> bool:
        return sign_flip_p(x - ratio * y) <= alpha

    low, high = (_end(rejected, estimate, sign * width) for sign in (-1, 1))
    return Line(estimate=estimate, low=low, high=high, level=level, clusters=clusters, method=METHOD)


def _end(rejected: Callable[[float], bool], inside: float, width: float) -> float:
    """The end of the interval on one side, found outwards to a thousandth of the distance from the estimate.

    The interval has an end: for far-off ratios the test is one of the denominators, which are known not to be 0.
    """
    if width == 0:  # every cluster has the same ratio
        return inside
    outside = inside + width
    for _ in range(STEPS):
        if rejected(outside):
            break
        inside, outside = outside, outside + (outside - inside) * 2
    else:
        return math.copysign(math.inf, width)
    start = inside
    while abs(outside - inside) > 1e-3 * max(abs(outside - start), abs(width)):
        middle = (inside + outside) / 2
        inside, outside = (inside, middle) if rejected(middle) else (middle, outside)
    return outside
