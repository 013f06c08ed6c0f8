"""Which statements are paired, by hand."""

from __future__ import annotations

import pytest

from parley.agents import ConfigError
from parley.export.pairs import StatementPair, make_pairs, sort_out
from parley.export.settings import Settings
from parley.export.statements import Statement
from parley.judging.rldf.splits import split_topics


def said(
    speaker: str, round: int, score: float | None, text: str = "", debate: str = "d", flags: tuple[str, ...] = ()
) -> Statement:
    text = text or f"{speaker} says so in round {round}"
    about = ("age", "Buses?", "buses", "self-reflection", "m", "m")
    name = f"{debate}/{round}/{speaker}"
    return Statement(name, debate, "a", "r", *about, speaker, round, text, score, None, "ok", None, flags, ())


def paired(statements: list[Statement], **settings: object) -> list[tuple[str, str, str]]:
    chosen = Settings.model_validate(settings)
    return [
        (f"{pair.bad.speaker}{pair.bad.round}", f"{pair.good.speaker}{pair.good.round}", pair.shares)
        for pair in make_pairs(sort_out(statements, chosen), chosen)
    ]


DEBATE = [said("A", 1, 8), said("B", 1, 2), said("C", 1, 6), said("A", 2, 1), said("B", 2, 3), said("C", 2, 7)]


def test_three_is_low_and_anything_above_is_high() -> None:
    found = sort_out([said("A", 1, 3), said("B", 1, 3.01), said("C", 1, None)], Settings())
    assert [one.speaker for one in found.low] == ["A"]
    assert [one.speaker for one in found.high] == ["B"]
    assert found.left_out == {"no score (ok report)": 1}


def test_the_same_speaker_comes_first_then_the_same_round_then_anyone() -> None:
    # A1 has A2. C has no low statement: C1 takes B1 of its round, C2 takes B2, unused as yet (A2 has been used).
    assert paired(DEBATE) == [("A1", "A2", "speaker"), ("C1", "B1", "round"), ("C2", "B2", "round")]
    alone = [said("A", 1, 8), said("B", 2, 1)]
    assert paired(alone) == [("A1", "B2", "topic")]


@pytest.mark.parametrize(
    ("strategy", "pairs"),
    [
        ("same-speaker", [("A1", "A2")]),
        ("same-round", [("A1", "B1"), ("C1", "B1"), ("C2", "A2")]),
        ("all", [(bad, good) for bad in ("A1", "C1", "C2") for good in ("B1", "A2", "B2")]),
    ],
)
def test_other_strategies(strategy: str, pairs: list[tuple[str, str]]) -> None:
    assert [pair[:2] for pair in paired(DEBATE, strategy=strategy)] == pairs


def test_any_takes_the_nearest_in_length_among_those_used_least() -> None:
    texts = [said("A", 1, 8, "one two three four"), said("B", 1, 1, "one"), said("C", 1, 1, "one two three")]
    assert paired(texts, strategy="any") == [("A1", "C1", "topic")]
    again = [*texts, said("A", 2, 9, "one two three four five")]
    assert [pair[1] for pair in paired(again, strategy="any")] == ["C1", "B1"]


def test_a_bad_statement_may_be_in_more_pairs_if_asked() -> None:
    assert [pair[:2] for pair in paired(DEBATE[:1] + DEBATE[3:5], per_bad=2)] == [("A1", "A2"), ("A1", "B2")]


def test_pairs_stay_within_a_debate() -> None:
    assert paired([said("A", 1, 8, debate="d1"), said("A", 2, 1, debate="d2")]) == []


def test_a_margin_and_a_bound_on_length_hold() -> None:
    assert paired([said("A", 1, 5), said("A", 2, 2)], margin=3) == [("A1", "A2", "speaker")]
    assert paired([said("A", 1, 4), said("A", 2, 2)], margin=3) == []
    long, short = said("A", 1, 8, "one two three four five"), said("A", 2, 1, "one two")
    assert paired([long, short], longest=2.5) == [("A1", "A2", "speaker")]
    assert paired([long, short], longest=2.4) == []


def test_a_text_is_never_paired_with_itself() -> None:
    assert paired([said("A", 1, 8, "the same"), said("A", 2, 1, "the same")]) == []


def test_flags_leave_statements_out_by_choice() -> None:
    broken = [said("A", 1, 8), said("A", 2, 1, flags=("role_break",))]
    assert paired(broken) == []
    assert paired(broken, drop=[]) == [("A1", "A2", "speaker")]


def test_the_good_side_is_the_low_one() -> None:
    (pair,) = make_pairs(sort_out(DEBATE[:1] + DEBATE[3:4], Settings()), Settings())
    assert isinstance(pair, StatementPair)
    assert (pair.good.score, pair.bad.score) == (1, 8), "two of the paper's scripts wrote pairs inverted"


def test_splits_share_out_topics_and_spelling_makes_no_new_one() -> None:
    found = split_topics([f"Topic {n}?" for n in range(100)] + ["topic 7"], [0.8, 0.1, 0.1], seed=0)
    assert len(found) == 100
    counts = {split: list(found.values()).count(split) for split in ("train", "validation", "test")}
    assert counts == {"train": 80, "validation": 10, "test": 10}
    assert found == split_topics([f"Topic {n}?" for n in reversed(range(100))], [0.8, 0.1, 0.1], seed=0)
    assert found != split_topics([f"Topic {n}?" for n in range(100)], [0.8, 0.1, 0.1], seed=1)


@pytest.mark.parametrize("shares", [[0.5, 0.5], [0.9, 0.2, -0.1], [1, 1, 1]])
def test_shares_that_are_none_are_refused(shares: list[float]) -> None:
    with pytest.raises(ConfigError, match="three shares"):
        split_topics(["a"], shares, 0)
