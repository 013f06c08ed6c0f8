"""Data that are not enough: no crash, no warning, NaN instead of a number, and a note that says why."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest

from parley.analysis.stats import (
    agreement,
    clustered,
    contingency,
    paired,
    permutation,
    proportions,
    tables,
)
from parley.analysis.stats.results import Line

NAN = math.nan


@pytest.fixture(autouse=True)
def no_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


FRAMES = {
    "empty": pd.DataFrame({"score": [], "identity": [], "scenario": []}),
    "unparsed everywhere": pd.DataFrame({"score": [NAN] * 4, "identity": list("fmfm"), "scenario": [1, 1, 2, 2]}),
    "all None": pd.DataFrame({"score": [None] * 4, "identity": list("fmfm"), "scenario": [1, 1, 2, 2]}),
    "one identity": pd.DataFrame({"score": [1.0, 2.0, 4.0], "identity": list("fff"), "scenario": [1, 2, 3]}),
    "a single cluster": pd.DataFrame({"score": [1.0, 2.0, 4.0], "identity": list("fmf"), "scenario": [1, 1, 1]}),
    "all equal": pd.DataFrame({"score": [7.0] * 8, "identity": list("fm") * 4, "scenario": [1, 1, 2, 2, 3, 3, 4, 4]}),
    "all equal, three identities": pd.DataFrame(
        {"score": [7.0] * 9, "identity": list("fmx") * 3, "scenario": [1, 1, 1, 2, 2, 2, 3, 3, 3]}
    ),
    "no scenario in common": pd.DataFrame(
        {"score": [1.0, 2.0, 3.0, 4.0], "identity": list("ffmm"), "scenario": [1, 2, 3, 4]}
    ),
}
# sign flips can say of one scenario, or of scores that are all equal, that they show no difference
ANSWERED = ("a single cluster", "all equal", "all equal, three identities")


@pytest.mark.parametrize("name", [name for name in FRAMES if name not in ANSWERED])
def test_an_identity_effect_that_cannot_be_tested_says_why(name: str) -> None:
    frame = FRAMES[name]
    result = permutation.effect_of_cells(tables.cell_means(frame["score"], frame["identity"], frame["scenario"]))
    assert math.isnan(result.p)
    assert math.isnan(result.low)
    assert math.isnan(result.high)
    assert result.note


@pytest.mark.parametrize("name", ["empty", "unparsed everywhere", "all None", "a single cluster", "all equal"])
@pytest.mark.parametrize(
    "estimate",
    [
        clustered.bootstrap_mean,
        lambda values, clusters: proportions.cluster_proportion(pd.to_numeric(values) / 14, clusters),
    ],
    ids=["bootstrap", "proportion"],
)
def test_an_estimate_without_an_interval_says_why(name: str, estimate: Callable[..., Line]) -> None:
    result = estimate(FRAMES[name]["score"], FRAMES[name]["scenario"])
    assert math.isnan(result.low)
    assert math.isnan(result.high)
    assert result.note


@pytest.mark.parametrize(
    "table",
    [
        [],
        [[]],
        [[0, 0], [0, 0]],
        [[3, 4]],
        [[3], [4]],
        [[3, 0], [4, 0]],
        [[NAN, 1], [2, 3]],
        [[-1, 1], [2, 3]],
        pd.DataFrame(),
    ],
)
def test_a_table_that_cannot_be_tested(table: Any) -> None:
    result = contingency.chi_square(table)
    assert math.isnan(result.p)
    assert math.isnan(result.estimate)
    assert result.note


@pytest.mark.parametrize(
    "ratings", [[], [[NAN, NAN]], [[1, NAN], [NAN, 2]], [[1], [2]], [[3, 3], [3, 3], [3, 3]], [[None, None]]]
)
def test_agreement_that_is_not_defined(ratings: list[list[float]]) -> None:
    coefficients: list[Line] = [
        agreement.fleiss_kappa(ratings),
        agreement.krippendorff_alpha(ratings),
    ]
    if ratings and len(ratings[0]) == 2:
        first, second = zip(*ratings, strict=True)
        coefficients.append(agreement.weighted_kappa(first, second))
    for result in coefficients:
        assert math.isnan(result.estimate)
        assert math.isnan(result.low)
        assert result.note


def test_a_table_without_any_trace_of_association_has_no_interval() -> None:
    result = contingency.chi_square([[10, 20], [20, 40]])
    assert (result.statistic, result.p) == pytest.approx((0, 1))
    assert math.isnan(result.high), "[0, 0] would be a confident number"
    assert "more alike than chance" in result.note


def test_judges_who_always_agree_have_no_spread() -> None:
    result = agreement.fleiss_kappa([[1, 1, 1], [2, 2, 2], [1, 1, 1], [2, 2, 2]] * 5)
    assert result.estimate == 1
    assert math.isnan(result.low), "[1, 1] would be a confident number"
    assert result.note


@pytest.mark.parametrize(("first", "second"), [([], []), ([NAN], [1.0]), ([None, None], [1.0, 2.0])])
def test_pairs_that_cannot_be_tested(first: list[float], second: list[float]) -> None:
    result = paired.paired_permutation(first, second, range(len(first)))
    assert math.isnan(result.p)
    assert math.isnan(result.low)
    assert result.note


def test_one_pair_shows_a_difference_and_nothing_more() -> None:
    for result in (
        paired.paired_permutation([1.0], [3.0], ["a"]),
        permutation.effect_of_cells(pd.DataFrame({"f": [1.0], "m": [3.0]})),
    ):
        assert (result.estimate, result.p, result.low, result.high) == (-2.0, 1.0, -math.inf, math.inf)
        assert result.note == "1 cluster: p cannot be below 1; an interval needs 6"


def test_five_clusters_cannot_be_significant_and_the_note_says_so() -> None:
    result = paired.paired_permutation([2.0, 3.0, 4.0, 5.0, 6.0], [1.0] * 5, range(5))
    assert (result.p, result.low, result.high) == (1 / 16, -math.inf, math.inf)
    assert result.note == "5 clusters: p cannot be below 0.062; an interval needs 6"


def test_scores_that_are_all_equal_show_no_difference() -> None:
    for result in (
        paired.paired_permutation([8.0] * 20, [8.0] * 20, range(20)),
        permutation.effect_of_cells(pd.DataFrame({"f": [8.0] * 20, "m": [8.0] * 20})),
        permutation.effect_of_cells(pd.DataFrame({"f": [8.0] * 20, "m": [8.0] * 20, "x": [8.0] * 20})),
    ):
        assert (result.p, result.estimate) == (1.0, 0.0)
        assert result.note


def test_the_same_difference_everywhere_is_a_difference() -> None:
    for result in (
        paired.paired_permutation([2.0] * 12, [1.0] * 12, range(12)),
        permutation.effect_of_cells(pd.DataFrame({"f": [2.0] * 12, "m": [1.0] * 12})),
    ):
        assert result.p == 2 / 2**12
        assert (result.estimate, result.low, result.high) == (1.0, 1.0, 1.0)
        assert "has the same difference" in result.note


def test_identities_that_explain_everything_have_no_measured_size() -> None:
    cells = pd.DataFrame(np.add.outer(np.arange(8.0), [0.0, 1.0, 5.0]))
    result = permutation.effect_of_cells(cells)
    assert result.p == 2 / 2**8
    assert math.isnan(result.estimate)
    assert result.note
