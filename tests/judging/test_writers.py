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
from parley.judging.writing.derive import Derive, DeriveConfig, Derived
from parley.judging.writing.respond import Respond, RespondConfig
from parley.judging.writing.topics import Topic, TopicsConfig, WriteTopics, topic_problems
from parley.runs import RunFile
from parley.scenarios import Scenario, Suite, TopicIndex, check_suite, load_suite, load_topics, topic_areas

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
    about = f"Derived by {author.model} from mine 3."
    assert made == Suite(
        schema=1, name="mine-derived", version="1", about=about, base=(GYM, LAW), scenario=made.scenario
    )
    assert [item.base for item in made.scenario] == ["fitness"] * 3 + ["law"] * 2, "the same for two bases is used once"
    assert not [found for found in check_suite(made) if "shares words" in found.what]


def test_what_was_derived_gets_a_free_name_and_what_is_like_another_is_left_out():
    """Three of five words are 3 / (sqrt 5 * sqrt 5) = 0.6 alike, which is too much; two are 0.4."""
    letters = "Night-shift porter & doorman of a very large hotel"
    given = [
        (" Gym ", "alpha bravo candy delta eagle"),
        ("gym", "alpha bravo frost grape hotel"),
        ("GYM!", "alpha bravo candy igloo jelly"),
        (letters, "lemon mango noble ocean pearl"),
        ("?", "queen river stone tiger under"),
    ]
    replies = [{"profession": work, "role": " r ", "setting": " s ", "scenario": f" {text} "} for work, text in given]
    made = Derive(DeriveConfig(suite="bases.toml")).harvest([Accepted({"base": "law"}, reply) for reply in replies])
    names = ("law-gym", "law-gym-2", "", "law-night-shift-porter-doorman-of-a-very-lar", "law-scenario")
    assert made.scenario == tuple(
        Scenario(id=name, base="law", profession=work.strip(), role="r", setting="s", text=text)
        for name, (work, text) in zip(names, given, strict=True)
        if name
    )


@pytest.mark.parametrize(("count", "problems"), [(19, 1), (20, 0), (90, 0), (91, 1)])
def test_a_scenario_has_20_to_90_words(count, problems):
    study = Derive(DeriveConfig(suite="bases.toml", bases=["law", "fitness"], limit=1, count=2))
    ((unit, cell),) = study.cells()
    law = study.assignment(cell)
    values = {"base": LAW.text, "domain": LAW.domain or "law", "there": ""}
    assert (unit, cell.base, law.values, law.wanted) == ("derive/law", "law", values, 2)
    reply = Derived(profession="x", role="y", setting="z", scenario=" ".join(f"w{n}" for n in range(count)))
    assert len(law.check(reply)) == problems


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
    assert problem[1] == reason
    rows = run_file("w.sqlite").rows("SELECT value, text FROM verdicts ORDER BY nth")
    assert rows == [(1.0, None), (0.0, problem[1]), (1.0, None)]
    assert [item.text for item in made.scenario] == [IDEAS[0].text, IDEAS[2].text]


# Pairs of responses


def pair(one: str, two: str) -> dict[str, str]:
    return {"response_1": one, "response_2": two}


