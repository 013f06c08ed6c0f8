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

from parley.analysis.reporting import generic
from parley.analysis.reporting.generic import identities
from parley.analysis.reporting.render import write
from parley.analysis.reporting.report import ReportContext
from parley.analysis.reporting.verdicts import MissingColumns

NAN = math.nan


def mine(first: tuple[float, ...], second: tuple[float, ...]) -> pd.DataFrame:
    """Identity a and identity b, once in each cluster."""
    rows = [("a", n, value) for n, value in enumerate(first)] + [("b", n, value) for n, value in enumerate(second)]
    return pd.DataFrame(rows, columns=["identity", "cluster", "score"])


CLEAR = mine((5.0, 6.0, 7.5, 5.5, 6.5, 8.0, 5.0, 6.0), (4.0, 4.5, 6.0, 5.0, 5.5, 6.5, 4.0, 4.5))
GAPS = (1.0, 1.5, 1.5, 0.5, 1.0, 1.5, 1.0, 1.5)


# Three lines


def test_three_lines_are_enough(tmp_path: Path) -> None:
    CLEAR.to_csv(tmp_path / "mine.csv", index=False)

    report = identities(pd.read_csv(tmp_path / "mine.csv"))

    assert report.words[0].startswith("Identity affects the scores (sign flips over 8 clusters, p = ")
    assert report.words[1] == (
        "a compared with b: score is higher by 1.19 (+0.83 to +1.50; p = 0.0078), over 8 clusters."
    )


def test_the_numbers_by_hand() -> None:
    report = identities(CLEAR)
    means = report.table("means").set_index("identity")
    assert means.loc["a", "estimate"] == pytest.approx(49.5 / 8)
    low, high = stats.t.interval(0.95, 7, loc=49.5 / 8, scale=stats.sem(CLEAR["score"][:8]))
    assert (means.loc["a", "low"], means.loc["a", "high"]) == pytest.approx((low, high))
    (gap,) = report.table("differences").to_dict("records")
    assert (gap["first"], gap["second"], gap["clusters"]) == ("a", "b", 8)
    assert gap["estimate"] == pytest.approx(np.mean(GAPS))
    assert gap["low"] < np.mean(GAPS) < gap["high"]
    assert gap["p"] == gap["p_adjusted"] == 2 / 2**8, "all gaps are above 0: two of 256 arrangements reach their sum"
    (test,) = report.table("tests").to_dict("records")
    assert test["statistic"] == pytest.approx(stats.ttest_1samp(GAPS, 0).statistic)
    assert report.data()["settings"] == {}, "nothing was drawn"


def test_columns_may_have_other_names() -> None:
    renamed = CLEAR.rename(columns={"identity": "label", "cluster": "item", "score": "rating"})
    ours = identities(renamed, identity="label", cluster="item", score="rating", title="Mine")
    assert ours.title == "Mine"
    assert [line.replace("rating", "score") for line in ours.words] == list(identities(CLEAR).words)


def test_every_pair_is_compared_and_corrected_together() -> None:
    rng = np.random.default_rng(0)
    rows = [(label, n, rng.normal(shift, 1)) for n in range(12) for label, shift in (("a", 0), ("b", 0), ("c", 4))]
    report = identities(pd.DataFrame(rows, columns=["identity", "cluster", "score"]))
    gaps = report.table("differences").set_index(["first", "second"])
    assert list(gaps.index) == [("a", "b"), ("a", "c"), ("b", "c")]
    assert gaps["p_adjusted"].tolist() == pytest.approx(
        [gaps["p"].iloc[0], *(3 * gaps["p"].iloc[1:]).clip(upper=1)], abs=1e-9
    ), "Holm: the two smallest count three times, the largest once"
    claims = [line for line in report.words if "score is lower by" in line]
    assert [line.partition(":")[0] for line in claims] == ["a compared with c", "b compared with c"]


def test_no_significant_effect_is_not_evidence_of_no_effect() -> None:
    (line,) = identities(mine((5.0, 4.0) * 4, (4.0, 5.0) * 4)).words
    assert line.startswith("No effect of identity on the scores was shown")
    assert line.endswith("That is not evidence of no effect.")


def test_too_few_clusters_are_told() -> None:
    words = identities(mine((5.0, 6.0, 7.0, 8.0), (4.0, 4.5, 6.0, 7.0))).words
    assert words[-1] == "With 4 clusters no difference could be significant: that takes at least 6."
    (gap,) = identities(mine((5.0, 6.0, 7.0, 8.0), (4.0, 4.5, 6.0, 7.0))).data()["differences"]
    assert (gap["low"], gap["high"]) == (None, None)
    assert gap["note"] == "4 clusters: p cannot be below 0.12; an interval needs 6"


