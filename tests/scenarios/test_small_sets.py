"""What ships besides suites (topics, graded statements), and RealToxicityPrompts and SQuAD from files."""

from __future__ import annotations

import json
import re
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from parley.scenarios import (
    BIASES,
    ScenarioError,
    TopicIndex,
    load_topics,
    near_duplicates,
    sample,
    shared_runs,
    similarity,
    squad,
    topic_areas,
    topic_id,
    words,
)
from parley.scenarios.rtp import RtpRow, draw, in_set, load, load_hub
from parley.scenarios.squad import SquadQuestion
from parley.scenarios.statements import load_statements

# Topics of debates


def test_two_hundred_topics_ship_for_each_bias_type_and_no_two_are_alike():
    every = [topic for bias in BIASES for topic in load_topics(bias)]
    assert {len(load_topics(bias)) for bias in BIASES} == {200}
    assert near_duplicates(every) == []
    some = ["garden hobby", "winter sport", "Garden, hobby!", "gardens hobby"]
    assert near_duplicates(some) == [(some[2], some[0]), (some[3], some[0])]
    assert len({topic_id(topic) for topic in every}) == 1000
    assert topic_id("Should city buses be FREE, for all?") == "should-city-buses-be-free-for-al-63bcb6"
    assert all(4 <= len(topic.split()) <= 24 for topic in every)
    assert not re.search("language model|as an ai", " ".join(every).lower()), "nobody is asked to play an agent"
    assert len(topic_areas()) == len(set(topic_areas())) == 20


def test_a_larger_sample_contains_the_smaller_one():
    topics = load_topics("age")
    assert sample(topics, 50, seed=3)[:20] == sample(topics, 20, seed=3) != sample(topics, 20, seed=4)
    assert sample(tuple("abcdef"), 6, seed=1) == list("cdfaeb")
    with pytest.raises(ScenarioError, match=r"7 topics were requested, but the list has only 6; write them with .* 7 "):
        sample(tuple("abcdef"), 7, seed=1)


@pytest.mark.parametrize(
    ("known", "near", "topic", "alike"),
    [
        ("Should city buses be free for everyone?", None, "should city buses be free, for everyone", True),
        ("Should city buses be free for everyone?", None, "Should buses in a city be free for everyone?", True),
        ("Should city buses be free for everyone?", None, "Should city museums be open on Mondays?", False),
        ("Is it so?", None, "is it SO", True),  # the same words, though none is a stem
        # stems {garden, hobby} and {garden, hobby, winter}: cosine 2 / (sqrt 2 * sqrt 3) = 0.816
        ("garden hobby", 0.81, "garden hobby winter", True),
        ("garden hobby", 0.82, "garden hobby winter", False),
        ("garden hobby", 0.99, "garden hobby sun", True),  # three letters are no stem
        ("garden hobby", 0.82, "garden hobby wint", False),  # four are
        ("garden hobby", 0.82, "garden hobby with", True),  # unless the word is common
        ("gardens hobby", 0.99, "gardener hobby", True),  # a stem has six letters
        ("garden garden hobby", 0.95, "garden hobby", False),  # 3 / (sqrt 5 * sqrt 2) = 0.949
    ],
)
def test_the_share_of_common_words_decides_whether_two_topics_are_one(known, near, topic, alike):
    assert (TopicIndex([known], **({} if near is None else {"near": near})).like(topic) == known) is alike


# Graded statements


@pytest.mark.parametrize("bias", BIASES)
def test_neither_length_nor_words_tell_the_doses_of_shipped_statements_apart(bias):
    topics = load_statements(bias).topic
    for topic in topics:
        counts = [len(words(claim)) for claim in topic.claims]
        assert (max(counts) - min(counts) <= 1, topic.text.count("{claim}")) == (True, 1), topic.id
        assert all(similarity(one, other) <= 0.9 for one, other in combinations(topic.claims, 2)), topic.id
    texts = [[topic.statements[dose] for topic in topics] for dose in range(4)]
    assert len({sum(len(words(text)) for text in dose) for dose in texts}) == 1
    assert len({" ".join(words(text)) for dose in texts for text in dose}) == 20 * 4
    characters = [sum(map(len, dose)) for dose in texts]
    assert max(characters) <= 1.1 * min(characters)
    assert list(shared_runs({topic.id: "\n\n".join(topic.statements) for topic in topics})) == []


# RealToxicityPrompts and SQuAD: what is read, and what a sample is


def published(number: int, toxicity: float | None, text: str = "The referee said that") -> dict[str, Any]:
    """A row as published, its text our own and mild."""
    scores = {"profanity": 0.1, "insult": 0.2, "severe_toxicity": 0.05, "toxicity": toxicity}
    place = {"filename": f"{number:07}-abc.txt", "begin": 340, "end": 564, "challenging": False}
    texts = {"prompt": f"{text} {number}", "continuation": " it was fair."}
    return place | {part: {"text": words, **scores} for part, words in texts.items()}


def write(path: Path, *rows: Any) -> Path:
    path.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows) + "\n")
    return path


def test_a_published_row(tmp_path):
    rtp = load(write(tmp_path / "prompts.jsonl", published(1, 0.57), published(2, None)))
    assert rtp.rows[0] == ("0000001-abc.txt-340-564", "The referee said that 1", 0.57)
    assert rtp.rows[1].toxicity is None
    assert list(rtp.sources) == ["prompts.jsonl"]


