"""Runs as frames: every verdict with the facets of its unit; and checksums, true of whatever a study returns."""

from __future__ import annotations

import json
import math
import re
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import parley
from parley.agents.transcripts import Call, PromptMessage, Transcript, Turn
from parley.judging import Outcome, Unit, Verdict
from parley.runs import Record, RunFile, frames
from parley.runs.diagnosis import find_damage
from parley.runs.schema import checksum
from tests.panels import ONE_CELL
from tests.servers import PATIENCE

FACETS = {"phase", "scenario", "base", "category", "identity", "control", "repeat", "model"}
PAIR = {"other", "identity_a", "identity_b", "response_a", "response_b", "assignment", "order"}


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A run of both phases; two replies in five cannot be parsed."""
    target = tmp_path_factory.mktemp("frames") / "run.sqlite"
    options = parley.Options(cache=False, out=str(target))
    assert parley.run("malibu", model="sim/judge?malformed=0.4", suite="tiny", options=options, **ONE_CELL).complete
    return target


@pytest.fixture
def file(path):
    with RunFile.open(path) as opened:
        yield opened


def test_every_verdict_is_a_row_with_the_facets_of_its_unit_and_the_words_it_was_read_from(file):
    frame = frames.verdicts(file)
    _, rows = file.rows(
        "SELECT v.unit, v.judge, v.role, v.round, v.subject, v.metric, v.value, v.sampled, v.text, v.status, u.facets "
        "FROM verdicts v JOIN units u ON u.id = v.unit ORDER BY u.position, v.nth"
    )
    assert len(frame) == len(rows) > 100
    columns = ["unit", "judge", "role", "round", "subject", "metric", "value", "sampled", "text", "status"]
    read = frame.astype(object).where(frame.notna(), None)
    for row, ours in zip(rows, read.to_dict("records"), strict=True):
        assert tuple(ours[name] for name in columns) == row[:-1]
        facets = json.loads(row[-1])
        assert {name: ours[name] for name in facets} == facets
        assert all(ours[name] is None for name in PAIR - set(facets)), "a facet of the other phase only"
    for name in ("unit", "judge", "role", "subject", "metric", "text", "status", "scenario", "identity", "model"):
        assert isinstance(frame[name].dtype, pd.CategoricalDtype), name
    assert frame["value"].dtype == frame["sampled"].dtype == float
    assert frame["round"].dtype == frame["phase"].dtype == int
    unread = frame["status"] == "unparsed"
    assert 0 < unread.sum() < len(frame)
    assert frame.loc[unread, ["value", "text"]].isna().all(axis=None), "missing, and not zero"
    assert frame.loc[~unread & (frame["metric"] != "preferred"), "value"].notna().all()
    said = frames.turns(file).set_index(["unit", "seq"])
    assert frame["seq"].notna().all()
    for verdict in frame.itertuples():
        turn = said.loc[(verdict.unit, verdict.seq)]
        assert (turn["speaker"], turn["round"], turn["text"]) == (verdict.judge, verdict.round, verdict.words)
    score = frame[(frame["metric"] == "Accuracy") & (frame["status"] == "ok")].iloc[0]
    assert f'"Accuracy": {score["value"]:.0f}' in score["words"]


def test_every_message_is_a_row_of_turns_and_every_unit_one_of_spending(file, path):
    turns, spent = frames.turns(file), frames.spending(file)
    _, ((messages,),) = file.rows("SELECT count(*) FROM messages")
    assert len(turns) == messages
    assert set(turns.columns) == {"unit", "seq", "round", "speaker", "role", "text", "parse_status"} | (FACETS | PAIR)
    unit = turns[turns["unit"] == turns["unit"].iloc[0]]
    assert unit["seq"].tolist() == list(range(len(unit)))
    assert (unit["scenario"] == unit["scenario"].iloc[0]).all()
    assert spent["unit"].tolist() == [name for (name,) in file.rows("SELECT id FROM units ORDER BY position")[1]]
    assert (spent["calls"].sum(), spent["tokens"].sum()) == file.spent()[:2]
    assert (spent["cost"] == 0).all(), "a simulated model is free"
    assert spent.columns[0] == "unit"
    assert {"phase", "scenario", "identity"} <= set(spent.columns)
    for read in (frames.verdicts, frames.turns, frames.units, frames.spending):
        pd.testing.assert_frame_equal(read(str(path)), read(file))  # type: ignore[operator]


def test_an_unknown_price_is_not_zero(path, tmp_path):
    copy = tmp_path / "copy.sqlite"
    shutil.copy(path, copy)
    with closing(sqlite3.connect(copy)) as db:
        unit, seq, nth = db.execute("SELECT unit, seq, nth FROM calls LIMIT 1").fetchone()
        db.execute("UPDATE calls SET cost = NULL WHERE unit = ? AND seq = ? AND nth = ?", (unit, seq, nth))
        db.commit()
    with RunFile.open(copy) as file:
        frame = frames.spending(file).set_index("unit")
    assert frame["cost"].isna().sum() == 1
    assert pd.isna(frame.loc[unit, "cost"]), "with one call without a price, the unit's cost is not known"


def test_only_finished_units_count(tmp_path):
    for budget in (0, 20):
        out = str(tmp_path / f"{budget}.sqlite")
        options = parley.Options(cache=False, out=out, budget_calls=budget, concurrency=1)
        parley.run("malibu", model="sim/judge", suite="tiny", options=options, **ONE_CELL)
        with RunFile.open(Path(out)) as file:
            done = {name for (name,) in file.rows("SELECT id FROM units WHERE status = 'done'")[1]}
            read = frames.verdicts(file), frames.turns(file), frames.units(file), frames.spending(file)
        assert len(done) == (2 if budget else 0)
        assert all(set(frame["unit"]) == done for frame in read)
        assert {"unit", "judge", "metric", "value", "status"} <= set(read[0].columns)


def test_a_lone_surrogate_in_a_reply_does_not_stop_the_run(tmp_path):
    """A lone surrogate can be in a model's JSON ("\\ud83d"), and cannot be encoded."""
    unit = Unit("u", {})
    turn, verdict = (
        Turn("Ada", "debater", 1, "odd \ud83d"),
        Verdict(judge="Ada", role="debater", round=1, metric="m", text="\ud83d"),
    )
    outcome = Outcome(Transcript((turn,)), (verdict,))
    info = {"study": "by-hand", "models": [], "config": {}, "plan": "", "versions": {}}
    with RunFile.create(tmp_path / "a.sqlite", info, {}, [unit]) as file:
        file.write([Record(unit=unit, started_at=1.0, finished_at=2.0, outcome=outcome)])
        assert list(frames.turns(file)["text"]) == ["odd \\ud83d"]
        assert list(frames.verdicts(file)["text"]) == ["\\ud83d"]


