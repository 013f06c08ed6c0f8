"""Many tests at once: p-values corrected for a named family."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from statsmodels.stats.multitest import multipletests

from analysis.tables import Column, numbers


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
    return _family(p, family, "holm", "Holm", "the chance of even one false alarm in the family")


def benjamini_hochberg(p: Column, family: str) -> Family:
    """Benjamini and Hochberg's step-up correction: for exploratory families."""
    controls = "the expected share of false alarms among what is called real (tests independent or positively related)"
    return _family(p, family, "fdr_bh", "Benjamini–Hochberg", controls)


def _family(p: Column, family: str, code: str, method: str, controls: str) -> Family:
    given = numbers(p)
    known = np.isfinite(given)
    adjusted = np.full(len(given), np.nan)
    if known.any():
        adjusted[known] = multipletests(given[known], method=code)[1]
    return Family(family, method, controls, tuple(given.tolist()), tuple(adjusted.tolist()), int(known.sum()))
