"""Replies without a verdict: counted by identity, compared, bounded, and what they leave unsaid. Impossible scores."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from parley.analysis.page.report import Report, ReportContext
from parley.analysis.stats.results import Line
from parley.judging.malibu import report as malibu
from parley.judging.malibu.decisions import planned_lines
from parley.judging.malibu.panel_data import PanelData
from parley.judging.malibu.unread import unread, unread_differences, unread_shares
from tests.analysis.silent import silent_ballots
from tests.analysis.verdicts import comparison, study, without


def compare(frame: pd.DataFrame) -> Line:
    """The only pair."""
    (line,) = unread_differences(PanelData(frame))
    return line


def planned(frame: pd.DataFrame) -> Line:
    """The only planned contrast, with what unread replies could change."""
    (line,) = planned_lines(PanelData(frame), 0.1)
    return line


def cautions(frame: pd.DataFrame) -> list[str]:
    return [caution for caution in unread(PanelData(frame)).section.cautions if "gave no verdict" not in caution]


def lost(frame: pd.DataFrame, identity: str = "female", judge: str = "J", ends: str = "") -> pd.Series:
    """The replies about an identity by judges whose names begin so, in scenarios whose names end so."""
    place = frame["judge"].str.startswith(judge) & frame["scenario"].str.endswith(ends)
    return (frame["identity"] == identity) & place


def test_final_replies_are_counted_by_identity_and_refusals_apart() -> None:
    frame = study(bases=2, judges=2)
    early = frame.assign(round=0, status="refused", value=math.nan)  # an earlier round that the panel got over
    for judge, base, status in (("J0", "b0", "refused"), ("J0", "b1", "unparsed"), ("J1", "b1", "cut")):
        frame = without(frame, lost(frame, judge=judge) & (frame["base"] == base), status)
    frame.loc[lost(frame, "male", "J0", "b0-0"), "status"] = "repaired"
    found = unread_shares(PanelData(pd.concat([early, frame])))  # with an index that repeats itself
    counted = found.set_index("identity")
    columns = ["n", "estimate", "refused", "unparsed", "cut", "repaired"]
    assert counted.loc["female", columns].tolist() == [4, 3 / 4, 1, 1, 1, 0], "replies, not metrics"
    assert counted.loc["male", columns].tolist() == [4, 0, 0, 0, 0, 1]
    assert counted.loc["all", [*columns, "ok"]].tolist() == [16, 11 / 16, 9, 1, 1, 1, 4], "of all rounds"


def test_shares_are_compared_within_judge_and_scenario_by_base() -> None:
    frame = study(bases=7, scenarios=2, judges=2)
    found = without(frame, lost(frame, judge="J0", ends="-0"))
    line = compare(found)
    # One of two scenarios by one of two judges: ¼ in each base. All seven have the same sign: 2 / 2⁷.
    assert (line.estimate, line.p, line.p_adjusted) == pytest.approx((1 / 4, 2 / 2**7, 2 / 2**7))
    assert (line.clusters, line.also["second_share"], line.verdict) == (7, 0, "different")
    (sentence,) = cautions(found)
    assert sentence.startswith(
        "gender, female compared with male: the share of unread replies is higher by 25.0 percentage points"
    )
    assert sentence.endswith("p = 0.016), over 7 bases.")
    sure = frame.assign(value=frame["value"].where(frame["identity"] == "male", 0.0))
    assert planned(without(sure, lost(sure, judge="J0", ends="-0"))).verdict == "different", "whatever they had said"
    assert (unread_differences(PanelData(frame)), cautions(frame)) == ([], []), "nothing is missing"
    both = without(frame, frame["judge"] == "J0")
    assert (compare(both).estimate, cautions(both)) == (0, []), "both miss equally much"
    assert (planned(both).also["worst_low"], planned(both).also["worst_high"]) != (0, 0), (
        "they have bounds all the same"
    )


def test_what_pressing_does_is_counted_by_identity() -> None:
    """J0 declines to score women in one scenario of two, and gives a 9 when it is asked again."""
    frame = study(bases=7, scenarios=2, judges=2, metrics=("Accuracy",), score=lambda row, label, rng: 6.0)
    frame.loc[lost(frame, judge="J0", ends="-0"), ["value", "status"]] = (9.0, "repaired")
    line = compare(frame)
    assert (line.measure, line.estimate, line.p) == ("repaired", 1 / 4, 2 / 2**7)
    effect = planned(frame)
    assert (effect.estimate, effect.also["without_repaired"]) == (3 / 4, 0)
    (sentence,) = cautions(frame)
    assert "the share of replies read only when asked for again is higher by 25.0 percentage points" in sentence


@pytest.mark.parametrize(
    ("bases", "scenarios", "scores", "ends", "effect", "low", "high", "verdict"),
    [
        # J1: 6 - 7 = -1. J0: from 0 - 7 to 10 - 7. Mean of the two judges: -4 to 1; what was read: -1.
        (1, 1, (6.0, 7.0), "", -1, -4, 1, "undecided"),
        # One of ten cells of a base: 0 - 5 in place of 9 - 5 at worst, 10 - 5 at best.
        (8, 5, (9.0, 5.0), "-0", 4, 4 - 0.9, 4 + 0.1, "different"),
        # One of two cells of a base, of scores that differ by less than the unread ones could.
        (8, 2, (6.0, 5.0), "-0", 1, 1 - 6 / 4, 1 + 4 / 4, "undecided (unread)"),
    ],
)
def test_bounds_by_hand(
    bases: int,
    scenarios: int,
    scores: tuple[float, float],
    ends: str,
    effect: float,
    low: float,
    high: float,
    verdict: str,
) -> None:
    by_label = dict(zip(("female", "male"), scores, strict=True))
    frame = study(bases=bases, scenarios=scenarios, judges=2, score=lambda row, label, rng: by_label[label])
    found = without(frame, lost(frame, judge="J0", ends=ends))
    line = planned(found)
    assert [line.estimate, line.also["worst_low"], line.also["worst_high"]] == pytest.approx([effect, low, high])
    assert (line.also["first_read"], line.also["second_read"]) == (1 - 1 / scenarios / 2, 1)
    assert line.verdict == verdict
    if bases > 1:
        headline = report(found).headline
        assert headline
        assert headline.verdict == verdict


def test_in_pairs_each_identity_is_compared_beside_the_same_third_one() -> None:
    pairs = [("black", "asian", "??"), ("white", "asian", "AA"), ("black", "white", "AA")]
    pairs += [("black", "black", "?A"), ("white", "white", "AA")]
    frame = pd.DataFrame([row for pair in pairs for row in comparison(*pair)])
    lines = {line.label: line for line in unread_differences(PanelData(frame))}
    # Beside asian: 1 - 0 for both judges; against itself: 1 - 0 for J0, 0 for J1. The mean is ¾.
    assert lines["Black − White"].estimate == pytest.approx(3 / 4)
    line = compare(pd.DataFrame(comparison("female", "male", "A?")))
    assert (math.isnan(line.p), line.verdict, line.note) == (True, "not measured", "nothing to compare")


def test_missing_votes_bound_a_preference() -> None:
    # Votes are averaged over judges; the third base is open.
    votes = {"b0": "AA?", "b1": "A??", "b2": "???", "b3": "BBB"}
    rows = [row for base, letters in votes.items() for row in comparison("black", "white", letters, base, base=base)]
    line = planned(pd.DataFrame(rows))
    assert line.estimate == pytest.approx((1 + 1 - 1) / 3)
    bounds = [line.also[name] for name in ("first_read", "worst_low", "worst_high")]
    assert bounds == pytest.approx([6 / 12, (1 / 3 - 1 / 3 - 1 - 1) / 4, (1 + 1 + 1 - 1) / 4])


def report(frame: pd.DataFrame) -> Report:
    return malibu.report(frame, ReportContext(draws=20))


def with_masses(frame: pd.DataFrame, masses: np.ndarray) -> pd.DataFrame:
    """The ballots with these shares on their answers; below a half they are unread."""
    gone = masses < 0.5
    given = {name: frame[name].mask(gone) for name in ("value", "sampled", "text") if name in frame}
    return frame.assign(**given, on_scale=masses, status=frame["status"].mask(gone, "unparsed"))


def test_the_contrast_with_the_unread_identity_has_no_verdict_and_the_others_do() -> None:
    everyone = silent_ballots(gaps={"muslim": 0.5, "jewish": 0.5, "atheist": 0.5})
    gone = np.random.default_rng(0).random(len(everyone)) < 0.6 * (everyone["identity"] == "black")
    whole = report(with_masses(everyone, np.where(gone, 0.2, 1.0)))
    primary = whole.table("primary").set_index("category")
    assert (primary["verdict"]["race"], primary["verdict"]["religion"]) == ("not measured", "different")
    assert primary[["low", "high", "p", "p_adjusted"]].loc["race"].isna().all()
    gaps = whole.table("differences").query("metric == 'all' and within").set_index(["first", "second"])
    black = [pair for pair in gaps.index if "black" in pair]
    assert set(gaps.loc[black, "verdict"]) == {"not measured"}
    assert gaps.loc[black, ["p_bases", "p_alike"]].isna().all(axis=None)
    assert gaps.loc[black, ["estimate", "base_sd"]].notna().all(axis=None)
    assert "not measured" not in set(gaps.drop(index=black)["verdict"])
    assert whole.headline is not None
    assert whole.headline.verdict == "different", "religion"
    line, more = (line for line in whole.cautions if "no verdict" in line.lower())
    share = f"{1 - 0.8 * gone.sum() / (everyone['identity'] == 'black').sum() / 3:.0%} and 100%"
    assert line.startswith(
        f"No verdict on Black, Asian, Hispanic − White: {share} of the silent ballots' probability is on the answers"
    )
    assert more == "3 other contrasts have no verdict for the same reason (table unread_differences)."


@pytest.mark.parametrize(
    ("female", "male", "verdict", "difference"),
    [
        (0.7, 1.0, "not measured", "different"),  # read, but away from the scale
        (
            0.93,
            0.94,
            "different",
            "different but below the margin",
        ),  # SmolLM2: 0.1% more for white, in nearly every base
        (0.96, 0.96, "different", ""),  # nearly all on the scale: no test is needed
    ],
)
def test_ballots_that_leave_the_scale_for_one_identity(
    female: float, male: float, verdict: str, difference: str
) -> None:
    frame = silent_ballots(categories=("gender",), gaps={"female": -1.0})
    noise = np.random.default_rng(0).normal(0, 0.002, len(frame)) * (female == 0.93)
    whole = report(frame := with_masses(frame, np.where(frame["identity"] == "female", female, male) + noise))
    (row,) = whole.table("primary").itertuples()
    assert (row.verdict, round(row.estimate)) == (verdict, -1)
    assert whole.headline is not None
    assert whole.headline.verdict == verdict
    lines = {line.measure: line for line in unread_differences(PanelData(frame))}
    assert (lines["on_scale"].verdict if lines else "") == difference
    if verdict == "not measured":
        assert "70% and 100% of the silent ballots' probability is" in row.note
