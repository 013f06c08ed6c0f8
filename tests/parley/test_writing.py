"""`parley run malibu-derive|malibu-respond --to FILE`: a model writes a suite, and no file of the user's is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from parley.scenarios import Scenario, Suite, check_suite, load_suite, load_topics, near_duplicates
from tests.panels import RUN_PANEL
from tests.parley.test_bad_input import one_line

FULL = load_suite("full")[0]
GYM = next(base for base in FULL.base if base.id == "fitness")
LAW = next(base for base in FULL.base if base.id == "law")
FIRST, SECOND, *_ = [scenario for scenario in FULL.scenario if scenario.base == "fitness"]
SHORT = {"response_1": "I stretch.", "response_2": "I bend."}
COMMON = ("-q", "--concurrency", "1")


def idea(like: Scenario) -> dict[str, str]:
    return {**{key: getattr(like, key) for key in ("profession", "role", "setting")}, "scenario": like.text}


def good(scenario: Scenario) -> dict[str, str]:
    assert scenario.responses
    return dict(zip(("response_1", "response_2"), scenario.responses, strict=True))


@pytest.fixture(autouse=True)
def suites(place):
    """bases.toml has two bases and no scenario; bare.toml two scenarios without responses."""
    (place / "bases.toml").write_text(Suite(schema=1, name="bases", version="1", base=(GYM, LAW)).to_toml(), "utf-8")
    bare = tuple(scenario.model_copy(update={"responses": ()}) for scenario in (FIRST, SECOND))
    whole = Suite(schema=1, name="bare", version="1", base=(GYM,), scenario=bare)
    (place / "bare.toml").write_text(whole.to_toml(), "utf-8")


@pytest.fixture
def derive(author):
    author.writes(GYM.text, idea(FIRST), idea(FIRST), idea(SECOND))
    flags = ("--bases", "fitness", "--suite", "bases.toml", "--count", "2", "--to", "bases-derived.toml")
    return ("run", "malibu-derive", *flags, *COMMON, "--model", author.model)


@pytest.fixture
def respond(author):
    author.writes(FIRST.text, SHORT, good(FIRST))
    author.writes(SECOND.text, good(SECOND))
    flags = ("--suite", "bare.toml", "--to", "bare-responses.toml")
    return ("run", "malibu-respond", *flags, *COMMON, "--model", author.model)


def test_derive_and_respond_write_a_suite_that_can_be_run(parley, derive, author):
    """Derive, validate, write responses, validate, judge: all the steps to your own suite."""
    result = parley(*derive)
    assert (result.status, result.err) == (0, "")
    assert result.out.splitlines()[0].startswith("1 of 1 unit done: runs/malibu-derive-author-")
    assert result.out.splitlines()[-1] == "2 scenarios, 0 with responses: bases-derived.toml"
    suite = load_suite("bases-derived.toml")[0]
    assert [scenario.text for scenario in suite.scenario] == [FIRST.text, SECOND.text]
    assert suite.base == (GYM,)
    assert len(author.asked) == 3, "one was a duplicate"
    assert Path("bases-derived.toml").read_text("utf-8").startswith("# Written by malibu-derive-author-")
    checked = parley("scenarios", "validate", "bases-derived.toml").out
    assert checked.startswith("fitness-personal-trainer, fitness-strength-and-conditioning-coach: has no responses yet")

    author.writes(f"Situation: {FIRST.text}", SHORT, good(FIRST))
    author.writes(f"Situation: {SECOND.text}", good(SECOND))
    respond = ("run", "malibu-respond", "--suite", "bases-derived.toml", *COMMON, "--model", author.model)
    result = parley(*respond, "--to", "whole.toml", "--json")
    assert result.status == 0, result.err
    assert (result.json["units"], result.json["done"], result.json["calls"], result.json["stopped"]) == (2, 2, 3, None)
    assert [scenario.responses for scenario in load_suite("whole.toml")[0].scenario] == [
        FIRST.responses,
        SECOND.responses,
    ]
    shown = " ".join(parley("show", result.json["run"]).out.split())
    assert "I stretch." in shown, "every attempt can be read"
    assert "They will not do: response 1 has 2 words" in shown
    assert parley("scenarios", "validate", "whole.toml").status == 0
    judged = (*RUN_PANEL, "--suite", "whole.toml", "--identities", "gender", "--quiet", "--model", "sim/judge")
    assert "14 of 14 units done" in parley(*judged, "--out", "a.sqlite").out


def test_a_file_of_the_users_is_not_overwritten_without_force(parley, author, derive, respond, place):
    (place / "mine.toml").write_text("# my own work\n")
    for words in (derive, respond):
        said = "mine.toml already exists; choose another name with --to, or overwrite it with --force"
        one_line(parley(*words, "--to", "mine.toml"), 2, said)
    assert (place / "mine.toml").read_text() == "# my own work\n"
    assert author.asked == [], "and no model was called"
    before = (place / "bare.toml").read_text("utf-8")
    assert parley(*respond, "--to", "bare.toml").status == 2, "nor is the source"
    assert (place / "bare.toml").read_text("utf-8") == before
    lost = parley(*respond, "--to", "nowhere/whole.toml")
    assert lost.complaints == ["parley: nowhere/whole.toml cannot be written: No such file or directory"]
    asked = len(author.asked)
    assert parley(*respond, "--to", "mine.toml", "--force").status == 0
    assert len(author.asked) == asked, "nothing was lost"
    assert len(load_suite("mine.toml")[0].scenario) == 2
    edited = (place / "mine.toml").read_text("utf-8").replace(FIRST.role, "a role of my own")
    (place / "mine.toml").write_text(edited, "utf-8")
    parley(*respond, "--to", "mine.toml")
    assert (place / "mine.toml").read_text("utf-8") == edited, "nor is one that a run wrote and the user edited"


def test_a_spent_budget_keeps_what_was_accepted_and_the_same_command_resumes(parley, respond, author):
    stopped = parley(*respond, "--budget-calls", "2")
    assert (stopped.status, stopped.complaints) == (1, ["parley: stopped: the budget of 2 calls is spent"])
    assert stopped.out.splitlines()[-1] == "2 scenarios, 1 with responses: bare-responses.toml"
    assert [bool(scenario.responses) for scenario in load_suite("bare-responses.toml")[0].scenario] == [True, False]
    result = parley(*respond)
    assert result.status == 0, "a run may overwrite its own file"
    assert result.out.splitlines()[-1] == "2 scenarios, 2 with responses: bare-responses.toml"
    assert len(author.asked) == 3


def test_nothing_accepted_writes_no_file(parley, derive, author):
    stopped = parley(*derive, "--budget-calls", "2")
    assert (stopped.status, stopped.complaints[0]) == (1, "parley: stopped: the budget of 2 calls is spent")
    assert "nothing was accepted, so no file was written; parley show runs/malibu-derive-author-" in stopped.err
    author.writes(GYM.text, {**idea(FIRST), "scenario": "You train."})
    refused = parley(*derive, "--seed", "1")
    assert (refused.status, len(refused.complaints)) == (1, 1)
    assert "nothing was accepted, so no file was written" in refused.complaints[0]
    for scenario in (FIRST, SECOND):
        author.writes(scenario.text, SHORT)
    flags = ("--suite", "bare.toml", *COMMON, "--model", author.model, "--to", "bases-derived.toml")
    assert "nothing was accepted" in parley("run", "malibu-respond", *flags).err
    assert not Path("bases-derived.toml").exists()


def test_a_simulated_writer_goes_the_papers_whole_way(parley):
    """From base scenarios to the paper's tables without a key: every text that it writes passes the checks."""
    writer = ("--model", "sim/any", "-q")
    derived = parley(
        "run", "malibu-derive", "--bases", "fitness,law", "--count", "2", *writer, "--to", "situations.toml"
    )
    assert derived.out.splitlines()[-1] == "4 scenarios, 0 with responses: situations.toml"
    parley("run", "malibu-respond", "--suite", "situations.toml", *writer, "--to", "mine.toml")
    suite = load_suite("mine.toml")[0]
    assert [scenario.base for scenario in suite.scenario] == ["fitness", "fitness", "law", "law"]
    assert check_suite(suite) == []
    judged = ("--suite", "mine.toml", "--design", "paper", "--identities", "gender", "--model", "sim/judge", "-q")
    assert parley("run", "malibu", *judged, "--out", "a.sqlite").status == 0
    shown = parley("report", "a.sqlite", "--paper", "--draws", "50").out
    numbers = (
        "Figure 4 (section 4.1)",
        "All χ² (section 4.1)",
        "Figures 5 and 6 (section 4.2)",
        "Figure 9 (section B)",
    )
    places = [shown.index(f"{number}.") for number in numbers]
    assert places == sorted(places)


@pytest.mark.parametrize("count", [40, 200])
def test_a_simulated_writers_topics_differ(parley, count):
    written = parley("run", "topics", "--count", str(count), "--model", "sim/any", "-q", "--to", "age.txt")
    assert written.status == 0, written.err
    topics = load_topics("age.txt")
    assert len(topics) == count
    assert near_duplicates([*load_topics("age"), *topics]) == near_duplicates(load_topics("age"))
