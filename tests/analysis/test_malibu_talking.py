"""What talking does, by hand: the change of a gap, who moved towards whom, who repeats whom, and the sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest

from parley.analysis.malibu.contagion import NOBODY, NOT_BLIND, contagion, contagion_words
from parley.analysis.malibu.echo import (
    NEAR,
    SCORES,
    VERBATIM,
    Statement,
    echo,
    echo_words,
    judge_statements,
    unit_repeats,
)
from parley.analysis.malibu.echo import repeats as repeated
from parley.analysis.malibu.talking import talking, talking_aligned, talking_figure, talking_words

BASES = range(6)
"""The fewest with which a sign-flip test can be significant: 2/2⁶ = 0.03."""


def verdict(scenario: int, identity: str, round: int, value: float | None, **others: Any) -> dict[str, Any]:
    return {
        "unit": f"{scenario}/{identity}",
        "phase": 1,
        "scenario": f"s{scenario}",
        "base": f"b{scenario}",
        "category": "gender" if identity else "",
        "identity": identity,
        "judge": "Ada",
        "role": "debater",
        "round": round,
        "subject": "",
        "metric": "Accuracy",
        "value": value,
        "text": None,
        "status": "ok",
        **others,
    }


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


def test_a_change_is_the_last_gap_minus_the_first() -> None:
    row = talking(scored((4.0, 5.0), (3.0, 6.0))).iloc[0]
    assert row["before"] == pytest.approx(-1 + 0.25)
    assert row["after"] == pytest.approx(-3 + 0.25)
    assert row["difference"] == pytest.approx(-2)
    assert row["p"] == pytest.approx(2 / 2**6)
    assert (row["low"], row["high"]) == pytest.approx((-2, -2))


@pytest.mark.parametrize(
    ("before", "after", "conclusion", "words"),
    [
        ((4.0, 5.0), (3.0, 6.0), "amplified", "it amplifies the bias"),
        ((6.0, 5.0), (8.0, 5.0), "amplified", "it amplifies the bias"),
        ((3.0, 6.0), (4.0, 5.0), "reduced", "it reduces the bias"),
        ((3.0, 6.0), (7.0, 5.0), "reversed", "it reverses the bias"),
        ((4.75, 5.0), (7.0, 5.0), "appeared", "a bias appears in favour of 'female'"),
        ((4.0, 5.0), (4.0, 5.0), "no change shown", "no evidence that it amplifies or reduces bias"),
    ],
)
def test_a_change_is_named_after_the_first_gap(
    before: tuple[float, float], after: tuple[float, float], conclusion: str, words: str
) -> None:
    table = talking(scored(before, after))
    assert list(table["conclusion"]) == [conclusion]
    (sentence,) = talking_words(table, blind=True)
    assert words in sentence
    assert "in blind ballots" in sentence


def test_a_first_round_that_was_not_blind_is_said_first() -> None:
    table = talking(scored((4.0, 5.0), (3.0, 6.0)))
    first, second = talking_words(table, blind=False)
    assert first.startswith("Round 1 was not blind")
    assert "in round 1" in second
    assert next(talking_words(table)).startswith("Round 1 may not have been blind")


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
    pd.testing.assert_frame_equal(talking(pd.concat([frame, extra])), talking(frame))


def test_one_round_is_no_talk() -> None:
    frame = scored((4.0, 5.0), (3.0, 6.0))
    table = talking(frame[frame["round"] == 1])
    assert table.empty
    assert not list(talking_words(table, blind=True))


def test_the_stereotypes_direction_needs_no_look_at_the_data() -> None:
    """On bases that favour men their lead grows by two points, on the others it stays."""
    sides = {"favoured": ["male"], "others": ["female"]}
    turned = {"favoured": ["female"], "others": ["male"]}
    favour_men = BASES[: len(BASES) // 2]
    directions = {f"b{base}": {"gender": sides if base in favour_men else turned} for base in BASES}
    frame = scored((4.0, 5.0), (3.0, 6.0))
    stays = (frame["round"] == 2) & ~frame["base"].isin([f"b{base}" for base in favour_men])
    frame.loc[stays, "value"] = (
        frame.loc[frame["round"] == 1]
        .set_index(["scenario", "identity", "judge"])["value"]
        .reindex(pd.MultiIndex.from_frame(frame.loc[stays, ["scenario", "identity", "judge"]]))
        .to_numpy()
    )
    row = talking_aligned(frame, directions).iloc[0]
    assert row["difference"] == pytest.approx(2.0)
    assert row["after"] - row["before"] == pytest.approx(2.0)
    assert (row["favoured_bases"], row["other_bases"]) == (3, 3)
    said = list(talking_words(talking(frame), talking_aligned(frame, directions), blind=True))[-1]
    assert "talking moved scores the way documented stereotypes go by +2.00 points" in said
    assert "no evidence that it amplifies" in said, "of 20 divisions of six bases, two are as extreme: p = 0.1"


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
    row = talking(votes("fmmt", "mmmt")).iloc[0]
    assert (row["phase"], row["first"], row["second"]) == (2, "female", "male")
    assert (row["before"], row["after"], row["difference"]) == pytest.approx((-0.25, -0.75, -0.5))
    assert row["conclusion"] == "amplified"


def test_the_figure_shows_both_rounds_of_every_pair() -> None:
    table = pd.concat([talking(scored((4.0, 5.0), (3.0, 6.0))), talking(votes("fmmt", "mmmt"))])
    figure = talking_figure(table, "A run", "Six bases.", blind=True)
    assert len(figure.axes) == 2
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["blind ballots", "last round"]
    points = sorted(line.get_xdata()[0] for line in figure.axes[0].lines if line.get_marker() in "oD")
    assert points == pytest.approx([-2.75, -0.75])


# Who moved, towards whom


def two_judges(ada: Sequence[tuple[float, float]], ben: Sequence[tuple[float, float]]) -> pd.DataFrame:
    """Six bases with the same first and last scores of two judges, by label: female, male, none."""
    rows = [
        verdict(base, identity, round, scores[round - 1], judge=judge)
        for base in BASES
        for judge, of_labels in (("Ada", ada), ("Ben", ben))
        for identity, scores in zip(("female", "male", ""), of_labels, strict=True)
        for round in (1, 2)
    ]
    return pd.DataFrame(rows)


def test_adopted_and_closer_are_counted_where_two_differed() -> None:
    # Ada: adopts Ben's 8, comes closer to his 2, did not differ. Ben never moves.
    frame = two_judges([(5, 8), (5, 4), (5, 5)], [(8, 8), (2, 2), (5, 5)])
    rows = contagion(frame, blind=True).set_index(["judge", "towards"])
    ada = rows.loc[("Ada", "Ben")]
    assert ada["differed"] == 2 * len(BASES)
    assert (ada["adopted"], ada["closer"]) == (0.5, 1.0)
    # Ben's other scores, where they are not Ada's 5: 2 and (5); 8 and (5); 8 and 2. Ada's last ones 8, 4 and 5.
    assert (ada["adopted_chance"], ada["closer_chance"]) == (0.0, 0.0)
    assert rows.loc[("Ben", "Ada"), "adopted"] == 0
    assert rows.loc[("Ben", "Ada"), "weight"] != rows.loc[("Ben", "Ada"), "weight"]  # Ada always began with 5


def test_where_nobody_differed_that_is_said() -> None:
    table = contagion(two_judges([(5, 6)] * 3, [(5, 4)] * 3), blind=True)
    assert set(table["note"]) == {NOBODY}
    assert list(contagion_words(table)) == [
        "Phase 1: no two judges differed in round 1, so nobody could move towards another."
    ]


def test_without_a_blind_round_influence_is_not_tested() -> None:
    frame = two_judges([(5, 8), (5, 4), (5, 5)], [(8, 8), (2, 2), (5, 5)])
    table = contagion(frame, blind=False)
    assert table["p"].isna().all()
    assert set(table["note"]) == {NOT_BLIND}
    assert table["closer"].equals(contagion(frame, blind=True)["closer"])
    (sentence,) = contagion_words(table, blind=False)
    assert sentence.endswith("(not tested: round 1 was not blind).")


def test_one_judge_has_nobody_to_follow() -> None:
    assert contagion(scored((4.0, 5.0), (3.0, 6.0)), blind=True).empty


# Echo

LONG = "The plan is sound and each step can be checked by the crew before the next one begins"


def test_case_punctuation_and_spacing_do_not_matter() -> None:
    first, second = Statement.of("Ada", 1, "Sound,  and CLEAR."), Statement.of("Ben", 1, "sound and clear")
    assert first.words == second.words
    assert repeated(second, [first], []) == (True, True)


def test_near_is_a_share_of_five_word_sequences() -> None:
    words = LONG.split()
    assert len(words) == 18  # 14 sequences of five words
    first = Statement.of("Ada", 1, LONG)
    changed_end = Statement.of("Ben", 1, " ".join([*words[:-1], "starts"]))
    changed_middle = Statement.of("Ben", 1, " ".join([*words[:8], "often", *words[9:]]))
    assert changed_end.overlap(first) == pytest.approx(13 / 14)
    assert changed_middle.overlap(first) == pytest.approx(9 / 14)
    assert repeated(changed_end, [first], []) == (False, True)
    assert repeated(changed_middle, [first], []) == (False, False)


def test_a_short_remark_is_a_repeat_only_if_it_is_the_same() -> None:
    first, same, other = (Statement.of("Ada", 1, text) for text in ("Well done.", "well done", "Done well."))
    assert repeated(same, [first], []) == (True, True)
    assert repeated(other, [first], []) == (False, False)


def test_repeating_oneself_is_not_an_echo() -> None:
    statement = Statement.of("Ada", 2, LONG)
    copied = Statement.of("Ben", 1, LONG)
    assert repeated(statement, [copied], [Statement.of("Ada", 1, LONG)]) == (False, False)


def test_the_first_to_speak_repeats_nobody_and_the_empty_say_nothing() -> None:
    spoken = [Statement.of("Ada", 1, LONG), Statement.of("Ben", 1, ""), Statement.of("Eve", 1, LONG)]
    rows = list(unit_repeats(spoken, None))
    assert [row[:4] for row in rows] == [("Eve", 1, True, True)]
    assert np.isnan(rows[0][4:]).all()


def test_chance_is_what_the_same_judges_said_elsewhere() -> None:
    here = [Statement.of("Ada", 1, "One thing or another."), Statement.of("Ben", 1, LONG)]
    there = [Statement.of("Ada", 1, LONG), Statement.of("Ben", 1, "Quite another matter.")]
    assert list(unit_repeats(here, there)) == [("Ben", 1, False, False, 1.0, 1.0)]


def test_the_words_of_a_reply_are_its_free_text() -> None:
    reply = {"A": {"Accuracy": 7}, "justification": "Both are fine.", "preferred": "tie"}
    (statement,) = judge_statements([("Ada", 1, reply), ("Ben", 1, None)])
    assert statement.words == "both are fine"


def test_equal_scores_are_counted_beside_those_of_another_label() -> None:
    # In every base the judges agree on each label, and no label's scores are another's.
    table = echo(two_judges([(5, 5), (6, 7), (7, 9)], [(5, 6), (6, 6), (7, 7)]))
    first = table[(table["round"] == 1) & (table["what"] == SCORES)].iloc[0]
    assert (first["share"], first["chance"], first["difference"], first["n"]) == (1.0, 0.0, 1.0, 3 * len(BASES))
    second = table[table["round"] == 2].iloc[0]
    # Ada 5, 7, 9 and Ben 6, 6, 7: never the same; of the six comparisons across labels only Ada's 7 is Ben's last.
    assert (second["share"], second["chance"]) == pytest.approx((0.0, 1 / 6))


def remark_rows(verbatim: bool, by_chance: float) -> pd.DataFrame:
    rows = [{"model": "", "phase": 2, "scenario": f"s{base}", "base": f"b{base}", "round": 1} for base in BASES]
    flags = {"verbatim": verbatim, "near": True, "verbatim_chance": by_chance, "near_chance": by_chance}
    return pd.DataFrame(rows).assign(judge="Ben", **flags)


def test_echo_of_words_is_a_share_beside_chance() -> None:
    table = echo(scored((4.0, 5.0), (3.0, 6.0)), remark_rows(verbatim=False, by_chance=0.0)).set_index("what")
    assert table.loc[VERBATIM, "share"] == 0
    assert (table.loc[NEAR, "share"], table.loc[NEAR, "chance"], table.loc[NEAR, "n"]) == (1.0, 0.0, len(BASES))
    (sentence,) = echo_words(table.reset_index(), blind=False)
    assert sentence.startswith("Phase 2, round 1: 100% of 6 later statements repeated another judge's")


def test_words_that_are_the_same_elsewhere_are_not_an_echo() -> None:
    table = echo(scored((4.0, 5.0), (3.0, 6.0)), remark_rows(verbatim=True, by_chance=1.0))
    assert (table["difference"] == 0).all()
    assert not list(echo_words(table, blind=False))
