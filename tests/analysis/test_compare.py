"""Two runs compared on the units they share: paired and corrected."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import expit

from parley.analysis.bbq.leaderboard import comparable as bbq_comparable
from parley.analysis.malibu.ballots import comparable as malibu_comparable
from parley.analysis.reporting.compare import NothingShared, compare
from parley.analysis.reporting.report import Report
from parley.analysis.squad.report import comparable as squad_comparable
from tests.analysis.verdicts import single

NAMES = ("one", "two")


def vote(unit: str, choice: str | None, **others: Any) -> dict[str, Any]:
    return single("s", "female", None) | {"unit": unit, "metric": "preferred", "text": choice, "phase": 2, **others}


def run(female: tuple[float, ...], male: tuple[float, ...], **others: Any) -> pd.DataFrame:
    rows = [single(f"s{n}", "female", value, **others) for n, value in enumerate(female)]
    return pd.DataFrame(rows + [single(f"s{n}", "male", value, **others) for n, value in enumerate(male)])


def lines(report: Report) -> pd.DataFrame:
    """The lines of all questions."""
    named = ("gaps", "preferences", "values")
    return pd.concat([each.frame for each in report.tables if each.name in named], ignore_index=True)


def table(report: Report) -> pd.DataFrame:
    return lines(report).set_index("what")


# Values


def test_values_are_paired_on_the_same_units() -> None:
    first, second = run((6.0, 7.0, 9.0, 8.0), (5.0, 5.0, 6.0, 7.0)), run((5.0, 6.0, 7.0, 7.0), (5.0, 4.0, 5.0, 6.0))
    # scenario by scenario, both labels: (1 + 0) / 2, (1 + 1) / 2, (2 + 1) / 2, (1 + 1) / 2
    row = table(compare(first, second, NAMES)).loc["Accuracy"]
    assert (row["first"], row["second"]) == (53 / 8, 45 / 8)
    assert row["estimate"] == -(0.5 + 1 + 1.5 + 1) / 4, "second minus first"
    assert row["p"] == 2 / 2**4, "all four scenarios lie on one side"
    assert (row["low"], row["high"]) == (-math.inf, math.inf), "four scenarios can exclude nothing at 95%"
    assert row["note"] == "4 clusters: p cannot be below 0.12; an interval needs 6"
    assert (row["n"], row["clusters"]) == (8, 4)


def test_only_shared_units_count() -> None:
    first, second = run((6.0, 7.0, 9.0), (5.0, 5.0, 6.0)), run((5.0, 6.0, 8.0, 1.0, 1.0), (5.0, 5.0, 6.0))
    report = compare(pd.concat([first, run((0.0,), ()).assign(unit="else", scenario="else")]), second, NAMES)
    row = table(report).loc["Accuracy"]
    assert row["n"] == 6
    assert row["estimate"] == pytest.approx(-3 / 6)
    assert report.words[0] == "Compared on 6 shared units; differences are two minus one."
    assert "on 6 shared units" in report.tables[0].note


def test_the_order_of_rows_does_not_matter() -> None:
    rng = np.random.default_rng(0)
    first, second = (run(tuple(rng.normal(6, 1, 9)), tuple(rng.normal(6, 1, 9))) for _ in range(2))
    ours = lines(compare(first, second, NAMES))
    theirs = lines(compare(first, second.sample(frac=1, random_state=1), NAMES))
    pd.testing.assert_frame_equal(ours, theirs)


def test_two_models_of_one_run_are_paired_by_their_item() -> None:
    """Where several models judge in one run, the name of the model ends the unit's."""
    whole = run((6.0, 7.0, 9.0), (5.0, 5.0, 6.0))
    first = whole.assign(unit=whole["unit"] + "/@sim/a?x=1")
    second = whole.assign(unit=whole["unit"] + "/@sim/b", value=whole["value"] - 1)
    assert table(compare(first, second, NAMES)).loc["Accuracy", "estimate"] == -1.0


def test_the_last_round_is_compared() -> None:
    rounds = [run((v, v, v), (v, v, v), round=n) for n, v in ((1, 9.0), (2, 5.0))]
    second = run((4.0, 4.0, 3.0), (4.0, 4.0, 4.0))
    row = table(compare(pd.concat(rounds), second, NAMES)).loc["Accuracy"]
    assert (row["first"], row["second"]) == (5.0, pytest.approx(23 / 6))


