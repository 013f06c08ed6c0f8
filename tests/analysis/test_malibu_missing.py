"""Replies without a verdict: counted by identity, tested, and bounded. And scores that cannot be."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from parley.analysis.malibu import PanelData
from parley.analysis.malibu.ballots import check_scores
from parley.analysis.malibu.score_table import nested_means
from parley.analysis.malibu.unread import unread, unread_differences, unread_shares
from parley.analysis.reporting.verdicts import MissingColumns
from parley.analysis.stats.results import Line
from parley.analysis.stats.tables import row_codes

CATEGORIES = {"female": "gender", "male": "gender", "black": "race", "white": "race", "asian": "race"}


def scored(
    identities: tuple[str, ...] = ("female", "male"),
    *,
    bases: int = 12,
    scenarios: int = 2,
    judges: int = 3,
    metrics: tuple[str, ...] = ("Accuracy", "Creativity"),
    seed: int = 0,
    severity: tuple[float, ...] = (0.0, 0.0, 0.0),
) -> pd.DataFrame:
    """Phase 1, nothing planted: judges differ in severity, replies in noise, and all were read."""
    cells = [range(bases), range(scenarios), identities, range(judges)]
    frame = pd.MultiIndex.from_product(cells, names=["base", "n", "identity", "judge"]).to_frame(index=False)
    rng = np.random.default_rng(seed)
    frame["opinion"] = 6 + np.take(severity, frame["judge"]) + rng.normal(0, 1, len(frame))
    frame["base"] = "b" + frame["base"].astype(str)
    frame["scenario"] = frame["base"] + "-" + frame["n"].astype(str)
    frame["judge"] = "J" + frame["judge"].astype(str)
    frame["unit"] = "p1/" + frame["scenario"] + "/" + frame["identity"]
    frame["category"] = frame["identity"].map(CATEGORIES).fillna("")
    frame = frame.merge(pd.DataFrame({"metric": metrics}), how="cross")
    frame["value"] = (frame["opinion"] + rng.normal(0, 0.5, len(frame))).clip(0, 10).round()
    constant = {"phase": 1, "control": "", "repeat": 0, "model": "m", "role": "debater", "round": 1}
    return frame.drop(columns=["n", "opinion"]).assign(**constant, subject="", text=None, status="ok")


def without(frame: pd.DataFrame, rows: pd.Series, status: str = "refused") -> pd.DataFrame:
    """The frame in which these replies gave no verdict."""
    return frame.assign(
        value=frame["value"].mask(rows), text=frame["text"].mask(rows), status=frame["status"].mask(rows, status)
    )


def compared(
    x: str, y: str, texts: str, scenario: str = "b0-0", category: str = "race", **others: Any
) -> list[dict[str, Any]]:
    """Phase 2: one comparison, x first with response 1; one letter per judge: A, B, t(ie), ? (unparsed)."""
    return [
        {
            **{"unit": f"p2/{scenario}/{x}-{y}", "phase": 2, "scenario": scenario, "base": scenario.partition("-")[0]},
            **{"category": category, "identity": x, "other": y, "identity_a": x, "identity_b": y, "response_a": 1},
            **{"response_b": 2, "assignment": 0, "order": 0, "control": "same label" if x == y else "", "repeat": 0},
            **{"model": "m", "judge": f"J{n}", "role": "debater", "round": 1, "subject": "", "metric": "preferred"},
            **{"value": None, "text": {"A": "A", "B": "B", "t": "tie", "?": None}[letter]},
            **{"status": "unparsed" if letter == "?" else "ok", **others},
        }
        for n, letter in enumerate(texts)
    ]


def shares(frame: pd.DataFrame) -> dict[str, Line]:
    """The share of unread replies of each identity."""
    lines = unread_shares(PanelData(frame))
    return {line.label: line for line in lines if "identity" in line.about}


def compare(frame: pd.DataFrame) -> Line:
    """The only pair."""
    (line,) = unread_differences(PanelData(frame))
    return line


def cautions(frame: pd.DataFrame) -> list[str]:
    return [caution for caution in unread(PanelData(frame)).section.cautions if "gave no verdict" not in caution]


# Counts


def test_final_replies_are_counted_by_identity_and_refusals_apart() -> None:
    frame = scored(bases=2, scenarios=1, judges=2)
    early = frame.assign(round=0, status="refused", value=math.nan)  # an earlier round that the panel got over
    female = frame["identity"] == "female"
    frame = without(frame, female & (frame["unit"].str.contains("b0")) & (frame["judge"] == "J0"))
    second = female & (frame["unit"].str.contains("b1"))
    frame = without(frame, second & (frame["judge"] == "J0"), "unparsed")
    frame = without(frame, second & (frame["judge"] == "J1"), "cut")
    found = shares(pd.concat([early, frame]))
    counts = [found["female"].also[status] for status in ("refused", "unparsed", "cut")]
    assert (found["female"].n, counts) == (4, [1, 1, 1]), "replies, not metrics"
    assert found["female"].estimate == 3 / 4
    assert (found["male"].n, found["male"].estimate) == (4, 0)
    (whole,) = (line for line in unread_shares(PanelData(pd.concat([early, frame]))) if line.name == "unread")
    assert (whole.estimate, whole.n) == (11 / 16, 16), "of all rounds"


def test_a_reply_in_a_pair_is_about_both() -> None:
    rows = [*compared("black", "white", "A?"), *compared("black", "black", "?A"), *compared("white", "asian", "AA")]
    found = shares(pd.DataFrame(rows))
    assert {label: line.n for label, line in found.items()} == {"black": 4, "white": 4, "asian": 2}
    assert {label: line.also["unparsed"] for label, line in found.items()} == {"black": 2, "white": 1, "asian": 0}


# Differences between identities


def test_shares_are_compared_within_judge_and_scenario_by_base() -> None:
    frame = scored(bases=7, scenarios=2, judges=2)
    first_six = ~frame["base"].eq("b6")
    gone = first_six & (frame["identity"] == "female") & (frame["judge"] == "J0") & frame["scenario"].str.endswith("-0")
    line = compare(without(frame, gone))
    # In six bases of seven, one of two scenarios by one of two judges: ¼ each. All six have the same sign: 2 / 2⁶.
    assert line.estimate == pytest.approx(6 / 7 / 4)
    assert line.p == line.p_adjusted == 2 / 2**6
    assert (line.clusters, line.also["second_share"], line.verdict) == (7, 0, "different")
    (sentence,) = cautions(without(frame, gone))
    assert "gender, phase 1: replies about 'female' were unread 21.4 percentage points more often" in sentence
    assert "p = 0.031 over 7 bases, Holm-corrected for 1 comparison" in sentence


def test_a_run_without_missing_replies_compares_nothing_and_says_nothing() -> None:
    assert unread_differences(PanelData(scored())) == []
    assert cautions(scored()) == []


def test_low_scores_that_go_unread_are_noticed_and_bounded() -> None:
    """Judges treat both alike, but replies with a low score for 'female' cannot be read: what is left looks better."""
    frame = scored(bases=20, scenarios=4, metrics=("Accuracy",))
    truth = frame.groupby("identity")["value"].mean()
    assert abs(truth["female"] - truth["male"]) < 0.25, "noise"
    low = (frame["identity"] == "female") & (frame["value"] <= 5)
    line = compare(without(frame, low, "unparsed"))
    assert line.also["effect"] > 0.6, "the bias that nobody planted"
    assert line.p_adjusted < 0.0001
    assert line.also["worst_low"] < truth["female"] - truth["male"] < line.also["worst_high"]
    assert line.also["worst_low"] < 0
    assert line.also["worst_p"] == 1
    (sentence,) = cautions(without(frame, low, "unparsed"))
    assert "they could reverse its sign" in sentence


def test_a_judge_that_refuses_one_identity_does_not_bias_the_difference() -> None:
    """J0 is two points harsher. If the panel were averaged first, 'female' would gain by J0's refusals."""
    frame = scored(bases=20, severity=(-2.0, 0.0, 0.0))
    gone = (frame["identity"] == "female") & (frame["judge"] == "J0")
    refusing = without(frame, gone)
    line = compare(refusing)
    left = refusing.groupby("identity")["value"].mean()
    assert left["female"] - left["male"] > 0.5
    assert abs(line.also["effect"]) < 0.2, "within judges"


