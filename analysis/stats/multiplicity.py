"""Corrections for multiple testing: adjusted p-values of a family of tests.

NaN stands for a test that could not be made. It stays NaN, and the others are not corrected for it. statsmodels'
`multipletests` runs a full garbage collection a call, and importing it takes 1.0 s, a third of a report's time.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from parley.analysis.stats.tables import Column, Floats, as_floats


def holm(p: Column) -> list[float]:
    """Holm's step-down correction, for confirmatory families: controls the chance of even one false positive.

    The smallest p-value times the number of tests, the next times one less, and so on, never decreasing.

    Args:
        p: The p-values of the family.
    """
    adjusted, order, ranks = _ordered(p)
    adjusted[order] = np.minimum(np.maximum.accumulate(adjusted[order] * ranks[::-1]), 1)
    return list(adjusted.tolist())


def benjamini_hochberg(p: Column) -> list[float]:
    """Benjamini and Hochberg's step-up correction, for exploratory families: the expected share of false positives.

    The largest p-value as it is, the next times n / (n - 1), and so on, never increasing.

    Args:
        p: The p-values of the family; tests are taken as independent or positively related.
    """
    adjusted, order, ranks = _ordered(p)
    adjusted[order[::-1]] = np.minimum.accumulate((adjusted[order] * len(order) / ranks)[::-1])
    return list(adjusted.tolist())


def _ordered(p: Column) -> tuple[Floats, NDArray[np.intp], Floats]:
    """The p-values, the places of those that are known from the smallest on, and their ranks."""
    values = np.array(as_floats(p))
    order = np.argsort(values)[: int(np.isfinite(values).sum())]  # NaN is last
    return values, order, np.arange(1.0, len(order) + 1)