def test_a_base_is_the_cluster_where_there_is_one() -> None:
    based = CLEAR.assign(base=CLEAR["cluster"] // 2)
    assert identities(based).table("differences")["clusters"].tolist() == [4]
    assert identities(based, cluster="cluster").table("differences")["clusters"].tolist() == [8]


def test_infinite_scores_are_counted_and_left_out() -> None:
    frame = CLEAR.copy()
    frame.loc[0, "score"] = math.inf
    report = identities(frame)
    assert report.words[0] == "1 of 16 scores is infinite and left out."
    assert report.table("differences")["clusters"].tolist() == [7]
    assert np.isfinite(report.table("means")["estimate"]).all()


def test_rows_given_twice_change_nothing() -> None:
    twice = identities(pd.concat([CLEAR, CLEAR]))
    assert twice.words == identities(CLEAR).words
    assert twice.table("differences")["p"].tolist() == [2 / 2**8]


def test_a_p_that_is_a_bound_is_told_as_one() -> None:
    rng = np.random.default_rng(1)
    rows = [(label, n, rng.normal(shift, 1)) for n in range(30) for label, shift in (("a", 0), ("b", 0), ("c", 6))]
    report = identities(pd.DataFrame(rows, columns=["identity", "cluster", "score"]))
    assert report.words[0] == "Identity affects the scores (sign flips over 30 clusters, p < 0.0001)."
    assert report.table("tests")["note"].tolist()[0].startswith("p ≤ 2.4e-07: none of 4,194,304 arrangements")


def test_the_report_can_be_written(tmp_path: Path) -> None:
    page = write(identities(CLEAR), tmp_path).read_text("utf-8")
    assert "Means, clustered by cluster" in page
    assert (tmp_path / "figures" / "forest-differences-value.svg").exists()


def test_the_same_gap_everywhere_is_a_difference() -> None:
    words = identities(mine((2.0,) * 12, (1.0,) * 12)).words
    assert any(line.startswith("a compared with b: score is higher by 1.00 (") for line in words)
    assert not any("could not be tested" in line for line in words)


# What cannot be computed


@pytest.mark.parametrize(
    ("frame", "why"),
    [
        (mine((), ()), "fewer than two identities have values"),
        (mine((1.0, 2.0, 3.0), ()), "fewer than two identities have values"),
        (mine((NAN,) * 3, (NAN,) * 3), "fewer than two identities have values"),
    ],
    ids=["empty", "one identity", "no values"],
)
def test_what_cannot_be_tested_is_reported_with_its_reason(frame: pd.DataFrame, why: str) -> None:
    report = identities(frame)
    (line,) = report.words
    assert line.startswith("The effect of identity could not be tested: ")
    assert why in line
    data = json.loads(json.dumps(report.data(), allow_nan=False))
    assert [test["note"] for test in data["tests"]] == [why]
    assert [gap["estimate"] for gap in data.get("differences", [])] in ([], [None])


@pytest.mark.parametrize(
    "frame",
    [mine((4.0,) * 8, (4.0,) * 8), mine((4.0, 5.0), (3.0, 7.0)).assign(cluster="one")],
    ids=["all equal", "one cluster"],
)
def test_what_shows_no_difference_is_no_effect(frame: pd.DataFrame) -> None:
    report = identities(frame)
    assert report.words[0].startswith("No effect of identity on the scores was shown (sign flips over ")
    data = json.loads(json.dumps(report.data(), allow_nan=False))
    assert [(test["p"], test["estimate"] is None) for test in data["tests"]] == [(1.0, False)]


def test_missing_columns_are_named() -> None:
    with pytest.raises(MissingColumns, match="lacks the columns cluster, score"):
        identities(pd.DataFrame({"identity": ["a"]}))


def test_the_report_of_an_empty_frame_can_be_written(tmp_path: Path) -> None:
    assert "could not be tested" in write(identities(mine((), ())), tmp_path).read_text("utf-8")


# A study without a report of its own


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


def test_any_study_gets_the_mean_of_every_metric_over_scenarios() -> None:
    report = generic.report(verdicts(), ReportContext(title="mine"))
    table = report.table("means").set_index("metric")
    assert (table.loc["M", "estimate"], table.loc["M", "n"], table.loc["M", "clusters"]) == ((2.0 + 6.0) / 2, 3, 2)
    assert (table.loc["N", "estimate"], table.loc["N", "n"]) == (8.0, 1)
    assert math.isnan(table.loc["N", "low"])
    assert report.words == ("1 of 5 verdicts could not be read; unreadable verdicts are left out.",)


def test_a_value_that_does_not_vary_is_not_too_few_data() -> None:
    """ "too few for an interval" stood on 200 units of a constant."""
    constant = generic.report(verdicts(metric="label", value=1.0)).headline
    assert constant is not None
    assert constant.text == "What is the mean of 'label'? Always 1: it does not vary over 2 scenarios."
    one = generic.report(verdicts(metric="label", value=1.0, scenario="x")).headline
    assert one is not None
    assert one.verdict == "not measured"


def test_without_scenarios_units_are_the_clusters() -> None:
    table = generic.report(verdicts().drop(columns="scenario")).table("means").set_index("metric")
    assert (table.loc["M", "estimate"], table.loc["M", "clusters"]) == (10 / 3, 3)


def test_rounds_models_and_identities_have_separate_means() -> None:
    frame = pd.concat([verdicts(round=1, identity="a"), verdicts(round=2, identity="a", value=0.0)])
    table = generic.report(pd.concat([frame, frame.assign(identity="b", model="n")])).table("means")
    assert len(table) == 2 * 2 * 2
    assert set(table.loc[table["round"] == 2, "estimate"]) == {0.0}


def test_identities_are_compared_within_scenarios_after_the_last_round() -> None:
    """Eight scenarios: b is a point above a at the end, so 2 of the 2 ** 8 arrangements of signs are as far off."""
    rows = [
        {
            "unit": f"{s}/{who}",
            "scenario": s,
            "model": "m",
            "identity": who,
            "metric": "M",
            "round": round,
            "status": "ok",
        }
        | {"value": (s if round == 2 else 100.0) + (round == 2 and who == "b")}
        for s in range(8)
        for who in "ab"
        for round in (1, 2)
    ]
    report = generic.report(pd.DataFrame(rows))
    (row,) = report.table("differences").to_dict("records")
    assert (row["first"], row["second"], row["estimate"], row["clusters"]) == ("a", "b", -1.0, 8)
    assert row["p"] == row["p_adjusted"] == pytest.approx(2 / 2**8)
    assert report.words == ("a compared with b: M is lower by 1.00 (−1.00 to −1.00; p = 0.0078), over 8 scenarios.",)


def test_each_model_is_a_family_and_is_named() -> None:
    """Two models of eight scenarios: only one of them rates b higher, and has a single test of its own."""
    rows = [
        {"unit": f"{s}/{who}", "scenario": s, "model": model, "identity": who, "metric": "M", "round": 1}
        | {"value": s + 0.1 * s * (who == "b") + (model == "m" and who == "b")}
        for s in range(8)
        for who in "ab"
        for model in "mn"
    ]
    report = generic.report(pd.DataFrame(rows))
    p = report.table("differences").set_index("model")[["p", "p_adjusted"]]
    assert p.loc["m"].tolist() == pytest.approx([2 / 2**8] * 2), "not corrected for the other model's test"
    assert [line.partition(": ")[0] for line in report.words] == ["m, a compared with b", "n, a compared with b"]
    assert report.forests[0].lines[0].units == {"model": ("m",), "identity": ("a", "b")}


def test_two_scenarios_are_too_few_and_the_report_says_so() -> None:
    frame = pd.concat([verdicts(identity="a"), verdicts(identity="b", value=[2.0, 7.0, 5.0, NAN, 9.0])])
    words = generic.report(frame).words
    assert words[-1] == "With 2 scenarios no difference could be significant: that takes at least 7."
    assert not any("compared with" in line for line in words)


def test_a_study_with_bases_is_clustered_by_them() -> None:
    report = generic.report(verdicts(base="b", identity=["a", "a", "b", "b", "b"]))
    assert report.tables[-1].title == "Means, clustered by base"
    assert set(report.table("means")["clusters"]) <= {0, 1}


def test_infinite_verdicts_are_counted_and_left_out() -> None:
    report = generic.report(verdicts(value=[math.inf, 8.0, 3.0, NAN, 6.0]))
    assert report.words[0] == "1 of 5 scores is infinite and left out."
    assert report.table("means").set_index("metric").loc["M", "estimate"] == 4.5


def test_nothing_readable_has_no_mean() -> None:
    report = generic.report(verdicts(value=NAN, status="unparsed"))
    assert report.table("means")["estimate"].isna().all()
    assert report.words == ("5 of 5 verdicts could not be read; unreadable verdicts are left out.",)


def test_units_without_an_identity_are_not_lost() -> None:
    frame = verdicts(identity=["a", "a", None, None, None])
    assert generic.report(frame).table("means")["n"].sum() == frame["value"].notna().sum()
