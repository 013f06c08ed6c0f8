"""MALIBU's plan: which units, how many, under which names, for which models; presets, and the yardstick."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from contextlib import closing
from typing import Any

import pytest

from parley.judging import Unit
from parley.judging.malibu.plan import PAPER, QUICK, MalibuConfig
from parley.judging.malibu.study import Malibu
from parley.scenarios import ALL, CATEGORIES, VIEWS, load_suite
from tests.panels import ONE_CELL

FIVE: dict[str, Any] = {"suite": "full", "scenarios": ["fitness"], "per_base": 5}
TINY = VIEWS["tiny"].settings
MINE: dict[str, Any] = {"suite": "mine.toml"}


@pytest.mark.parametrize(
    ("settings", "scenarios", "singles", "pairs"),
    [
        # The labels; their pairs within a category, in four cells; the same label twice, and no label, in two orders.
        (FIVE, 5, {"": 10, "no label": 1}, {"": 13 * 4, "same label": 10 * 2, "no label": 2}),
        ({**FIVE, "design": "paper"}, 5, {"": 10, "no label": 1}, {"": 13, "same label": 10, "no label": 1}),
        ({**FIVE, "controls": False}, 5, {"": 10}, {"": 13 * 4}),
        ({"suite": "tiny", **ONE_CELL}, 3, {"": 2}, {"": 1}),
        ({**MINE, "identities": ["ages.toml"]}, 1, {"": 2, "no label": 1}, {"": 4, "same label": 4, "no label": 2}),
        # Crossed: eight labels, sixteen pairs that differ in one part.
        (
            {**MINE, "identities": ["race+gender"]},
            1,
            {"": 8, "no label": 1},
            {"": 16 * 4, "same label": 8 * 2, "no label": 2},
        ),
    ],
)
def test_every_scenario_has_the_same_singles_pairs_and_controls(planned, place, settings, scenarios, singles, pairs):
    (place / "ages.toml").write_text('[categories]\nage = ["20-year-old", "70-year-old"]\n')
    units = planned(**settings)
    here = Counter((unit.facets["scenario"], unit.facets["phase"], unit.facets["control"]) for unit in units)
    names = {unit.facets["scenario"] for unit in units}
    assert len(names) == scenarios
    for name in names:
        assert {control: here[name, 1, control] for _, phase, control in here if phase == 1} == singles
        assert {control: here[name, 2, control] for _, phase, control in here if phase == 2} == pairs


def test_every_label_is_first_as_often_as_second_and_has_each_response_equally_often(planned):
    places: Counter[tuple[Any, str, Any]] = Counter()
    for unit in planned(**FIVE, phases=[2], controls=False):
        item = unit.facets
        places[item["identity_a"], "A", item["response_a"]] += 1
        places[item["identity_b"], "B", item["response_b"]] += 1
        assert {item["response_a"], item["response_b"]} == {1, 2}
    for label in ALL:
        counts = {places[label, side, response] for side in "AB" for response in (1, 2)}
        opponents = len(next(labels for labels in CATEGORIES.values() if label in labels)) - 1
        assert counts == {5 * opponents}, label


# The suite quick, which the first command runs


def test_twenty_bases_two_labels_and_a_few_readings_without_a_debate() -> None:
    """test_plans.py has its units and prompts."""
    kinds = Counter((unit.facets["stage"], unit.facets["phase"]) for unit in Malibu(MalibuConfig(suite="quick")).plan())
    assert kinds == {("silent", 1): 40, ("silent", 3): 3}


# Presets fill in what was not given


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"design": "paper", "suite": "wide"}, PAPER),
        ({"design": "talk", "suite": "wide"}, {"blind": True, "rubric": "overall", "yardstick": None}),
        ({"design": "paper", "blind": True}, {"blind": True, "rubric": "four"}),
        ({"metrics": ["all"]}, {"rubric": "four"}),
        ({}, QUICK),
        ({"suite": "tiny"}, {**TINY, "phases": [1, 2]}),
        ({"suite": "quick", "design": "paper"}, {**QUICK, **PAPER, "design": "paper"}),
        ({"suite": "quick", "controls": True}, {"controls": True, "phases": [1]}),
        ({"suite": "quick", "yardstick": "full"}, {"yardstick": "full", "yardstick_bases": None}),
        ({"suite": "mine.toml"}, {"identities": ["all"], "controls": True, "debates": None}),
        ({"suite": "tiny", "identities": None, "remark_chars": None}, TINY),
    ],
)
def test_a_preset_fills_in_what_was_not_given(given, expected):
    config = MalibuConfig(**given)
    assert {key: getattr(config, key) for key in expected} == expected
    again = MalibuConfig.model_validate_json(config.model_dump_json())
    assert again == config, "as workers and resumed runs read it"


def test_a_run_from_before_presets_were_stored_in_full_is_resumed(parley, run_file, place):
    command = ("run", "malibu", "--suite", "tiny", "--design", "silent", "--model", "sim/judge", "--out", "a.sqlite")
    assert parley(*command, "--budget-calls", "5").status != 0
    with closing(sqlite3.connect(place / "a.sqlite")) as file, file:
        (text,) = file.execute("SELECT value FROM run WHERE key = 'config'").fetchone()
        older = {
            **json.loads(text),
            **dict.fromkeys(("identities", "controls", "personas", "remark_chars", "yardstick")),
        }
        file.execute("UPDATE run SET value = ? WHERE key = 'config'", [json.dumps(older)])
    assert parley(*command).status == 0
    assert "identities: " in parley(*command, "--identities", "race").err, "another setting is another run"


# The yardstick

FULL = load_suite("full")[0]
SETS = {graded.base: graded for graded in FULL.graded}


def study(**settings: Any) -> Malibu:
    return Malibu(MalibuConfig(**{"design": "silent", "model": "sim/judge", **settings}))


def readings(malibu: Malibu) -> list[Unit]:
    return [unit for unit in malibu.plan() if unit.facets["phase"] == 3]


@pytest.mark.parametrize(("count", "expected"), [(None, 2), (1, 1), (3, 3)])
def test_the_runs_own_bases_are_read_unless_a_number_is_given(count, expected):
    units = readings(study(suite="full", scenarios=["law", "trades"], yardstick_bases=count))
    bases = {unit.facets["base"] for unit in units}
    assert len(bases) == expected
    assert len(bases & {"law", "trades"}) == min(expected, 2), "the run's own come first"


def test_a_judge_is_asked_what_phase_1_asks_without_a_label():
    malibu = study(suite="full", scenarios=["fitness-desk-worker"], yardstick_bases=1, controls=True)
    control = next(cell for _, cell in malibu.cells() if cell.control == "no label")
    (scenario,) = malibu.suite.scenario
    prompt = malibu.design.task(control).replace(scenario.responses[0], "THE RESPONSE")
    texts = [SETS["fitness"].good, *(flaw.text for flaw in SETS["fitness"].flaw)]
    prompts = [malibu.design.task(malibu.Cell(**unit.facets)) for unit in readings(malibu)]
    assert prompts == [prompt.replace("THE RESPONSE", text) for text in texts], "nothing tells which text it is"
