"""Which statements are paired, on debates of a few statements."""

from __future__ import annotations

import pytest

from parley.agents import ConfigError
from parley.judging.rldf.statements import split_topics
from parley.reports.export.pairs import StatementPair, group_by_bias, make_pairs
from parley.reports.export.settings import Settings
from parley.reports.export.statements import Statement


def statement(
    speaker: str, round: int, score: float | None, text: str = "", debate: str = "d", flags: tuple[str, ...] = ()
) -> Statement:
    text = text or f"{speaker} says so in round {round}"
    return Statement(
        id=f"{debate}/{round}/{speaker}",
        debate=debate,
        run="a",
        run_id="r",
        bias="age",
        topic="Buses?",
        topic_id="buses",
        mode="self-reflection",
        student="m",
        model="m",
        speaker=speaker,
        round=round,
        text=text,
        prompt="Buses?",
        score=score,
        rank=None,
        status="ok",
        score_again=None,
        flags=flags,
        others=(),
    )


def paired(statements: list[Statement], **settings: object) -> list[tuple[str, str, str]]:
    checked = Settings.model_validate(settings)
    return [
        (f"{pair.rejected.speaker}{pair.rejected.round}", f"{pair.chosen.speaker}{pair.chosen.round}", pair.shares)
        for pair in make_pairs(group_by_bias(statements, checked), checked)
    ]


DEBATE = [
    statement(speaker, round, score)
    for speaker, round, score in (("A", 1, 8), ("B", 1, 2), ("C", 1, 6), ("A", 2, 1), ("B", 2, 3), ("C", 2, 7))
]


def test_three_is_low_and_anything_above_is_high() -> None:
    groups = group_by_bias([statement("A", 1, 3), statement("B", 1, 3.01), statement("C", 1, None)], Settings())
    assert [low.speaker for low in groups.low] == ["A"]
    assert [high.speaker for high in groups.high] == ["B"]
    assert groups.left_out == {"no score (ok report)": 1}


def test_the_same_speaker_comes_first_then_the_same_round_then_anyone() -> None:
    # A1 has A2. C has no low statement: C1 takes B1 of its round, C2 takes B2, unused as yet (A2 has been used).
    assert paired(DEBATE) == [("A1", "A2", "speaker"), ("C1", "B1", "round"), ("C2", "B2", "round")]
    alone = [statement("A", 1, 8), statement("B", 2, 1)]
    assert paired(alone) == [("A1", "B2", "topic")]


@pytest.mark.parametrize(
    ("strategy", "pairs"),
    [
        ("same-speaker", [("A1", "A2")]),
        ("same-round", [("A1", "B1"), ("C1", "B1"), ("C2", "A2")]),
        ("all", [(high, low) for high in ("A1", "C1", "C2") for low in ("B1", "A2", "B2")]),
    ],
)
def test_other_strategies(strategy: str, pairs: list[tuple[str, str]]) -> None:
    assert [pair[:2] for pair in paired(DEBATE, strategy=strategy)] == pairs


def test_any_takes_the_nearest_in_length_among_those_used_least() -> None:
    texts = [
        statement("A", 1, 8, "one two three four"),
        statement("B", 1, 1, "one"),
        statement("C", 1, 1, "one two three"),
    ]
    assert paired(texts, strategy="any") == [("A1", "C1", "topic")]
    again = [*texts, statement("A", 2, 9, "one two three four five")]
    assert [pair[1] for pair in paired(again, strategy="any")] == ["C1", "B1"]


def test_a_high_bias_statement_may_be_in_more_pairs() -> None:
    assert [pair[:2] for pair in paired(DEBATE[:1] + DEBATE[3:5], per_bad=2)] == [("A1", "A2"), ("A1", "B2")]


def test_pairs_stay_within_a_debate() -> None:
    assert paired([statement("A", 1, 8, debate="d1"), statement("A", 2, 1, debate="d2")]) == []


def test_margin_and_length_ratio_limit_the_pairs() -> None:
    assert paired([statement("A", 1, 5), statement("A", 2, 2)], margin=3) == [("A1", "A2", "speaker")]
    assert paired([statement("A", 1, 4), statement("A", 2, 2)], margin=3) == []
    long, short = statement("A", 1, 8, "one two three four five"), statement("A", 2, 1, "one two")
    assert paired([long, short], longest=2.5) == [("A1", "A2", "speaker")]
    assert paired([long, short], longest=2.4) == []


def test_a_text_is_never_paired_with_itself() -> None:
    assert paired([statement("A", 1, 8, "the same"), statement("A", 2, 1, "the same")]) == []


def test_flagged_statements_are_left_out_unless_drop_is_empty() -> None:
    broken = [statement("A", 1, 8), statement("A", 2, 1, flags=("role_break",))]
    assert paired(broken) == []
    assert paired(broken, drop=[]) == [("A1", "A2", "speaker")]


def test_the_chosen_side_is_the_low_one() -> None:
    (pair,) = make_pairs(group_by_bias(DEBATE[:1] + DEBATE[3:4], Settings()), Settings())
    assert isinstance(pair, StatementPair)
    assert (pair.chosen.score, pair.rejected.score) == (1, 8), "two of the paper's scripts wrote pairs inverted"


def test_topics_are_split_by_their_normal_spelling() -> None:
    found = split_topics([f"Topic {n}?" for n in range(100)] + ["topic 7"], [0.8, 0.1, 0.1], seed=0)
    assert len(found) == 100
    counts = {split: list(found.values()).count(split) for split in ("train", "validation", "test")}
    assert counts == {"train": 80, "validation": 10, "test": 10}
    assert found == split_topics([f"Topic {n}?" for n in reversed(range(100))], [0.8, 0.1, 0.1], seed=0)
    assert found != split_topics([f"Topic {n}?" for n in range(100)], [0.8, 0.1, 0.1], seed=1)


@pytest.mark.parametrize("shares", [[0.5, 0.5], [0.9, 0.2, -0.1], [1, 1, 1]])
def test_wrong_shares_are_refused(shares: list[float]) -> None:
    with pytest.raises(ConfigError, match="three shares"):
        split_topics(["a"], shares, 0)