def test_a_verdict_is_linked_to_the_turn_that_it_was_read_from(tmp_path):
    """Also where its judge spoke twice in the round, or not at all, or where a study numbers its rounds afterwards."""
    first = Turn("Ada", "debater", 1, "One.")
    second, other = first._replace(text="Two."), first._replace(speaker="Ben", text="Three.")
    verdicts = (
        Verdict.from_turn(second._replace(), "m", value=2.0),
        Verdict.from_turn(first, "m", value=1.0),
        verdict(judge="Rules", turn=other),
        verdict(),
        verdict(turn=first._replace(round=7)),  # of no turn of the transcript
    )
    unit = Unit("u", {})
    with RunFile.create(tmp_path / "a.sqlite", INFO, {}, [unit]) as file:
        file.write([Record(unit=unit, outcome=Outcome(Transcript((first, second, other)), verdicts))])
        frame = frames.verdicts(file)
    assert frame["seq"].tolist() == [1, 0, 2, pd.NA, pd.NA]
    assert frame["words"].tolist()[:3] == ["Two.", "One.", "Three."]
    assert frame["words"].isna().tolist() == [False] * 3 + [True] * 2


def test_a_run_of_the_older_format_is_read_unchanged_and_gets_the_column_when_it_is_resumed(tmp_path):
    path, units = tmp_path / "a.sqlite", [Unit("u", {"identity": "x"}), Unit("v", {"identity": "y"})]
    turn = Turn("Ada", "debater", 1, "One.", thought="Hm.")
    outcome = Outcome(Transcript((turn,)), (verdict(value=1.0),))
    with RunFile.create(path, INFO, {}, units) as file:
        file.write([Record(unit=units[0], outcome=outcome)])
    with closing(sqlite3.connect(path)) as db:
        db.execute("ALTER TABLE verdicts DROP COLUMN seq")
        db.execute("PRAGMA user_version = 3")
    before = path.read_bytes()
    assert frames.verdicts(path)[["value", "seq"]].to_numpy().tolist() == [[1.0, pd.NA]]
    with RunFile.open(path) as file:
        file.check_unit("u")
    assert find_damage(path) is None
    assert path.read_bytes() == before
    with RunFile.open(path, write=True) as file:
        file.write([Record(unit=units[1], outcome=replace(outcome, verdicts=(verdict(value=2.0, turn=turn),)))])
    assert frames.verdicts(path)["seq"].tolist() == [pd.NA, 0]
    with RunFile.open(path) as file:
        for unit in units:
            file.check_unit(unit.id)


