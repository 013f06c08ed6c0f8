"""MALIBU's phase 1 by hand: the panel's result, mean scores, and differences on the same scenarios."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import pytest

from parley.analysis.malibu import PanelData, differences, mean_scores, panel_preferences
from parley.analysis.reporting.verdicts import final_verdicts
from tests.analysis import verdicts


def single(unit: str, scenario: str, identity: str, value: float | None, **others: Any) -> dict[str, Any]:
    return verdicts.single(scenario, identity, value, **{"unit": unit, "repeat": 0, **others})


def votes(unit: str, choices: str, **others: Any) -> list[dict[str, Any]]:
    """One comparison of female (A) and male (B): one letter per judge: A, B, t(ie), or ? if unreadable."""
    texts = {"A": "A", "B": "B", "t": "tie", "?": None}
    pair = {"phase": 2, "identity_a": "female", "identity_b": "male", "other": "male", "metric": "preferred"}
    return [
        single(unit, "s", "female", None) | pair | {"judge": f"J{n}", "text": texts[choice], **others}
        for n, choice in enumerate(choices)
    ]


# The panel's result


def test_the_last_round_counts() -> None:
    frame = pd.DataFrame(
        [
            single("u", "s", "male", 2.0, round=1),
            single("u", "s", "male", 6.0, round=2, judge="J1"),
            single("u", "s", "male", 8.0, round=2, judge="J2"),
        ]
    )
    assert list(final_verdicts(frame)["value"]) == [6.0, 8.0]
    assert list(PanelData(frame).scores["value"]) == [7.0]


def test_every_unit_has_its_own_last_round() -> None:
    frame = pd.DataFrame(
        [
            single("short", "s", "male", 4.0, round=1),
            single("long", "s", "female", 2.0, round=1),
            single("long", "s", "female", 9.0, round=3),
        ]
    )
    assert dict(PanelData(frame).scores[["unit", "value"]].to_numpy()) == {"short": 4.0, "long": 9.0}


def test_the_chair_counts_where_there_is_one() -> None:
    frame = pd.DataFrame(
        [single("u", "s", "male", 2.0, round=2), single("u", "s", "male", 9.0, round=2, role="chair", judge="Chair")]
    )
    assert list(PanelData(frame).scores["value"]) == [9.0]


def test_a_chair_in_one_unit_does_not_affect_units_without() -> None:
    frame = pd.DataFrame(
        [
            single("with", "s", "male", 2.0),
            single("with", "s", "male", 9.0, role="chair", judge="Chair"),
            single("without", "s", "female", 5.0),
        ]
    )
    assert dict(PanelData(frame).scores[["unit", "value"]].to_numpy()) == {"with": 9.0, "without": 5.0}


def test_an_unreadable_reply_is_left_out_and_not_zero() -> None:
    frame = pd.DataFrame(
        [single("u", "s", "male", 8.0, judge="J1"), single("u", "s", "male", None, judge="J2")],
    )
    assert list(PanelData(frame).scores["value"]) == [8.0]
    assert mean_scores(frame).set_index("metric").loc["all", "mean"] == 8.0


def test_a_panel_without_readable_replies_has_no_mean() -> None:
    (row,) = mean_scores(pd.DataFrame([single("u", "s", "male", None)])).query("metric == 'all'").to_dict("records")
    assert math.isnan(row["mean"])
    assert (row["n"], row["clusters"]) == (0, 0)


@pytest.mark.parametrize(
    ("choices", "choice", "winner"),
    [
        ("A", "A", "female"),
        ("AAB", "A", "female"),
        ("ABB", "B", "male"),
        ("AABB", "tie", "tie"),
        ("ttAB", "tie", "tie"),
        ("ttAA", "tie", "tie"),
        ("AAtB", "A", "female"),
        ("A???", "A", "female"),
        ("AB??", "tie", "tie"),
    ],
)
def test_the_majority_decides_and_equal_votes_are_a_tie(choices: str, choice: str, winner: str) -> None:
    (row,) = panel_preferences(pd.DataFrame(votes("u", choices))).to_dict("records")
    assert (row["choice"], row["winner"]) == (choice, winner)


def test_only_the_last_round_votes() -> None:
    frame = pd.DataFrame([*votes("u", "AAA", round=1), *votes("u", "ABB", round=2)])
    assert list(panel_preferences(frame)["winner"]) == ["male"]


def test_a_panel_without_readable_replies_has_no_preference() -> None:
    units = panel_preferences(pd.DataFrame([*votes("u1", "??"), *votes("u2", "A")]))
    assert units["choice"].isna().tolist() == [True, False]
    assert units["winner"].isna().tolist() == [True, False]


# Means


def scored() -> pd.DataFrame:
    """Two scenarios, two labels and the control, two metrics; one reply could not be read."""
    rows = []
    values = {
        ("s1", "female"): (8, 6),
        ("s1", "male"): (7, 6),
        ("s1", ""): (5, 5),
        ("s2", "female"): (6, None),
        ("s2", "male"): (5, 3),
        ("s2", ""): (4, 4),
    }
    for (scenario, identity), pair in values.items():
        for metric, value in zip(("Accuracy", "Creativity"), pair, strict=True):
            number = None if value is None else float(value)
            rows.append(single(f"{scenario}/{identity}", scenario, identity, number, metric=metric))
    return pd.DataFrame(rows)


def test_mean_scores_by_hand() -> None:
    table = mean_scores(scored()).set_index(["identity", "metric"])
    # female: s1 (8 + 6) / 2 = 7, s2 only 6; mean 6.5, half width t(0.975, 1) * 0.5 = 6.3531; the scale ends at 10
    female = table.loc[("female", "all")]
    assert female["mean"] == 6.5
    assert (female["low"], female["high"]) == pytest.approx((6.5 - 6.3531, 10.0), abs=1e-4)
    assert (female["n"], female["clusters"]) == (3, 2)
    assert table.loc[("female", "Accuracy"), "mean"] == 7.0
    assert table.loc[("female", "Creativity"), "mean"] == 6.0
    assert table.loc[("female", "Creativity"), "clusters"] == 1
    assert math.isnan(table.loc[("female", "Creativity"), "low"])
    # male: s1 6.5, s2 4; control: s1 5, s2 4
    assert table.loc[("male", "all"), "mean"] == 5.25
    assert table.loc[("(no label)", "all"), "mean"] == 4.5
    assert table.loc[("(no label)", "all"), "category"] == ""


def test_repeats_are_averaged_within_their_scenario() -> None:
    # s1 is run three times (4, 5, 6), s2 once (9): the mean is (5 + 9) / 2, not 24 / 4
    rows = [single(f"s1/r{n}", "s1", "male", value, repeat=n) for n, value in enumerate((4.0, 5.0, 6.0))]
    table = mean_scores(pd.DataFrame([*rows, single("s2/r0", "s2", "male", 9.0)])).set_index("metric")
    assert table.loc["all", "mean"] == 7.0
    assert (table.loc["all", "n"], table.loc["all", "clusters"]) == (4, 2)


def test_the_scores_of_two_models_stay_separate() -> None:
    rows = [
        single(f"{s}/{m}", s, "male", v, model=m)
        for m, values in (("one", (2.0, 4.0)), ("two", (7.0, 9.0)))
        for s, v in zip(("s1", "s2"), values, strict=True)
    ]
    table = mean_scores(pd.DataFrame(rows)).query("metric == 'all'").set_index("model")
    assert table["mean"].to_dict() == {"one": 3.0, "two": 8.0}


def test_a_mean_without_spread_has_no_interval() -> None:
    rows = [single(f"u{n}", f"s{n}", "male", 7.0) for n in range(12)]
    row = mean_scores(pd.DataFrame(rows)).iloc[0]
    assert row["mean"] == 7.0
    assert math.isnan(row["low"]), "[7, 7] would be a confident number"


# Differences


def test_differences_by_hand() -> None:
    table = differences(scored()).set_index("metric")
    row = table.loc["all"]
    assert (row["category"], row["first"], row["second"]) == ("gender", "female", "male")
    assert row["within"]
    # Within a metric: s1 8 - 7 and 6 - 6, mean 0.5; s2 only 6 - 5, since female's Creativity could not be read.
    assert row["estimate"] == 0.75
    # signs: |±0.5 ± 1| reaches 1.5 in two of four arrangements; two scenarios exclude no difference
    assert row["p"] == 0.5
    assert (row["low"], row["high"]) == (-math.inf, math.inf)
    assert (row["n"], row["clusters"]) == (2, 2)
    assert table.loc["Accuracy", "estimate"] == 1.0
    assert table.loc["Accuracy", "p"] == 0.5
    assert table.loc["Creativity", "clusters"] == 1
    assert table.loc["Creativity", "p"] == 1.0
    assert table.loc["Creativity", "note"]


def crossed() -> pd.DataFrame:
    """Four scenarios, two categories: female - male is 1, 2, 3, 2; black - white is 0.5, -0.5, 1, 0."""
    gaps = {("female", "male"): (1.0, 2.0, 3.0, 2.0), ("black", "white"): (0.5, -0.5, 1.0, 0.0)}
    rows = []
    for (first, second), values in gaps.items():
        for n, gap in enumerate(values):
            rows += [single(f"{n}{first}", f"s{n}", first, 5 + gap), single(f"{n}{second}", f"s{n}", second, 5.0)]
    return pd.DataFrame(rows)


def test_p_values_by_hand_and_corrected_for_the_whole_family() -> None:
    table = differences(crossed())
    together = table[table["within"] & (table["metric"] == "all")].set_index(["first", "second"])
    # 1, 2, 3, 2: only all plus and all minus reach the sum, 2 of 16
    assert together.loc[("female", "male"), "p"] == 2 / 16
    # 0.5, -0.5, 1 (0 stays 0): |sum| is 2, 1, 1 or 0, each twice; 1 is reached by 6 of 8
    assert together.loc[("black", "white"), "p"] == 6 / 8
    # Holm: the smaller of two counts twice, the larger once
    assert together.loc[("female", "male"), "p_adjusted"] == 2 * 2 / 16
    assert together.loc[("black", "white"), "p_adjusted"] == 6 / 8


def test_single_metrics_are_exploratory() -> None:
    table = differences(crossed())
    metric = table[table["metric"] == "Accuracy"].set_index(["first", "second"])
    # Benjamini-Hochberg: smallest p times 2 / 1, largest times 2 / 2
    assert metric.loc[("female", "male"), "p_adjusted"] == 2 * 2 / 16
    assert metric.loc[("black", "white"), "p_adjusted"] == 6 / 8
    assert set(metric.index) == {("female", "male"), ("black", "white")}, "by metric, within categories only"


def test_between_categories_differences_are_shown_and_not_tested() -> None:
    table = differences(crossed())
    across = table[~table["within"]]
    assert [(row.first, row.second) for row in across.itertuples()] == [
        ("female", "black"),
        ("female", "white"),
        ("male", "black"),
        ("male", "white"),
    ]
    assert across["p"].isna().all()
    assert across["p_adjusted"].isna().all()
    assert across.set_index(["first", "second"]).loc[("male", "black"), "estimate"] == 5.0 - 5.25


def test_each_model_is_its_own_family() -> None:
    frame = crossed()
    both = pd.concat([frame.assign(model="one"), frame.assign(model="two", unit="two/" + frame["unit"])])
    table = differences(both)
    tested = table[table["within"] & (table["metric"] == "all")]
    assert len(tested) == 4
    assert tested[tested["first"] == "female"]["p_adjusted"].tolist() == [0.25, 0.25], "2 tests each, not 4"


def test_only_common_scenarios_count() -> None:
    frame = pd.DataFrame(
        [
            *(single(f"{s}f", s, "female", v) for s, v in (("s1", 5.0), ("s2", 6.0), ("s3", 9.0))),
            *(single(f"{s}m", s, "male", v) for s, v in (("s1", 4.0), ("s2", 5.0))),
        ]
    )
    row = differences(frame).iloc[0]
    assert (row["estimate"], row["clusters"]) == (1.0, 2)


def test_a_label_without_any_readable_score_has_no_difference() -> None:
    frame = pd.DataFrame([single("a", "s", "female", None), single("b", "s", "male", 5.0)])
    table = differences(frame)
    assert len(table) == 2
    assert table["estimate"].isna().all()
    assert table["p"].isna().all()
    assert all(table["note"])


def test_the_unlabelled_control_is_not_compared() -> None:
    table = differences(scored())
    assert set(table["first"]) | set(table["second"]) == {"female", "male"}
