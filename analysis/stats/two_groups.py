"""The difference between the means of two groups, tested by permuting which value belongs to which group.

    test = permuted_difference([0.3, 0.2, 0.4], [0.1, 0.0, 0.1, 0.2])
    test.estimate, test.p, test.low, test.high

If the groups do not differ, every division of the values into groups of these sizes was as likely. If divisions are
few, all are counted; if many, some are drawn with a seed that the values fix. The interval consists of the shifts of
the first group that the test does not reject.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from itertools import combinations

import numpy as np

from parley.analysis.stats.resampling import data_seed
from parley.analysis.stats.results import LEVEL, Estimate
from parley.analysis.stats.tables import Column, Floats, as_floats

MAX_COUNTED = 50_000
DRAWS = 9_999
TOLERANCE = 1e-9


def permuted_difference(first: Column, second: Column) -> Estimate:
    """Mean of the first group minus mean of the second, with a permutation test and the interval that agrees with it.

    Args:
        first: Independent values; missing ones are left out.
        second: The other group's.
    """
    groups = [values[np.isfinite(values)] for values in map(as_floats, (first, second))]
    sizes = len(groups[0]), len(groups[1])
    if not all(sizes):
        return Estimate(low=-math.inf, high=math.inf, n=sum(sizes), clusters=sum(sizes), method="an empty group")
    values = np.concatenate(groups)
    weights, exact = _divisions(*sizes, seed=data_seed(values))
    in_first = np.concatenate([np.ones(sizes[0]), np.zeros(sizes[1])])
    differences = weights @ values
    # A shift of the first group changes a division's difference by that group's share of its first side.
    moved = weights @ in_first
    estimate, scale = float(differences[0]), float(np.abs(values).max()) + 1e-300

    def p_of(shift: float) -> float:
        distances = np.abs(differences - shift * moved)
        return float((distances >= distances[0] * (1 - TOLERANCE) - TOLERANCE * scale).mean())

    reach = 4 * float(np.ptp(values)) + scale * 1e-6
    ends = [_end(p_of, estimate, estimate + side * reach) for side in (-1, 1)]
    method = "permuted groups, " + ("exact" if exact else f"{len(weights) - 1:,} drawn")
    n = sum(sizes)
    return Estimate(estimate=estimate, p=p_of(0.0), low=ends[0], high=ends[1], n=n, clusters=n, method=method)


def _divisions(first: int, second: int, seed: int) -> tuple[Floats, bool]:
    """The weights of the values in the difference under every division, the given one first; whether these are all."""
    count = first + second
    if math.comb(count, first) <= MAX_COUNTED:
        return _all_divisions(first, second), True
    in_first = np.arange(count) < first
    drawn = np.random.default_rng(seed).permuted(np.tile(in_first, (DRAWS, 1)), axis=1)
    return np.where(np.vstack([in_first, drawn]), 1 / first, -1 / second), False


@lru_cache(maxsize=8)
def _all_divisions(first: int, second: int) -> Floats:
    chosen = np.zeros((math.comb(first + second, first), first + second), dtype=bool)
    for row, members in enumerate(combinations(range(first + second), first)):  # the first combination is the data's
        chosen[row, list(members)] = True
    return np.where(chosen, 1 / first, -1 / second)


def _end(p_of: Callable[[float], float], inside: float, outside: float) -> float:
    """The shift between one that is not rejected and one that is, to a thousandth; infinite where none is rejected."""
    alpha = 1 - LEVEL
    if p_of(outside) > alpha:
        return math.copysign(math.inf, outside - inside)
    width = abs(outside - inside)
    while abs(outside - inside) > 1e-4 * width:
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if p_of(middle) > alpha else (inside, middle)
    return outside