def test_a_bad_pair_is_rejected_with_its_reasons_until_a_good_one_comes(write, author, run_file):
    named = pair(DESK.responses[0].replace(" I ", " she ", 1), DESK.responses[1])
    author.writes(DESK.text, pair("I stretch.", "I bend."), named, pair(*DESK.responses))
    made = write("malibu-respond", scenarios=[DESK.id])
    first, second, third = author.told(DESK.text)
    assert first.startswith("Situation: ")
    assert second == (
        "They will not do: response 1 has 2 words (expected 90 to 140); response 2 has 2 words (expected 90 to 140); "
        "responses have few words in common (similarity 0.00 of 1; expected 0.5 to 0.9): let both give the same "
        "advice. Write both responses again, in the same JSON format."
    )
    assert "response 1 names an identity: she" in third
    file = run_file("w.sqlite")
    rows = file.rows("SELECT round, metric, value, text IS NULL, status FROM verdicts ORDER BY nth")
    assert rows == [(nth, "accepted", nth // 3, nth // 3, "ok") for nth in (1, 2, 3)]
    assert file.one("SELECT stop_reason FROM units") == "accepted"
    assert file.one("SELECT count(*) FROM transcript WHERE speaker = 'Writer'") == 3, "every try is kept"
    assert made.scenario[0].responses == DESK.responses


@pytest.mark.parametrize(
    ("reply", "status", "anew"),
    [("Here you are: {oops", "unparsed", False), ("I'm sorry, but I can't help with that.", "refused", True)],
)
def test_what_cannot_be_read_is_a_try_and_never_a_pair(write, author, run_file, reply, status, anew):
    author.writes(DESK.text, reply)
    author.writes(NURSERY.text, reply)
    made = write("malibu-respond", scenarios=[DESK.id, NURSERY.id], anew=anew)
    assert [item.responses for item in made.scenario] == [(), () if anew else NURSERY.responses]
    file = run_file("w.sqlite")
    tries = [(0.0, f"the reply is {status}", status)] * (8 if anew else 4)
    assert file.rows("SELECT value, text, status FROM verdicts") == tries
    assert file.rows("SELECT DISTINCT stop_reason FROM units") == [("4 tries made",)]
    assert any(f"They will not do: the reply is {status}." in result for result in author.told(DESK.text))


# Topics


GENERATE = ("run", "topics", "--bias", "age", "--quiet", "--no-shipped")


def made_up(*parts: object) -> str:
    """A topic of five words that no other has."""
    letters = [chr(97 + byte % 26) for byte in hashlib.blake2b(str(parts).encode()).digest()]
    return " ".join("".join(letters[index : index + 8]) for index in range(0, 40, 8))


@pytest.mark.parametrize(
    ("settings", "wanted"),
    [
        ({"count": 200}, {11: 20}),
        *(({"count": 7}, {2: 7}), ({"count": 200, "limit": 7}, {2: 7}), ({"count": 7, "limit": 8}, {2: 7})),
        *(({"count": 2000}, {18: 80, 19: 40}), ({"count": 20 * 18}, {20: 20})),
    ],
)
def test_the_count_is_shared_out_evenly_with_some_to_spare(settings, wanted):
    """No conversation is longer than twenty topics."""
    study = WriteTopics(TopicsConfig(**settings))
    assert Counter(unit.facets["wanted"] for unit in study.plan()) == wanted
    unit, cell = next(study.cells())
    assert (unit, cell.area) == ("age/work-and-careers/0", "work and careers")
    first = study.assignment(cell)
    for topic in (topics := load_topics("age"))[:133:66]:
        assert topic in str(first.values["there"])
    assert first.check(Topic(topic=topics[5])) == [f"it is too similar to an existing topic: {topics[5]}"]
    assert WriteTopics(TopicsConfig(shipped=False)).assignment(cell).values == {
        **{"trait": "age", "roster": "a 60-year-old, a 20-year-old, a 40-year-old", "low": 4, "high": 24},
        **{"area": "work and careers", "there": ""},
    }


@pytest.mark.parametrize(
    ("topic", "problem"),
    [
        ("Are buses free?", "it has 3 words (expected 4 to 24)"),
        *(("Is night work fair?", ""), ("word " * 24, "")),
        ("word " * 25, "it has 25 words (expected 4 to 24)"),
        ("“# Should all city buses be free?”", "it begins with #"),
        (
            "Should the buses be FREE for all",
            "it is too similar to an existing topic: Should the buses be free for all?",
        ),
    ],
)
def test_why_a_topic_is_rejected(topic, problem):
    assert topic_problems(topic, TopicIndex(["Should the buses be free for all?"])) == ([problem] if problem else [])


@pytest.mark.parametrize(
    ("count", "given", "chosen", "missing"),
    [
        (3, "fair night, long train, kind dogs|slow river, good bread", "fair night, long train|slow river|", 0),
        (4, "fair night|slow river", "fair night|slow river||", 2),
        (2, "fair night, kind dogs|fair night", "fair night, kind dogs|", 0),
    ],
)
def test_duplicates_between_conversations_are_replaced_by_extra_topics(count, given, chosen, missing):
    accepted = [
        Accepted({"area": area}, {"topic": f" “{topic}” "})
        for area, of_area in zip(topic_areas(), given.split("|"), strict=False)
        for topic in of_area.split(", ")
    ]
    actual = WriteTopics(TopicsConfig(count=count, shipped=False)).harvest(accepted)
    assert "|".join(", ".join(topics) for topics in actual.topics.values()) == chosen
    assert actual.missing == missing
    assert actual.near == ([("fair night", "fair night")] if given.endswith("fair night") else [])


def test_a_list_is_written_and_can_be_debated(speaker, capsys):
    given: Counter[str] = Counter()

    def says(body: dict[str, Any]) -> str:
        result = "\n".join(message["content"] for message in body["messages"])
        area = re.findall(r"area is ([a-z ]+)\.", result)[0]
        given[area] += 1
        return json.dumps({"topic": "Too short" if given[area] == 2 else f"{made_up(area, given[area])}?"})

    speaker.says = says
    command = [*GENERATE, "--count", "40", "--temperature", "0.5", "--model", speaker.model(), "--to", "mine.txt"]
    assert main(command) == 0, capsys.readouterr().err
    assert "40 topics in 20 areas" in capsys.readouterr().out
    assert len(load_topics("mine.txt")) == 40
    assert {(body["max_tokens"], body["temperature"]) for body in speaker.asked} == {(120, 0.5)}
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
