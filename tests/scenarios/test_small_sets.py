"""What ships besides suites: topics, graded statements."""

from __future__ import annotations

import re
from itertools import combinations

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
    topic_areas,
    topic_id,
    words,
)
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
