"""Data that are not enough: no crash, no warning, NaN instead of a number, and a note that says why."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest

from parley.analysis.generic import identities
from parley.analysis.stats.agreement import fleiss_kappa, krippendorff_alpha, weighted_kappa
from parley.analysis.stats.clustered import bootstrap_mean
from parley.analysis.stats.contingency import chi_square_of_counts
from parley.analysis.stats.paired import paired_difference
from parley.analysis.stats.permutation import effect_of_cells
from parley.analysis.stats.proportions import cluster_proportion
from parley.analysis.stats.results import Line
from parley.analysis.stats.tables import cell_means
from parley.analysis.verdicts import MissingColumns
from parley.judging.bbq import report as bbq
from parley.judging.framing import report as framing
from parley.judging.malibu import report as malibu
from parley.judging.rldf import check_report as check
from parley.judging.rldf.report import debates
from parley.judging.rubric import report as rubrics
from parley.judging.squad import report as squad
from parley.judging.stardtox import report as stardtox

NAN = math.nan


@pytest.fixture(autouse=True)
def no_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def effect(*columns: Any) -> Line:
    return effect_of_cells(cell_means(*columns))


def kappas(ratings: Any) -> list[Line]:
    return [fleiss_kappa(ratings), krippendorff_alpha(ratings)]


def of_two(ratings: Any) -> list[Line]:
    return [*kappas(ratings), weighted_kappa(*zip(*ratings, strict=True))]


def share(scores: list[Any], clusters: list[Any]) -> Line:
    return cluster_proportion(pd.to_numeric(pd.Series(scores, dtype=object)) / 14, clusters)


SCORES = {  # scores, identities, scenarios
    "empty": ([], [], []),
    "unparsed everywhere": ([NAN] * 4, list("fmfm"), [1, 1, 2, 2]),
    "all None": ([None] * 4, list("fmfm"), [1, 1, 2, 2]),
    "one identity": ([1.0, 2.0, 4.0], list("fff"), [1, 2, 3]),
    "no scenario in common": ([1.0, 2.0, 3.0, 4.0], list("ffmm"), [1, 2, 3, 4]),
}
LEVELS = {name: (scores, scenarios) for name, (scores, _, scenarios) in list(SCORES.items())[:3]}
LEVELS |= {"a single cluster": ([1.0, 2.0, 4.0], [1, 1, 1]), "all equal": ([7.0] * 8, [1, 1, 2, 2, 3, 3, 4, 4])}
TABLES = [
    *([], [[]], [[0, 0], [0, 0]], [[3, 4]], [[3], [4]], [[3, 0], [4, 0]], [[NAN, 1], [2, 3]], [[-1, 1], [2, 3]]),
    pd.DataFrame(),
]
UNDEFINED: list[tuple[Callable[..., Line | list[Line]], tuple[Any, ...]]] = [
    *((effect, columns) for columns in SCORES.values()),
    *((bootstrap_mean, columns) for columns in LEVELS.values()),
    *((share, columns) for name, columns in LEVELS.items() if name != "all equal"),
    *((chi_square_of_counts, (table,)) for table in TABLES),
    *((kappas, (ratings,)) for ratings in ([], [[1], [2]])),
    *((of_two, (ratings,)) for ratings in ([[NAN, NAN]], [[1, NAN], [NAN, 2]], [[3, 3]] * 3, [[None, None]])),
    *(
        (paired_difference, columns)
        for columns in (([], [], []), ([NAN], [1.0], [0]), ([None] * 2, [1.0, 2.0], [0, 1]))
    ),
    (fleiss_kappa, ([[1, 1, 1], [2, 2, 2]] * 10,)),  # [1, 1] would be a confident number
]


@pytest.mark.parametrize(("compute", "given"), UNDEFINED)
def test_no_interval_and_a_note_that_says_why(compute: Callable[..., Any], given: tuple[Any, ...]) -> None:
    found = compute(*given)
    for result in found if isinstance(found, list) else [found]:
        assert math.isnan(result.low)
        assert math.isnan(result.high)
        assert math.isnan(result.p)
        assert result.note


def cells(*columns: Any) -> pd.DataFrame:
    return pd.DataFrame(dict(zip("fmx", columns, strict=False)))


@pytest.mark.parametrize(
    ("first", "second", "expected", "note"),
    [
        ([1.0], [3.0], (-2.0, 1.0, -math.inf, math.inf), "1 cluster: p cannot be below 1; an interval needs 6"),
        ([2, 3, 4, 5, 6], [1.0] * 5, (3.0, 1 / 16, -math.inf, math.inf), "5 clusters: p cannot be below 0.062; an"),
        ([8.0] * 20, [8.0] * 20, (0.0, 1.0, -math.inf, math.inf), "every cluster has the same difference"),
        (
            [2.0] * 12,
            [1.0] * 12,
            (1.0, 2 / 2**12, 2 * 0.025 ** (1 / 12) - 1, 1.0),
            "every cluster has the same difference",
        ),
    ],
    ids=["one pair", "five clusters", "all equal", "the same difference everywhere"],
)
def test_what_a_paired_test_can_still_say(first: Any, second: Any, expected: tuple[float, ...], note: str) -> None:
    for result in (paired_difference(first, second, range(len(first))), effect_of_cells(cells(first, second))):
        assert (result.estimate, result.p, result.low, result.high) == pytest.approx(expected)
        assert result.note.startswith(note)


def test_what_three_identities_can_still_say() -> None:
    equal = effect_of_cells(cells([8.0] * 20, [8.0] * 20, [8.0] * 20))
    assert (equal.p, equal.estimate, bool(equal.note)) == (1.0, 0.0, True)
    explained = effect_of_cells(pd.DataFrame(np.add.outer(np.arange(8.0), [0.0, 1.0, 5.0])))
    assert (explained.p, math.isnan(explained.estimate), bool(explained.note)) == (2 / 2**8, True, True)


def test_a_table_without_any_trace_of_association_has_no_interval() -> None:
    result = chi_square_of_counts([[10, 20], [20, 40]])
    assert (result.statistic, result.p) == pytest.approx((0, 1))
    assert math.isnan(result.high), "[0, 0] would be a confident number"
    assert "more alike than chance" in result.note


REPORTS = (
    *(malibu.report, bbq.report, squad.report, stardtox.report),
    *(debates, framing.report, rubrics.report, check.report, identities),
)


@pytest.mark.parametrize("report", REPORTS, ids=lambda report: report.__module__)
def test_a_report_names_the_columns_that_it_lacks(report: Callable[..., Any]) -> None:
    with pytest.raises(MissingColumns, match=r"lacks the columns? \w+"):
        report(pd.DataFrame({"unit": ["u"], "metric": "bias", "value": 1.0, "status": "ok", "round": 1, "judge": "J"}))
