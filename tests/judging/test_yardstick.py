"""The yardstick's units: who reads which graded text, what they are asked, and what is stored."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import parley
from parley.agents import ConfigError
from parley.judging import Unit
from parley.judging.malibu.study import Malibu
from parley.judging.malibu.yardstick import is_yardstick
from parley.scenarios import load_suite
from tests.panels import PANEL, panel_study

FULL = load_suite("full")[0]
SETS = {graded.base: graded for graded in FULL.graded}


def study(**settings: Any) -> Malibu:
    return panel_study(**{"model": "sim/judge", **settings})


def readings(malibu: Malibu) -> list[Unit]:
    return [unit for unit in malibu.plan() if is_yardstick(unit)]


# Which texts, and who reads them


def test_in_full_every_judge_reads_every_text() -> None:
    units = readings(study(suite="full", per_base=1, identities=["gender"]))
    assert len(units) == 20 * 9 * 4
    assert Counter(unit.facets["reader"] for unit in units).most_common(4)[-1][1] == 180
    assert len({unit.id for unit in units}) == len(units)


def test_in_tiny_24_texts_are_read_each_by_one_judge() -> None:
    malibu = study(suite="tiny")
    units = readings(malibu)
    assert len(units) == 24
    assert {unit.facets["dose"] for unit in units} == {0, 2}
    readers = {(unit.facets["base"], unit.facets["reader"]) for unit in units}
    assert len(readers) == 8, "a base has one reader, who compares like with like"
    assert set(Counter(reader for _, reader in readers).values()) == {2}
    assert {"fitness", "engineering", "childcare"} <= {base for base, _ in readers}, "the run's own bases come first"
    assert sum(malibu.estimate(unit).calls for unit in units) == 24


@pytest.mark.parametrize(("count", "expected"), [(None, 2), (1, 1), (3, 3)])
def test_the_runs_own_bases_are_read_unless_a_number_is_given(count: int | None, expected: int) -> None:
    units = readings(study(suite="full", scenarios=["law", "trades"], yardstick_bases=count))
    bases = {unit.facets["base"] for unit in units}
    assert len(bases) == expected
    assert len(bases & {"law", "trades"}) == min(expected, 2), "the run's own come first"


def test_a_yardstick_can_be_left_out() -> None:
    malibu = study(suite="tiny", yardstick="off")
    assert readings(malibu) == []
    assert not any("graded" in name for name in malibu.sources())


def test_a_suite_without_graded_responses_has_no_yardstick() -> None:
    assert readings(study(suite="mine.toml")) == []
    with pytest.raises(ConfigError, match="--yardstick full: mine has no graded responses"):
        study(suite="mine.toml", yardstick="full")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"yardstick": "off", "yardstick_bases": 3}, "needs a yardstick"),
        ({"yardstick": "full", "yardstick_bases": 44}, "has graded responses for 43 bases, not 44"),
    ],
)
def test_settings_that_cannot_be_met_are_errors(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        study(suite="tiny", **settings)


def test_a_run_stores_the_hash_of_the_texts_that_are_read() -> None:
    some, more = (study(suite="full", per_base=1, yardstick_bases=count).sources() for count in (3, 4))
    name = f"graded responses of malibu-2 {FULL.version}"
    assert some[name] != more[name]
    assert some.keys() == more.keys()


# What is asked


def test_a_reader_is_asked_what_phase_1_asks_without_a_label() -> None:
    malibu = study(suite="full", scenarios=["fitness-desk-worker"], yardstick_bases=1, controls=True)
    control = next(unit for unit in malibu.plan() if unit.facets["control"] == "no label" and unit.facets["phase"] == 1)
    (scenario,) = malibu.suite.scenario
    asked = malibu.task(control).replace(scenario.responses[0], "THE RESPONSE")
    texts = [SETS["fitness"].good, *(flaw.text for flaw in SETS["fitness"].flaw)]
    units = [unit for unit in readings(malibu) if unit.facets["reader"] == malibu.panel.judges[0].name]
    assert [malibu.task(unit) for unit in units] == [asked.replace("THE RESPONSE", text) for text in texts]


def test_nothing_in_the_prompt_tells_which_text_it_is() -> None:
    malibu = study(suite="tiny")
    for unit in readings(malibu):
        task = malibu.task(unit).replace(malibu.yardstick.scenario(unit).responses[0], "")
        assert not any(word in task for word in ("flaw", "dose", "good", "graded", "safety-"))


# What is stored


def test_each_reading_is_one_call_heard_by_nobody(place: Path) -> None:
    settings = {"suite": "full", "scenarios": ["law"], "per_base": 1, "identities": ["gender"], "phases": [1], **PANEL}
    assert parley.run("malibu", out="a.sqlite", model="sim/judge", yardstick_bases=2, **settings).complete
    with closing(sqlite3.connect(place / "a.sqlite")) as db:
        calls = db.execute("SELECT unit, count(*) FROM calls WHERE unit LIKE 'p3/%' GROUP BY unit").fetchall()
        verdicts = db.execute("SELECT facets, judge, metric, round FROM verdicts JOIN units ON units.id = unit")
        rows = [(json.loads(facets), *rest) for facets, *rest in verdicts if json.loads(facets)["phase"] == 3]
    assert len(calls) == 2 * 9 * 4
    assert {count for _, count in calls} == {1}
    assert len(rows) == 2 * 9 * 4 * 4
    assert all(facets["reader"] == judge and round == 1 for facets, judge, _, round in rows)


def test_a_judge_with_a_model_of_its_own_reads_with_it(speaker: Any, place: Path) -> None:
    (place / "panel.toml").write_text(
        f'[[persona]]\nname = "Own"\nabout = "You judge."\nmodel = "{speaker.model()}"\n'
        '[[persona]]\nname = "Common"\nabout = "You judge too."\n'
    )
    speaker.says = lambda body: json.dumps(dict.fromkeys(("Creativity", "Accuracy", "Efficiency", "Reliability"), 3))
    settings = {"suite": "full", "scenarios": ["law"], "per_base": 1, "identities": ["gender"], "phases": [1], **PANEL}
    malibu = {"judges": "panel.toml", "rounds": 1, "controls": False, "yardstick_bases": 1}
    assert parley.run("malibu", out="a.sqlite", model="sim/judge", **settings, **malibu).complete
    assert len(speaker.asked) == 9 + 2, "nine graded texts, and two identities"
