"""Which statements are paired, on debates of a few statements."""

from __future__ import annotations

import pytest

from parley.agents import ConfigError
from parley.judging.rldf.statements import split_topics
from parley.reports.export.pairs import group_by_bias, make_pairs
from parley.reports.export.settings import Settings
from parley.reports.export.statements import Statement

COMMON = {
    "run": "a", "run_id": "r", "bias": "age", "topic": "Buses?", "topic_id": "buses", "mode": "self-reflection",
    "student": "m", "model": "m", "prompt": "Buses?", "rank": None, "status": "ok", "score_again": None, "others": (),
}  # fmt: skip


def statement(speaker, round, score, text="", debate="d", flags=()):
    text = text or f"{speaker} says so in round {round}"
    own = {"speaker": speaker, "round": round, "score": score, "text": text, "debate": debate, "flags": flags}
    return Statement(id=f"{debate}/{round}/{speaker}", **own, **COMMON)


DEBATE = [
    statement(speaker, round, score)
    for speaker, round, score in (("A", 1, 8), ("B", 1, 2), ("C", 1, 6), ("A", 2, 1), ("B", 2, 3), ("C", 2, 7))
]
LENGTHS = [
    statement("A", 1, 8, "one two three four"),
    statement("B", 1, 1, "one"),
    statement("C", 1, 1, "one two three"),
]
LONG, SHORT = statement("A", 1, 8, "one two three four five"), statement("A", 2, 1, "one two")
SAME = [statement("A", 1, 8, "the same"), statement("A", 2, 1, "the same")]
BROKEN = [statement("A", 1, 8), statement("A", 2, 1, flags=("role_break",))]
ALL = " ".join(f"{high}>{low}" for high in ("A1", "C1", "C2") for low in ("B1", "A2", "B2"))
PAIRED = [
    # A1 has A2. C has no low statement: C1 takes B1 of its round, C2 takes B2, unused as yet (A2 has been used).
    (DEBATE, {}, "A1>A2:speaker C1>B1:round C2>B2:round"),
    ([statement("A", 1, 8), statement("B", 2, 1)], {}, "A1>B2:topic"),
    (DEBATE, {"strategy": "same-speaker"}, "A1>A2"),
    (DEBATE, {"strategy": "same-round"}, "A1>B1 C1>B1 C2>A2"),
    (DEBATE, {"strategy": "all"}, ALL),
    # The nearest in length among those used least.
    (LENGTHS, {"strategy": "any"}, "A1>C1:topic"),
    ([*LENGTHS, statement("A", 2, 9, "one two three four five")], {"strategy": "any"}, "A1>C1 A2>B1"),
    (DEBATE[:1] + DEBATE[3:5], {"per_bad": 2}, "A1>A2 A1>B2"),
    (DEBATE[:1] + DEBATE[3:5], {"per_bad": 3}, "A1>A2 A1>B2"),
    ([statement("A", 1, 8, debate="d1"), statement("A", 2, 1, debate="d2")], {}, ""),
    ([statement("A", 1, 5), statement("A", 2, 2)], {"margin": 3}, "A1>A2:speaker"),
    ([statement("A", 1, 4), statement("A", 2, 2)], {"margin": 3}, ""),
    ([LONG, SHORT], {"longest": 2.5}, "A1>A2:speaker"),
    ([LONG, SHORT], {"longest": 2.4}, ""),
    (SAME, {}, ""),
    (BROKEN, {}, ""),
    (BROKEN, {"drop": []}, "A1>A2:speaker"),
]


@pytest.mark.parametrize(("statements", "settings", "expected"), PAIRED)
def test_who_is_paired_with_whom(statements, settings, expected):
    """As HIGH>LOW:WHAT THEY SHARE."""
    checked = Settings.model_validate(settings)
    pairs = make_pairs(group_by_bias(statements, checked), checked)
    assert all(pair.chosen.score <= 3 < pair.rejected.score for pair in pairs), (
        "two of the paper's scripts inverted them"
    )
    found = [
        f"{pair.rejected.speaker}{pair.rejected.round}>{pair.chosen.speaker}{pair.chosen.round}:{pair.shares}"
        for pair in pairs
    ]
    assert [one if ":" in expected else one.partition(":")[0] for one in found] == expected.split()


def test_three_is_low_and_anything_above_is_high():
    groups = group_by_bias([statement("A", 1, 3), statement("B", 1, 3.01), statement("C", 1, None)], Settings())
    assert ([low.speaker for low in groups.low], [high.speaker for high in groups.high]) == (["A"], ["B"])
    assert groups.left_out == {"no score (ok report)": 1}


def test_topics_are_split_by_their_normal_spelling():
    found = split_topics([f"Topic {n}?" for n in range(100)] + ["topic 7"], [0.8, 0.1, 0.1], seed=0)
    assert len(found) == 100
    counts = {split: list(found.values()).count(split) for split in ("train", "validation", "test")}
    assert counts == {"train": 80, "validation": 10, "test": 10}
    assert found == split_topics([f"Topic {n}?" for n in reversed(range(100))], [0.8, 0.1, 0.1], seed=0)
    assert found != split_topics([f"Topic {n}?" for n in range(100)], [0.8, 0.1, 0.1], seed=1)
    for shares in ([0.5, 0.5], [0.9, 0.2, -0.1], [1, 1, 1]):
        with pytest.raises(ConfigError, match="three shares"):
            split_topics(["a"], shares, 0)
