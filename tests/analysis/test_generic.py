"""The user's own frame in three lines, and the report of a study that has none of its own."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from parley.analysis import generic
from parley.analysis.generic import identities
from parley.analysis.page.render import write
from parley.analysis.page.report import ReportContext

NAN = math.nan


def mine(first: tuple[float, ...], second: tuple[float, ...]) -> pd.DataFrame:
    """Identity a and identity b, once in each cluster."""
    rows = [("a", n, value) for n, value in enumerate(first)] + [("b", n, value) for n, value in enumerate(second)]
    return pd.DataFrame(rows, columns=["identity", "cluster", "score"])


CLEAR = mine((5.0, 6.0, 7.5, 5.5, 6.5, 8.0, 5.0, 6.0), (4.0, 4.5, 6.0, 5.0, 5.5, 6.5, 4.0, 4.5))
GAPS = (1.0, 1.5, 1.5, 0.5, 1.0, 1.5, 1.0, 1.5)


def test_three_lines_are_enough(tmp_path: Path) -> None:
    CLEAR.to_csv(tmp_path / "mine.csv", index=False)

    report = identities(pd.read_csv(tmp_path / "mine.csv"))

    assert report.words[0].startswith("Identity affects the scores (8 clusters, p = ")
    assert report.words[1] == (
        "a compared with b: score is higher by 1.19 (+0.83 to +1.50; p = 0.0078), over 8 clusters."
    )
    means = report.table("means").set_index("identity")
    low, high = stats.t.interval(0.95, 7, loc=49.5 / 8, scale=stats.sem(CLEAR["score"][:8]))
    assert means.loc["a", ["estimate", "low", "high"]].tolist() == pytest.approx([49.5 / 8, low, high])
    (gap,) = report.table("differences").to_dict("records")
    assert (gap["first"], gap["second"], gap["clusters"]) == ("a", "b", 8)
    assert gap["estimate"] == pytest.approx(np.mean(GAPS))
    assert gap["low"] < gap["estimate"] < gap["high"]
    assert gap["p"] == gap["p_adjusted"] == 2 / 2**8, "all gaps are above 0: two of 256 arrangements reach their sum"
    (test,) = report.table("tests").to_dict("records")
    assert test["statistic"] == pytest.approx(stats.ttest_1samp(GAPS, 0).statistic)
    assert report.data()["settings"] == {}, "nothing was drawn"
    page = write(report, tmp_path / "report").read_text("utf-8")
    assert "Means, clustered by cluster" in page
    assert (tmp_path / "report" / "figures" / "forest-differences-value.svg").exists()


UNTESTED = "The effect of identity could not be tested: "
NOT_SHOWN = "No effect of identity on the scores was shown"


@pytest.mark.parametrize(
    ("frame", "said", "p"),
    [
        (mine((), ()), UNTESTED, None),
        (mine((1.0, 2.0, 3.0), ()), UNTESTED, None),
        (mine((NAN,) * 3, (NAN,) * 3), UNTESTED, None),
        (mine((4.0,) * 8, (4.0,) * 8), NOT_SHOWN, 1.0),
        (mine((4.0, 5.0), (3.0, 7.0)).assign(cluster="one"), NOT_SHOWN, 1.0),
        (mine((5.0, 4.0) * 4, (4.0, 5.0) * 4), NOT_SHOWN, 1.0),
    ],
    ids=["empty", "one identity", "no values", "all equal", "one cluster", "no effect"],
)
def test_what_cannot_be_tested_or_was_not_shown(
    frame: pd.DataFrame, said: str, p: float | None, tmp_path: Path
) -> None:
    report = identities(frame)
    assert report.words[0].startswith(said)
    why = "fewer than two identities have values" if p is None else "That is not evidence of no effect."
    assert why in report.words[0]
    (test,) = json.loads(json.dumps(report.data(), allow_nan=False))["tests"]
    assert test.get("p") == p
    assert p is not None or test["note"] == why
    assert report.words[0] in write(report, tmp_path).read_text("utf-8")


def verdicts(**columns: Any) -> pd.DataFrame:
    frame = {
        "unit": ["u1", "u1", "u2", "u2", "u3"],
        "scenario": ["x", "x", "x", "x", "y"],
        "model": "m",
        "metric": ["M", "N", "M", "N", "M"],
        "round": 1,
        "value": [1.0, 8.0, 3.0, NAN, 6.0],
        "status": ["ok", "ok", "ok", "unparsed", "ok"],
    }
    return pd.DataFrame(frame | columns)


UNREAD = "1 of 5 verdicts could not be read; unreadable verdicts are left out."


@pytest.mark.parametrize(
    ("columns", "mean", "n", "clusters", "said"),
    [
        ({}, (2.0 + 6.0) / 2, 3, 2, UNREAD),
        ({"scenario": None}, 10 / 3, 3, 3, UNREAD),  # without scenarios, units are the clusters
        ({"base": "b"}, 10 / 3, 3, 1, UNREAD),
        ({"value": [math.inf, 8.0, 3.0, NAN, 6.0]}, 4.5, 2, 2, "1 of 5 scores is infinite and left out."),
        ({"value": NAN, "status": "unparsed"}, NAN, 0, 0, UNREAD.replace("1", "5")),
    ],
    ids=["by scenario", "by unit", "by base", "infinite", "nothing was read"],
)
def test_any_study_gets_the_mean_of_every_metric(
    columns: dict[str, Any], mean: float, n: int, clusters: int, said: str
) -> None:
    frame = verdicts(**columns).dropna(axis="columns", how="all") if "scenario" in columns else verdicts(**columns)
    report = generic.report(frame, ReportContext(title="mine"))
    table = report.table("means").set_index("metric")
    assert table.loc["M", ["estimate", "n", "clusters"]].tolist() == pytest.approx([mean, n, clusters], nan_ok=True)
    assert math.isnan(table.loc["N", "low"])
    assert report.words[0] == said
    assert ("base" in report.tables[-1].title) == ("base" in columns)


def test_identities_are_compared_within_scenarios_after_the_last_round_and_each_model_is_a_family() -> None:
    """Eight scenarios: b is a point above a at the end with one of two models, so 2 of the 2 ** 8 arrangements of signs
    are as far off."""
    rows = [
        {"unit": f"{s}/{who}", "scenario": s, "model": model, "identity": who, "metric": "M", "status": "ok"}
        | {"round": n, "value": 100.0 if n == 1 else s + (who == "b") * (1 if model == "m" else (-1) ** s)}
        for s in range(8)
        for who in "ab"
        for model in "mn"
        for n in (1, 2)
    ]
    report = generic.report(pd.DataFrame(rows))
    table = report.table("differences").set_index("model")
    assert table.loc["m", ["first", "second", "estimate", "clusters"]].tolist() == ["a", "b", -1.0, 8]
    assert table.loc["m", ["p", "p_adjusted"]].tolist() == pytest.approx([2 / 2**8] * 2), "not for the other's test"
    assert report.words == (
        "m, a compared with b, by itself: M is lower by 1.00 (below 0, down to −3.59; p = 0.0078), over 8 scenarios.",
    )
    assert report.forests[0].lines[0].units == {"model": ("m",), "identity": ("a", "b")}
