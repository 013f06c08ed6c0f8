"""Models that write: derived scenarios, response pairs and topics. What is rejected and why, accepted, and kept."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import parley
from parley.cli import main
from parley.judging import Accepted
from parley.judging.malibu.derive import Derive, DeriveConfig
from parley.judging.malibu.respond import Respond, RespondConfig
from parley.judging.rldf.topics import Topic, TopicsConfig, WriteTopics, topic_problems
from parley.runs import RunFile
from parley.scenarios import Known, Scenario, Suite, check_suite, load_suite, load_topics, topic_areas

Write = Callable[..., Any]
FULL = load_suite("full")[0]
GYM, LAW = (next(base for base in FULL.base if base.id == name) for name in ("fitness", "law"))
THERE, *IDEAS = [scenario for scenario in FULL.scenario if scenario.base == "fitness"]
CASES = [scenario for scenario in FULL.scenario if scenario.base == "law"][1:]
TINY = {scenario.base: scenario for scenario in load_suite("tiny")[0].scenario}
DESK, GARAGE, NURSERY = TINY["fitness"], TINY["engineering"], TINY["childcare"]


def suite(**parts: Any) -> str:
    return Suite(schema=1, name="mine", version="3", **parts).to_toml()


@pytest.fixture(autouse=True)
def _begin_with_suites(place):
    """Two bases, one of which has a scenario already; three scenarios, the last of which has its responses already."""
    (place / "bases.toml").write_text(suite(base=(GYM, LAW), scenario=(THERE,)), "utf-8")
    bare = [item.model_copy(update={"responses": ()}) for item in (DESK, GARAGE)]
    (place / "unanswered.toml").write_text(suite(scenario=(*bare, NURSERY)), "utf-8")


@pytest.fixture
def write(author):
    """Run a writer, one conversation after the other; gives what was harvested."""

    def run(study: str, **settings: Any) -> Suite:
        derives = study == "malibu-derive"
        given = {"suite": "bases.toml", "bases": ["fitness"]} if derives else {"suite": "unanswered.toml"}
        given |= {"model": author.model, **settings}
        assert parley.run(study, out="w.sqlite", options=parley.Options(concurrency=1, cache=False), **given).complete
        made = Derive(DeriveConfig(**given)) if derives else Respond(RespondConfig(**given))
        with RunFile.open(Path("w.sqlite")) as file:
            return made.harvest(file.accepted())

    return run


# Scenarios derived from bases


def idea(like: Scenario, **changes: str) -> dict[str, str]:
    """What a good writer would derive: the shipped scenarios."""
    stored = {key: getattr(like, key) for key in ("profession", "role", "setting")}
    return {**stored, "scenario": like.text, **changes}


def test_scenarios_are_derived_one_after_the_other_in_one_conversation_per_base(write, author, run_file):
    author.writes(GYM.text, *map(idea, IDEAS[:3]))
    author.writes(LAW.text, idea(IDEAS[0]), *map(idea, CASES[:3]))
    made = write("malibu-derive", bases=None, count=3)
    first, second, third = author.told(GYM.text)
    assert f"Base scenario: {GYM.text}" in first
    assert f"It differs from those that are there already: {THERE.profession}, {THERE.setting}." in first
    assert "that are there already" not in author.told(LAW.text)[0], "nothing is there yet"
    assert second == third
    assert second.startswith("Good. Derive another one, different in profession, role and setting")
    assert run_file("w.sqlite").rows("SELECT id, stop_reason FROM units") == [
        ("derive/fitness", "accepted"),
        ("derive/law", "accepted"),
    ]
    assert made.base == (GYM, LAW)
    assert [item.base for item in made.scenario] == ["fitness"] * 3 + ["law"] * 2, "the same for two bases is used once"
    assert not [found for found in check_suite(made) if "shares words" in found.what]


ALIKE = "it is too similar to an existing scenario"


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (idea(IDEAS[1], scenario="You train."), "the scenario has 2 words (expected 20 to 90)"),
        (idea(IDEAS[1], setting="church hall"), "it names an identity: church"),
        (idea(THERE), "there already is a scenario with this profession and setting"),
        (idea(IDEAS[0], profession="X", setting="Y"), ALIKE),
        (idea(IDEAS[1], scenario=GYM.text), ALIKE),
        (idea(IDEAS[1], scenario=f"{IDEAS[1].text} {' '.join(IDEAS[0].text.split()[:8])}"), ALIKE),
    ],
    ids=["too short", "an identity", "in the suite", "just written", "the base itself", "eight words of another"],
)
def test_a_bad_scenario_is_rejected_with_the_reason(write, author, run_file, bad, reason):
    author.writes(GYM.text, idea(IDEAS[0]), bad, idea(IDEAS[2]))
    made = write("malibu-derive", count=2)
    result = author.told(GYM.text)[2]
    problem = re.fullmatch(r"That one will not do: (.*)\. Derive another one, in the same JSON format\.", result)
    assert problem is not None
    assert reason in problem[1]
    rows = run_file("w.sqlite").rows("SELECT value, text FROM verdicts ORDER BY nth")
    assert rows == [(1.0, None), (0.0, problem[1]), (1.0, None)]
    assert [item.text for item in made.scenario] == [IDEAS[0].text, IDEAS[2].text]


# Pairs of responses


def pair(one: str, two: str) -> dict[str, str]:
    return {"response_1": one, "response_2": two}


SHORT = pair("I stretch.", "I bend.")


def test_a_bad_pair_is_rejected_with_its_reasons_until_a_good_one_comes(write, author, run_file):
    named = pair(DESK.responses[0].replace(" I ", " she ", 1), DESK.responses[1])
    author.writes(DESK.text, SHORT, named, pair(*DESK.responses))
    made = write("malibu-respond", scenarios=[DESK.id])
    first, second, third = author.told(DESK.text)
    assert first.startswith("Situation: ")
    assert second == (
        "They will not do: response 1 has 2 words (expected 90 to 140); response 2 has 2 words (expected 90 to 140); "
        "responses say different things (similarity 0.00, expected at least 0.5). "
        "Write both responses again, in the same JSON format."
    )
    assert "response 1 names an identity: she" in third
    file = run_file("w.sqlite")
    rows = file.rows("SELECT round, metric, value, text IS NULL, status FROM verdicts ORDER BY nth")
    assert rows == [(nth, "accepted", nth // 3, nth // 3, "ok") for nth in (1, 2, 3)]
    assert file.one("SELECT stop_reason FROM units") == "accepted"
    assert file.one("SELECT count(*) FROM transcript WHERE speaker = 'Writer'") == 3, "every try is kept"
    assert made.scenario[0].responses == DESK.responses


@pytest.mark.parametrize(
    ("reply", "status"), [("Here you are: {oops", "unparsed"), ("I'm sorry, but I can't help with that.", "refused")]
)
def test_what_cannot_be_read_is_a_try_and_never_a_pair(write, author, run_file, reply, status):
    author.writes(DESK.text, reply)
    assert write("malibu-respond", scenarios=[DESK.id], tries=2).scenario[0].responses == ()
    file = run_file("w.sqlite")
    assert file.rows("SELECT value, text, status FROM verdicts") == [(0.0, f"the reply is {status}", status)] * 2
    assert file.one("SELECT stop_reason FROM units") == "2 tries made"
    assert any(f"They will not do: the reply is {status}." in result for result in author.told(DESK.text))


# Topics


GENERATE = ("run", "topics", "--bias", "age", "--quiet", "--no-shipped")


def made_up(*parts: object) -> str:
    """A topic of five words that no other has."""
    letters = [chr(97 + byte % 26) for byte in hashlib.blake2b(str(parts).encode()).digest()]
    return " ".join("".join(letters[index : index + 8]) for index in range(0, 40, 8))


@pytest.mark.parametrize(
    ("count", "wanted"), [(200, {11: 20}), (7, {2: 7}), (2000, {18: 80, 19: 40}), (20 * 18, {20: 20})]
)
def test_the_count_is_shared_out_evenly_with_some_to_spare(count, wanted):
    """No conversation is longer than twenty topics."""
    units = list(WriteTopics(TopicsConfig(count=count)).plan())
    assert Counter(unit.facets["wanted"] for unit in units) == wanted


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
def test_why_a_topic_is_rejected(topic, problem):
    actual = topic_problems(topic, Known(["Should the buses be free for all?"]))
    assert (problem in actual[0]) if problem else actual == []


def test_duplicates_between_conversations_are_replaced_by_extra_topics():
    first, second = topic_areas()[:2]
    free, fair, again = (
        "Should the buses be free for all?",
        "Is night work ever fair to nurses?",
        "Buses be free for all",
    )
    given = [(first, free), (first, fair), (second, f"Should {again.lower()} the")]
    accepted = (Accepted({"area": area}, Topic(topic=topic).model_dump()) for area, topic in given)
    actual = WriteTopics(TopicsConfig(count=2, shipped=False)).harvest(accepted)
    assert actual.near == [(given[2][1], free)]
    assert (actual.topics, actual.missing) == ({first: [free, fair], second: []}, 0)


def test_a_list_is_written_and_can_be_debated(speaker, capsys):
    given: Counter[str] = Counter()

    def says(body: dict[str, Any]) -> str:
        result = "\n".join(message["content"] for message in body["messages"])
        area = re.findall(r"area is ([a-z ]+)\.", result)[0]
        given[area] += 1
        return json.dumps({"topic": "Too short" if given[area] == 2 else f"{made_up(area, given[area])}?"})

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


def test_a_writer_who_repeats_itself_leaves_the_list_short_and_says_so(speaker, capsys):
    speaker.says = lambda body: json.dumps({"topic": "Should the buses be free for all?"})
    assert main([*GENERATE, "--count", "3", "--model", speaker.model(), "--to", "mine.txt"]) == 1
    assert "1 topic in 3 areas, 2 fewer than requested" in capsys.readouterr().out
    assert load_topics("mine.txt") == ("Should the buses be free for all?",)
