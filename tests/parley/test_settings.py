"""`parley.run` does what the command does; a run file holds one plan, and what has changed is named first."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from typing import Any

import pytest

import parley
from parley.agents import ConfigError, ParleyError
from parley.judging.malibu.plan import MalibuConfig
from parley.judging.study import APART
from parley.judging.writing.topics import TopicsConfig
from parley.runs.options import Options
from parley.runs.studies import SHIPPED, find_study, study_of_config
from tests.panels import ONE_CELL, TINY_PANEL
from tests.parley.test_bad_input import one_line

SETTINGS: dict[str, Any] = {"suite": "tiny", **ONE_CELL}


def test_a_run_is_stopped_resumed_and_refused_as_on_the_command_line(place):
    settings = {**SETTINGS, "model": "sim/judge", "out": "a.sqlite"}
    with pytest.raises(ConfigError, match="unknown key 'round'"):
        parley.run("malibu", **settings, round=3)
    cut = parley.run("malibu", options=Options(budget_calls=20, concurrency=1), **settings)
    assert (cut.complete, cut.stopped) == (False, "the budget of 20 calls is spent")
    assert (cut.progress.done, cut.progress.total) == (2, 9)
    with pytest.raises(ParleyError, match="rounds: 2 in the file, 3 requested"):
        parley.run("malibu", **settings, rounds=3)
    result = parley.run("malibu", **settings)
    assert (result.complete, result.stopped, result.first_error) == (True, None, None)
    assert (result.progress.done, result.progress.total, result.progress.failed) == (9, 9, 0)
    assert result.progress.calls == 72 - 16


def test_a_config_has_all_settings_and_is_the_same_run(place):
    settings = {**SETTINGS, "model": "sim/judge"}
    first, again = parley.run("malibu", **settings), parley.run(MalibuConfig(**settings))
    assert (first.progress.calls > 0, again.progress.calls, again.complete) == (True, 0, True), "it was resumed"
    assert len(list(place.glob("runs/*.sqlite"))) == 1
    with pytest.raises(ConfigError, match="set suite in the MalibuConfig itself"):
        parley.run(MalibuConfig(), suite="tiny")
    with pytest.raises(ConfigError, match="no study has the config Options"):
        parley.run(Options())
    for name in SHIPPED:
        assert find_study(name).Config is find_study(study_of_config(find_study(name).Config.model_construct())).Config
    assert study_of_config(TopicsConfig()) == "topics"


async def test_a_run_in_a_notebook_is_awaited():
    with pytest.raises(ConfigError, match=r"await parley\.run_async"):
        parley.run("malibu", model="sim/judge", out="a.sqlite", **SETTINGS)
    assert (await parley.run_async("malibu", suite="tiny", model="sim/judge", out="a.sqlite")).complete


RUN = (*TINY_PANEL, "--out", "a.sqlite")

SUITE = """
schema = 1
name = "mine"
version = "1"
[[scenario]]
id = "7"
domain = "baking"
text = "{text}"
stereotype = "none"
responses = ["Knead.", "Wait."]
"""
ADA, BEN = "[[persona]]\nname = 'Ada'\nabout = 'You are Ada.'\n", "[[persona]]\nname = 'Ben'\nabout = 'You are Ben.'\n"
CHANGES: dict[str, tuple[tuple[str, ...], str]] = {
    "rounds": (("--rounds", "3"), "rounds: 2 in the file, 3 requested"),
    "seed": (("--seed", "1"), "seed: 0 in the file, 1 requested"),
    "suite": (("--suite", "full"), 'suite: "tiny" in the file, "full" requested'),
    "models": (("--model", "sim/x"), 'model: ["sim/judge"] in the file, ["sim/judge", "sim/x"] requested'),
    "rubric": (("--rubric", "three"), 'rubric: "four" in the file, "three" requested'),
    "margin": (("--margin", "0.3"), "margin: 0.1 in the file, 0.3 requested"),
}


def test_a_changed_plan_names_the_difference(parley, whole, run_file):
    before = run_file(whole).story()
    command = (*TINY_PANEL, "--model", "sim/judge", "--out", whole)
    for changed, difference in CHANGES.values():
        one_line(parley(*command, *changed), 1, "contains a different run (", difference, "--out")
    assert run_file(whole).story() == before


def test_another_study_and_a_setting_that_is_gone_are_noticed(parley, place, whole):
    """Of a Parley that had another setting, left at its default, and planned other units."""
    (place / "own.py").write_text(
        "from parley.judging.malibu.study import Malibu\nclass Own(Malibu):\n    name = 'own'\n"
    )
    command = (*TINY_PANEL, "--model", "sim/judge", "--out", whole)
    one_line(parley("run", "own.py:Own", *command[2:]), 1, "study: malibu in the file, own requested")
    with closing(sqlite3.connect(whole)) as db, db:
        config = json.loads(db.execute("SELECT value FROM run WHERE key = 'config'").fetchone()[0])
        db.execute("UPDATE run SET value = ? WHERE key = 'config'", [json.dumps({**config, "generator": None})])
        db.execute("UPDATE run SET value = '\"earlier\"' WHERE key = 'plan'")
        db.execute("UPDATE units SET id = id || '/heard' WHERE position > 1")
        (first, *others) = db.execute("SELECT id FROM units WHERE id LIKE '%/heard' ORDER BY position").fetchall()
        db.execute("UPDATE units SET facets = json_set(facets, '$.heard', 'male') WHERE position = 0")
    gone = f"not planned now: {1 + len(others)} units, first '{first[0]}'; other facets: heard))"
    one_line(parley(*command), 1, "the plan has changed (units: ", gone)


def test_the_methods_state_each_setting_that_is_not_a_default(parley, place):
    """Its value and, if there are two models, what each does; but neither defaults nor what stands elsewhere."""
    flags = ("--topics", "1", "--rounds", "2", "--model", "sim/debate", "--teacher", "sim/debate-2", "--mode")
    command = ("run", "rldf", *flags, "teacher-student", "--no-feedback", "--seed", "3", "--quiet", "--out", "a.sqlite")
    assert (parley(*command).status, parley("report", "a.sqlite").status) == (0, 0)
    said = (
        "topics 1, rounds 2, mode teacher-student, model sim/debate, teacher sim/debate-2, design paper, feedback off"
    )
    page = (place / "a-report" / "report.html").read_text("utf-8")
    assert f"All settings were the defaults, apart from {said}, words 120" in page


@pytest.mark.parametrize("name", SHIPPED)
def test_what_a_report_states_elsewhere_is_apart(name):
    fields = find_study(name).Config.model_fields
    assert {key for key in ("seed", "margin") if key in fields and APART not in fields[key].metadata} == set()


def test_a_setting_that_is_a_constant_now_is_a_difference_only_with_another_value(parley, place, whole):
    command = (*TINY_PANEL, "--model", "sim/judge", "--out", whole)

    def stored(**settings: Any) -> None:
        with closing(sqlite3.connect(whole)) as db, db:
            db.execute("UPDATE run SET value = json_patch(value, ?) WHERE key = 'config'", [json.dumps(settings)])

    stored(speaking_order="fixed", reasons_first=False)
    assert parley(*command).status == 0
    stored(speaking_order="shuffled")
    one_line(parley(*command), 1, 'speaking_order: "shuffled" in the file, null requested')


@pytest.mark.parametrize(
    ("suite", "judges", "said"),
    [
        ("Bake cake.", ADA + BEN, "suite mine 1 has changed"),
        ("Bake bread.", ADA.replace("Ada.", "Ada, a critic.") + BEN, "a.sqlite contains a different run"),
        ("Bake bread.", ADA + BEN + ADA.replace("Ada", "Cy"), "a.sqlite contains a different run"),
        ("Bake bread.", ADA, "a.sqlite contains a different run"),
        ("Bake bread.", f"{ADA}{BEN}model = 'sim/other?female=9'\n", "a.sqlite contains a different run"),
    ],
    ids=["another scenario", "reworded", "one more", "one fewer", "another model"],
)
def test_a_file_that_was_edited_is_noticed(parley, place, suite, judges, said):
    command = (*RUN, "--suite", "mine.toml", "--scenarios", "7", "--identities", "gender", "--judges", "judges.toml")
    (place / "mine.toml").write_text(SUITE.format(text="Bake bread."))
    (place / "judges.toml").write_text(ADA + BEN)
    assert parley(*command, "--model", "sim/judge").status == 0
    (place / "mine.toml").write_text(SUITE.format(text=suite))
    (place / "judges.toml").write_text(judges)
    one_line(parley(*command, "--model", "sim/judge"), 1, said)
