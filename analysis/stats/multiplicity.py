"""Corrections for multiple testing: adjusted p-values of a family of tests.

NaN stands for a test that could not be made. It stays NaN, and the others are not corrected for it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from parley.analysis.stats.tables import Column, Floats, as_floats


def holm(p: Column) -> list[float]:
    """Holm's step-down correction, for confirmatory families: controls the chance of even one false positive.

    Args:
        p: The p-values of the family.
    """
    return _adjusted(p, _holm)


def benjamini_hochberg(p: Column) -> list[float]:
    """Benjamini and Hochberg's step-up correction, for exploratory families.

    It controls the expected share of false positives among significant tests.

    Args:
        p: The p-values of the family; tests are taken as independent or positively related.
    """
    return _adjusted(p, _benjamini_hochberg)


def _holm(p: Floats) -> Floats:
    """The smallest p-value times the number of tests, the next times one less, and so on, never decreasing.

    statsmodels' `multipletests` runs a full garbage collection on every call, which takes longer than the tests do.
    """
    order = np.argsort(p)
    steps = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(steps, 1)
    return adjusted


def _benjamini_hochberg(p: Floats) -> Floats:
    """The largest p-value as it is, the next times n / (n - 1), and so on, never increasing."""
    order = np.argsort(-p)
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum.accumulate(p[order] * len(p) / np.arange(len(p), 0, -1))
    return adjusted


def _adjusted(p: Column, correct: Callable[[Floats], Floats]) -> list[float]:
    given = as_floats(p)
    finite = np.isfinite(given)
    adjusted = np.full(len(given), np.nan)
    if finite.any():
        adjusted[finite] = correct(given[finite])
    values: list[float] = adjusted.tolist()
    return values
