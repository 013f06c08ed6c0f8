"""Brent's root of a function, step by step that of scipy.optimize.brentq.

scipy.optimize takes longer to load than most tables of a report to make, and nothing else in a report needs it.
"""

from __future__ import annotations

import math
from collections.abc import Callable

RELATIVE = 8.881784197001252e-16
"""Four times the distance between 1 and the next number, as in scipy."""


def root(function: Callable[[float], float], low: float, high: float, tolerance: float) -> float:
    """Where the function is 0, between two places where it has different signs; ValueError where it is not a number.

    R. Brent, Algorithms for Minimization Without Derivatives (1973), chapter 4.

    Args:
        function: A continuous function.
        low: One place.
        high: The other.
        tolerance: How far the root may be off.
    """

    def known(place: float) -> float:
        if math.isnan(value := function(place)):
            raise ValueError(f"the function has no value at {place:g}")
        return value

    before, here, other = low, high, 0.0
    f_before, f_here, f_other = known(before), known(here), 0.0
    last = step = 0.0
    if f_before * f_here > 0:
        raise ValueError("the function has the same sign at both places")
    while f_here:
        if not f_before or (f_before > 0) != (f_here > 0):
            other, f_other = before, f_before
            last = step = here - before
        if abs(f_other) < abs(f_here):
            before, here, other = here, other, here
            f_before, f_here, f_other = f_here, f_other, f_here
        smallest, half = (tolerance + RELATIVE * abs(here)) / 2, (other - here) / 2
        if not f_here or abs(half) < smallest:
            break
        tried = math.inf
        if abs(last) > smallest and abs(f_here) < abs(f_before):
            slope = (f_before - f_here) / (before - here)
            if before == other:  # the secant
                tried = -f_here / slope
            else:  # a parabola in the function's values
                steeper = (f_other - f_here) / (other - here)
                tried = -f_here * (f_other * steeper - f_before * slope) / (steeper * slope * (f_other - f_before))
        good = 2 * abs(tried) < min(abs(last), 3 * abs(half) - smallest)
        last, step = (step, tried) if good else (half, half)
        before, f_before = here, f_here
        here += step if abs(step) > smallest else math.copysign(smallest, half)
        f_here = known(here)
    return here
