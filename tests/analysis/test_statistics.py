"""The numbers of a report against published values, other people's code, and sums done by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from analysis.clustered import cluster_mean
from analysis.malibu import (
    differences,
    first_position,
    in_words,
    last_word,
    mean_scores,
    panel_preferences,
    panel_scores,
    replies,
    win_rates,
)
from analysis.proportions import wilson

# Proportions


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [
        # R. G. Newcombe, "Two-sided confidence intervals for the single proportion: comparison of seven methods",
        # Statistics in Medicine 17 (1998) 857-872, table I, method 3 (score, no continuity correction).
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilson_gives_the_published_intervals(successes: int, n: int, low: float, high: float) -> None:
    found = wilson(successes, n)
    assert found.estimate == successes / n
    assert (round(found.low, 4), round(found.high, 4)) == (low, high)
    assert (found.n, found.level, found.method) == (n, 0.95, "Wilson")


@pytest.mark.parametrize(("successes", "n"), [(0, 1), (1, 1), (3, 7), (10, 10), (250, 1000), (2.5, 6)])
def test_wilson_ends_are_where_the_score_test_just_rejects(successes: float, n: int) -> None:
    z = stats.norm.ppf(0.975)
    share = successes / n
    for end in (wilson(successes, n).low, wilson(successes, n).high):
        assert abs(share - end) == pytest.approx(z * math.sqrt(end * (1 - end) / n), abs=1e-7)


def test_wilson_at_another_level_agrees_with_scipy() -> None:
    theirs = stats.binomtest(7, 30).proportion_ci(0.8, method="wilson")
    ours = wilson(7, 30, level=0.8)
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high))


def test_wilson_of_nothing_is_no_number() -> None:
    found = wilson(0, 0)
    assert math.isnan(found.estimate)
    assert math.isnan(found.low)
    assert math.isnan(found.high)
    assert found.n == 0


# Means over clusters


def test_a_cluster_mean_by_hand() -> None:
    values = pd.Series([6.0, 8.0, 5.0, 9.0, 9.0, 9.0])
    clusters = pd.Series(["a", "a", "b", "c", "c", "c"])
    # cluster means: a = 7, b = 5, c = 9; their mean 7, deviations 0, -2, 2, so s = sqrt(8 / 2) = 2;
    # standard error 2 / sqrt(3) = 1.1547; t(0.975, 2) = 4.3027; half width 4.9683
    found = cluster_mean(values, clusters)
    assert found.estimate == 7.0
    assert (found.low, found.high) == pytest.approx((7 - 4.9683, 7 + 4.9683), abs=1e-4)
    assert (found.n, found.clusters) == (6, 3)
    low, high = stats.t.interval(0.95, 2, loc=7, scale=stats.sem([7, 5, 9]))
    assert (found.low, found.high) == pytest.approx((low, high))


def test_writing_every_value_down_twice_tells_nothing_new() -> None:
    values, clusters = pd.Series([1.0, 2.0, 4.0, 8.0]), pd.Series(list("abcd"))
    once = cluster_mean(values, clusters)
    twice = cluster_mean(pd.concat([values] * 2, ignore_index=True), pd.concat([clusters] * 2, ignore_index=True))
    assert (twice.estimate, twice.low, twice.high) == pytest.approx((once.estimate, once.low, once.high))
    assert (once.n, twice.n) == (4, 8)


def test_missing_values_are_left_out() -> None:
    found = cluster_mean(pd.Series([1.0, math.nan, 3.0, math.nan]), pd.Series(["a", "a", "b", "c"]))
    assert (found.estimate, found.n, found.clusters) == (2.0, 2, 2)


@pytest.mark.parametrize(("values", "estimate"), [([], math.nan), ([math.nan], math.nan), ([5.0], 5.0)])
def test_fewer_than_two_clusters_have_no_interval(values: list[float], estimate: float) -> None:
    found = cluster_mean(pd.Series(values, dtype=float), pd.Series(["a"] * len(values), dtype=object))
    assert found.estimate == pytest.approx(estimate, nan_ok=True)
    assert math.isnan(found.low)
    assert math.isnan(found.high)


def test_the_interval_holds_the_truth_nineteen_times_in_twenty() -> None:
    rng = np.random.default_rng(5)
    rounds, scenarios, each = 1000, 8, 5
    names = pd.Series(np.repeat(np.arange(scenarios), each))
    held = naive = 0
    for _ in range(rounds):
        shift = np.repeat(rng.normal(0, 1, scenarios), each)
        values = pd.Series(7 + shift + rng.normal(0, 0.5, scenarios * each))
        found = cluster_mean(values, names)
        held += found.low <= 7 <= found.high
        low, high = stats.t.interval(0.95, len(values) - 1, loc=values.mean(), scale=stats.sem(values))
        naive += low <= 7 <= high
    # 950 expected, standard deviation 6.9: four of them on both sides
    assert 922 <= held <= 978
    assert naive < 800, "verdicts taken for independent would promise too much"


# Frames by hand


def single(unit: str, scenario: str, identity: str, value: float | None, **others: Any) -> dict[str, Any]:
    return {
        "unit": unit,
        "phase": 1,
        "scenario": scenario,
        "category": {"female": "gender", "male": "gender", "black": "race", "white": "race"}.get(identity, ""),
        "identity": identity,
        "repeat": 0,
        "judge": "J",
        "role": "debater",
        "round": 1,
        "subject": "",
        "metric": "Accuracy",
        "value": value,
        "text": None,
        "status": "ok" if value is not None else "unparsed",
        **others,
    }


def votes(unit: str, first: str, second: str, choices: str, **others: Any) -> list[dict[str, Any]]:
    """One unit of phase 2: a letter for each judge, A, B, t(ie) or ? for a reply that could not be read."""
    said = {"A": "A", "B": "B", "t": "tie", "?": None}
    return [
        {
            "unit": unit,
            "phase": 2,
            "scenario": "s",
            "category": "gender",
            "identity_a": first,
            "identity_b": second,
            "control": "",
            "repeat": 0,
            "judge": f"J{n}",
            "role": "debater",
            "round": 1,
            "metric": "preferred",
            "value": None,
            "text": said[choice],
            **others,
        }
        for n, choice in enumerate(choices)
    ]


def test_the_last_round_counts() -> None:
    frame = pd.DataFrame(
        [
            single("u", "s", "male", 2.0, round=1),
            single("u", "s", "male", 6.0, round=2, judge="J1"),
            single("u", "s", "male", 8.0, round=2, judge="J2"),
        ]
    )
    assert list(last_word(frame)["value"]) == [6.0, 8.0]
    assert list(panel_scores(frame)["value"]) == [7.0]


def test_the_chair_counts_where_there_is_one() -> None:
    frame = pd.DataFrame(
        [single("u", "s", "male", 2.0, round=2), single("u", "s", "male", 9.0, round=2, role="chair", judge="Chair")]
    )
    assert list(panel_scores(frame)["value"]) == [9.0]


def test_what_could_not_be_read_is_left_out_and_not_a_nought() -> None:
    frame = pd.DataFrame(
        [single("u", "s", "male", 8.0, judge="J1"), single("u", "s", "male", None, judge="J2")],
    )
    assert list(panel_scores(frame)["value"]) == [8.0]
    assert mean_scores(frame).set_index("metric").loc["all", "estimate"] == 8.0


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
    # female: s1 (8 + 6) / 2 = 7, s2 only 6; mean 6.5, s = sqrt(0.5), half width t(0.975, 1) * 0.5 = 6.3531
    female = table.loc[("female", "all")]
    assert female["estimate"] == 6.5
    assert (female["low"], female["high"]) == pytest.approx((6.5 - 6.3531, 6.5 + 6.3531), abs=1e-4)
    assert (female["n"], female["clusters"]) == (3, 2)
    assert table.loc[("female", "Accuracy"), "estimate"] == 7.0
    assert table.loc[("female", "Creativity"), "estimate"] == 6.0
    assert table.loc[("female", "Creativity"), "clusters"] == 1
    # male: s1 6.5, s2 4; control: s1 5, s2 4
    assert table.loc[("male", "all"), "estimate"] == 5.25
    assert table.loc[("(no label)", "all"), "estimate"] == 4.5
    assert table.loc[("(no label)", "all"), "category"] == ""


def test_differences_by_hand() -> None:
    (row,) = differences(scored()).to_dict("records")
    # s1: 7 - 6.5 = 0.5; s2: 6 - 4 = 2; mean 1.25, s = 1.5 / sqrt(2), half width 12.7062 * 0.75 = 9.5297
    assert (row["category"], row["first"], row["second"]) == ("gender", "female", "male")
    assert row["estimate"] == 1.25
    assert (row["low"], row["high"]) == pytest.approx((1.25 - 9.5297, 1.25 + 9.5297), abs=1e-4)
    assert row["clusters"] == 2


def test_differences_stay_within_a_category_and_on_common_scenarios() -> None:
    frame = pd.DataFrame(
        [
            *(single(f"{s}f", s, "female", v) for s, v in (("s1", 5.0), ("s2", 6.0), ("s3", 9.0))),
            *(single(f"{s}m", s, "male", v) for s, v in (("s1", 4.0), ("s2", 5.0))),
            *(single(f"{s}b", s, "black", v) for s, v in (("s1", 1.0), ("s2", 2.0))),
            *(single(f"{s}w", s, "white", v) for s, v in (("s1", 2.0), ("s2", 4.0))),
        ]
    )
    table = differences(frame)
    found = {(row.first, row.second): row.estimate for row in table.itertuples()}
    assert found == {("female", "male"): 1.0, ("black", "white"): -1.5}


def test_a_label_without_any_readable_score_has_no_difference() -> None:
    frame = pd.DataFrame([single("a", "s", "female", None), single("b", "s", "male", 5.0)])
    assert all(math.isnan(row.estimate) for row in differences(frame).itertuples())


@pytest.mark.parametrize(
    ("choices", "choice"),
    [
        ("A", "A"),
        ("AAB", "A"),
        ("ABB", "B"),
        ("AABB", "tie"),
        ("ttAB", "tie"),
        ("ttAA", "tie"),
        ("AAtB", "A"),
        ("A???", "A"),
        ("AB??", "tie"),
    ],
)
def test_the_majority_decides_and_equal_votes_are_a_tie(choices: str, choice: str) -> None:
    frame = pd.DataFrame(votes("u", "female", "male", choices))
    assert list(panel_preferences(frame)["choice"]) == [choice]


def test_a_panel_that_could_not_be_read_prefers_nobody() -> None:
    frame = pd.DataFrame([*votes("u1", "female", "male", "??"), *votes("u2", "female", "male", "A")])
    assert panel_preferences(frame)["choice"].isna().tolist() == [True, False]
    assert win_rates(frame).set_index("identity").loc["female", "n"] == 1


def test_win_rates_by_hand() -> None:
    frame = pd.DataFrame(
        [
            *votes("u1", "female", "male", "AAB"),  # female
            *votes("u2", "male", "female", "ABB"),  # female
            *votes("u3", "male", "female", "BBt"),  # female
            *votes("u4", "female", "male", "B"),  # male
            *votes("u5", "female", "male", "AB"),  # tie
            *votes("u6", "male", "female", "t"),  # tie
            *votes("u7", "female", "male", "?"),  # not readable
            *votes("u8", "female", "female", "A", control="same label"),
            *votes("u9", "", "", "A", control="no label", category=""),
        ]
    )
    table = win_rates(frame).set_index("identity")
    assert set(table.index) == {"female", "male"}
    female, male = table.loc["female"], table.loc["male"]
    assert (female["wins"], female["losses"], female["ties"]) == (3, 1, 2)
    assert (male["wins"], male["losses"], male["ties"]) == (1, 3, 2)
    assert female["estimate"] == 3 / 4, "ties left out"
    assert female["ties_as_half"] == (3 + 1) / 6
    assert male["ties_as_half"] == pytest.approx(1 - female["ties_as_half"])
    theirs = stats.binomtest(3, 4).proportion_ci(method="wilson")
    assert (female["low"], female["high"]) == pytest.approx((theirs.low, theirs.high))


def test_only_ties_have_no_win_rate_but_a_half() -> None:
    table = win_rates(pd.DataFrame(votes("u", "female", "male", "t"))).set_index("identity")
    assert math.isnan(table.loc["male", "estimate"])
    assert table.loc["male", "ties_as_half"] == 0.5


def test_first_position_counts_decided_units() -> None:
    frame = pd.DataFrame(
        [
            *votes("u1", "female", "male", "A"),
            *votes("u2", "male", "female", "A"),
            *votes("u3", "male", "female", "B"),
            *votes("u4", "male", "female", "t"),
            *votes("u5", "male", "female", "?"),
        ]
    )
    found = first_position(frame)
    assert (found["estimate"], found["n"]) == (2 / 3, 3)


def test_replies_are_counted_by_how_they_were_read() -> None:
    turns = pd.DataFrame({"parse_status": ["ok", "ok", "repaired", "unparsed", "refused", None]})
    assert replies(turns) == {"ok": 2, "repaired": 1, "unparsed": 1, "refused": 1}


def gap_of(*gaps: float) -> pd.DataFrame:
    rows = []
    for n, gap in enumerate(gaps):
        rows += [single(f"{n}f", f"s{n}", "female", 5 + gap), single(f"{n}m", f"s{n}", "male", 5.0)]
    return pd.DataFrame(rows)


def test_words_claim_a_difference_only_where_the_interval_leaves_out_zero() -> None:
    clear = list(in_words(gap_of(*[1.0, 1.2] * 6)))
    assert len(clear) == 1
    assert clear[0].startswith("gender: 'female' was scored 1.10 points above 'male'")
    reverse = list(in_words(gap_of(*[-1.0, -1.2] * 6)))
    assert reverse[0].startswith("gender: 'male' was scored 1.10 points above 'female'")
    unclear = list(in_words(gap_of(*[1.0, -1.0] * 6)))
    assert len(unclear) == 1
    assert unclear[0].startswith("Phase 1: of 1 comparisons within a category, none stands")
    assert unclear[0].endswith("That is not evidence of no bias.")


def test_p_values_by_hand_and_corrected_for_the_whole_family() -> None:
    gaps = {("female", "male"): (1.0, 2.0, 3.0, 2.0), ("black", "white"): (0.5, -0.5, 1.0, 0.0)}
    rows = []
    for (first, second), values in gaps.items():
        for n, gap in enumerate(values):
            rows += [single(f"{n}{first}", f"s{n}", first, 5 + gap), single(f"{n}{second}", f"s{n}", second, 5.0)]
    table = differences(pd.DataFrame(rows)).set_index(["first", "second"])
    single_p = {pair: stats.ttest_1samp(values, 0.0).pvalue for pair, values in gaps.items()}
    for pair, p in single_p.items():
        assert table.loc[pair, "p"] == pytest.approx(p)
    # Holm: the smaller of two counts twice, the larger once but never below it
    small, large = sorted(single_p.values())
    assert table.loc[("female", "male"), "p_holm"] == pytest.approx(2 * small)
    assert table.loc[("black", "white"), "p_holm"] == pytest.approx(max(large, 2 * small))


def test_the_same_gap_everywhere_is_a_difference() -> None:
    (line,) = in_words(gap_of(*[1.0] * 12))
    assert line.startswith("gender: 'female' was scored 1.00 points above 'male'")


def test_words_warn_of_few_scenarios() -> None:
    assert next(in_words(gap_of(1.0, 1.2))).startswith("Only 2 scenarios")
