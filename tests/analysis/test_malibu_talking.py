"""What talking does, by hand: the change of a gap, who moved towards whom, who repeats whom, and the sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest

from parley.analysis.malibu.contagion import NO_CONTROL, NOT_BLIND, contagion
from parley.analysis.malibu.echo import RATES, SCORES, WORDS, Statement, echo, judge_statements, unit_repeats
from parley.analysis.malibu.echo import repeats as repeated
from parley.analysis.malibu.panel import PanelData
from parley.analysis.malibu.talking import _words, talking
from parley.analysis.stats.results import Line
from tests.analysis.verdicts import single

BASES = range(6)
"""The fewest with which a sign-flip test can be significant: 2/2⁶ = 0.03."""


def verdict(scenario: int, identity: str, round: int, value: float | None, **others: Any) -> dict[str, Any]:
    place = {"unit": f"{scenario}/{identity}", "base": f"b{scenario}", "round": round, "status": "ok"}
    return single(f"s{scenario}", identity, value, **place | others)


def scored(before: tuple[float, float], after: tuple[float, float]) -> pd.DataFrame:
    """Six bases, each with these scores of female and male; a tenth of a point apart, so that signs can be flipped."""
    rows = [
        verdict(base, identity, round, scores[place] + (base / 10 if identity == "female" else 0))
        for base in BASES
        for round, scores in ((1, before), (2, after))
        for place, identity in enumerate(("female", "male"))
    ]
    return pd.DataFrame(rows)


# Effects before and after talking


def change(frame: pd.DataFrame) -> Line:
    """The change of the only pair."""
    (line,) = talking(PanelData(frame))
    return line


def test_a_change_is_the_last_gap_minus_the_first() -> None:
    line = change(scored((4.0, 5.0), (3.0, 6.0)))
    assert line.also["before"] == pytest.approx(-1 + 0.25)
    assert line.also["after"] == pytest.approx(-3 + 0.25)
    assert line.estimate == pytest.approx(-2)
    assert line.p == pytest.approx(2 / 2**6)
    assert (line.low, line.high) == pytest.approx((-2, -2))


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
def test_a_change_is_named_after_the_first_gap(
    before: tuple[float, float], after: tuple[float, float], words: str
) -> None:
    data = PanelData(scored(before, after))
    lines = talking(data)
    said = " ".join(_words(lines, data))
    assert said.partition("): ")[2] == words
    assert [line.verdict for line in lines] == ["different" if words else "undecided"]


def test_units_that_heard_another_label_are_not_what_talking_changed() -> None:
    frame = scored((4.0, 5.0), (3.0, 6.0))
    control = scored((4.0, 5.0), (9.0, 0.0)).assign(heard="male")
    control = control[control["identity"] == "female"].assign(unit=lambda rows: rows["unit"] + "/again")
    both = pd.concat([frame.assign(heard=frame["identity"]), control])
    assert change(both) == change(frame)


def test_a_verdict_missing_in_one_round_counts_in_neither() -> None:
    frame = scored((4.0, 5.0), (3.0, 6.0))
    extra = pd.DataFrame(
        [
            verdict(base, identity, round, 9.0 if round == 1 else None, judge="Ben")
            for base in BASES
            for identity in ("female", "male")
            for round in (1, 2)
        ]
    )
    assert change(pd.concat([frame, extra])) == change(frame)


def test_one_round_is_no_talk() -> None:
    frame = scored((4.0, 5.0), (3.0, 6.0))
    assert talking(PanelData(frame[frame["round"] == 1])) == []


def votes(before: str, after: str) -> pd.DataFrame:
    """Six bases with one comparison in both orders; a letter per judge: f(emale), m(ale) or t(ie)."""
    rows = []
    for base in BASES:
        for order, (a, b) in enumerate((("female", "male"), ("male", "female"))):
            choice = {a[0]: "A", b[0]: "B", "t": "tie"}
            pair = {"unit": f"{base}/{order}", "phase": 2, "other": "male", "identity_a": a, "identity_b": b}
            pair |= {"response_a": 1 + order, "response_b": 2 - order, "order": order, "assignment": 0}
            rows += [
                verdict(base, "female", round, None, metric="preferred", text=choice[letter], judge=f"J{place}", **pair)
                for round, letters in ((1, before), (2, after))
                for place, letter in enumerate(letters)
            ]
    return pd.DataFrame(rows)


def test_preferences_are_net_shares_of_judges() -> None:
    line = change(votes("fmmt", "mmmt"))
    assert (line.about["phase"], line.label, line.measure) == (2, "female − male", "preference")
    assert (line.also["before"], line.also["after"], line.estimate) == pytest.approx((-0.25, -0.75, -0.5))
    assert line.verdict == "different"


# What was heard


def two_judges(*scores: Sequence[tuple[float, float]], heard: str = "") -> pd.DataFrame:
    """Six bases with the same first and last scores of two judges, Ada's and Ben's, by label: female, male."""
    rows = [
        verdict(base, identity, round, given[round - 1], judge=judge, heard=heard or identity)
        for base in BASES
        for judge, of_labels in zip(("Ada", "Ben"), scores, strict=True)
        for identity, given in zip(("female", "male"), of_labels, strict=True)
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
    """Of each label Ben says 3 more or less than of the text; Ada moves by half of that where she hears him."""
    ben = towards("Ben", with_control(two_judges(MOVES, BEN), two_judges(STAYS, BEN)))
    assert (ben.also["units"], ben.also["control_units"]) == (6, 6)
    # The label's mean over texts is taken off too: every base is alike, so nothing is unexpected of Ben.
    assert np.isnan(ben.also["heard_slope"]) or ben.also["heard_slope"] == 0


def test_the_weight_is_not_doubled_where_the_control_hears_the_only_other_label() -> None:
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
    assert (ben.also["heard_slope"], ben.also["control_slope"]) == pytest.approx((0.5, -0.5))
    assert ben.estimate == pytest.approx(0.5)


def test_judges_who_move_alike_without_hearing_are_not_followers() -> None:
    frame = two_judges(MOVES, BEN)
    frame["value"] += np.where(frame["base"].isin(["b0", "b3"]), np.where(frame["identity"] == "male", 1.0, -1.0), 0.0)
    ben = towards("Ben", with_control(frame, frame))
    assert ben.estimate == pytest.approx(0.0, abs=1e-9)
    assert ben.p == 1


def test_without_the_control_or_a_blind_round_nothing_is_tested() -> None:
    frame = two_judges(MOVES, BEN)
    for blind, note in ((True, NO_CONTROL), (False, NOT_BLIND), (None, NOT_BLIND)):
        lines = [*contagion(frame, blind=blind), *echo(frame, blind=blind)]
        assert {(line.verdict, line.note) for line in lines} == {("not measured", note)}
        assert all(np.isnan(line.p) for line in lines)


def test_one_judge_has_nobody_to_follow() -> None:
    assert contagion(scored((4.0, 5.0), (3.0, 6.0)), blind=True) == []


# Echo

LONG = "The plan is sound and each step can be checked by the crew before the next one begins"


def test_case_punctuation_and_spacing_do_not_matter() -> None:
    first, second = Statement.of("Ada", 1, "Sound,  and CLEAR."), Statement.of("Ben", 1, "sound and clear")
    assert first.words == second.words
    assert repeated(second, [first], []) == 1


def test_near_is_a_share_of_five_word_sequences() -> None:
    words = LONG.split()
    assert len(words) == 18  # 14 sequences of five words
    first = Statement.of("Ada", 1, LONG)
    changed_end = Statement.of("Ben", 1, " ".join([*words[:-1], "starts"]))
    changed_middle = Statement.of("Ben", 1, " ".join([*words[:8], "often", *words[9:]]))
    assert changed_end.overlap(first) == pytest.approx(13 / 14)
    assert changed_middle.overlap(first) == pytest.approx(9 / 14)
    assert repeated(changed_end, [first], []) == 1
    assert repeated(changed_middle, [first], []) == 0


def test_a_short_remark_is_a_repeat_only_if_it_is_the_same() -> None:
    first, same, other = (Statement.of("Ada", 1, text) for text in ("Well done.", "well done", "Done well."))
    assert repeated(same, [first], []) == 1
    assert repeated(other, [first], []) == 0


def test_repeating_oneself_is_not_an_echo() -> None:
    statement = Statement.of("Ada", 2, LONG)
    copied = Statement.of("Ben", 1, LONG)
    assert repeated(statement, [copied], [Statement.of("Ada", 1, LONG)]) == 0


def test_what_was_heard_is_the_first_round_and_the_empty_say_nothing() -> None:
    spoken = [Statement.of("Ada", 1, LONG), Statement.of("Ben", 1, ""), Statement.of("Eve", 2, LONG)]
    (row,) = unit_repeats(spoken, None)
    assert row[:3] == ("Eve", 2, 1.0)
    assert np.isnan(row[3])


def test_chance_is_what_the_same_judges_said_elsewhere() -> None:
    here = [Statement.of("Ada", 1, "One thing or another."), Statement.of("Ben", 2, LONG)]
    there = [Statement.of("Ada", 1, LONG), Statement.of("Ben", 1, "Quite another matter.")]
    assert list(unit_repeats(here, there)) == [("Ben", 2, 0.0, 1.0)]


def test_the_words_of_a_reply_are_its_free_text() -> None:
    reply = {"A": {"Accuracy": 7}, "justification": "Both are fine.", "preferred": "tie"}
    (statement,) = judge_statements([("Ada", 1, reply), ("Ben", 1, None)])
    assert statement.words == "both are fine"


def test_scores_that_repeat_the_first_round_beyond_chance_and_beyond_the_control() -> None:
    """Ada takes over Ben's first scores where she heard them; on the other label he never gave these."""
    repeats, stays = [(5.0, 8.0), (5.0, 2.0)], [(5.0, 5.0), (5.0, 5.0)]
    (line,) = echo(with_control(two_judges(repeats, BEN), two_judges(stays, BEN)), blind=True)
    assert line.label == SCORES
    assert [line.also[name] for name in RATES] == [0, 0, 0.5, 0]
    assert (line.also["echo"], line.also["control_echo"], line.estimate) == (0.5, 0, 0.5)
    assert line.p == pytest.approx(2 / 924), "12 units, six of them heard: one division of 924 and its mirror"


def test_words_are_counted_by_unit() -> None:
    rows = [
        {"model": "", "phase": 1, "unit": f"u{unit}", "identity": "female", "heard": label, "round": round}
        | {"judge": "Ben", "near": float(round == 2 and label == "female"), "near_chance": 0.0}
        for unit, label in enumerate(["female"] * 6 + ["male"] * 6)
        for round in (1, 2)
    ]
    lines = echo(scored((4.0, 5.0), (3.0, 6.0)), pd.DataFrame(rows), blind=True)
    words = next(line for line in lines if line.label == WORDS)
    assert (words.also["echo"], words.also["control_echo"]) == (1, 0)
    assert words.p == pytest.approx(2 / 924)