@pytest.mark.nightly
def test_replies_missing_at_random_keep_the_level() -> None:
    """Nothing planted: the share varies by base, and not by identity. 60 runs of four pairs, 5% nominal."""
    frame = scored(tuple(CATEGORIES), judges=2, metrics=("Accuracy",))
    rng = np.random.default_rng(1)
    p: list[float] = []
    for _ in range(60):
        rate = rng.beta(1, 3, 12)[pd.factorize(frame["base"])[0]]
        gone = pd.Series(rng.random(len(frame)) < rate)
        p += [line.p for line in unread_differences(PanelData(without(frame, gone)))]
    assert len(p) == 240
    assert np.mean(np.array(p) < 0.05) <= 0.07, "below 5%, since shares of few replies tie"


# Bounds


def test_bounds_by_hand() -> None:
    frame = scored(bases=1, scenarios=1, judges=2, metrics=("Accuracy",))
    frame["value"] = frame["identity"].map({"female": 6.0, "male": 7.0})
    gone = (frame["identity"] == "female") & (frame["judge"] == "J0")
    line = compare(without(frame, gone))
    # J1: 6 - 7 = -1. J0: from 0 - 7 to 10 - 7. Mean of the two judges: -4 to 1; what was read: -1.
    assert [line.also[name] for name in ("effect", "worst_low", "worst_high")] == [-1, -4, 1]
    assert "1 cluster" in line.note
    assert math.isinf(line.low)


