"""Statistics against published values, R, textbooks and calculations by hand, each beside its source: a case a row."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from parley.analysis.stats.agreement import fleiss_kappa, krippendorff_alpha, weighted_kappa
from parley.analysis.stats.clustered import bootstrap_mean, cluster_mean, heterogeneity
from parley.analysis.stats.contingency import chi_square_of_counts, cramers_v
from parley.analysis.stats.mean_test import alike_p, mean_p, mean_test, upper_tail
from parley.analysis.stats.multiplicity import benjamini_hochberg, holm
from parley.analysis.stats.paired import mcnemar_p, paired_difference, pearson
from parley.analysis.stats.permutation import effect_of_cells
from parley.analysis.stats.power import clusters_needed, detectable, power_of, too_few
from parley.analysis.stats.proportions import cluster_proportion, proportion_test, wilson
from parley.analysis.stats.resampling import percentile_interval
from parley.analysis.stats.results import clusters_to_reject
from parley.analysis.stats.tables import cell_means

NAN, INF = math.nan, math.inf
# Wikipedia, "Fleiss' kappa", worked example: ten items, fourteen raters, five categories; kappa 0.210.
WIKIPEDIA = [
    [0, 0, 0, 0, 14], [0, 2, 6, 4, 2], [0, 0, 3, 5, 6], [0, 3, 9, 2, 0], [2, 2, 8, 1, 1],
    [7, 7, 0, 0, 0], [3, 2, 6, 3, 0], [2, 5, 3, 2, 2], [6, 5, 2, 1, 0], [0, 2, 2, 3, 7],
]  # fmt: skip
# Fleiss (1971), thirty patients, six psychiatrists (R: irr's `diagnoses`); irr::kappam.fleiss gives 0.4302445.
DIAGNOSES = """444444 222555 233335 555555 222444 113333 333355 113334 114444 555555 144444 124444 222333 144444 224445
333335 111455 111112 224444 133555 555555 244444 224555 114444 144445 222224 111155 224444 133333 555555"""
# irr's `anxiety`, raters 2 and 3, with irr::kappa2's values (kept in statsmodels' tests).
ANXIETY_2 = [3, 6, 4, 6, 2, 4, 2, 4, 3, 3, 2, 3, 3, 3, 2, 2, 1, 3, 3, 4]
ANXIETY_3 = [2, 1, 4, 4, 3, 2, 1, 6, 1, 1, 1, 2, 3, 3, 1, 1, 3, 3, 2, 2]
# Krippendorff's "C" data (Computing Krippendorff's Alpha-Reliability, 2011): items by four observers.
C_DATA = np.array(
    [1, 1, NAN, 1, 2, 2, 3, 2, 3, 3, 3, 3, 3, 3, 3, 3, 2, 2, 2, 2, 1, 2, 3, 4, 4, 4, 4, 4,
     1, 1, 2, 1, 2, 2, 2, 2, NAN, 5, 5, 5, NAN, NAN, 1, 1, NAN, NAN, 3, NAN]
).reshape(12, 4)  # fmt: skip
# R's help page of chisq.test, "From Agresti (2007) p. 39": party by gender.
PARTY = pd.DataFrame([[762, 327, 468], [484, 239, 477]], index=["F", "M"], columns=["Dem", "Ind", "Rep"])
# Darwin's maize, cross- minus self-fertilised, in eighths of an inch: R. A. Fisher, The Design of Experiments (1935),
# sections 17 and 21 (R: HistData::ZeaMays). Of the 32,768 sign patterns, 863 have a sum of 314 or more.
DARWIN = np.array([49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48.0])
# Student's sleep data (R: `sleep`), the second drug minus the first, ten patients.
SLEEP = np.array([1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4])
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
BATCHES = np.array(list(DYESTUFF.values()), dtype=float)
PRODUCTS = [6 / 5 * (batch.mean() - BATCHES.mean()) ** 2 - batch.var(ddof=1) / 5 for batch in BATCHES]
"""The mean product of two yields' deviations, by batch: of six means, deviations are too small by a sixth."""
# Anscombe's first data set. R 4: cor.test(anscombe$x1, anscombe$y1): r 0.8164205, 0.4243912 to 0.9506933, p 0.00217.
ANSCOMBE = (
    [10, 8, 13, 9, 11, 14, 6, 4, 12, 7, 5, 3],
    [8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68, NAN],
)
ZERO = "differences are exactly 0, so that p may be too small"
RUN = stats.ttest_1samp(np.arange(-9, 17), 0)
TWENTY_THREE = pd.DataFrame(np.random.default_rng(0).normal(size=(23, 3)))


