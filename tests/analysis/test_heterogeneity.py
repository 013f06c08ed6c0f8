"""Effects that differ between bases: a textbook's analysis of variance, and coverage by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from parley.analysis.stats.heterogeneity import heterogeneity

# Yield of dyestuff from six batches: O. L. Davies and P. L. Goldsmith, Statistical Methods in Research and Production
# (1972); `Dyestuff` in the R package lme4, whose manual gives, by REML, which equals the analysis of variance on these
# balanced data: variance of Batch 1764 (SD 42.00), Residual 2451 (SD 49.51).
DYESTUFF = {
    "A": [1545, 1440, 1440, 1520, 1580],
    "B": [1540, 1555, 1490, 1560, 1495],
    "C": [1595, 1550, 1605, 1510, 1560],
    "D": [1445, 1440, 1595, 1465, 1545],
    "E": [1595, 1630, 1515, 1635, 1625],
    "F": [1520, 1455, 1450, 1480, 1445],
}


def test_the_published_variance_of_batches() -> None:
    yields = np.array(list(DYESTUFF.values()), dtype=float)
    found = heterogeneity(yields.ravel(), np.repeat(list(DYESTUFF), 5))
    assert found.estimate == pytest.approx(42.00, abs=0.005)
    assert found.estimate**2 == pytest.approx(1764, abs=0.5)
    between = stats.f_oneway(*yields)  # a second implementation of F
    assert found.p == pytest.approx(between.pvalue)
    # Mean squares 11,271.5 and 2,451.25; F 5% of (5, 24) = 0.2207 and chi-square 5% of 5 = 1.1455 from tables.
    assert found.high**2 == pytest.approx(5 * (11271.5 - 0.2207 * 2451.25) / (5 * 1.1455), rel=1e-3)


def test_opposite_stereotypes_are_found_although_their_mean_is_0() -> None:
    rng = np.random.default_rng(0)
    bases = np.repeat(np.arange(20), 10)
    opposite = np.where(bases < 10, 1.5, -1.5) + rng.normal(0, 0.7, 200)
    found = heterogeneity(opposite, bases)
    assert found.p < 1e-6
    assert found.estimate == pytest.approx(1.54, abs=0.1)
    assert found.high > 1.5


@pytest.mark.parametrize(("differences", "bases"), [([0.5, 0.2, -0.1], "abc"), ([0.5, 0.2, math.nan], "aab"), ([], "")])
def test_one_base_or_one_scenario_per_base_gives_no_number(differences: list[float], bases: str) -> None:
    found = heterogeneity(differences, list(bases))
    assert all(map(math.isnan, (found.estimate, found.high, found.p)))


def test_without_spread_there_is_nothing_to_bound() -> None:
    for value in (0.0, 0.1):
        equal = heterogeneity([value] * 6, ["a", "a", "b", "b", "c", "c"])
        assert (equal.estimate, equal.high, equal.p) == (0.0, 0.0, 1.0)
    mixed = heterogeneity([0.0, 1.0, 1.0, 0.0], ["a", "a", "b", "b"])
    assert (mixed.estimate, mixed.high, mixed.p) == (0.0, 0.0, 1.0), "scenarios differ, bases do not"
    steady = heterogeneity([1.0, 1.0, -1.0, -1.0], ["a", "a", "b", "b"])
    assert steady.p == 0.0
    assert steady.estimate == pytest.approx(math.sqrt(2))
