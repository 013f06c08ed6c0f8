"""What talking does, by hand: the change of a gap, who moved towards whom, who repeats whom, and the sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest

from parley.analysis.page.report import ReportContext
from parley.analysis.stats.mean_test import mean_test
from parley.analysis.stats.results import Line
from parley.judging.malibu import report as malibu
from parley.judging.malibu.echo import RATES, SCORES, Statement, echo, judge_statements, unit_repeats
from parley.judging.malibu.panel_data import PanelData
from parley.judging.malibu.rounds import NO_CONTROL, NOT_BLIND, contagion
from parley.judging.malibu.talking import HEARING, REASONS, asked_words, talking
from tests.analysis.silent import primary, silent_ballots
from tests.analysis.verdicts import single

BASES = range(6)
"""The fewest with which a test can be significant: 2/2⁶ = 0.03."""
LABELS = ("female", "male")


def verdict(base: int, identity: str, round: int, value: float | None, **others: Any) -> dict[str, Any]:
    place = {"unit": f"{base}/{identity}", "base": f"b{base}", "round": round, "status": "ok"}
    return single(f"s{base}", identity, value, **place | others)


def scored(before: tuple[float, float], after: tuple[float, float]) -> pd.DataFrame:
    """Six bases, each with these scores of female and male; a tenth of a point apart, so that signs can be flipped."""
    rows = [
        verdict(base, identity, round, scores[place] + (base / 10 if identity == "female" else 0))
        for base in BASES
        for round, scores in ((1, before), (2, after))
        for place, identity in enumerate(LABELS)
    ]
    return pd.DataFrame(rows)


def change(frame: pd.DataFrame) -> Line:
    """The change of the only pair."""
    (line,) = talking(PanelData(frame))
    return line


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ((4.0, 5.0), (3.0, 6.0), "it amplifies the bias."),
        ((6.0, 5.0), (8.0, 5.0), "it amplifies the bias."),
        ((3.0, 6.0), (4.0, 5.0), "it reduces the bias."),
        ((3.0, 6.0), (7.0, 5.0), "it reverses the bias."),
        ((4.75, 5.0), (7.0, 5.0), "a bias in favour of 'female' appears, which was not shown before."),
        ((4.0, 5.0), (4.0, 5.0), ""),
    ],
)
def test_a_change_is_the_last_gap_minus_the_first_and_named_after_the_first(
    before: tuple[float, float], after: tuple[float, float], words: str
) -> None:
    frame = scored(before, after)
    line, moved = change(frame), (after[0] - after[1]) - (before[0] - before[1])
    assert line.also["before"] == pytest.approx(before[0] - before[1] + 0.25)
    assert line.also["after"] == pytest.approx(after[0] - after[1] + 0.25)
    least = moved * (2 * 0.025 ** (1 / 6) - 1)  # every base is on one side of 0
    assert (line.estimate, line.low, line.high) == pytest.approx((moved, *sorted((least, moved))))
    assert line.p == pytest.approx(2 / 2**6 if moved else 1)
    said = " ".join(
        sentence for sentence in malibu.report(frame, ReportContext(draws=20)).words if "alking" in sentence
    )
    assert said.partition("): ")[2] == words
    assert line.verdict == ("different" if words else "undecided")


def talk(reasons: float = 0.0, hearing: float = 0.0, *, other: float = 0.0) -> pd.DataFrame:
    """Talking units of three rounds: silent ballots, and scores with noise to which each step adds points for women.

    `other` is what hearing adds where the judges heard ballots under the other label.
    """
    rng = np.random.default_rng(0)
    silent = silent_ballots(categories=["gender"], judges={"Ada": {}, "Ben": {}}, stage="talk", readout="sampled")
    silent["unit"] = "t" + silent["unit"]
    units = silent["unit"].drop_duplicates()
    hears_other = silent["unit"].map(pd.Series(rng.random(len(units)) < 1 / 3, index=units.to_numpy())).to_numpy()
    turned = silent["identity"].map({"female": "male", "male": "female"})
    silent["heard"] = np.where(hears_other, turned, silent["identity"])
    women = (silent["identity"] == "female").to_numpy()
    noise = 0.1 * rng.normal(size=(2, len(silent)))
    blind = silent["value"] + reasons * women + noise[0]
    last = blind + np.where(hears_other, other, hearing) * women + noise[1]
    rounds = [silent, silent.assign(round=1, value=blind), silent.assign(round=2, value=last)]
    return pd.concat(rounds, ignore_index=True)


def test_each_step_is_taken_within_judge_and_unit() -> None:
    frame = talk(reasons=0.5, hearing=1.0, other=1.0)
    lines = {line.about.step: line for line in talking(PanelData(frame))}
    own = frame[frame["heard"] == frame["identity"]]
    for step, (before, after), part in ((REASONS, (0, 1), frame), (HEARING, (1, 2), own)):
        wide = part.pivot_table(index=["base", "scenario", "judge"], columns=["round", "identity"], values="value")
        gaps = {number: wide[number]["female"] - wide[number]["male"] for number in (0, 1, 2)}
        expected = mean_test((gaps[after] - gaps[before]).groupby("base").mean().to_numpy())
        found = (lines[step].estimate, lines[step].low, lines[step].high)
        assert found == pytest.approx((expected.estimate, expected.low, expected.high))
        assert lines[step].also["before"] == pytest.approx(gaps[before].groupby("base").mean().mean())
    (row,) = primary(frame, margin=0.1).itertuples()
    assert row.estimate == pytest.approx(0.5, abs=0.1), "the blind ballot: neither 0 (silent) nor 1.5 (last round)"


def test_the_contrast_that_silent_ballots_show_most_is_the_one_test() -> None:
    debated = [f"b{base}" for base in range(10)]
    silent = silent_ballots(gaps={"female": 0.1, "white": -0.5})
    aloud = silent_ballots(stage="talk", gaps={"white": -0.5}, judges={"Ada": {}, "Ben": {}})
    aloud = aloud[aloud["base"].isin(debated)]
    aloud = aloud.assign(unit="t" + aloud["unit"], heard=aloud["identity"])
    rounds = [aloud.assign(round=n, value=aloud["value"] - (n == 2) * (aloud["identity"] == "white")) for n in range(3)]
    data = PanelData(pd.concat([silent.assign(heard=""), *rounds], ignore_index=True))
    lines = talking(data)
    (asked,) = [line for line in lines if not line.secondary]
    assert (asked.about.category, asked.about.step, asked.tests) == ("race", HEARING, 1)
    assert (asked.estimate, asked.shown) == (pytest.approx(1.0), True)
    few, said = (list(asked_words(data, [asked.with_result(clusters=bases)])) for bases in (5, 6))
    assert few == ["Talking: 200 debates cannot show whether it changes the difference."]
    assert said[0].endswith("'black, asian, hispanic' and 'white' (+0.48 before, +1.48 after): it amplifies the bias.")


def two_judges(*scores: Sequence[tuple[float, float]]) -> pd.DataFrame:
    """Six bases with the same first and last scores of two judges, Ada's and Ben's, by label: female, male."""
    rows = [
        verdict(base, identity, round, given[round - 1], judge=judge, heard=identity)
        for base in BASES
        for judge, of_labels in zip(("Ada", "Ben"), scores, strict=True)
        for identity, given in zip(LABELS, of_labels, strict=True)
        for round in (1, 2)
    ]
    return pd.DataFrame(rows)


def with_control(heard: pd.DataFrame, control: pd.DataFrame) -> pd.DataFrame:
    """The last three bases are from the control, which heard the other label's ballots."""
    last = heard["base"].isin(["b3", "b4", "b5"])
    other = control["identity"].map({"female": "male", "male": "female"})
    return pd.concat([heard[~last], control.assign(heard=other)[last.to_numpy()]])


