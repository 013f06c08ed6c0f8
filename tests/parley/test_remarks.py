"""Who repeats whom, read from a run file: the same as from its turns, without keeping their texts."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pandas as pd
import pytest

import parley as library
from parley.reports.remarks import repeated_remarks
from parley.runs import frames
from tests.panels import ONE_CELL


@pytest.fixture
def run(place):
    """Phase 2 of the quick suite by judges who often repeat the one before."""
    path = place / "a.sqlite"
    library.run("malibu", suite="tiny", phases=[2], model="sim/judge?echo=0.7", out=path, **ONE_CELL)
    return path


def justifications(path: Path) -> pd.DataFrame:
    turns = frames.turns(path)
    turns = turns[turns["role"] == "debater"]
    return turns.assign(said=[json.loads(text)["justification"] for text in turns["text"]])


def test_repeats_are_those_of_the_turns(run):
    remarks = repeated_remarks(run)
    expected = []
    for unit, turns in justifications(run).groupby("unit", sort=False, observed=True):
        spoken = list(zip(turns["speaker"], turns["round"], turns["said"], strict=True))
        for place, (judge, round, said) in enumerate(spoken):
            others = {text for name, number, text in spoken if name != judge and number == 1}
            own = {text for name, _, text in spoken[:place] if name == judge}
            expected.append((unit, judge, round, said in others - own))
    rows = list(remarks[["unit", "judge", "round", "near"]].itertuples(index=False, name=None))
    assert rows == expected
    assert 0.2 < remarks["near"].mean() < 1


def test_chance_is_known_from_the_second_unit_on_a_text_on(run):
    units = repeated_remarks(run).drop_duplicates("unit")
    first = ~units.duplicated(["scenario", "response_a", "response_b"])
    assert units["near_chance"].isna().tolist() == first.tolist()
    with sqlite3.connect(run) as db:
        (unit,) = db.execute("SELECT id FROM units WHERE status = 'done' ORDER BY position LIMIT 1").fetchone()
        db.execute("UPDATE messages SET parsed = '[1' WHERE unit = ? AND role = 'debater' AND round = 1", [unit])
        db.execute("UPDATE messages SET parsed = '[]' WHERE unit = ? AND role = 'debater' AND round = 2", [unit])
    assert set(units["unit"]) - set(repeated_remarks(run)["unit"]) == {unit}, "replies that are no JSON are left out"
    library.run("malibu", suite="tiny", model="sim/judge?echo=0.7", out="both.sqlite", **ONE_CELL)
    units = repeated_remarks(run.with_name("both.sqlite")).drop_duplicates("unit")
    singles = units[units["phase"] == 1]
    assert singles["near_chance"].isna().tolist() == (~singles.duplicated("scenario")).tolist()
