"""A preset is a few settings under a suite's or a design's name: it fills in what was not given; a run stores it."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import pytest

from parley.judging.malibu.config import PAPER, PRESETS, MalibuConfig
from parley.judging.malibu.study import Malibu


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"design": "paper", "suite": "wide"}, PAPER),
        ({"design": "talk", "suite": "wide"}, {"blind": True, "rubric": "overall", "yardstick": None}),
        ({"design": "paper", "blind": True}, {"blind": True, "speaking_order": "fixed"}),
        ({"metrics": ["all"]}, {"rubric": "four"}),
        ({}, PRESETS["quick"]),
        ({"suite": "tiny"}, {**PRESETS["tiny"], "phases": [1, 2]}),
        ({"suite": "quick", "design": "paper"}, {**PRESETS["quick"], **PAPER}),
        ({"suite": "quick", "controls": True}, {"controls": True, "phases": [1]}),
        ({"suite": "quick", "yardstick": "full"}, {"yardstick": "full", "yardstick_bases": None}),
        ({"suite": "mine.toml"}, {"identities": ["all"], "controls": True, "debates": None}),
        ({"suite": "tiny", "identities": None, "remark_chars": None}, PRESETS["tiny"]),
    ],
)
def test_a_preset_fills_in_what_was_not_given(given, expected):
    config = MalibuConfig(**given)
    assert {key: getattr(config, key) for key in expected} == expected
    again = MalibuConfig.model_validate_json(config.model_dump_json())
    assert again == config, "as workers and resumed runs read it"


def test_what_was_filled_in_is_kept_when_a_preset_means_something_else(monkeypatch):
    stored = MalibuConfig(design="paper").model_dump_json()
    monkeypatch.setitem(PRESETS, "paper", {"speaking_order": "shuffled"})
    assert MalibuConfig.model_validate_json(stored).speaking_order == "fixed"


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


@pytest.mark.parametrize("suite", ["quick", "tiny", "wide", "full", "mine.toml"])
def test_the_default_is_staged_for_every_suite(suite):
    study = Malibu(MalibuConfig(suite=suite, limit=1))
    assert study.config.design == "staged"
    stages = {unit.facets["stage"] for unit in study.plan()}
    assert stages == {"silent", "talk"}


def test_a_run_stores_all_that_its_design_means(parley, run_file):
    flags = ("--design", "paper", "--ties", "--limit", "1", "--phases", "1", "--rounds", "1")
    assert parley("run", "malibu", *flags, "--model", "sim/judge", "--out", "a.sqlite").status == 0
    config = json.loads(run_file("a.sqlite").one("SELECT value FROM run WHERE key = 'config'"))
    assert {key: config[key] for key in PAPER} == PAPER
    assert (config["design"], config["ties"], config["cells"]) == ("paper", True, "one")