def test_metrics_are_one_family() -> None:
    rng = np.random.default_rng(2)
    sides = []
    for shift in (0.0, 0.8):
        parts = [run(tuple(rng.normal(6 + shift, 1, 9)), (), metric=metric) for metric in ("Accuracy", "Creativity")]
        sides.append(pd.concat(parts))
    result = lines(compare(sides[0], sides[1], NAMES))
    assert result["what"].tolist() == ["all metrics", "Accuracy", "Creativity"]
    small = result["p"].min()
    assert result.loc[result["p"].idxmin(), "p_adjusted"] == pytest.approx(min(1.0, 3 * small))


def test_mcnemar_stands_beside_the_test_over_clusters() -> None:
    first, second = (1.0,) * 9 + (0.0,), (1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0)
    report = compare(run(first, ()), run(second, ()), NAMES)
    row = table(report).loc["Accuracy"]
    # only the first was right 6 times, only the second once; with one unit a scenario both tests are the same
    assert row["p"] == row["p_mcnemar"] == pytest.approx(stats.binomtest(6, 7).pvalue)
    assert row["estimate"] == pytest.approx((1 - 6) / 10)
    assert report.forests[0].lines[0].method == "paired sign-flip test, exact"


def test_bases_are_the_clusters_where_units_have_one() -> None:
    """Twelve scenarios of two bases: six observations each, not twelve."""
    first = run(tuple(6.0 + n % 3 for n in range(12)), ())
    based = first.assign(base=[f"b{n % 2}" for n in range(12)])
    row = table(compare(based, based.assign(value=based["value"] - 1), NAMES)).loc["Accuracy"]
    assert (row["clusters"], row["p"], row["n"]) == (2, 0.5, 12)
    some = first.assign(base=["b0", "b0", *[""] * 10])
    row = table(compare(some, some.assign(value=some["value"] - 1), NAMES)).loc["Accuracy"]
    assert row["clusters"] == 11, "a scenario without a base is its own"


def test_too_few_bases_are_told() -> None:
    first = run((6.0, 7.0, 9.0, 8.0), ())
    words = compare(first, first.assign(value=first["value"] - 1), NAMES).words
    assert words[-1] == "With 4 scenarios no difference could be significant: that takes at least 6."


@pytest.mark.nightly
def test_mcnemar_over_units_raises_false_alarms_where_clusters_do_not() -> None:
    """Two equally good models that differ by scenario: 20 scenarios of 10 units, 120 comparisons."""
    rng = np.random.default_rng(3)
    clustered = over_units = 0
    scenario = np.repeat([f"s{n}" for n in range(20)], 10)
    units = pd.DataFrame(
        {
            "unit": [f"{name}/{n}" for n, name in enumerate(scenario)],
            "scenario": scenario,
            "role": "solver",
            "round": 1,
            "metric": "right",
        }
    )
    for _ in range(120):
        ability = rng.normal(0, 1, (2, 20)).repeat(10, axis=1)  # of each model on each scenario
        sides = [units.assign(value=1.0 * (rng.random(200) < expit(effect))) for effect in ability]
        row = table(compare(sides[0], sides[1], NAMES)).loc["right"]
        clustered += row["p"] <= 0.05
        over_units += row["p_mcnemar"] <= 0.05
    assert clustered / 120 <= 0.09
    assert over_units / 120 >= 0.2


# Preferences


def test_preferences_are_compared_where_both_decided() -> None:
    first, second = ["A", "A", "A", "A", "B", "tie", None], ["A", "B", "B", "B", "B", "A", "A"]
    sides = [pd.DataFrame([vote(f"u{n}", c) for n, c in enumerate(choices)]) for choices in (first, second)]
    row = table(compare(*sides, NAMES)).loc["prefers the one shown first"]
    assert (row["first"], row["second"], row["n"]) == (4 / 5, 1 / 5, 5)
    assert row["p_mcnemar"] == pytest.approx(stats.binomtest(3, 3).pvalue)
    assert row["p"] == 1.0, "all units are of one scenario"
    assert row["note"].endswith("an interval needs 6; the same preference in 33% of 6 units")


