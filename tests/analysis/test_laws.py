"""What must hold of statistics whatever the data: definitions counted out, other libraries, what changes nothing."""

from __future__ import annotations

import inspect
import itertools
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from parley.analysis.stats.agreement import fleiss_kappa, krippendorff_alpha, weighted_kappa
from parley.analysis.stats.clustered import bootstrap_mean
from parley.analysis.stats.mean_test import mean_p, mean_test
from parley.analysis.stats.paired import mcnemar_p
from parley.analysis.stats.permutation import effect_of_cells
from parley.analysis.stats.power import clusters_needed, detectable, power_of
from parley.analysis.stats.proportions import cluster_proportion, wilson
from parley.analysis.stats.resampling import bootstrap_sums, percentile_interval, words_on_draws
from parley.analysis.stats.results import Line
from parley.analysis.stats.tables import cell_means

NAN, INF = math.nan, math.inf

# Agreement and counts


def test_items_of_one_scenario_are_left_out_together_and_an_interval_names_what_it_lacks() -> None:
    rng = np.random.default_rng(2)
    scenario = np.repeat(np.arange(12), 8)
    noisy = rng.random(12) < 0.5  # on some scenarios the judges agree, on others not at all
    ratings = np.where(noisy[scenario][:, None], rng.integers(0, 3, (96, 3)), rng.integers(0, 3, (96, 1)))
    items, clusters = fleiss_kappa(ratings), fleiss_kappa(ratings, clusters=scenario)
    assert (clusters.estimate, clusters.clusters) == (pytest.approx(items.estimate), 12)
    assert clusters.high - clusters.low > 1.4 * (items.high - items.low)
    few = [[1, 1], [2, 2], [3, 4], [1, 2], [2, 2], [3, 3], [4, 4], [1, 1]]
    assert krippendorff_alpha(few[:7], clusters=list("abcdefg")).note == "7 clusters: an interval needs 8"
    result = krippendorff_alpha(few, clusters=list("abcdefgh"))
    assert result.note == ""
    assert -1 <= result.low <= result.estimate <= result.high <= 1


