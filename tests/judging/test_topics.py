"""Topics written by a model: spread evenly, none twice, and every refusal with its reason."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from parley.cli import main
from parley.judging import Accepted
from parley.judging.rldf.topics import Topic, TopicsConfig, WriteTopics, topic_problems
from parley.scenarios import Known, load_topics, topic_areas

pytestmark = pytest.mark.usefixtures("place")
GENERATE = ("run", "topics", "--bias", "age", "--quiet", "--no-shipped")


def made_up(*parts: object) -> str:
    """A topic of five words that no other has."""
    letters = [chr(97 + byte % 26) for byte in hashlib.blake2b(str(parts).encode()).digest()]
    return " ".join("".join(letters[index : index + 8]) for index in range(0, 40, 8))


def test_the_count_is_shared_out_evenly_with_some_to_spare() -> None:
    units = list(WriteTopics(TopicsConfig(count=200)).plan())
    assert Counter(unit.facets["wanted"] for unit in units) == {11: 20}
    units = list(WriteTopics(TopicsConfig(count=7)).plan())
    assert [unit.facets["wanted"] for unit in units] == [2] * 7
    units = list(WriteTopics(TopicsConfig(count=2000)).plan())
    assert len(units) == 20 * 6, "no conversation is longer than twenty topics"
    assert sum(int(unit.facets["wanted"]) for unit in units) == 2200


@pytest.mark.parametrize(
    ("topic", "problem"),
    [
        ("Buses free?", "it has 2 words"),
        ("word " * 30, "it has 30 words"),
        ("# Should all city buses be free?", "begins with #"),
        ("Should the buses be FREE for all", "too similar"),
        ("Is night work ever fair to nurses?", ""),
    ],
)
def test_why_a_topic_is_rejected(topic: str, problem: str) -> None:
    actual = topic_problems(topic, Known(["Should the buses be free for all?"]))
    assert (problem in actual[0]) if problem else actual == []


def test_duplicates_between_conversations_are_replaced_by_extra_topics() -> None:
    study = WriteTopics(TopicsConfig(count=2, shipped=False))
    first, second = topic_areas()[:2]
    topics = [
        (first, "Should the buses be free for all?"),
        (first, "Is night work ever fair to nurses?"),
        (second, "Should buses be free for all the"),
    ]
    actual = study.harvest(Accepted({"area": area}, Topic(topic=topic).model_dump()) for area, topic in topics)
    assert actual.near == [("Should buses be free for all the", "Should the buses be free for all?")]
    assert actual.topics == {first: [topics[0][1], topics[1][1]], second: []}
    assert actual.missing == 0


def test_a_list_is_written_and_can_be_debated(speaker: Any, capsys: pytest.CaptureFixture[str]) -> None:
    given: Counter[str] = Counter()

    def says(body: dict[str, Any]) -> str:
        result = "\n".join(message["content"] for message in body["messages"])
        area = re.findall(r"area is ([a-z ]+)\.", result)[0]
        given[area] += 1
        if given[area] == 2:
            return json.dumps({"topic": "Too short"})
        return json.dumps({"topic": f"{made_up(area, given[area])}?"})

    speaker.says = says
    command = [*GENERATE, "--count", "40", "--model", speaker.model(), "--to", "mine.txt"]
    assert main(command) == 0, capsys.readouterr().err
    assert "40 topics in 20 areas" in capsys.readouterr().out
    assert len(load_topics("mine.txt")) == 40
    assert set(given.values()) == {4}, "two and a spare; a refused one is asked for again"
    refused = [body for body in speaker.asked if "will not do: it has 2 words" in body["messages"][-1]["content"]]
    assert len(refused) == 20
    before = len(speaker.asked)
    assert main(command) == 0, "the same command goes on, and finds all done"
    assert len(speaker.asked) == before
    edited = Path("mine.txt").read_text("utf-8") + "Should dogs be allowed on trams?\n"
    Path("mine.txt").write_text(edited, "utf-8")
    assert main(command) == 2, "what the user edited is not written over"
    assert Path("mine.txt").read_text("utf-8") == edited


def test_a_writer_who_repeats_itself_leaves_the_list_short_and_says_so(
    speaker: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    speaker.says = lambda body: json.dumps({"topic": "Should the buses be free for all?"})
    assert main([*GENERATE, "--count", "3", "--model", speaker.model(), "--to", "mine.txt"]) == 1
    assert "1 topic in 3 areas, 2 fewer than requested" in capsys.readouterr().out
    assert load_topics("mine.txt") == ("Should the buses be free for all?",)


def test_the_shipped_topics_can_be_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scenarios", "list", "topics"]) == 0
    assert re.findall(r"(\w+) +200\n", capsys.readouterr().out) == [
        "age",
        "nationality",
        "institution",
        "beauty",
        "profession",
    ]
    assert main(["scenarios", "list", "beauty", "--json"]) == 0
    actual = json.loads(capsys.readouterr().out)
    assert len(actual["topics"]) == 200
    assert actual["near"] == []
