"""Agreement of judges against published tables and R."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.inter_rater import aggregate_raters
from statsmodels.stats.inter_rater import fleiss_kappa as their_fleiss

from parley.analysis.stats.agreement import fleiss_kappa, krippendorff_alpha, weighted_kappa

NAN = math.nan

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
# Wikipedia, "Krippendorff's alpha", computational example: three coders, fifteen units.
UNITS = np.array(
    [
        [NAN, NAN, NAN, NAN, NAN, 3, 4, 1, 2, 1, 1, 3, 3, NAN, 3],
        [1, NAN, 2, 1, 3, 3, 4, 3, NAN, NAN, NAN, NAN, NAN, NAN, NAN],
        [NAN, NAN, 2, 1, 3, 4, 4, NAN, 2, 1, 1, 3, 3, NAN, 4],
    ]
).T


def listed(counts: list[list[int]]) -> list[list[int]]:
    return [list(np.repeat(range(len(row)), row)) for row in counts]


# Fleiss


def test_fleiss_kappa_of_published_tables() -> None:
    result = fleiss_kappa(listed(WIKIPEDIA))
    assert round(result.estimate, 3) == 0.210
    assert (result.n, result.clusters) == (140, 10)
    psychiatrists = fleiss_kappa([list(row) for row in DIAGNOSES.split()])
    assert psychiatrists.estimate == pytest.approx(0.4302445, abs=1e-7)


def test_a_gap_removes_only_the_pairs_it_is_in() -> None:
    # aab and bb: alike 1/3 and 1, mean 2/3; a 2 of 5, b 3 of 5: chance 13/25; a lone rating tells nothing
    result = fleiss_kappa([["a", "a", "b"], ["b", "b", None], ["a", None, None]])
    assert result.estimate == pytest.approx((2 / 3 - 13 / 25) / (12 / 25))
    assert (result.n, result.clusters) == (5, 2)


@settings(max_examples=40)
@given(st.lists(st.lists(st.integers(0, 3), min_size=4, max_size=4), min_size=2, max_size=12))
def test_fleiss_kappa_agrees_with_statsmodels_and_ignores_the_order_of_judges(ratings: list[list[int]]) -> None:
    result = fleiss_kappa(ratings, draws=20)
    if len({rating for row in ratings for rating in row}) == 1:
        assert math.isnan(result.estimate)
        assert result.note
        return
    assert result.estimate == pytest.approx(their_fleiss(aggregate_raters(np.array(ratings))[0]))
    renamed = [[{0: "d", 1: "a", 2: "z", 3: "k"}[rating] for rating in reversed(row)] for row in reversed(ratings)]
    assert fleiss_kappa(renamed, draws=20).estimate == pytest.approx(result.estimate)


# Cohen


@pytest.mark.parametrize(
    ("weights", "kappa"), [("none", -0.006289308), ("linear", 0.1459075), ("quadratic", 0.2520325)]
)
def test_weighted_kappa_as_in_r(weights: str, kappa: float) -> None:
    result = weighted_kappa(ANXIETY_2, ANXIETY_3, weights=weights)  # type: ignore[arg-type]
    assert result.estimate == pytest.approx(kappa, abs=1e-7)
    assert (result.n, result.clusters) == (40, 20)


def test_the_scale_is_counted_in_steps_of_its_categories() -> None:
    # 5 never occurs, and R's irr takes 4 and 6 for neighbours; given the scale, they are two steps apart
    result = weighted_kappa(ANXIETY_2, ANXIETY_3, categories=[1, 2, 3, 4, 5, 6])
    by_hand = np.abs(np.subtract(ANXIETY_2, ANXIETY_3)).mean()
    chance = np.abs(np.subtract.outer(ANXIETY_2, ANXIETY_3)).mean()
    assert result.estimate == pytest.approx(1 - by_hand / chance)


# Krippendorff


def test_alpha_of_published_data() -> None:
    result = krippendorff_alpha(C_DATA)
    assert round(result.estimate, 3) == 0.849, "R: irr::kripp.alpha, help page"
    assert (result.n, result.clusters) == (40, 11), "Krippendorff's n.. = 40 pairable values"
    # Wikipedia gives 0.811; the Python package krippendorff tests six digits
    assert round(krippendorff_alpha(UNITS).estimate, 6) == 0.810845


def test_interval_alpha_of_numbers_that_never_repeat() -> None:
    rng = np.random.default_rng(0)
    scores = rng.normal(0, 2, (60, 1)) + rng.normal(0, 1, (60, 3)) + 1e6
    result = krippendorff_alpha(scores)
    flat = scores.ravel() - 1e6
    item = np.repeat(np.arange(60), 3)
    apart = (flat[:, None] - flat[None, :]) ** 2
    same = (item[:, None] == item[None, :]) & ~np.eye(180, dtype=bool)
    expected = apart.sum() / (180 * 179)
    assert result.estimate == pytest.approx(1 - apart[same].mean() / expected, abs=1e-6)


# Intervals


def test_items_of_one_scenario_are_drawn_together() -> None:
    rng = np.random.default_rng(2)
    scenario = np.repeat(np.arange(12), 8)
    noisy = rng.random(12) < 0.5  # on some scenarios the judges agree, on others not at all
    truth = rng.integers(0, 3, (96, 1))
    ratings = np.where(noisy[scenario][:, None], rng.integers(0, 3, (96, 3)), truth)
    items, clusters = fleiss_kappa(ratings), fleiss_kappa(ratings, clusters=scenario)
    assert clusters.estimate == pytest.approx(items.estimate)
    assert clusters.clusters == 12
    assert clusters.high - clusters.low > 1.4 * (items.high - items.low)
    again = fleiss_kappa(pd.DataFrame(ratings), clusters=pd.Series(scenario))
    assert (again.low, again.high) == (clusters.low, clusters.high)


def test_an_interval_stays_within_the_scale_and_names_what_it_lacks() -> None:
    ratings = [[1, 1], [2, 2], [3, 4], [1, 2], [2, 2], [3, 3], [4, 4], [1, 1]]
    few = krippendorff_alpha(ratings[:7], clusters=list("abcdefg"))
    assert few.note == "7 clusters: an interval needs 8"
    assert math.isnan(few.low)
    for draws, note in ((1, "a 95% interval needs more than 1 draw"), (200, "")):
        result = krippendorff_alpha(ratings, clusters=list("abcdefgh"), draws=draws)
        assert result.note == note
        assert note or -1 <= result.low <= result.estimate <= result.high <= 1