@pytest.mark.parametrize("weights", ["none", "linear", "quadratic"])
def test_intervals_of_kappa_are_close_to_statsmodels(weights: Any) -> None:
    """Whose intervals assume a normal estimate; clusters of four items that are independent change them little."""
    from statsmodels.stats.inter_rater import cohens_kappa

    rng = np.random.default_rng(1)
    first = rng.integers(0, 3, 400)
    second = np.where(rng.random(400) < 0.6, first, rng.integers(0, 3, 400))
    scale = {} if weights == "none" else {"weights": np.arange(3), "wt": weights}
    theirs = cohens_kappa(pd.crosstab(first, second).to_numpy(), **scale)
    for clusters, over in ((None, "items"), (np.arange(400) // 4, "clusters")):
        ours = weighted_kappa(first, second, weights=weights, clusters=clusters)
        assert (ours.low, ours.high) == pytest.approx((theirs.kappa_low, theirs.kappa_upp), abs=0.03)
        assert ours.method.endswith(f"jackknife over {over}")
        assert ours.assumes.startswith(f"{over} ")


@pytest.mark.parametrize("n", [1, 7, 39])
def test_the_interval_of_0_starts_at_0_and_that_of_1_ends_at_1(n: int) -> None:
    """Exactly, or a table shows 5.6e-17."""
    assert (wilson(0, n).low, wilson(n, n).high) == (0, 1)
    assert cluster_proportion([0.0] * (n + 1), range(n + 1)).low == 0
    assert cluster_proportion([1.0] * (n + 1), range(n + 1)).high == 1


def test_a_proportion_is_wilsons_with_as_many_cases_as_there_are_clusters() -> None:
    theirs, ours = wilson(130, 400), cluster_proportion(np.repeat([1.0, 0.0], [130, 270]), np.arange(400))
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=1e-3)
    some, clusters = np.array([1, 0, 1, 1, 0, 1, 1, 0.5]), np.arange(8)
    once, often = cluster_proportion(some, clusters), cluster_proportion(np.tile(some, 10), np.tile(clusters, 10))
    assert (often.low, often.high) == pytest.approx((once.low, once.high)), "ten times the same is nothing new"


def test_a_draw_is_a_sum_over_units_drawn_with_replacement(monkeypatch: pytest.MonkeyPatch) -> None:
    units = np.array([[1.0, 1.0], [10.0, 1.0], [100.0, 1.0]])
    sums = bootstrap_sums(units, 4000, 0)
    assert set(sums[:, 1]) == {3.0}, "as many units as there are, every time"
    assert set(sums[:, 0]) == {a + 10 * b + 100 * (3 - a - b) for a in range(4) for b in range(4 - a)}
    assert np.mean(sums[:, 0] == 111) == pytest.approx(6 / 27, abs=0.03), "all three different: 3! / 3³ of the draws"
    monkeypatch.setattr("parley.analysis.stats.resampling.BLOCK_SIZE", 100)  # two draws of 50 units per block
    many = np.arange(50.0)[:, None]
    assert bootstrap_sums(many, 501, 0).mean() == pytest.approx(many.sum(), rel=0.02)


def test_an_interval_needs_two_units_forty_draws_and_half_of_them_known() -> None:
    draws = np.linspace(0, 1, 40)
    for known, units, usable in ((40, 2, True), (21, 2, True), (20, 2, False), (40, 1, False)):
        some = np.where(np.arange(40) < known, draws, NAN)
        assert all(map(math.isfinite, percentile_interval(some, units))) == usable
    assert all(map(math.isnan, percentile_interval(draws[:39], 2)))
    assert words_on_draws(40) == ()
    assert words_on_draws(39) == ("An interval needs 40 bootstrap draws or more, not 39: see --draws.",)
    with pytest.raises(ValueError, match="different lengths: 3, 2"):
        bootstrap_mean([1.0, 2.0, 3.0], ["a", "b"])
    with pytest.raises(ValueError, match="needs columns of 0 and 1"):
        mcnemar_p([0.5, 1], [1, 0])


def reference_p(differences: np.ndarray) -> float:
    """By scipy, and by all sign patterns; where -d, 0 and d are the only values, by the binomial test alone."""
    sizes = np.abs(differences[differences != 0])
    if not len(sizes) or np.ptp(sizes) == 0:
        return float(stats.binomtest(int((differences > 0).sum()), len(sizes)).pvalue) if len(sizes) else 1.0
    varying, count = len(differences) > 1 and bool(np.ptp(differences)), int(np.count_nonzero(differences))
    t = stats.ttest_1samp(differences, 0).statistic if varying else math.copysign(INF, differences.mean())
    n, statistics = len(differences), [t]
    if varying and n > 2 and exceeds_chance(differences):
        g = stats.skew(differences) / math.sqrt(n)
        hall = t + g * t**2 / 3 + g**2 * t**3 / 27 + g / 6
        others = np.delete(differences, np.argmax(np.abs(differences - differences.mean())))
        statistics = [hall] if count <= 24 or (exceeds_chance(others) and stats.skew(others) * g > 0) else [t, hall]
    sign = 1 if differences.sum() >= 0 else -1
    by_t = 2 * max(stats.t.sf(sign * statistic, n - 1) for statistic in statistics) if n > 1 else 0.0
    patterns = np.array(list(itertools.product([1.0, -1.0], repeat=n))) @ differences if n <= 24 else np.array([0.0])
    counted = float(np.mean(np.abs(patterns) >= abs(differences.sum()) - 1e-9)) if count <= 24 else 0.0
    return min(1.0, max(counted, by_t, 2.0 ** (1 - count)))


def exceeds_chance(values: np.ndarray) -> bool:
    n = len(values)
    return n > 2 and abs(stats.skew(values)) > 2 * math.sqrt(6 * n * (n - 1) / ((n - 2) * (n + 1) * (n + 3)))


whole_points = st.lists(st.integers(-3, 3).map(float), min_size=1, max_size=11)
one_size = st.lists(st.sampled_from([-0.5, 0.0, 0.5]), min_size=1, max_size=40)
any_values = st.lists(st.floats(-10, 10).map(lambda value: round(value, 3)), min_size=1, max_size=11)
many_values = st.lists(st.integers(-3, 9).map(float), min_size=25, max_size=40).filter(lambda values: 0 not in values)


@given(st.one_of(whole_points, any_values, many_values, one_size))
@settings(max_examples=90)
def test_p_is_the_larger_one_of_its_parts_and_the_interval_what_is_not_rejected(values: list[float]) -> None:
    given_values, test = np.array(values), mean_test(values)
    assert test.p == pytest.approx(reference_p(given_values), abs=1e-9)
    assert (test.low <= 0 <= test.high) == (test.p > 0.05)
    if len(values) < 6:
        assert (test.low, test.high) == (-math.inf, math.inf)
        return
    if set(np.abs(values)) <= {0.0, abs(max(values, key=abs))}:  # shifted, they are no longer of one size
        return
    edge = 2e-4 * (np.ptp(given_values) + 1)
    for end, outwards in ((test.low, -1), (test.high, 1)):
        assert mean_p(given_values - end - outwards * edge) <= 0.05
        if test.high - test.low > 4 * edge:
            assert mean_p(given_values - end + outwards * edge) > 0.05


def one_far_off(rng: np.random.Generator, clusters: int) -> np.ndarray:
    return np.append(rng.normal(size=clusters - 1), rng.choice([-10, 10]))


NULLS = {
    "normal": lambda rng, n: rng.normal(size=n),
    "rounded": lambda rng, n: np.round(0.7 * rng.normal(size=n)),
    "three scores": lambda rng, n: rng.choice([1.0, 5.0, 9.0], n) - rng.choice([1.0, 5.0, 9.0], n),
    "mostly 0": lambda rng, n: rng.choice([-4.0, 0.0, 4.0], n, p=[0.05, 0.9, 0.05]),
    "right or wrong": lambda rng, n: rng.binomial(4, 0.85, n) / 4 - 0.85,
    "t(3)": lambda rng, n: rng.standard_t(3, n),
    "one far off": one_far_off,
}


@pytest.mark.parametrize("clusters", [3, 6, 12, 24, 25, 40, 80])
def test_without_a_difference_one_is_found_in_at_most_seven_studies_of_a_hundred(clusters: int) -> None:
    rng = np.random.default_rng(clusters)
    for name, draw in NULLS.items():
        p = np.array([mean_p(draw(rng, clusters)) for _ in range(400)])
        # the standard error of 5% of 400 is 1.1%, of 0.4% 0.3%
        assert np.mean(p <= 0.05) <= 0.08, name
        assert np.mean(p <= 0.05 / 12) <= 0.0125, name


def panel(rng: np.random.Generator, scenarios: int, identities: int, judges: int, effect: float = 0.0) -> pd.DataFrame:
    """Scores of judges in one conversation: scenario, candidate and judge each have a random effect."""
    shape = scenarios, identities, judges
    scores = rng.normal(0, 1, (scenarios, 1, 1)) + rng.normal(0, 0.7, (scenarios, identities, 1))
    scores = scores + rng.normal(0, 0.5, shape) + effect * np.arange(identities)[None, :, None]
    scenario, identity, _ = (place.ravel() for place in np.indices(shape))
    return pd.DataFrame({"scenario": scenario, "identity": identity, "score": scores.ravel()})


def effect_of(frame: pd.DataFrame, tests: int = 1) -> Line:
    cells = cell_means(frame["score"], frame["identity"], frame["scenario"])
    return effect_of_cells(cells, n=len(frame), tests=tests)


@pytest.mark.parametrize(("identities", "missing"), [(3, 0), (10, 0), (4, 9)])
def test_f_is_that_of_the_analysis_of_variance_with_blocks(identities: int, missing: int) -> None:
    from statsmodels.formula.api import ols
    from statsmodels.stats.anova import anova_lm

    rng = np.random.default_rng(identities + missing)
    frame = panel(rng, 12, identities, 1, effect=0.1)
    frame = frame.drop(index=rng.choice(len(frame), missing, replace=False))
    table = anova_lm(ols("score ~ C(scenario) + C(identity)", frame).fit(), typ=2)
    result, total = effect_of(frame), table.loc[["C(identity)", "Residual"], "sum_sq"].sum()
    assert result.statistic == pytest.approx(table.loc["C(identity)", "F"])
    assert result.estimate == pytest.approx(table.loc["C(identity)", "sum_sq"] / total)
    assert result.p == pytest.approx(table.loc["C(identity)", "PR(>F)"], abs=0.06)
    assert effect_of(pd.concat([frame] * 25)).p == result.p, "repeats do not count as independent"


def test_a_p_that_no_arrangement_reached_is_a_bound_and_a_large_family_has_enough_arrangements() -> None:
    frame = panel(np.random.default_rng(8), 30, 4, 4, effect=0.5)
    result = effect_of(frame)
    assert result.p == 2.0**-22
    assert result.note == "p ≤ 2.4e-07: none of 4,194,304 arrangements was as extreme"
    assert 5000 * effect_of(frame, tests=5000).p <= 0.05 / 100


@pytest.mark.parametrize(
    ("clusters", "tests", "effect"),
    [(12, 1, 0.8), pytest.param(18, 200, 1.5, marks=pytest.mark.nightly), (20, 13, 0.9)],
)
def test_the_power_is_how_often_the_test_rejects(clusters: int, tests: int, effect: float) -> None:
    drawn = np.random.default_rng(clusters).normal(0.0, 1.0, (800, clusters))
    rejected = [mean_p(row + effect) <= 0.05 / tests for row in drawn]
    # the standard error of a share of 800 is at most 0.018
    assert power_of(clusters, 2 * effect, 2.0, tests=tests) == pytest.approx(np.mean(rejected), abs=0.045)


@pytest.mark.parametrize(("clusters", "effect", "tests"), [(12, 0.9, 1), (20, 0.5, 3), (200, 0.3, 12)])
def test_the_power_is_statsmodels_at_the_first_step_of_holm(clusters: int, effect: float, tests: int) -> None:
    """statsmodels gives about six digits."""
    from statsmodels.stats.power import TTestPower

    theirs = TTestPower()
    level = {"alpha": 0.05 / tests / 2, "alternative": "larger"}
    assert power_of(clusters, effect, 1.0, tests=tests) == pytest.approx(
        theirs.power(effect, clusters, **level), abs=1e-5
    )
    found = detectable(clusters, 1.0, tests=tests)
    assert found == pytest.approx(theirs.solve_power(nobs=clusters, power=0.8, **level), rel=1e-4)
    needed = math.ceil(theirs.solve_power(effect_size=effect, power=0.8, **level))
    assert clusters_needed(effect, 1.0, tests=tests) == max(needed, 12)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"sd": -1.0}, "sd must be"),
        ({"sd": math.inf}, "sd must be"),
        ({"tests": 0}, "tests must be"),
        ({"alpha": 0.0}, "alpha must lie"),
        ({"alpha": NAN}, "alpha must lie"),
        ({"alpha": 1e-60}, "alpha divided by"),
        ({"power": 0.0}, "power must lie"),
        ({"power": 1.0}, "power must lie"),
        ({"clusters": -1}, "number of clusters"),
    ],
)
def test_impossible_settings(changed: dict[str, Any], message: str) -> None:
    usual = {"clusters": 20, "sd": 1.0, "effect": 0.5}
    for compute in (detectable, power_of, clusters_needed):
        if changed.keys() <= (known := inspect.signature(compute).parameters).keys():
            with pytest.raises(ValueError, match=message):
                compute(**{name: value for name, value in (usual | changed).items() if name in known})