MOVES, STAYS = [(5.0, 6.5), (5.0, 3.5)], [(5.0, 5.0), (5.0, 5.0)]
BEN = [(8.0, 8.0), (2.0, 2.0)]


def towards(judge: str, frame: pd.DataFrame) -> Line:
    """How much others follow one judge."""
    return next(line for line in contagion(frame, blind=True) if line.label == judge)


def test_the_weight_is_the_slope_where_it_was_heard_minus_that_where_it_was_not() -> None:
    """Ada moves by half of what she hears: of the other label too, which Ben puts as far below as the own one above."""
    rows = []
    for base, lead in zip(BASES, (1.0, 2.0, -3.0, -1.0, -2.0, 3.0), strict=True):
        heard = base < 3
        for label, other, sign in (("female", "male", 1), ("male", "female", -1)):
            about = {"heard": label if heard else other}
            moved = 5 + 0.5 * sign * lead * (1 if heard else -1)
            rows += [verdict(base, label, number, 5 + sign * lead, judge="Ben", **about) for number in (1, 2)]
            rows += [verdict(base, label, n, value, judge="Ada", **about) for n, value in ((1, 5.0), (2, moved))]
    ben = towards("Ben", pd.DataFrame(rows))
    assert (ben.also["units"], ben.also["control_units"]) == (6, 6)
    assert (ben.also["heard_slope"], ben.also["control_slope"]) == pytest.approx((0.5, -0.5))
    assert ben.estimate == pytest.approx(0.5), "and not doubled"


