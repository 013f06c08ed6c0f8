"""MALIBU's phase 2 by hand: win rates, and the effect of the order in the prompt."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pandas as pd
import pytest
from scipy import stats

from parley.analysis.malibu import flips, panel_preferences, position, win_rates
from tests.analysis.verdicts import CATEGORIES, single

CHOICES = {"A": "A", "B": "B", "t": "tie", "?": None}


def comparison(
    x: str, y: str, choices: str, scenario: str = "s", assignment: int = 0, order: int = 0, **others: Any
) -> list[dict[str, Any]]:
    """One comparison as the study plans it: x has response 1 (assignment 0) and is shown first (order 0).

    `choices` has one letter per judge: A, B, t(ie), or ? for an unreadable reply.
    """
    first, second = (x, 1 + assignment), (y, 2 - assignment)
    (label_a, response_a), (label_b, response_b) = (second, first) if order else (first, second)
    repeat = others.get("repeat", 0)
    facets = {
        "unit": f"p2/{scenario}/{x}-{y}/a{assignment}o{order}/r{repeat}",
        "phase": 2,
        "scenario": scenario,
        "category": CATEGORIES.get(x, ""),
        "identity": x,
        "other": y,
        "identity_a": label_a,
        "identity_b": label_b,
        "response_a": response_a,
        "response_b": response_b,
        "assignment": assignment,
        "order": order,
        "control": "" if x != y else "same label" if x else "no label",
        "repeat": 0,
    }
    verdict = {"role": "debater", "round": 1, "subject": "", "metric": "preferred", "value": None, "status": "ok"}
    texts = [CHOICES[choice] for choice in choices]
    return [{**facets, **verdict, "judge": f"J{n}", "text": text, **others} for n, text in enumerate(texts)]


def frame(*units: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """The comparisons with verdicts of phase 1, such as a full run has too."""
    alone = [single("s", identity, 7.0, control="", repeat=0) for identity in ("female", "male")]
    return pd.DataFrame([*(row for unit in units for row in unit), *alone])


# Win rates


def test_win_rates_by_hand() -> None:
    table = win_rates(
        frame(
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
    ).set_index("identity")
    assert list(table.index) == ["female", "male"]
    female, male = table.loc["female"], table.loc["male"]
    assert (female["wins"], female["losses"], female["ties"], female["n"]) == (3, 2, 2, 5)
    assert (male["wins"], male["losses"], male["ties"], male["n"]) == (2, 3, 2, 5)
    assert female["estimate"] == 3 / 5, "ties left out"
    assert female["rate_ties_half"] == (3 + 2 / 2) / 7, "ties as half"
    assert male["rate_ties_half"] == pytest.approx(1 - female["rate_ties_half"])
    theirs = stats.binomtest(3, 5).proportion_ci(method="wilson")
    assert (female["wilson_low"], female["wilson_high"]) == pytest.approx((theirs.low, theirs.high))


def test_the_interval_over_scenarios_by_hand() -> None:
    table = win_rates(
        frame(
            comparison("female", "male", "A", "s1"),
            comparison("female", "male", "B", "s1", order=1),
            comparison("female", "male", "A", "s2"),
            comparison("female", "male", "A", "s2", order=1),
            comparison("female", "male", "B", "s3"),
        )
    ).set_index("identity")
    # won of decided: s1 2 of 2, s2 1 of 2, s3 0 of 1; p = 3/5. Left over from p: 2 - 1.2, 1 - 1.2, 0 - 0.6, so
    # variance 3/2 · (0.64 + 0.04 + 0.36) / 25 = 0.0624, effective n 0.24 / 0.0624 = 3.8462, t(0.975, 2) = 4.3027.
    # Wilson with these: centre (0.6 + 18.513 / 7.6923) / (1 + 18.513 / 3.8462) = 0.5172, half width 0.4534
    female = table.loc["female"]
    assert (female["estimate"], female["clusters"]) == (3 / 5, 3)
    assert female["low"] == pytest.approx(0.5172 - 0.4534, abs=1e-3)
    assert female["high"] == pytest.approx(0.5172 + 0.4534, abs=1e-3)
    assert female["low"] < female["wilson_low"] < female["wilson_high"] < female["high"], "three scenarios, not five"


def test_only_ties_have_no_win_rate_but_a_half() -> None:
    table = win_rates(frame(comparison("female", "male", "t"))).set_index("identity")
    assert math.isnan(table.loc["male", "estimate"])
    assert math.isnan(table.loc["male", "wilson_low"])
    assert table.loc["male", "rate_ties_half"] == 0.5
    assert table.loc["male", "n"] == 0


def test_a_run_of_pairs_alone_lists_every_identity() -> None:
    table = win_rates(pd.DataFrame(comparison("female", "male", "A")))
    assert list(table["identity"]) == ["female", "male"]


def test_every_model_has_its_own_win_rates() -> None:
    table = win_rates(
        frame(
            comparison("female", "male", "A", "s1", model="one"),
            comparison("female", "male", "B", "s1", model="two", unit="two"),
        )
    ).set_index(["model", "identity"])
    assert table.loc[("one", "female"), "estimate"] == 1.0
    assert table.loc[("two", "female"), "estimate"] == 0.0


# Flips and position


@pytest.mark.parametrize(
    ("shown_first", "shown_second", "flipped"),
    [
        ("A", "B", [0.0]),  # the same candidate both times
        ("B", "A", [0.0]),
        ("A", "A", [1.0]),  # always the one shown first
        ("B", "B", [1.0]),
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
    units = panel_preferences(frame(*couple))
    assert list(flips(units)["flipped"]) == flipped


def test_other_cells_and_repeats_are_not_couples() -> None:
    units = panel_preferences(
        frame(
            comparison("female", "male", "A", assignment=0, order=0),
            comparison("female", "male", "A", assignment=1, order=1),
            comparison("female", "male", "B", assignment=0, order=1, repeat=1),
            comparison("female", "male", "A", "other", assignment=0, order=1),
        )
    )
    assert len(flips(units)) == 0


def test_position_counts_decided_units_and_couples() -> None:
    table = position(
        frame(
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
    ).set_index(["pairs", "measure"])
    assert list(dict.fromkeys(table.index.get_level_values(0))) == ["two identities", "same label", "no label"]
    first, swapped = table.loc[("two identities", "first")], table.loc[("two identities", "swapped")]
    assert (first["estimate"], first["n"], first["ties"]) == (3 / 4, 4, 1)
    assert (swapped["estimate"], swapped["n"]) == (1 / 2, 2)
    control = table.loc["same label"]
    assert control.loc[["first", "swapped"], "estimate"].tolist() == [1.0, 1.0]
    assert control.loc["swapped", "n"] == 1
    assert math.isnan(control.loc["first", "low"]), "one scenario has no interval"
    assert table.loc[("no label", "first"), "estimate"] == 0.0
    assert math.isnan(table.loc[("no label", "swapped"), "estimate"]), "run in one order only"
