"""Topics of debates: the shipped lists, your own files, and when two topics are the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from parley.scenarios import (
    BIASES,
    Known,
    ScenarioError,
    load_topics,
    near_duplicates,
    normal,
    sample,
    topic_areas,
    topic_id,
)


@pytest.mark.parametrize("bias", BIASES)
def test_two_hundred_topics_are_shipped_for_each_bias_type_and_no_two_are_alike(bias: str) -> None:
    topics = load_topics(bias)
    assert len(topics) == 200
    assert near_duplicates(topics) == []
    assert all(4 <= len(topic.split()) <= 24 for topic in topics)
    assert len({topic_id(topic) for topic in topics}) == 200


def test_no_topic_is_shipped_for_two_bias_types() -> None:
    assert near_duplicates([topic for bias in BIASES for topic in load_topics(bias)]) == []


def test_no_shipped_topic_asks_anyone_to_play_an_agent() -> None:
    reply = " ".join(topic for bias in BIASES for topic in load_topics(bias)).lower()
    assert "language model" not in reply
    assert "as an ai" not in reply


def test_your_own_list_has_one_topic_per_line_and_comments(tmp_path: Path) -> None:
    mine = tmp_path / "mine.txt"
    mine.write_text("# transport\nShould buses be free?\n\n  Are trams better than buses?  \n", "utf-8")
    assert load_topics(str(mine)) == ("Should buses be free?", "Are trams better than buses?")


def test_a_larger_sample_contains_the_smaller_one() -> None:
    topics = load_topics("age")
    assert sample(topics, 50, seed=3)[:20] == sample(topics, 20, seed=3)
    assert sample(topics, 20, seed=3) != sample(topics, 20, seed=4)
    assert sample(topics, 20, seed=0) != list(topics[:20]), "a part is drawn, and is not the beginning of the list"


def test_more_topics_than_the_list_has_are_an_error() -> None:
    with pytest.raises(ScenarioError, match="201 topics were requested, but the list has only 200"):
        sample(load_topics("age"), 201, seed=0)


def test_spelling_makes_no_other_topic_but_another_subject_does() -> None:
    known = Known(["Should city buses be free for everyone?"])
    assert known.like("should city buses be free, for everyone") == "Should city buses be free for everyone?"
    assert known.like("Should buses in a city be free for everyone?") is not None
    assert known.like("Should city museums be open on Mondays?") is None


def test_the_shares_of_common_words_decide() -> None:
    # stems {garden, hobby} and {garden, hobby, winter}: cosine 2 / (sqrt 2 * sqrt 3) = 0.816
    assert Known(["garden hobby"], near=0.81).like("garden hobby winter") is not None
    assert Known(["garden hobby"], near=0.82).like("garden hobby winter") is None
    assert Known(["garden hobby"], near=0.99).like("garden hobby sun") is not None, "three letters are no stem"


def test_a_topic_keeps_its_name_whatever_its_spelling() -> None:
    assert topic_id("Should buses be free?")[-6:] == topic_id("should buses be free")[-6:]
    assert topic_id("Should buses, at night, be free?").startswith("should-buses-at-night-be-free-")
    assert normal("Should  buses – be FREE?") == "should buses be free"
    assert topic_id("公共汽车应该免费吗") != topic_id("博物馆应该免费吗")


def test_areas_of_life_differ() -> None:
    assert len(topic_areas()) == len(set(topic_areas())) == 20
