"""Many tests at once: p-values corrected for a named family."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import stats

from parley.analysis.stats.tables import Column, Floats, numbers


@dataclass(frozen=True, slots=True)
class Family:
    """A family of tests: its name, p-values before and after, in the order given. NaN stays NaN.

    `tests` counts the tests that could be made; only they are corrected for.
    """

    name: str
    method: str
    controls: str
    p: tuple[float, ...]
    adjusted: tuple[float, ...]
    tests: int


def holm(p: Column, family: str) -> Family:
    """Holm's step-down correction: for confirmatory families."""
    return _family(p, family, "Holm", "the chance of even one false alarm in the family", _holm)


def benjamini_hochberg(p: Column, family: str) -> Family:
    """Benjamini and Hochberg's step-up correction: for exploratory families."""
    controls = "the expected share of false alarms among what is called real (tests independent or positively related)"
    return _family(p, family, "Benjamini–Hochberg", controls, stats.false_discovery_control)


def _holm(p: Floats) -> Floats:
    """The smallest counts as often as there are tests, the next once less, and none falls below the one before.

    (statsmodels' own clears all of Python's memory at every call, which takes longer than the tests do.)
    """
    order = np.argsort(p)
    steps = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(steps, 1)
    return adjusted


def _family(p: Column, family: str, method: str, controls: str, correct: Callable[[Floats], Floats]) -> Family:
    given = numbers(p)
    known = np.isfinite(given)
    adjusted = np.full(len(given), np.nan)
    if known.any():
        adjusted[known] = correct(given[known])
    return Family(family, method, controls, tuple(given.tolist()), tuple(adjusted.tolist()), int(known.sum()))
