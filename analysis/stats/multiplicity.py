"""Corrections for multiple testing: adjusted p-values of a named family of tests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

from parley.analysis.stats.tables import Column, Floats, as_floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """The adjusted p-values of a family of tests.

    Args:
        name: What the family consists of.
        method: The correction.
        controls: The error rate that the correction controls.
        p: P-values before the correction, in the order given; NaN where a test could not be made.
        adjusted: P-values after it, in the same order; NaN stays NaN.
        tests: Number of tests that could be made. Only they are corrected for.
    """

    name: str
    method: str
    controls: str
    p: tuple[float, ...]
    adjusted: tuple[float, ...]
    tests: int


def holm(p: Column, family: str) -> Family:
    """Holm's step-down correction, for confirmatory families.

    Args:
        p: P-values, NaN where a test could not be made.
        family: Name of the family.
    """
    return _adjust(p, family, "Holm", "the chance of even one false positive in the family", _holm)


def benjamini_hochberg(p: Column, family: str) -> Family:
    """Benjamini and Hochberg's step-up correction, for exploratory families.

    Args:
        p: P-values, NaN where a test could not be made; tests are taken as independent or positively related.
        family: Name of the family.
    """
    controls = "the expected share of false positives among significant tests (independent or positively related)"
    return _adjust(p, family, "Benjamini–Hochberg", controls, stats.false_discovery_control)


def with_holm(table: pd.DataFrame, family: str | pd.Series | None = None) -> pd.DataFrame:
    """The table with `p_adjusted` next to `p`: Holm's correction in each family of rows.

    Args:
        table: Rows with p-values; an empty table stays as it is.
        family: The column, or the value of each row, by which families differ; None: all rows are one family.
    """
    if table.empty:
        return table
    groups = table.groupby(np.zeros(len(table)) if family is None else family, sort=False)["p"]
    corrected = table.copy()
    adjusted = groups.transform(lambda p: holm(p, str(p.name)).adjusted)
    corrected.insert(corrected.columns.get_loc("p") + 1, "p_adjusted", adjusted)
    return corrected


def _holm(p: Floats) -> Floats:
    """The smallest p-value times the number of tests, the next times one less, and so on, never decreasing.

    statsmodels' `multipletests` runs a full garbage collection on every call, which takes longer than the tests do.
    """
    order = np.argsort(p)
    steps = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(steps, 1)
    return adjusted


def _adjust(p: Column, family: str, method: str, controls: str, correct: Callable[[Floats], Floats]) -> Family:
    given = as_floats(p)
    known = np.isfinite(given)
    adjusted = np.full(len(given), np.nan)
    if known.any():
        adjusted[known] = correct(given[known])
    return Family(
        name=family,
        method=method,
        controls=controls,
        p=tuple(given.tolist()),
        adjusted=tuple(adjusted.tolist()),
        tests=int(known.sum()),
    )