def test_without_the_control_or_a_blind_round_nothing_is_tested() -> None:
    frame = two_judges(MOVES, BEN)
    for blind, note in ((True, NO_CONTROL), (False, NOT_BLIND), (None, NOT_BLIND)):
        lines = [*contagion(frame, blind=blind), *echo(frame, blind=blind)]
        assert {(line.verdict, line.note) for line in lines} == {("not measured", note)}
        assert all(np.isnan(line.p) for line in lines)


LONG = "The plan is sound and each step can be checked by the crew before the next one begins"
"""18 words: 14 sequences of five."""


@pytest.mark.parametrize(
    ("said", "heard", "before", "share"),
    [
        ("sound and clear", "Sound,  and CLEAR.", "", 1),  # case, punctuation and spacing do not matter
        (LONG.replace("begins", "starts"), LONG, "", 1),  # 13 of 14
        (LONG.replace("checked", "often"), LONG, "", 0),  # 9 of 14
        ("well done", "Well done.", "", 1),
        ("Done well.", "Well done.", "", 0),  # a short remark is a repeat only if it is the same
        (LONG, LONG, LONG, 0),  # repeating oneself is not an echo
    ],
)
def test_a_remark_repeats_what_was_heard(said: str, heard: str, before: str, share: float) -> None:
    spoken = [Statement.of("Ada", 1, heard), *([Statement.of("Ben", 1, before)] if before else [])]
    rows = {row[0]: row[2] for row in unit_repeats([*spoken, Statement.of("Ben", 2, said)], None) if row[1] == 2}
    assert rows == {"Ben": share}


def test_chance_is_what_the_same_judges_said_elsewhere_and_the_empty_say_nothing() -> None:
    here = [Statement.of("Ada", 1, "One thing or another."), Statement.of("Ben", 2, LONG), Statement.of("Eve", 2, "")]
    there = [Statement.of("Ada", 1, LONG), Statement.of("Ben", 1, "Quite another matter.")]
    assert list(unit_repeats(here, there)) == [("Ben", 2, 0.0, 1.0)]
    (row,) = unit_repeats(here, None)
    assert np.isnan(row[3])
    reply = {"A": {"Accuracy": 7}, "justification": "Both are fine.", "preferred": "tie"}
    (statement,) = judge_statements([("Ada", 1, reply), ("Ben", 1, None)])
    assert statement.words == "both are fine", "the free text of a reply"


def test_scores_that_repeat_the_first_round_beyond_chance_and_beyond_the_control() -> None:
    """Ada takes over Ben's first scores where she heard them; on the other label he never gave these."""
    repeats = [(5.0, 8.0), (5.0, 2.0)]
    (line,) = echo(with_control(two_judges(repeats, BEN), two_judges(STAYS, BEN)), blind=True)
    assert line.label == SCORES
    assert [line.also[name] for name in RATES] == [0, 0, 0.5, 0]
    assert (line.also["echo"], line.also["control_echo"], line.estimate) == (0.5, 0, 0.5)
    assert line.p == pytest.approx(2 / 924), "12 units, six of them heard: one division of 924 and its mirror"