def test_flat_rows_and_line_separators_inside_a_text(tmp_path):
    row = {"prompt": "Half a\u2028line", "toxicity": 0, "id": "a/b"}
    path = tmp_path / "flat.jsonl"
    path.write_text(json.dumps(row, ensure_ascii=False) + "\n\n" + json.dumps({"prompt": "Two", "toxicity": 1}))
    assert [tuple(item) for item in load(path).rows] == [("a-b", "Half a\u2028line", 0.0), ("line-2", "Two", 1.0)]


def test_the_ends_of_a_set_belong_to_it(tmp_path):
    levels = [0.499, 0.5, 0.6, 0.601, 0.799, 0.8, 1.0, None]
    rows = load(write(tmp_path / "a.jsonl", *(published(n, t) for n, t in enumerate(levels)))).rows
    assert [row.toxicity for row in in_set(rows, "moderate")] == [0.5, 0.6]
    assert [row.toxicity for row in in_set(rows, "high")] == [0.8, 1.0]


def test_a_sample_depends_on_the_seed_and_not_on_the_order_of_the_file(tmp_path):
    rows = [published(n, 0.55) for n in range(60)]
    first, second = load(write(tmp_path / "a.jsonl", *rows)), load(write(tmp_path / "b.jsonl", *reversed(rows)))
    assert draw(first.rows, "moderate", 10, 3) == draw(second.rows, "moderate", 10, 3)
    assert draw(first.rows, "moderate", 10, 3) != draw(first.rows, "moderate", 10, 4)
    nine = [RtpRow(str(n), "So", 0.55) for n in range(9)]
    assert [row.id for row in draw(nine, "moderate", 9, 3)] == list("451036287")


def test_the_hubs_layout_from_another_place(tmp_path, monkeypatch):
    pytest.importorskip("datasets")
    path = write(tmp_path / "prompts.jsonl", published(1, 0.57), published(2, None))
    rtp = load_hub(place=str(path), cache=str(tmp_path / "cache"))
    assert ([row.toxicity for row in rtp.rows], [*rtp.sources]) == ([0.57, None], ["hub d3a650756206"])
    monkeypatch.setattr("parley.scenarios.rtp.PLACE", str(path))
    with pytest.raises(ScenarioError, match=r"prompts.jsonl has 2 rows, expected 99442"):
        load_hub(cache=str(tmp_path / "cache"))
    write(path, published(1, 0.57), published(2, 2))
    with pytest.raises(ScenarioError, match=r"prompts.jsonl, row 2: toxicity must be"):
        load_hub(place=str(path), cache=str(tmp_path / "cache"))
    with pytest.raises(ScenarioError, match=r"cannot be downloaded .* give its .jsonl file with --data"):
        load_hub(place=str(tmp_path / "none.jsonl"), cache=str(tmp_path / "cache"))


# SQuAD's official JSON


def table(*paragraphs: tuple[str, ...]) -> str:
    """A file of one question per paragraph, with these golds."""
    listed = []
    for nth, golds in enumerate(paragraphs):
        answers = [{"text": gold, "answer_start": 0} for gold in golds]
        question = {"id": f"q{nth}", "question": f"What is {nth}?", "answers": answers, "is_impossible": not golds}
        listed.append({"context": f"Text {nth}.", "qas": [question]})
    return json.dumps({"version": "v2.0", "data": [{"title": "Rhine", "paragraphs": listed}]})


def test_questions_know_their_text_their_golds_and_whether_there_is_an_answer(tmp_path):
    path = tmp_path / "dev.json"
    path.write_text(table(("the Rhine", "Rhine"), ()))
    read = squad.load(path)
    assert read.questions == (
        SquadQuestion("q0", "Rhine", "Rhine/0", "Text 0.", "What is 0?", ("the Rhine", "Rhine")),
        SquadQuestion("q1", "Rhine", "Rhine/1", "Text 1.", "What is 1?", ()),
    )
    assert [item.answerable for item in read.questions] == [True, False]
    path.write_text(table(("Rhine",)))
    assert squad.load(path).sources != read.sources, "another file is another source"


def questions(answerable: int, unanswerable: int) -> list[SquadQuestion]:
    golds = [("x",)] * answerable + [()] * unanswerable
    return [SquadQuestion(str(n), "T", f"T/{n}", "c", "q", gold) for n, gold in enumerate(golds)]


@pytest.mark.parametrize(
    ("yes", "no", "limit", "seed", "ids"),
    [
        *((6, 3, 4, 0, "3 7 0 1"), (6, 3, 4, 1, "2 6 5 0")),  # by the seed, and evenly mixed
        *((99, 1, 3, 0, "51 99 96"), (1, 99, 3, 0, "0 57 94")),  # one of the rare kind
        *((5, 4, 1, 0, "3"), (4, 5, 1, 0, "7")),  # one question is of the frequent kind
        *((5, 2, 7, 0, "0 1 2 3 4 5 6"), (3, 0, 2, 0, "1 0")),
    ],
)
def test_the_sample_of_a_seed_stays_the_same(yes, no, limit, seed, ids):
    assert [item.id for item in squad.sample(questions(yes, no), limit, seed)] == ids.split()
