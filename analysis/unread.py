"""Bounds of a contrast of which some replies could not be read: whatever those had said, it lies between them.

    bounds(first, second, (0, 10), filled)   # {"first_read": 0.96, "second_read": 0.93, "worst_low": -0.2, …}

Unread replies are left out of every mean. Where they are unread because of what they say, the others differ although
the arms are alike: with the lowest 4% of one label's scores and the highest 4% of another's refused, 28% of studies
said "different". So `decide` claims nothing that would not hold at both bounds, where the unread replies of one arm
have the lowest possible value and those of the other the highest (Manski 1990, American Economic Review 80, 319-323).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import pandas as pd

from parley.analysis.stats.results import Estimate

WORST_P = "worst_p"
"""The p-value at the bound that is nearer to 0; 1 where the bounds include 0."""
WHATEVER = f"worst_low, worst_high: bounds, whatever the unread replies had said; {WORST_P}: the test at the worst."
Limit: TypeAlias = float | str
"""A value, or the name of a column that has one."""


def bounds(
    first: pd.Series, second: pd.Series, limits: tuple[Limit, Limit], filled: Callable[[Any, Any], Estimate]
) -> dict[str, float]:
    """The shares that were read and both bounds, as further numbers of a line; {} where all was read, or nothing.

    Args:
        first: The replies of the first arm; missing where they could not be read.
        second: Those of the second arm.
        limits: What stands for the lowest and for the highest possible value.
        filled: The contrast, with the unread replies of the first and of the second arm at these values.
    """
    low, high = limits
    read = {"first_read": float(first.notna().mean()), "second_read": float(second.notna().mean())}
    if min(read.values()) == 1 or not max(read.values()):
        return {}
    lowest, highest = filled(low, high), filled(high, low)
    # Bounds alone err: with 2% refused at either end 13% of studies had bounds of one sign. The test at the worst one
    # errs in no more studies than a test of all replies would.
    p = lowest.p if lowest.estimate > 0 else highest.p if highest.estimate < 0 else 1.0
    return {**read, "worst_low": lowest.estimate, "worst_high": highest.estimate, WORST_P: p}