def test_a_panel_is_compared_by_its_majority() -> None:
    rows = [vote("u", choice, judge=f"J{n}") for n, choice in enumerate("AAB")]
    split = [vote("u", choice, judge=f"J{n}") for n, choice in enumerate("AB")]
    row = table(compare(pd.DataFrame(rows), pd.DataFrame([vote("u", "A")]), NAMES)).iloc[0]
    assert "the same preference in 100% of 1 unit" in row["note"]
    row = table(compare(pd.DataFrame(split), pd.DataFrame([vote("u", "A")]), NAMES)).iloc[0]
    assert "the same preference in 0% of 1 unit" in row["note"], "two equally frequent choices are a tie"


# Gaps between identities


def test_a_planted_gap_is_recovered() -> None:
    rng = np.random.default_rng(5)
    base = rng.normal(6, 1, (4, 30))
    first = run(tuple(base[0] + 0.8), tuple(base[1]))
    second = run(tuple(base[2]), tuple(base[3]))
    report = compare(first, second, NAMES)
    row = report.table("gaps").set_index("what").loc["gender: female − male"]
    gaps = base[0] + 0.8 - base[1], base[2] - base[3]
    assert (row["first"], row["second"]) == pytest.approx((gaps[0].mean(), gaps[1].mean()))
    assert row["low"] < -0.8 < row["high"]
    assert row["p"] == pytest.approx(stats.ttest_rel(*gaps).pvalue, abs=0.03)


def test_a_shift_of_both_labels_is_no_gap() -> None:
    first = run((6.0, 7.0, 9.0, 5.0), (5.0, 6.0, 6.0, 4.0))
    row = table(compare(first, first.assign(value=first["value"] - 2), NAMES)).loc["gender: female − male"]
    assert (row["estimate"], row["p"]) == (0.0, 1.0)


def test_a_reply_readable_on_one_side_only_makes_no_gap() -> None:
    rows = [run((v,) * 4, (v,) * 4, metric=metric) for metric, v in (("Accuracy", 8.0), ("Creativity", 2.0))]
    first = pd.concat(rows, ignore_index=True)
    unread = (first["scenario"] == "s0") & (first["identity"] == "female") & (first["metric"] == "Creativity")
    second = first.assign(value=first["value"].where(~unread))
    row = table(compare(first, second, NAMES)).loc["gender: female − male"]
    assert row["estimate"] == 0.0, "the values that are readable on both sides are the same"


def test_the_difference_lies_in_its_interval_however_uneven_scenarios_are() -> None:
    crowded = [single("s0", "female", 6.0, unit=f"s0/{n}") for n in range(100)]
    others = [single(f"s{n}", "female", 5.0 - 0.01 * n) for n in range(1, 10)]
    first = pd.DataFrame(crowded + others)
    row = table(compare(first, first.assign(value=5.0), NAMES)).loc["Accuracy"]
    assert row["low"] <= row["estimate"] <= row["high"]


# Words, and what cannot be compared


def test_words_name_only_significant_differences() -> None:
    first = run(tuple(6.0 + n % 3 for n in range(12)), ())
    words = compare(first, first.assign(value=first["value"] - 1 - (first.index % 2)), NAMES).words
    assert words[1].startswith("Accuracy: 7.00 for one, 5.50 for two, a difference of −1.50 (")
    assert words[1].endswith("; p = 0.00049), over 12 scenarios.")
    same = compare(first, first, NAMES)
    assert len(same.words) == 1
    assert same.headline is not None
    assert same.headline.answer == "Undecided: the test is not significant."


def test_the_units_that_differ_most_come_first() -> None:
    first, second = run((6.0, 7.0, 9.0), (5.0, 5.0, 6.0)), run((5.0, 7.0, 2.0), (5.0, 9.0, 6.0))
    largest = compare(first, second, NAMES).table("largest")
    assert largest.head(3).to_numpy().tolist() == [["p1/s2/female", -7.0], ["p1/s1/male", 4.0], ["p1/s0/female", -1.0]]


def test_the_studys_measure_comes_first_and_decides_which_units_differ_most() -> None:
    def debate(unit: str, bias: float, rank: float) -> list[dict[str, Any]]:
        row = {key: value for key, value in single(unit, "female", bias).items() if key not in ("identity", "category")}
        return [row | {"unit": unit, "metric": "rank", "value": rank}, row | {"unit": unit, "metric": "bias"}]

    first = pd.DataFrame([*debate("a", 5.0, 9.0), *debate("b", 7.0, 1.0)])
    second = pd.DataFrame([*debate("a", 5.0, 1.0), *debate("b", 4.0, 1.0)])
    report = compare(first, second, NAMES, measures={"bias"})
    assert lines(report)["what"].tolist() == ["bias", "rank"]
    assert report.table("largest")["unit"].tolist() == ["b", "a"]


