"""Bootstrap intervals and permutation p-values on a small table of units (clusters or items).

A bootstrap draw is a vector of counts (how often each unit was drawn) times the table of the units' sums, so no draw
touches the rows behind the table. Draws are made in blocks, so that memory does not grow with the number of units.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable

import numpy as np
from scipy.special import ndtr, stdtrit

from parley.analysis.stats.results import LEVEL, Estimate
from parley.analysis.stats.tables import Floats

DRAWS = 2000
MIN_DRAWS = 40  # with fewer, the outer 2.5% are less than one draw
TOO_FEW_DRAWS = f"an interval needs {MIN_DRAWS} bootstrap draws or more"
MIN_HALF = 2048
BLOCK_SIZE = 4_000_000  # floats in memory at a time, about 32 MB


def words_on_draws(draws: int) -> tuple[str, ...]:
    """A sentence if there are too few bootstrap draws for intervals; else empty."""
    return () if draws >= MIN_DRAWS else (f"{TOO_FEW_DRAWS[0].upper()}{TOO_FEW_DRAWS[1:]}, not {draws}: see --draws.",)


def bootstrap_sums(units: Floats, draws: int, seed: int) -> Floats:
    """Column sums over units drawn with replacement.

    Args:
        units: One row per unit.
        draws: Number of bootstrap draws.
        seed: Seed of the random generator.

    Returns:
        One row of sums per draw.
    """
    rng = np.random.default_rng(seed)
    size = len(units)
    block = max(1, BLOCK_SIZE // size)
    sums = np.empty((draws, units.shape[1]))
    for start in range(0, draws, block):
        rows = min(block, draws - start)
        chosen = rng.integers(0, size, (rows, size)) + size * np.arange(rows)[:, None]
        weights = np.bincount(chosen.ravel(), minlength=rows * size).reshape(rows, size)
        sums[start : start + rows] = weights.astype(float) @ units
    return sums


def percentile_interval(draws: Floats, units: int) -> tuple[float, float]:
    """The expanded percentile interval: wider where there are few units, so that its coverage is right.

    T. Hesterberg, "What teachers should know about the bootstrap" (2014), arXiv 1411.5279: the normal quantile is
    replaced by Student's t times sqrt(n / (n - 1)). Draws that gave no number are left out, if fewer than half did.

    Args:
        draws: The statistic in each bootstrap draw.
        units: Number of units that were drawn from.

    Returns:
        Lower and upper end; NaN for fewer than two units or 40 draws.
    """
    finite = draws[np.isfinite(draws)]
    if units < 2 or len(draws) < MIN_DRAWS or 2 * len(finite) <= len(draws):
        return math.nan, math.nan
    tail = float(ndtr(math.sqrt(units / (units - 1)) * stdtrit(units - 1, (1 - LEVEL) / 2)))
    low, high = np.quantile(finite, [tail, 1 - tail])
    return float(low), float(high)


def arrangement_p(
    halves: tuple[Floats, Floats],
    statistic: Callable[[Floats, Floats], Floats],
    observed: float,
    *,
    exact: bool,
    scale: float | None = None,
) -> Estimate:
    """The p-value from every combination of arrangements of two halves of the clusters: a line's p, method and note.

    It is the share of arrangements, the data among them, that reach the observed value. The note says that p is a bound
    where no random arrangement but the data does.

    A few thousand arrangements of either half give millions together. Under the null hypothesis, the data's row and
    column among them could be any other, so the test is valid however few were drawn.

    Args:
        halves: What the clusters of each half sum up to, one row per arrangement; the data are in one row of each.
        statistic: The statistic of every sum of a row of the first with a row of the second, as a table; large values
            count against the null hypothesis, and so do missing ones.
        observed: The statistic of the data.
        exact: The halves are all arrangements, none was drawn.
        scale: Size of the numbers that the statistic was summed from, which bounds its rounding error; None: the
            statistic itself.
    """
    first, second = halves
    limit = observed - 1e-9 * (abs(observed) if scale is None else scale)
    block = max(1, BLOCK_SIZE // (8 * len(second)))
    below = sum(
        int(np.count_nonzero(statistic(first[start : start + block], second) < limit))
        for start in range(0, len(first), block)
    )
    count = len(first) * len(second)
    p = (count - below) / count
    bound = f"p ≤ {p:.2g}: none of {count:,} arrangements was as extreme" if not exact and p * count < 1.5 else ""
    return Estimate(p=p, method="exact" if exact else f"{count:,} arrangements", note=bound)


def half_size(tests: int) -> int:
    """Arrangements of either half: 4 million together, and at least 100·tests / 0.05 for a family of many tests."""
    return max(MIN_HALF, math.ceil(math.sqrt(100 * tests / 0.05)))


def data_seed(data: Floats) -> int:
    """A seed from the data (a hash of the rounded numbers), so that p is the same in every report."""
    scaled = np.nan_to_num(data / max(float(np.nanmax(np.abs(data), initial=0.0)), 1e-300), nan=9.0)
    return int.from_bytes(hashlib.sha256((np.round(scaled, 6) + 0.0).tobytes()).digest()[:8], "big")
