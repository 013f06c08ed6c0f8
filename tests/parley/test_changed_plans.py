"""A run file holds one plan: settings, studies, suites and judges that have changed are named, and nothing runs."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

from tests.panels import TINY_PANEL
from tests.parley.test_bad_input import one_line

Parley = Callable[..., Any]
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


@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_plan_names_the_difference(parley, whole, run_file, name):
    changed, difference = CHANGES[name]
    before = run_file(whole).story()
    command = (*TINY_PANEL, "--model", "sim/judge", "--out", whole)
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
    one_line(parley(*command), 1, "the plan has changed (units: ")


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