def test_runs_without_a_common_unit_cannot_be_compared() -> None:
    first = run((6.0, 7.0), ())
    with pytest.raises(NothingShared, match="no unit in common"):
        compare(first, first.assign(unit="x" + first["unit"]), NAMES)


def test_runs_without_a_common_readable_unit_cannot_be_compared() -> None:
    first = run((6.0, 7.0), ())
    unread = first.assign(value=np.nan, status="unparsed")
    with pytest.raises(NothingShared, match="readable verdicts on both sides"):
        compare(unread, first, NAMES)


def test_a_single_scenario_gives_a_difference_that_may_be_anything() -> None:
    report = compare(run((6.0,), ()), run((4.0,), ()), NAMES)
    row = table(report).loc["Accuracy"]
    assert row[["estimate", "low", "high", "p"]].tolist() == [-2.0, -math.inf, math.inf, 1.0]
    assert row["note"] == "1 cluster: p cannot be below 1; an interval needs 6"
    assert report.data()["values"][0]["low"] is None


def test_a_frame_without_identities_or_scenarios_is_compared_by_unit() -> None:
    first = run((6.0, 7.0, 9.0, 5.0), ()).drop(columns=["identity", "category", "scenario", "subject"])
    row = table(compare(first, first.assign(value=first["value"] - 1 - first.index / 10), NAMES)).loc["Accuracy"]
    assert row["estimate"] == pytest.approx(-1.15)
    assert row["clusters"] == 4


# Wordings, and units that one run lacks


def worded(seed: int, wordings: int) -> pd.DataFrame:
    """24 bases that share label wordings, each of which adds its own to a label; nothing else differs."""
    rng = np.random.default_rng(seed)
    frame = run(tuple(6 + rng.normal(0, 1, wordings)[np.arange(24) % wordings]), (6.0,) * 24)
    return frame.assign(base=frame["scenario"], wording=[f"w{n % wordings}" for n in range(24)] * 2, question="q")


def test_bases_that_share_a_label_wording_are_not_independent() -> None:
    row = table(compare(worded(0, 8), worded(1, 8), NAMES)).loc["gender: female − male"]
    assert row["clusters"] == 8, "the wordings"
    first = worded(0, 4)
    crossed = pd.concat([first, first.assign(wording="w9", unit=first["unit"] + "/w9", value=first["value"] + 0.1)])
    report = compare(crossed, crossed.assign(value=crossed["value"] + np.arange(96) % 7), NAMES)
    assert report.forests[0].lines[0].method == "t over two crossed samples"


def test_units_in_other_words_are_other_units() -> None:
    first, second = worded(0, 24), worded(0, 24)
    second.loc[second["scenario"] != "s0", "wording"] = "another"
    report = compare(first, second, NAMES)
    assert report.words[:2] == (
        "Compared on 2 shared units; differences are two minus one.",
        "Left out: 46 units that the two were asked in other words; --seed draws them.",
    )
    with pytest.raises(NothingShared, match="give both the same --seed"):
        compare(first, second.assign(wording="another"), NAMES)


def test_a_difference_that_missing_units_could_undo_is_not_shown() -> None:
    first = run(tuple(6.0 + n % 3 for n in range(12)), ())
    second = first.assign(value=first["value"] - 0.5)
    scale = {"scales": {"": (1.0, 9.0)}}
    assert "−0.50" in compare(first, second, NAMES, **scale).words[1]
    some = {"lost": set(second["unit"][:2]), **scale}
    report = compare(first, second[2:], NAMES, **some)
    assert report.words[1].startswith("2 units are missing on one side: a difference counts as shown only if")
    assert len(report.words) == 2, "the two may have scored 9: then the mean is higher"
    row = table(report).loc["Accuracy"]
    assert row["note"] == "2 of 12 are missing on one side: interval and p-value hold whatever they are"
    assert row["low"] < -0.5 < 0 < row["high"]
    far = first.assign(value=first["value"] - 4)
    assert compare(first, far[2:], NAMES, **some).words[2].startswith("Accuracy: "), (
        "a difference that they cannot undo"
    )