def test_bounds_that_exclude_no_difference_have_a_p_value() -> None:
    frame = scored(bases=8, scenarios=5, judges=2, metrics=("Accuracy",))
    frame["value"] = frame["identity"].map({"female": 9.0, "male": 5.0})
    gone = (frame["identity"] == "female") & (frame["judge"] == "J0") & frame["scenario"].str.endswith("-0")
    also = compare(without(frame, gone)).also
    # One of ten cells of a base: 0 - 5 in place of 9 - 5 at worst, 10 - 5 at best.
    assert (also["worst_low"], also["worst_high"]) == pytest.approx((4 - 0.9, 4 + 0.1))
    assert also["worst_p"] == 2 / 2**8
    (sentence,) = cautions(without(frame, gone))
    assert "they cannot reverse its sign" in sentence


def test_bounds_are_left_out_where_two_identities_miss_equally_much() -> None:
    frame = without(scored(), scored()["judge"] == "J0")
    line = compare(frame)
    assert line.estimate == 0
    assert "worst_low" not in line.also


def test_in_pairs_each_identity_is_compared_beside_the_same_third_one() -> None:
    rows = [
        *compared("black", "asian", "??"),
        *compared("white", "asian", "AA"),
        *compared("black", "white", "AA"),
        *compared("black", "black", "?A"),
        *compared("white", "white", "AA"),
    ]
    lines = {line.label: line for line in unread_differences(PanelData(pd.DataFrame(rows)))}
    # Beside asian: 1 - 0 for both judges; against itself: 1 - 0 for J0, 0 for J1. The mean is ¾.
    assert lines["black − white"].estimate == pytest.approx(3 / 4)


def test_a_single_pair_without_controls_has_nothing_to_compare() -> None:
    line = compare(pd.DataFrame(compared("female", "male", "A?", category="gender")))
    assert math.isnan(line.p)
    assert (line.verdict, line.note) == ("not measured", "nothing to compare")


def test_missing_votes_bound_a_preference() -> None:
    rows = [
        *compared("black", "white", "AA?", "b0-0"),  # the majority stands whatever J2 had said
        *compared("black", "white", "A??", "b1-0"),  # it may turn
        *compared("black", "white", "???", "b2-0"),  # it is open
        *compared("black", "white", "BBB", "b3-0"),
    ]
    also = compare(pd.DataFrame(rows)).also
    assert also["effect"] == pytest.approx((1 + 1 - 1) / 3)
    assert (also["worst_low"], also["worst_high"]) == pytest.approx(((1 - 1 - 1 - 1) / 4, (1 + 1 + 1 - 1) / 4))


# Scores that cannot be


def too_high(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(value=frame["value"].where(frame.index != 3, 97.0))


def infinite(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(value=frame["value"].where(frame.index != 3, -math.inf))


def words(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(value=frame["value"].astype(object).where(frame.index != 3, "high"))


def twice(frame: pd.DataFrame) -> pd.DataFrame:
    return pd.concat([frame, frame[:2]])


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (too_high, "1 score is not between 0 and 10, such as 97 for Creativity by judge J1 in unit p1/b0-0/female"),
        (infinite, "1 score is not between 0 and 10, such as -inf for Creativity by judge J1 in unit p1/b0-0/female"),
        (words, "1 score is not between 0 and 10, such as 'high' for Creativity by judge J1"),
        (twice, "2 verdicts occur more than once, such as Accuracy by judge J0 in round 1 of unit p1/b0-0/female"),
    ],
)
def test_impossible_scores_and_copies_are_named(damage: Callable[[pd.DataFrame], pd.DataFrame], message: str) -> None:
    with pytest.raises(MissingColumns) as raised:
        check_scores(damage(scored()))
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_sound_scores_pass_and_a_score_that_is_not_there_is_a_caution() -> None:
    frame = scored()
    assert check_scores(frame) == []
    assert check_scores(without(frame, frame.index < 4)) == []
    silent = frame.assign(value=frame["value"].where(frame.index != 3))
    assert check_scores(silent) == ["1 verdict has the status of a reply that was read, but no score."]
    assert check_scores(pd.DataFrame(compared("black", "white", "A?"))) == []


# Means of means


def test_means_of_means_are_those_of_pandas() -> None:
    rng = np.random.default_rng(3)
    levels = pd.DataFrame(rng.integers(0, 4, (300, 4)), columns=list("abcd"))
    values = np.where(rng.random((300, 2)) < 0.3, np.nan, rng.normal(size=(300, 2)))
    theirs = pd.concat([levels, pd.DataFrame(values, columns=["x", "y"])], axis=1)
    for depth in (4, 3, 2):
        theirs = theirs.groupby(list("abcd")[:depth])[["x", "y"]].mean().reset_index()
    mine = nested_means(values, levels, keep=2)
    assert np.allclose(mine.to_numpy(), theirs[["x", "y"]].to_numpy(), equal_nan=True)
    assert list(mine.index) == list(map(tuple, theirs[["a", "b"]].to_numpy()))


def test_row_codes_tell_rows_apart_however_many_there_could_be() -> None:
    columns = [np.arange(1000) // (1 + n % 2) for n in range(12)]
    assert len(np.unique(row_codes(columns))) == 1000
    assert list(row_codes(columns, sort=True).argsort()) == list(range(1000))
