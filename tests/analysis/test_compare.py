"""Two runs compared on the units they share: paired and corrected."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from parley.analysis.compare import NothingShared, compare
from parley.analysis.page.report import Report
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


def row_of(first: pd.DataFrame, second: pd.DataFrame, what: str = "Accuracy") -> pd.Series:
    """The line about one thing."""
    return table(compare(first, second, NAMES)).loc[what]


GAP = "gender: female − male"
TWELVE = run(tuple(6.0 + n % 3 for n in range(12)), ())
PLACES = ["identity", "category", "scenario", "subject"]
FOUR = run((6.0, 7.0, 9.0, 8.0), (5.0, 5.0, 6.0, 7.0))


def changed(frame: pd.DataFrame, by: Any) -> pd.DataFrame:
    """The same units with other values."""
    return frame.assign(value=frame["value"] + by)


def test_values_are_paired_on_the_units_that_both_runs_have() -> None:
    second = run((5.0, 6.0, 7.0, 7.0, 1.0), (5.0, 4.0, 5.0, 6.0))
    more = pd.concat([FOUR, run((0.0,), ()).assign(unit="else", scenario="else")])
    report = compare(more, second, NAMES)
    assert report.words[1] == "Left out: 2 units with readable verdicts on one side only."
    # scenario by scenario, both labels: (1 + 0) / 2, (1 + 1) / 2, (2 + 1) / 2, (1 + 1) / 2
    row = table(report).loc["Accuracy"]
    assert (row["first"], row["second"], row["n"], row["clusters"]) == (53 / 8, 45 / 8, 8, 4)
    assert row["estimate"] == -(0.5 + 1 + 1.5 + 1) / 4, "second minus first"
    assert row["p"] == 2 / 2**4, "all four scenarios lie on one side"
    assert (row["low"], row["high"]) == (-math.inf, math.inf), "four scenarios can exclude nothing at 95%"
    assert row["note"] == "4 clusters: p cannot be below 0.12; an interval needs 6"
    assert report.words[0] == "Compared on 8 shared units; differences are two minus one."
    assert report.words[-1] == "With 4 scenarios no difference could be significant: 1 test needs at least 6 scenarios."
    assert "on 8 shared units" in report.tables[0].note
    shuffled = compare(more, second.sample(frac=1, random_state=1), NAMES)
    pd.testing.assert_frame_equal(lines(report), lines(shuffled))


@pytest.mark.parametrize(
    ("first", "second", "estimate", "clusters", "p"),
    [
        # where several models judge in one run, the name of the model ends the unit's
        (
            FOUR.assign(unit=FOUR["unit"] + "/@sim/a?x=1"),
            changed(FOUR, -1).assign(unit=FOUR["unit"] + "/@sim/b"),
            -1.0, 4, 1 / 8,
        ),
        # the last round counts
        (pd.concat([changed(FOUR, 3), FOUR.assign(round=2)]), changed(FOUR, -1), -1.0, 4, 1 / 8),
        # twelve scenarios of two bases: two observations, not twelve; a scenario without a base is its own
        (*(changed(TWELVE, by).assign(base=[f"b{n % 2}" for n in range(12)]) for by in (0, -1)), -1.0, 2, 0.5),
        (*(changed(TWELVE, by).assign(base=["b0", "b0", *[""] * 10]) for by in (0, -1)), -1.0, 11, 2 / 2**11),
        # neither identities nor scenarios: by unit
        (*(changed(FOUR, by).drop(columns=PLACES) for by in (0, -1)), -1.0, 8, 2 / 2**8),
        (run((6.0,), ()), run((4.0,), ()), -2.0, 1, 1.0),
    ],
    ids=["models", "rounds", "bases", "some bases", "units", "one scenario"],
)  # fmt: skip
def test_what_is_paired_and_what_is_independent(
    first: pd.DataFrame, second: pd.DataFrame, estimate: float, clusters: int, p: float
) -> None:
    row = row_of(first, second)
    assert (row["estimate"], row["clusters"], row["p"]) == pytest.approx((estimate, clusters, p))
    assert clusters > 1 or row["note"] == "1 cluster: p cannot be below 1; an interval needs 6"


def test_preferences_of_panels_are_compared_where_both_decided() -> None:
    first, second = ["AAB", "A", "A", "A", "B", "AB", ""], ["A", "B", "B", "B", "B", "A", "A"]
    sides = [
        pd.DataFrame(
            [
                vote(f"u{n}", choice, judge=f"J{judge}")
                for n, votes in enumerate(choices)
                for judge, choice in enumerate(list(votes) or [None])
            ]
        )
        for choices in (first, second)
    ]
    row = row_of(*sides, "prefers the first one")
    assert (row["first"], row["second"], row["n"]) == (4 / 5, 1 / 5, 5), "equally many votes are a tie"
    assert row["p_mcnemar"] == pytest.approx(stats.binomtest(3, 3).pvalue)
    assert row["p"] == 1.0, "all units are of one scenario"
    assert row["note"].endswith("an interval needs 6; the same preference in 33% of 6 units")


def test_a_gap_is_what_one_label_has_more_than_another() -> None:
    rng = np.random.default_rng(5)
    base = rng.normal(6, 1, (4, 30))
    report = compare(run(tuple(base[0] + 0.8), tuple(base[1])), run(tuple(base[2]), tuple(base[3])), NAMES)
    row = report.table("gaps").set_index("what").loc[GAP]
    gaps = base[0] + 0.8 - base[1], base[2] - base[3]
    assert (row["first"], row["second"]) == pytest.approx((gaps[0].mean(), gaps[1].mean()))
    assert row["low"] < -0.8 < row["high"]
    assert row["p"] == pytest.approx(stats.ttest_rel(*gaps).pvalue, abs=0.03)
    shifted = row_of(FOUR, changed(FOUR, -2), GAP)
    assert (shifted["estimate"], shifted["p"]) == (0.0, 1.0), "a shift of both labels is none"
    parts = [run((v,) * 4, (v,) * 4, metric=metric) for metric, v in (("Accuracy", 8.0), ("Creativity", 2.0))]
    first = pd.concat(parts, ignore_index=True)
    unread = (first["scenario"] == "s0") & (first["identity"] == "female") & (first["metric"] == "Creativity")
    second = first.assign(value=first["value"].where(~unread))
    assert row_of(first, second, GAP)["estimate"] == 0.0, "nor is a reply that is readable on one side only"


def test_what_cannot_be_compared() -> None:
    with pytest.raises(NothingShared, match="no unit in common"):
        compare(FOUR, FOUR.assign(unit="x" + FOUR["unit"]), NAMES)
    with pytest.raises(NothingShared, match="readable verdicts on both sides"):
        compare(FOUR.assign(value=np.nan, status="unparsed"), FOUR, NAMES)


def worded(seed: int, wordings: int) -> pd.DataFrame:
    """24 bases that share label wordings, each of which adds its own to a label; nothing else differs."""
    rng = np.random.default_rng(seed)
    frame = run(tuple(6 + rng.normal(0, 1, wordings)[np.arange(24) % wordings]), (6.0,) * 24)
    return frame.assign(base=frame["scenario"], wording=[f"w{n % wordings}" for n in range(24)] * 2, question="q")


def test_units_in_other_words_are_other_units() -> None:
    first, second = worded(0, 24), worded(0, 24)
    second.loc[second["scenario"] != "s0", "wording"] = "another"
    report = compare(first, second, NAMES)
    assert report.words[:2] == (
        "Compared on 2 shared units; differences are two minus one.",
        "Left out: 46 units in other words, which --seed draws.",
    )
    with pytest.raises(NothingShared, match="Give both the same --seed"):
        compare(first, second.assign(wording="another"), NAMES)
