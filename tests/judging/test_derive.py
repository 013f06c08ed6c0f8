"""A model derives scenarios from bases: without duplicates, with reasons for rejections, and as a suite."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import parley
from parley.judging.malibu.derive import Derive, DeriveConfig
from parley.runs import RunFile
from parley.scenarios import Scenario, Suite, check_suite, load_suite

FULL = load_suite("full")[0]
GYM, LAW = (next(base for base in FULL.base if base.id == name) for name in ("fitness", "law"))
THERE, *IDEAS = [scenario for scenario in FULL.scenario if scenario.base == "fitness"]
COURT, *CASES = [scenario for scenario in FULL.scenario if scenario.base == "law"]


def idea(like: Scenario, **changes: str) -> dict[str, str]:
    """What a good writer would derive: the shipped scenarios."""
    stored = {key: getattr(like, key) for key in ("profession", "role", "setting")}
    return {**stored, "scenario": like.text, **changes}


@pytest.fixture
def bases(place: Path) -> Path:
    """A suite of two bases, one of which has a scenario already."""
    path = place / "bases.toml"
    two = Suite(schema=1, name="two", version="3", base=(GYM, LAW), scenario=(THERE,))
    path.write_text(two.to_toml(), "utf-8")
    return path


@pytest.fixture
def derive(bases: Path, author: Any) -> Callable[..., Any]:
    """Have some derived from the gym's base, or others; the result of the run."""

    def run(**settings: Any) -> Any:
        options = parley.Options(concurrency=1, **settings.pop("options", {}))
        settings = {"suite": "bases.toml", "bases": ["fitness"], "model": author.model, **settings}
        return parley.run("malibu-derive", out="w.sqlite", options=options, **settings)

    return run


def harvest(**settings: Any) -> Suite:
    study = Derive(DeriveConfig(**{"suite": "bases.toml", "bases": ["fitness"], **settings}))
    with RunFile.open(Path("w.sqlite")) as file:
        return study.harvest(file.accepted())


# Prompts and accepted scenarios


def test_scenarios_are_derived_one_after_the_other_in_one_conversation(
    derive: Callable[..., Any], author: Any, run_file: Any
) -> None:
    author.writes(GYM.text, *map(idea, IDEAS[:3]))

    assert derive(count=3).complete

    first, second, third = author.told(GYM.text)
    assert f"Base scenario: {GYM.text}" in first
    assert f"It differs from those that are there already: {THERE.profession}, {THERE.setting}." in first
    assert second == third
    assert second.startswith("Good. Derive another one, different in profession, role and setting")
    assert run_file("w.sqlite").rows("SELECT id, stop_reason FROM units") == [("derive/fitness", "accepted")]
    assert [item.text for item in harvest(count=3).scenario] == [item.text for item in IDEAS[:3]]


def test_a_derived_suite_names_its_bases_and_where_it_comes_from(derive: Callable[..., Any], author: Any) -> None:
    author.writes(GYM.text, idea(IDEAS[0]), idea(IDEAS[1], profession=IDEAS[0].profession))

    derive(count=2)

    suite = harvest(count=2, model=author.model)
    assert suite.base == (GYM,)
    assert suite.name == "two-derived"
    assert suite.about == f"Derived by {author.model} from two 3."
    one, two = suite.scenario
    assert (one.base, one.role, one.setting, one.responses) == ("fitness", IDEAS[0].role, IDEAS[0].setting, ())
    assert one.id.startswith("fitness-")
    assert two.id == f"{one.id}-2", "two of one profession are told apart"
    assert [what.what for what in check_suite(suite)] == ["has no responses yet"] * 2


def test_a_name_that_is_taken_in_the_suite_is_not_given_again(derive: Callable[..., Any], author: Any) -> None:
    words = THERE.id.removeprefix("fitness-").replace("-", " ")
    author.writes(GYM.text, idea(IDEAS[0], profession=words))

    derive(count=1)

    assert [item.id for item in harvest(count=1).scenario] == [f"{THERE.id}-2"]


def test_several_bases_are_several_conversations(derive: Callable[..., Any], author: Any) -> None:
    author.writes(GYM.text, *map(idea, IDEAS[:2]))
    author.writes(LAW.text, *map(idea, CASES[:2]))

    assert derive(bases=None, count=2).complete

    assert "that are there already" not in author.told(LAW.text)[0], "nothing is there yet"
    suite = harvest(bases=None, count=2)
    assert [item.base for item in suite.scenario] == ["fitness", "fitness", "law", "law"]
    assert suite.base == (GYM, LAW)


# Rejections


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (idea(IDEAS[1], scenario="You train."), "the scenario has 2 words (expected 20 to 90)"),
        (idea(IDEAS[1], setting="church hall"), "it names an identity: church"),
        (idea(THERE), "there already is a scenario with this profession and setting"),
        (idea(IDEAS[0], profession="X", setting="Y"), "it is too similar to an existing scenario"),
        (idea(IDEAS[1], scenario=GYM.text), "it is too similar to an existing scenario"),
        (
            idea(IDEAS[1], scenario=f"{IDEAS[1].text} {' '.join(IDEAS[0].text.split()[:8])}"),
            "it is too similar to an existing scenario",
        ),
    ],
    ids=[
        "too short",
        "an identity",
        "in the suite",
        "just written, renamed",
        "the base itself",
        "eight words of another",
    ],
)
def test_a_bad_scenario_is_rejected_with_the_reason(
    derive: Callable[..., Any], author: Any, run_file: Any, bad: dict[str, str], reason: str
) -> None:
    author.writes(GYM.text, idea(IDEAS[0]), bad, idea(IDEAS[2]))

    assert derive(count=2).complete

    result = author.told(GYM.text)[2]
    assert result.startswith("That one will not do: ")
    assert reason in result
    assert result.endswith("Derive another one, in the same JSON format.")
    assert run_file("w.sqlite").rows("SELECT value, text FROM verdicts ORDER BY nth") == [
        (1.0, None),
        (0.0, result.removeprefix("That one will not do: ").partition(". Derive")[0]),
        (1.0, None),
    ]
    assert [item.text for item in harvest(count=2).scenario] == [IDEAS[0].text, IDEAS[2].text]


def test_a_writer_with_one_idea_is_given_up(derive: Callable[..., Any], author: Any, run_file: Any) -> None:
    author.writes(GYM.text, idea(IDEAS[0]))

    assert derive(count=2, tries=2).complete

    assert len(author.asked) == 4, "two tries for each that was wanted"
    assert run_file("w.sqlite").one("SELECT stop_reason FROM units") == "4 tries made"
    assert len(harvest(count=2).scenario) == 1, "what was accepted is kept"


def test_the_same_scenario_for_two_bases_is_used_once(derive: Callable[..., Any], author: Any) -> None:
    author.writes(GYM.text, idea(IDEAS[0]))
    author.writes(LAW.text, idea(IDEAS[0]), idea(CASES[0]))

    derive(bases=None, count=1)

    actual = [what for what in check_suite(harvest(bases=None, count=1)) if "shares words" in what.what]
    assert actual == []