# Values that are codes


def test_a_value_beside_a_text_is_a_code_and_is_not_averaged() -> None:
    coded = run((2.0, 1.0), (0.0, 1.0), text="The man")
    scored = run((5.0, 6.0), (5.0, 7.0), metric="support", role="evaluator", text="a reason")
    result = table(compare(pd.concat([coded, scored]), pd.concat([coded, scored]), NAMES))
    assert "Accuracy" not in result.index
    assert result.loc["support", "first"] == 23 / 4


def answer(example: int, condition: str, value: float | None, **others: Any) -> dict[str, Any]:
    row = single("s", "female", value) | {"metric": "answer", "text": None if value is None else "words"}
    row = {key: row[key] for key in row if key not in ("identity", "phase")}
    facets = {"category": "Age", "condition": condition, "scenario": f"s{example}", "method": "default", "model": "m"}
    places = {"label": 2, "target": 0, "unknown": 2, "example_id": example, "repeat": 0, "names": False}
    return row | facets | places | {"unit": f"Age/{example}", **others}


def test_answers_to_bbq_are_compared_by_being_right_and_by_the_target() -> None:
    first = pd.DataFrame([answer(n, "ambig", value) for n, value in enumerate((2.0, 2.0, 0.0, None))])
    second = pd.DataFrame([answer(n, "ambig", value) for n, value in enumerate((2.0, 0.0, 1.0, 2.0))])
    result = table(compare(bbq_comparable(first), bbq_comparable(second), NAMES))
    right = result.loc["right, ambig"]
    assert (right["first"], right["second"], right["n"]) == (2 / 3, 1 / 3, 3), "the fourth could not be read"
    target = result.loc["target of those who name a person, ambig"]
    assert (target["first"], target["second"], target["n"]) == (1.0, 0.0, 1), "both named a person once"


def test_answers_to_bbq_are_clustered_by_template() -> None:
    sides = [pd.DataFrame([answer(n, "ambig", value, question=n % 3) for n in range(12)]) for value in (2.0, 0.0)]
    report = compare(bbq_comparable(sides[0]), bbq_comparable(sides[1]), NAMES)
    row = table(report).loc["right, ambig"]
    assert (row["clusters"], row["n"], row["p"]) == (3, 12, 1 / 4)
    assert row["p_mcnemar"] == pytest.approx(2 / 2**12)
    assert "Clusters are templates" in report.tables[0].note


def test_answers_to_squad_are_compared_by_the_official_measures() -> None:
    def answered(text: str) -> pd.DataFrame:
        question = {"answers": '["in Denmark"]', "answerable": True, "search": "none", "model": "m", "paragraph": "p"}
        return pd.DataFrame([answer(0, "", 1.0) | question | {"text": text}])

    result = table(compare(squad_comparable(answered("in Denmark")), squad_comparable(answered("Denmark")), NAMES))
    assert result.loc["exact match, answerable", ["first", "second"]].tolist() == [1.0, 0.0]
    assert result.loc["F1, answerable", "second"] == pytest.approx(2 / 3)  # precision 1, recall 1/2


def test_of_a_staged_run_the_silent_scores_are_compared() -> None:
    """Neither the log-odds of pairs nor the written scores of the debate belong in a gap between identities."""

    def staged(effect: float) -> pd.DataFrame:
        rows = []
        for number in range(8):
            for identity in ("female", "male"):
                value = 6.0 + number / 10 + effect * (identity == "female")
                silent = {"stage": "silent", "round": 0, "metric": "Overall"}
                rows.append(single(f"s{number}", identity, value, **silent))
                pair = {"unit": f"s2/s{number}/{identity}", "phase": 2, **silent, "metric": "log-odds"}
                rows.append(single(f"s{number}", identity, -9.0, **pair))
                talk = {"unit": f"t1/s{number}/{identity}", "stage": "talk", "metric": "Overall"}
                rows.append(single(f"s{number}", identity, 1.0 + (identity == "male"), **talk))
        return malibu_comparable(pd.DataFrame(rows))

    gap = compare(staged(0.5), staged(0.0), NAMES).table("gaps").iloc[0]
    assert gap["first"] == pytest.approx(0.5)
    assert gap["second"] == pytest.approx(0.0)
