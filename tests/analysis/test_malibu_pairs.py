"""MALIBU's phase 2 by hand: votes, win rates, preferences, and the effect of the order in the prompt."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from parley.analysis.page.report import as_frame
from parley.analysis.stats.mean_test import mean_test
from parley.judging.malibu.contrasts import BESIDE
from parley.judging.malibu.pairs import counted_wins, flips, position_lines, win_rate_lines
from parley.judging.malibu.panel_data import PanelData, panel_preferences
from parley.judging.malibu.scores import differences
from tests.analysis.verdicts import comparison, single, study


def frame(*units: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """The comparisons with verdicts of phase 1, such as a full run has too."""
    alone = [single("s", identity, 7.0, control="", repeat=0) for identity in ("female", "male")]
    return pd.DataFrame([*(row for unit in units for row in unit), *alone])


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
        ("??", None, None),
    ],
)
def test_the_majority_of_the_last_round_decides_and_equal_votes_are_a_tie(
    choices: str, choice: str | None, winner: str | None
) -> None:
    rounds = comparison("female", "male", "BBBB"), comparison("female", "male", choices, round=2)
    (row,) = panel_preferences(frame(*rounds)).replace(np.nan, None).to_dict("records")
    assert (row["choice"], row["winner"]) == (choice, winner)


def rates(*units: Sequence[dict[str, Any]]) -> pd.DataFrame:
    return as_frame(win_rate_lines(PanelData(frame(*units)))).set_index("identity")


def test_win_rates_by_hand() -> None:
    table = rates(
        comparison("female", "male", "AAB", "s1"),  # female
        comparison("female", "male", "ABB", "s1", order=1),  # shown second: female
        comparison("female", "male", "BBt", "s2", order=1),  # female
        comparison("female", "male", "B", "s2"),  # male
        comparison("female", "male", "B", "s3"),  # male
        comparison("female", "male", "AB", "s3", order=1),  # tie
        comparison("female", "male", "t", "s3", assignment=1),  # tie
        comparison("female", "male", "?", "s3", assignment=1, order=1),  # unreadable
        comparison("female", "female", "A", "s1"),
        comparison("", "", "A", "s1"),
    )
    assert list(table.index) == ["female", "male"]
    female, male = table.loc["female"], table.loc["male"]
    # Of each pair the mean of its votes, then of both orders: s1 (2/3 + 2/3) / 2; s2 (5/6 + 0) / 2; s3 (1/4 + 1/2) / 2.
    by_base = [2 / 3, 5 / 12, 3 / 8]
    assert female["estimate"] == pytest.approx(np.mean(by_base))
    assert male["estimate"] == pytest.approx(1 - female["estimate"])
    # Without ties: s2 (1 + 0) / 2; s3 (0 + 1/2) / 2.
    assert female["without_ties"] == pytest.approx(np.mean([2 / 3, 1 / 2, 1 / 4]))
    of_base = mean_test(np.array(by_base) - 0.5, 1 - 0.05 / BESIDE)
    assert (female["low"], female["high"], female["p"]) == pytest.approx(
        (of_base.low + 0.5, of_base.high + 0.5, of_base.p)
    )


def test_wins_are_counted_as_the_paper_counts_them() -> None:
    units = (
        comparison("female", "male", "AAB", "s1"),  # female
        comparison("female", "male", "ABB", "s1", order=1),  # shown second: female
        comparison("female", "male", "AB", "s3", order=1),  # tie
        comparison("female", "male", "B", "s3"),  # male
        comparison("female", "female", "A", "s1"),
    )
    data = PanelData(frame(*units))
    pairs, votes = (as_frame(counted_wins(data, votes=votes)).set_index("identity") for votes in (False, True))
    assert pairs[["wins", "losses", "ties", "n"]].to_numpy().tolist() == [[2, 1, 1, 3], [1, 2, 1, 3]]
    assert votes.loc["female", ["wins", "losses", "ties"]].tolist() == [5, 4, 0]
    theirs = stats.binomtest(2, 3).proportion_ci(method="wilson")
    assert pairs.loc["female", ["wilson_low", "wilson_high"]].tolist() == pytest.approx([theirs.low, theirs.high])


@pytest.mark.parametrize(
    ("votes", "estimate", "p", "clusters"),
    [
        (["AB"] * 5, 1.0, 2 / 2**5, 5),  # female wins both orders of every scenario: five scenarios, not ten verdicts
        # margins of female: (1 - 1) / 2, (1 + 1) / 2, (1 + 0) / 2, (-1 - 1) / 2, 0: their mean is 0.1.
        # |±1 ± 0.5 ± 1| is 2.5, 1.5, 0.5, 0.5: all reach 0.5; an unreadable reply is not a scenario
        (["AA", "AB", "At", "BA", "tt", "?"], 0.1, 1.0, 5),
    ],
)
def test_preferences_are_tested_scenario_by_scenario(
    votes: list[str], estimate: float, p: float, clusters: int
) -> None:
    units = [
        comparison("female", "male", choice, f"s{n}", order=order)
        for n, both in enumerate(votes)
        for order, choice in enumerate(both)
    ]
    found = differences(pd.DataFrame([row for unit in units for row in unit]))
    (row,) = found[found["measure"] == "preferences"].to_dict("records")
    assert (row["first"], row["second"], row["category"]) == ("female", "male", "gender")
    assert (row["estimate"], row["p"], row["n"], row["clusters"]) == pytest.approx((estimate, p, clusters, clusters))


def always_first(row: Mapping[str, Any], rng: np.random.Generator) -> str:
    return "A"


def toss(row: Mapping[str, Any], rng: np.random.Generator) -> str:
    return "A" if rng.random() < 0.5 else "B"


@pytest.mark.parametrize(
    ("shown_first", "shown_second", "flipped"),
    [
        ("A", "B", [0.0]),  # the same candidate both times
        ("B", "A", [0.0]),
        ("A", "A", [1.0]),  # always the one shown first
        ("t", "A", [1.0]),  # a tie against a win
        ("t", "t", [0.0]),
        ("A", "?", []),  # one of the two could not be read
    ],
)
@pytest.mark.parametrize("y", ["male", "female"], ids=["two identities", "same label"])
def test_a_couple_flips_when_the_verdict_follows_the_order(
    shown_first: str, shown_second: str, flipped: list[float], y: str
) -> None:
    """With the same label on both sides the winner's label tells nothing; the response does."""
    couple = comparison("female", y, shown_first), comparison("female", y, shown_second, order=1)
    assert list(flips(panel_preferences(frame(*couple)))["flipped"]) == flipped