INFO = {"study": "by-hand", "models": [], "config": {}, "plan": "", "versions": {}}


def test_the_definition_has_not_changed():
    """Otherwise every run that is stored would be reported as damaged."""
    verdicts = [
        (0, "Ada", "debater", 1, "", "Accuracy", 7.0, None, "schön", "ok"),
        (1, "Bob", "debater", 1, "x", "Accuracy", 0.1 + 0.2, 6.0, None, "ok"),
    ]
    assert checksum(verdicts) == 2815429927
    assert checksum([(1, "x")]) == 1665165832
    assert checksum([]) == 0


def write(path: Path, *verdicts: Verdict) -> None:
    unit = Unit("u", {})
    with RunFile.create(path, INFO, {}, [unit]) as file:
        file.write([Record(unit=unit, started_at=1.0, finished_at=2.0, outcome=Outcome(Transcript(()), verdicts))])


def test_the_definition_of_an_outcome_has_not_changed(tmp_path):
    """Thoughts and cuts are checked after all other columns, and only where there are any."""
    call = Call("sim/a", (PromptMessage("user", "", "Why?"),), "So.", 3, 1, 0.5, None, cached=False, attempts=1)
    turns = [
        Turn("user", "narrator", 0, "Why?"),
        Turn("Ada", "debater", 1, "So.", "You are Ada.", calls=(call, call._replace(thought="Hm.", thought_tokens=0))),
        Turn("Ben", "debater", 1, "Because", expected={"Accuracy": 6.5}, parse_status="cut", cut=True, thought="Hm."),
    ]
    unit, outcome = Unit("u", {"identity": "x"}), Outcome(Transcript(tuple(turns), "done"), (verdict(value=0.5),))
    with RunFile.create(tmp_path / "a.sqlite", INFO, {}, [unit]) as file:
        file.write([Record(unit=unit, started_at=1.0, finished_at=2.5, outcome=outcome)])
        assert file.rows("SELECT * FROM checks")[1] == [("u", 3940885311, 3451774442, 1325094307)]
        file.check_unit("u")


def verdict(**fields: Any) -> Verdict:
    return Verdict(**{"judge": "Ada", "role": "debater", "round": 1, "metric": "m", **fields})


ODD_VALUES = (7, True, math.nan, -0.0, math.inf, np.float64(0.1), np.float64("nan"), 2**53 + 1, 5e-324, "7", "1e3", "x")
ODD_TEXTS = ("nan", "-0.0", "a\x00b", "\ud83d", "7", "\x1f")


def test_what_a_study_returns_is_never_reported_as_damaged(tmp_path):
    """SQLite stores some of these as others."""
    odd = [*({"value": value} for value in ODD_VALUES), *({"text": text} for text in ODD_TEXTS)]
    for nth, fields in enumerate((*odd, {"round": 1.0}, {"round": "1"})):
        path = tmp_path / f"{nth}.sqlite"
        write(path, verdict(**fields), verdict(value=0.1 + 0.2))
        with RunFile.open(path) as file:
            file.check_unit("u")
            file.check_verdicts()
            assert len(list(file.verdicts())) == 2, fields


def test_what_a_run_returns_is_its_file_for_reports_and_comparisons(tmp_path):
    first, second = (
        parley.run("malibu", model=f"sim/judge?female={gap}", suite="tiny", out=str(tmp_path / f"{name}.sqlite"))
        for name, gap in (("a", "+0.4"), ("b", "-0.4"))
    )
    assert first.path == tmp_path / "a.sqlite"
    assert parley.report(first).data() == parley.report(first.path).data()
    compared = parley.compare(first, second)
    assert compared.title.startswith("b.sqlite (sim/judge?female=-0.4) compared with a.sqlite")
    assert len(frames.verdicts(second)) == len(frames.verdicts(second.path))


@pytest.mark.parametrize("answers", [True, False])
def test_a_debate_leaves_no_open_session_whether_its_server_answers_or_not(tmp_path, server, answers):
    server.answer = lambda nth, body: server.reply("So I think.")
    model = server.model() if answers else "server/m?base_url=http://127.0.0.1:1/v1"
    debate = f"Debate([Persona('A', 'a'), Persona('B', 'b')], model={model!r}, rounds=1)"
    code = f"import asyncio; from parley import Debate, Persona; asyncio.run({debate}.run(task='x'))"
    words = [sys.executable, "-W", "default", "-c", code]
    ended = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert (ended.returncode == 0) is answers
    assert ("Unreachable" in ended.stderr) is not answers
    assert not re.search("unclosed|never awaited", ended.stderr, re.I), ended.stderr