def same(found: Any, expected: Any, tolerance: float) -> None:
    """Words exactly, numbers within the tolerance."""
    assert found == expected or found == pytest.approx(expected, rel=0, abs=tolerance, nan_ok=True)


def listed(counts: list[list[int]]) -> list[list[int]]:
    return [list(np.repeat(range(len(row)), row)) for row in counts]


def means(values: list[float], clusters: str, **scale: Any) -> Any:
    return cluster_mean(pd.Series(values, dtype=float), pd.Series(list(clusters), dtype=object), **scale)


def answered(both: int, first: int, second: int, neither: int) -> float:
    """McNemar's p where so many items were right for both, for the first only, and so on; two have a gap."""
    one, two = np.repeat([[1, 1], [1, 0], [0, 1], [0, 0]], [both, first, second, neither], axis=0).T
    return mcnemar_p([*one, None, 1], [*two, 1, None])


SIX_BASES = {"estimate": 0.0, "p": 1.0}
NOTHING = {"estimate": NAN, "p": NAN}
NO_WEIGHTS = {"estimate": -0.006289308, "n": 40, "method": "Cohen's kappa, jackknife over items"}
QUADRATIC = {"estimate": 0.2520325}
LINES: list[tuple[Callable[[], Any], dict[str, Any], float]] = [
    # Agreement of judges
    (lambda: fleiss_kappa(listed(WIKIPEDIA)), {"estimate": 0.210, "n": 140, "clusters": 10}, 5e-4),
    (lambda: fleiss_kappa([list(row) for row in DIAGNOSES.split()]), {"estimate": 0.4302445}, 1e-7),
    # aab and bb: alike 1/3 and 1, mean 2/3; a 2 of 5, b 3 of 5: chance 13/25; a lone rating tells nothing
    (
        lambda: fleiss_kappa([["a", "a", "b"], ["b", "b", None], ["a", None, None]]),
        {"estimate": (2 / 3 - 13 / 25) / (12 / 25), "n": 5, "clusters": 2},
        1e-9,
    ),
    (lambda: fleiss_kappa([[1], [2]]), {"estimate": NAN, "n": 0, "clusters": 0}, 0),
    (lambda: weighted_kappa(ANXIETY_2, ANXIETY_3, weights="none"), NO_WEIGHTS, 1e-7),
    (lambda: weighted_kappa(ANXIETY_2, ANXIETY_3, weights="linear"), {"estimate": 0.1459075, "clusters": 20}, 1e-7),
    (lambda: weighted_kappa(ANXIETY_2, ANXIETY_3, weights="quadratic"), QUADRATIC, 1e-7),
    # 5 never occurs, and R's irr takes 4 and 6 for neighbours; given the scale, they are two steps apart
    (
        lambda: weighted_kappa(ANXIETY_2, ANXIETY_3, categories=[1, 2, 3, 4, 5, 6]),
        {
            "estimate": 1
            - np.abs(np.subtract(ANXIETY_2, ANXIETY_3)).mean() / np.abs(np.subtract.outer(ANXIETY_2, ANXIETY_3)).mean()
        },
        1e-9,
    ),
    # R: irr::kripp.alpha, help page; Krippendorff's n.. = 40 pairable values
    (lambda: krippendorff_alpha(C_DATA), {"estimate": 0.849, "n": 40, "clusters": 11}, 5e-4),
    # Tables of counts. Agresti (2007), table 2.5: X² = 30.1, df = 2, whose tail is exp(-X² / 2)
    (
        lambda: chi_square_of_counts(PARTY),
        {"statistic": 30.1, "df": 2, "n": 2757, "clusters": None, "p": math.exp(-15.035)},
        0.05,
    ),
    # rows 30 and 30, columns 40 and 20, so 20 and 10 are expected in each row: (5² / 20 + 5² / 10) · 2 = 7.5
    (
        lambda: chi_square_of_counts([[25, 5], [15, 15]]),
        {"statistic": 7.5, "df": 1, "p": math.erfc(math.sqrt(7.5 / 2)), "n": 60}
        | dict(zip(("estimate", "low", "high"), cramers_v(7.5, 60, 2, 2), strict=True)),
        1e-9,
    ),
    # what has no counts changes nothing: rows 12 and 12, columns 11 and 13, so every count is 2.5 from its expectation
    (
        lambda: chi_square_of_counts([[3, 0, 9], [0, 0, 0], [8, 0, 4]]),
        {"statistic": 2 * 2.5**2 * (1 / 5.5 + 1 / 6.5), "df": 1, "assumption": "independent", "measure": "Cramér's V"},
        1e-12,
    ),
    # Proportions. R. G. Newcombe, "Two-sided confidence intervals for the single proportion: comparison of seven
    # methods", Statistics in Medicine 17 (1998) 857-872, table I, method 3 (score, no continuity correction)
    (lambda: wilson(81, 263), {"low": 0.2553, "high": 0.3662, "estimate": 81 / 263, "method": "Wilson"}, 5e-5),
    (lambda: wilson(15, 148), {"low": 0.0624, "high": 0.1605}, 5e-5),
    (lambda: wilson(0, 20), {"low": 0.0, "high": 0.1611, "n": 20, "level": 0.95}, 5e-5),
    (lambda: wilson(0, 0), {"low": NAN, "high": NAN, "estimate": NAN}, 0),
    # wins and sizes: a 2 of 2, b 1 of 2, c 1 of 4; p = 4 / 8; deviations 1, 0, -1; variance 3 / 2 · 2 / 64 = 0.046875
    # effective n = 0.25 / 0.046875 = 16 / 3; t(0.975, 2) = 4.3027; centre (p + t² / 2n) / (1 + t² / n) = 1 / 2 and
    # half width t / (1 + t² / n) · sqrt(0.25 / n + t² / (4 n²)) = 0.44055
    (
        lambda: cluster_proportion([1, 1, 1, 0, 1, 0, 0, 0], list("aabbcccc")),
        {"estimate": 0.5, "low": 0.5 - 0.44055, "high": 0.5 + 0.44055, "n": 8, "clusters": 3},
        1e-4,
    ),
    # Four wins in each of 15 clusters are 15 cases, not 60
    (
        lambda: cluster_proportion(np.ones(60), np.repeat(np.arange(15), 4)),
        {"estimate": 1.0, "high": 1.0, "low": 15 / (15 + stats.t.ppf(0.975, 14) ** 2)},
        1e-3,
    ),
    # One small cluster loses and 59 win: as 60 cases, not as 591
    (
        lambda: cluster_proportion(
            np.repeat([0.0, *[1.0] * 59], [1, *[10] * 59]), np.repeat(range(60), [1, *[10] * 59])
        ),
        {"low": 0.935, "high": 1.0},
        0.01,
    ),
    # Means. cluster means: a = 7, b = 5, c = 9; their mean 7, deviations 0, -2, 2, so s = sqrt(8 / 2) = 2;
    # standard error 2 / sqrt(3) = 1.1547; t(0.975, 2) = 4.3027; half width 4.9683
    (
        lambda: means([6.0, 8.0, 5.0, 9.0, 9.0, 9.0], "aabccc"),
        {"estimate": 7, "low": 7 - 4.9683, "high": 7 + 4.9683, "n": 6, "clusters": 3},
        1e-4,
    ),
    # Means 9, 10, 10: 9.667 ± 4.303 · 0.3333 (t with two degrees of freedom), so 8.232 to 11.101
    (lambda: means([9.0, 10.0, 10.0], "abc"), {"estimate": 29 / 3, "low": 8.2324, "high": 11.1009}, 1e-4),
    (lambda: means([9.0, 10.0, 10.0], "abc", scale=(0, 10)), {"low": 8.2324, "high": 10.0}, 1e-4),
    (lambda: means([1.0, NAN, 3.0, NAN], "aabc"), {"estimate": 2, "high": 2 + 12.7062, "n": 2, "clusters": 2}, 1e-4),
    (lambda: means([], ""), {"estimate": NAN, "low": NAN, "n": 0, "clusters": 0}, 0),
    (lambda: means([5.0], "a"), {"estimate": 5, "low": NAN, "high": NAN, "n": 1}, 0),
    (lambda: bootstrap_mean([1.0, 1.0, 1.0, 5.0], list("aaab")), {"estimate": 3.0}, 1e-12),
    (lambda: bootstrap_mean([1.0, 1.0, 1.0, 5.0], list("aaab"), weight="row"), {"estimate": 2.0}, 1e-12),
    (
        lambda: bootstrap_mean([0.0, 2.0], range(2), draws=39),
        {"estimate": 1.0, "low": NAN, "note": "an interval needs 40 bootstrap draws or more"},
        0,
    ),
    # Clusters that all agree: with (1 - r)ⁿ = 0.025 a share r of unseen ones may lie at either end of the scale
    (lambda: means([3.0] * 8, "abcdefgh", scale=(0, 10)), {"low": 3 - 3 * 0.36943, "high": 3 + 7 * 0.36943}, 1e-4),
    (lambda: mean_test([0.0] * 20, farthest=8), {"p": 1.0, "low": -8 * 0.16843, "high": 8 * 0.16843}, 1e-4),
    (lambda: paired_difference([5, 9] * 10, [5, 9] * 10, range(20)), {"low": -4 * 0.16843, "high": 4 * 0.16843}, 1e-4),
    (lambda: cluster_proportion([1, 0] * 8, np.arange(16) // 2), {"low": 0.5 - 0.5 * 0.36943, "note": ""}, 1e-4),
    (lambda: proportion_test(np.full(20, 0.75), 0.5), {"p": 2 * (2 / 3) ** 20, "low": 0.75 * 0.83157}, 1e-4),
    # Bases that differ
    (
        lambda: heterogeneity(BATCHES.ravel(), np.repeat(list(DYESTUFF), 5)),
        {"estimate": 42.00, "p": stats.ttest_1samp(PRODUCTS, 0, alternative="greater").pvalue},
        0.005,
    ),
    (lambda: heterogeneity([0.1] * 6, list("aabbcc")), SIX_BASES, 0),
    (lambda: heterogeneity([0.0, 1.0, 1.0, 0.0], list("aabb")), SIX_BASES, 0),  # scenarios differ, bases do not
    (lambda: heterogeneity([1.0, 1.0, -1.0, -1.0], list("aabb")), {"estimate": math.sqrt(2), "p": 0.0}, 1e-12),
    (lambda: heterogeneity([0.5, 0.2, -0.1], list("abc")), NOTHING, 0),  # one scenario per base
    (lambda: heterogeneity([0.5, 0.2, NAN], list("aab")), NOTHING, 0),
    # The test of a mean difference
    (
        lambda: paired_difference(DARWIN, np.zeros(15), range(15)),
        {"p": 1726 / 32768, "estimate": 314 / 15, "statistic": stats.ttest_1samp(DARWIN, 0).statistic}
        | {"method": "t and sign flips over clusters", "assumption": "clustered"},
        1e-9,
    ),
    # a: (1 + 3) / 2 = 2, b: 1, c: 0; ±2 ±1 ±0: two of the four reach 3
    (
        lambda: paired_difference([2.0, 4.0, 5.0, 1.0], [1.0, 1.0, 4.0, 1.0], ["a", "a", "b", "c"]),
        {"estimate": 1.0, "p": 0.5, "n": 4, "clusters": 3},
        0,
    ),
    # 25 values other than 0, which are not skewed: Student's
    (
        lambda: mean_test(np.arange(-9, 17)),
        dict(zip(("p", "low", "high"), (RUN.pvalue, *RUN.confidence_interval()), strict=True))
        | {"method": "t over clusters", "note": ""},
        1e-9,
    ),
    # 24 times 1 and 6 times -3: mean 0.2, moments 2.56 and -6.144, t = 0.2 / √(2.56 / 29) = 0.6731456,
    # g = -6.144 / 2.56^1.5 / √30 = -0.2738613; t + g·t² / 3 + g²·t³ / 27 + g / 6 = 0.5869849
    (lambda: mean_test(np.repeat([1.0, -3.0], [24, 6])), {"p": 2 * stats.t.sf(0.5869849, 29)}, 1e-6),
    # skewed the other way: Student's, as Hall's p is smaller
    (lambda: mean_test(np.repeat([-1.0, 3.0], [21, 9])), {"p": 2 * stats.t.sf(0.2 / math.sqrt(3.36 / 29), 29)}, 1e-9),
    # Half of the differences are 0, and the others vary in size
    (lambda: mean_test([0.0] * 6 + [1, 2, 3, 4, 5, 6]), {"note": f"6 of 12 {ZERO}", "p": 2 / 2**6}, 0.03),
    (lambda: mean_test([0.0] * 6 + [1.0] * 6), {"note": "", "p": 2 / 2**6}, 1e-12),  # of one size: the sign test's
    (lambda: mean_test([*range(-12, 13), 40.0]), {"p": stats.ttest_1samp([*range(-12, 13), 40.0], 0).pvalue}, 1e-9),
    # differences 1, 2, 3: of the eight ways to set signs, only + + + and - - - reach 6
    (
        lambda: effect_of_cells(pd.DataFrame({"f": [5.0, 6.0, 7.0], "m": [4.0, 4.0, 4.0]})),
        {"p": 2 / 8, "estimate": 2.0, "low": -INF, "high": INF, "n": 6, "clusters": 3}
        | {"measure": "mean difference, f − m"}
        | {"note": "3 clusters: p cannot be below 0.25; an interval needs 6", "statistic": 2 / stats.sem([1, 2, 3])},
        1e-9,
    ),
    (  # one identity: nothing to compare; n is of the values behind the cells, if it is given
        lambda: effect_of_cells(pd.DataFrame({"f": [5.0, 6.0, NAN]}), n=9),
        {"p": NAN, "n": 9, "clusters": 2, "note": "fewer than two identities have values"},
        0,
    ),
    (  # three identities: both rows turned round are as far apart as they are, and one alone is not
        lambda: effect_of_cells(pd.DataFrame([[1.0, 4.0, 2.0], [2.0, 7.0, 3.0]])),
        {"p": 2 / 4, "method": "sign flips of whole clusters, exact", "n": 6, "clusters": 2},
        0,
    ),
    # all signs of 11 clusters are tried and those of the other 12 drawn, which is not exact
    (lambda: effect_of_cells(TWENTY_THREE), {"method": "sign flips of whole clusters, 4,194,304 arrangements"}, 0),
    # Correlation
    (
        lambda: pearson(*ANSCOMBE),
        {"estimate": 0.8164205, "low": 0.4243912, "high": 0.9506933, "p": 0.00217, "n": 11, "df": 9},
        1e-5,
    ),
    (lambda: pearson([1, 1, 1, 1], [1, 2, 3, 4]), {"estimate": NAN}, 0),
    (
        lambda: pearson([1, 2, 4], [2, 4, 6]),
        {"low": NAN, "note": "fewer than four pairs, or a perfect line: no interval"},
        0,
    ),
]


@pytest.mark.parametrize(("compute", "expected", "tolerance"), LINES)
def test_lines(compute: Callable[[], Any], expected: dict[str, Any], tolerance: float) -> None:
    found = compute()
    for name, value in expected.items():
        same(getattr(found, name), value, tolerance)


VALUES: list[tuple[Callable[[], Any], Any, float]] = [
    (lambda: bootstrap_mean([0.0, 2.0], range(2), draws=40).note, "", 0),
    # R, package statpsych, help page: ci.cramer(.05, 19.21, 2, 3, 200) gives 0.3099, 0.1601, 0.4417
    (lambda: cramers_v(19.21, 200, 2, 3), (0.3099, 0.1601, 0.4417), 5e-5),
    (lambda: upper_tail(DARWIN), 863 / 32768, 0),
    # With equal sizes the test is the sign test: 16 of 24 heads, P = 0.1516 two-sided (binomial table).
    (lambda: mean_p([1.0] * 16 + [-1.0] * 8), 0.1516, 5e-5),
    (lambda: mean_p([3.0 + 0.01 * i for i in range(20)]), 2.0**-19, 1e-12),
    # never below 2^(1-k): three equal bases, sixty equal ones, and two of sixty that differ
    (lambda: [mean_p([1.0] * 3), mean_p([1.0] * 60), mean_p([1.0, 1.0, *[0.0] * 58])], [1 / 4, 2.0**-59, 1 / 2], 1e-12),
    (lambda: mean_p([0.0] * 20), 1.0, 0),
    (lambda: mean_p([]), NAN, 0),
    (lambda: (clusters_to_reject(0.05), clusters_to_reject(0.05, tests=26)), (6, 11), 0),
    (lambda: answered(2, 5, 1, 2), 14 / 64, 1e-12),  # 5 only the first got right, 1 only the second: 2 · (1 + 6) / 2⁶
    # S. Aoki, Gunma University: R's binom.test(c(35, 28)) for 48, 28, 35, 53 gives p = 0.45
    (lambda: answered(48, 28, 35, 53), 0.4500, 5e-5),
    (lambda: answered(1, 0, 0, 1), NAN, 0),  # no item was answered differently
    # 2 - SLEEP is 0.8, -0.4, 0.7, 0.7, 2, 1, 0.2, 1.2, 0.6 without the ninth patient: a pattern reaches its sum if it
    # flips nothing, -0.4, or -0.4 and 0.2
    (lambda: alike_p(np.delete(SLEEP, 8), 2.0), 3 / 512, 1e-12),
    (lambda: alike_p(-SLEEP, 2.5) - alike_p(SLEEP, 2.5), 0, 1e-12),  # the other side of the margin
    # Of the clusters not in the sample, a tenth at 1 would give the margin: 0.9²⁰; at an unknown distance, any share
    (lambda: alike_p([0.0] * 20, 0.1, 1.0), 0.9**20, 1e-15),
    (lambda: alike_p([0.02] * 20, 0.1, 1.0), (1 - 0.08 / 0.98) ** 20, 1e-15),
    (lambda: alike_p([0.0] * 20, 0.1), 1.0, 0),
    (lambda: alike_p([], 0.1), NAN, 0),
    # Holm by hand: the smallest times five, the next times four, … none below the one before; pingouin's documentation
    (lambda: holm([0.50, 0.003, 0.32, 0.054, 0.0003]), [0.64, 0.012, 0.64, 0.162, 0.0015], 1e-9),
    # stdlib's padjust, checked there against R's p.adjust
    (lambda: benjamini_hochberg([0.008, 0.03, 0.123, 0.6, 0.2]), [0.04, 0.075, 0.205, 0.6, 0.25], 1e-9),
    (lambda: [holm([0.6, 0.9, 0.4]), benjamini_hochberg([0.9, 0.9])], [[1, 1, 1], [0.9, 0.9]], 1e-12),  # at most 1
    (lambda: holm([0.01, NAN, 0.04]), [0.02, NAN, 0.04], 1e-9),  # what is missing is not corrected for
    (lambda: benjamini_hochberg([0.01, NAN, 0.04]), [0.02, NAN, 0.04], 1e-9),
    # Power. 2 of 32 sign patterns: p is at least 0.0625, whatever the data are
    (lambda: mean_p([1000.0, 1001.0, 999.0, 1000.5, 1002.0]), 0.0625, 0),
    (lambda: [power_of(bases, effect=1000.0, sd=0.1) for bases in (5, 6, 12)], [0, 1, 1], 0),
    (lambda: [detectable(5, sd=0.1), detectable(7, sd=0.1, tests=6)], [INF, INF], 0),
    # Where all must agree in sign, a finding is about as likely as that all draws are above 0: Φ(effect / SD)^bases
    (lambda: power_of(6, 1.8, 1.0), stats.norm.cdf(1.8) ** 6, 0.04),
    (lambda: power_of(8, -1.9, 1.0, tests=6), stats.norm.cdf(1.9) ** 8, 0.04),
    (lambda: power_of(8, detectable(8, 0.4, tests=6), 0.4, tests=6), 0.8, 0.02),
    # G*Power 3.1 (t test, matched pairs, two tails, α 0.05, power 0.80) for Cohen's small, medium, large effect
    (lambda: [clusters_needed(effect, 1.0) for effect in (0.2, 0.5, 0.8)], [199, 34, 15], 1),
    # power.t.test(delta=10, sd=10*sqrt(2), power=0.85, type="paired"): n = 19.96892 (Dalgaard, Introductory Statistics
    # with R, section 8.3)
    (lambda: clusters_needed(10, 10 * math.sqrt(2), power=0.85), 20, 1),
    # What has 80% is found in 80%, and one cluster fewer has less
    (lambda: power_of(14, -detectable(14, 0.1, tests=9), 0.1, tests=9), 0.8, 1e-4),
    # Differences that do not vary: p is 1 where all are 0
    (lambda: [detectable(12, 0.0), detectable(5, 0.0)], [0, INF], 0),
    (lambda: [power_of(20, 0.1, 0.0), power_of(20, 0.0, 0.0)], [1, 0], 0),
    (lambda: [clusters_needed(0.1, 0.0), clusters_needed(1.0, NAN), clusters_needed(0.0, 1.0)], [6, None, None], 0),
    (lambda: [detectable(20, NAN), power_of(20, 1.0, NAN)], [NAN] * 2, 0),
    (lambda: (too_few(6), too_few(11, tests=26)), ("", ""), 0),
    (
        lambda: too_few(10, tests=26),
        "10 bases: no difference can be significant, however large; 26 tests need at least 11",
        0,
    ),
    # R, resample::ExpandProbs: z(probs2)·sqrt((n - 1) / n) = t(probs, n - 1). On normal draws with the bootstrap's
    # narrower spread the interval is then Student's: t(0.975, 9)
    (
        lambda: percentile_interval(stats.norm.ppf((np.arange(100_000) + 0.5) / 100_000) * math.sqrt(0.9), 10),
        (-2.2622, 2.2622),
        2e-3,
    ),
    # cells are means of all their values; columns in order of appearance
    (lambda: [*cell_means([1.0, 3.0, None, 8.0], list("bbba"), list("2221")).to_numpy().flat], [NAN, 8.0, 2.0, NAN], 0),
]


@pytest.mark.parametrize(("compute", "expected", "tolerance"), VALUES)
def test_values(compute: Callable[[], Any], expected: Any, tolerance: float) -> None:
    same(compute(), expected, tolerance)