def test_position_counts_decided_units_and_couples() -> None:
    of_pairs = frame(
        comparison("female", "male", "A", "s1"),  # the first
        comparison("female", "male", "A", "s1", order=1),  # the first again: flipped
        comparison("female", "male", "A", "s2"),  # the first
        comparison("female", "male", "B", "s2", order=1),  # the same candidate: not flipped
        comparison("female", "male", "t", "s3"),
        comparison("female", "male", "?", "s3", order=1),
        comparison("female", "female", "A", "s1"),
        comparison("female", "female", "A", "s1", order=1),
        comparison("", "", "B", "s1"),
    )
    shown = as_frame(position_lines(PanelData(of_pairs))).set_index(["pairs", "measure"])
    assert list(dict.fromkeys(shown.index.get_level_values(0))) == ["two identities", "same label", "no label"]
    first, swapped = shown.loc[("two identities", "first")], shown.loc[("two identities", "swapped")]
    assert (first["estimate"], first["n"], first["ties"]) == (3.5 / 5, 5, 1), "a tie is half"
    assert (swapped["estimate"], swapped["n"]) == (1 / 2, 2)
    control = shown.loc["same label"]
    assert control.loc[["first", "swapped"], "estimate"].tolist() == [1.0, 1.0]
    assert control.loc["swapped", "n"] == 1
    assert math.isnan(control.loc["first", "low"]), "one scenario has no interval"
    assert shown.loc[("no label", "first"), "estimate"] == 0.0
    assert math.isnan(shown.loc[("no label", "swapped"), "estimate"]), "run in one order only"


def measured(choice: Callable[..., str], **settings: Any) -> pd.DataFrame:
    """The effects of the order in comparisons of two identities, by measure."""
    whole = study(phases=(2,), choice=choice, **settings)
    return as_frame(position_lines(PanelData(whole[whole["control"] == ""]))).set_index("measure")


def test_the_order_is_compared_with_the_noise_of_asking_again() -> None:
    found = measured(always_first, bases=6, scenarios=2, repeats=2)
    assert found.loc[["swapped", "again", "order"], "estimate"].tolist() == [1, 0, 1]
    assert found.loc["order", "p"] == 2 / 2**6
    assert found.loc[["swapped", "again"], "n"].tolist() == [48, 48]
    noise = measured(toss, bases=20, repeats=2)
    assert noise.loc[["swapped", "again"], "estimate"].between(0.3, 0.7).all()
    assert noise.loc["order", "low"] < 0 < noise.loc["order", "high"]
    once = measured(toss)
    assert once.loc[["again", "order"], "estimate"].isna().all()
    assert "--repeats 2" in once.loc["order", "note"], "how to get the baseline"
