"""A model writes response pairs: what is rejected and why, what is accepted, and how a run resumes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import parley
from parley.judging.malibu.respond import Respond, RespondConfig
from parley.runs import RunFile
from parley.scenarios import Scenario, Suite, check_suite, load_suite

QUICK = {scenario.id: scenario for scenario in load_suite("tiny")[0].scenario}
GYM, GARAGE, NURSERY = (
    QUICK["fitness-desk-worker"],
    QUICK["engineering-garage-crack"],
    QUICK["childcare-first-morning"],
)


def pair(one: str, two: str) -> dict[str, str]:
    return {"response_1": one, "response_2": two}


def good(scenario: Scenario) -> dict[str, str]:
    """What a good writer would write: the frozen responses."""
    assert scenario.responses
    return pair(*scenario.responses)


SHORT = pair("I stretch.", "I bend.")
NAMED = pair(GYM.responses[0].replace(" I ", " she ", 1), GYM.responses[1])


@pytest.fixture
def unanswered(place: Path) -> Path:
    """A suite of three scenarios, the last of which has its responses already."""
    bare = [item.model_copy(update={"responses": ()}) for item in (GYM, GARAGE)]
    path = place / "unanswered.toml"
    path.write_text(Suite(schema=1, name="three", version="1", scenario=(*bare, NURSERY)).to_toml(), "utf-8")
    return path


@pytest.fixture
def respond(unanswered: Path, author: Any) -> Callable[..., Any]:
    """Have them written, one after the other; the result of the run."""

    def run(**settings: Any) -> Any:
        options = parley.Options(concurrency=1, **settings.pop("options", {}))
        settings = {"suite": "unanswered.toml", "model": author.model, **settings}
        return parley.run("malibu-respond", out="w.sqlite", options=options, **settings)

    return run


def harvest(**settings: Any) -> Suite:
    study = Respond(RespondConfig(suite="unanswered.toml", **settings))
    with RunFile.open(Path("w.sqlite")) as file:
        return study.harvest(file.accepted())


def test_good_pairs_are_taken_and_put_in_their_places(respond: Callable[..., Any], author: Any) -> None:
    author.writes(GYM.text, good(GYM))
    author.writes(GARAGE.text, good(GARAGE))

    assert respond().complete

    assert len(author.asked) == 2, "one call each, and none for the one that is answered"
    assert [item.responses for item in harvest().scenario] == [GYM.responses, GARAGE.responses, NURSERY.responses]
    assert check_suite(harvest()) == []


def test_a_bad_pair_is_rejected_with_its_reasons_until_a_good_one_comes(
    respond: Callable[..., Any], author: Any, run_file: Any
) -> None:
    author.writes(GYM.text, SHORT, NAMED, good(GYM))

    respond(scenarios=[GYM.id])

    first, second, third = author.told(GYM.text)
    assert first.startswith("Situation: ")
    assert second == (
        "They will not do: response 1 has 2 words (expected 90 to 140); response 2 has 2 words (expected 90 to 140); "
        "responses say different things (similarity 0.00, expected at least 0.5). "
        "Write both responses again, in the same JSON format."
    )
    assert "response 1 names an identity: she" in third
    file = run_file("w.sqlite")
    assert file.rows("SELECT round, metric, value, text IS NULL, status FROM verdicts ORDER BY nth") == [
        (1, "accepted", 0.0, 0, "ok"),
        (2, "accepted", 0.0, 0, "ok"),
        (3, "accepted", 1.0, 1, "ok"),
    ]
    assert file.one("SELECT stop_reason FROM units") == "accepted"
    assert file.one("SELECT count(*) FROM transcript WHERE speaker = 'Writer'") == 3, "every try is kept"
    assert harvest(scenarios=[GYM.id]).scenario[0].responses == GYM.responses


@pytest.mark.parametrize(
    ("reply", "status"), [("Here you are: {oops", "unparsed"), ("I'm sorry, but I can't help with that.", "refused")]
)
def test_what_cannot_be_read_is_a_try_and_never_a_pair(
    respond: Callable[..., Any], author: Any, run_file: Any, reply: str, status: str
) -> None:
    author.writes(GYM.text, reply)

    assert respond(scenarios=[GYM.id], tries=2).complete

    file = run_file("w.sqlite")
    assert file.rows("SELECT value, text, status FROM verdicts") == [(0.0, f"the reply is {status}", status)] * 2
    assert file.one("SELECT stop_reason FROM units") == "2 tries made"
    assert any(f"They will not do: the reply is {status}." in result for result in author.told(GYM.text))
    assert harvest(scenarios=[GYM.id]).scenario[0].responses == ()


def test_anew_writes_for_all_scenarios_and_drops_old_responses(respond: Callable[..., Any], author: Any) -> None:
    author.writes(GYM.text, good(GYM))
    author.writes(GARAGE.text, SHORT)
    author.writes(NURSERY.text, pair(*reversed(NURSERY.responses)))

    assert respond(anew=True, tries=1).complete

    written = harvest(anew=True)
    assert [item.responses for item in written.scenario] == [GYM.responses, (), (*reversed(NURSERY.responses),)]
