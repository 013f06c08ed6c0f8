"""Runs as frames: every verdict with the facets of its unit, small in memory, empty if nothing is done."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import parley
from parley.agents import Transcript, Turn
from parley.analysis import malibu
from parley.judging import Outcome, Unit, Verdict
from parley.runs import Record, RunFile, frames
from parley.runs.places import Given, Said, places
from tests.panels import ONE_CELL

FACETS = {"phase", "scenario", "base", "category", "identity", "control", "repeat", "model"}
PAIR = {"other", "identity_a", "identity_b", "response_a", "response_b", "assignment", "order"}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of both phases; two replies in five cannot be parsed."""
    target = tmp_path_factory.mktemp("frames") / "run.sqlite"
    options = parley.Options(cache=False, out=str(target))
    assert parley.run("malibu", model="sim/judge?malformed=0.4", suite="tiny", options=options, **ONE_CELL).complete
    return target


@pytest.fixture
def file(path: Path) -> Iterator[RunFile]:
    with RunFile.open(path) as opened:
        yield opened


@pytest.mark.parametrize("read", [frames.verdicts, frames.turns, frames.units, frames.spending])
def test_a_path_is_accepted(file: RunFile, path: Path, read: Callable[[RunFile | str | Path], pd.DataFrame]) -> None:
    pd.testing.assert_frame_equal(read(str(path)), read(file))


def test_every_verdict_is_a_row_with_the_facets_of_its_unit(file: RunFile) -> None:
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


def test_strings_are_categories_and_numbers_are_numbers(file: RunFile) -> None:
    frame = frames.verdicts(file)
    for name in ("unit", "judge", "role", "subject", "metric", "text", "status", "scenario", "identity", "model"):
        assert isinstance(frame[name].dtype, pd.CategoricalDtype), name
    assert frame["value"].dtype == frame["sampled"].dtype == float
    assert frame["round"].dtype == frame["phase"].dtype == int
    assert set(frame["role"]) == {"debater"}


def test_an_unparsed_verdict_is_missing_and_not_zero(file: RunFile) -> None:
    frame = frames.verdicts(file)
    unread = frame["status"] == "unparsed"
    assert 0 < unread.sum() < len(frame)
    assert frame.loc[unread, ["value", "text"]].isna().all(axis=None)
    assert frame.loc[~unread & (frame["metric"] != "preferred"), "value"].notna().all()


def test_every_message_is_a_row_of_turns(file: RunFile) -> None:
    frame = frames.turns(file)
    _, ((messages,),) = file.rows("SELECT count(*) FROM messages")
    assert len(frame) == messages
    assert set(frame.columns) == {"unit", "seq", "round", "speaker", "role", "text", "parse_status"} | (FACETS | PAIR)
    unit = frame[frame["unit"] == frame["unit"].iloc[0]]
    assert unit["seq"].tolist() == list(range(len(unit)))
    assert (unit["scenario"] == unit["scenario"].iloc[0]).all()


def test_units_and_what_they_cost(file: RunFile) -> None:
    frame = frames.spending(file)
    assert frame["unit"].tolist() == [name for (name,) in file.rows("SELECT id FROM units ORDER BY position")[1]]
    assert frame["calls"].sum() == file.spent()[0]
    assert frame["tokens"].sum() == file.spent()[1]
    assert (frame["cost"] == 0).all(), "a simulated model is free"
    assert frame.columns[0] == "unit"
    assert {"phase", "scenario", "identity"} <= set(frame.columns)


def test_an_unknown_price_is_not_zero(path: Path, tmp_path: Path) -> None:
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


def test_a_run_without_a_finished_unit_gives_empty_frames(tmp_path: Path) -> None:
    options = parley.Options(cache=False, out=str(tmp_path / "none.sqlite"), budget_calls=0)
    parley.run("malibu", model="sim/judge", suite="tiny", options=options, **ONE_CELL)
    with RunFile.open(tmp_path / "none.sqlite") as file:
        assert file.counts()["done"] == 0
        read = frames.verdicts(file), frames.turns(file), frames.units(file), frames.spending(file)
    assert [len(frame) for frame in read] == [0, 0, 0, 0]
    assert {"unit", "judge", "metric", "value", "status"} <= set(read[0].columns)


def test_only_finished_units_count(tmp_path: Path) -> None:
    options = parley.Options(cache=False, out=str(tmp_path / "half.sqlite"), budget_calls=20, concurrency=1)
    parley.run("malibu", model="sim/judge", suite="tiny", options=options, **ONE_CELL)
    with RunFile.open(tmp_path / "half.sqlite") as file:
        done = {name for (name,) in file.rows("SELECT id FROM units WHERE status = 'done'")[1]}
        frame = frames.verdicts(file)
        assert 0 < len(done) < sum(file.counts().values())
    assert set(frame["unit"]) == done


def test_the_frame_is_what_the_analysis_takes(file: RunFile) -> None:
    """Categories and all: grouped numbers are those of a plain frame."""
    frame = frames.verdicts(file)
    bare = frame.astype({name: object for name in frame if isinstance(frame[name].dtype, pd.CategoricalDtype)})
    for table in (malibu.mean_scores, malibu.win_rates, malibu.position):
        pd.testing.assert_frame_equal(table(frame), table(bare))


def test_a_lone_surrogate_in_a_reply_does_not_stop_the_run(tmp_path: Path) -> None:
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


def test_a_verdict_has_the_words_that_it_was_read_from(file: RunFile) -> None:
    frame = frames.verdicts(file)
    said = frames.turns(file).set_index(["unit", "seq"])
    assert frame["seq"].notna().all()
    for verdict in frame.itertuples():
        turn = said.loc[(verdict.unit, verdict.seq)]
        assert (turn["speaker"], turn["round"], turn["text"]) == (verdict.judge, verdict.round, verdict.words)
    score = frame[(frame["metric"] == "Accuracy") & (frame["status"] == "ok")].iloc[0]
    assert f'"Accuracy": {score["value"]:.0f}' in score["words"]


SEVERAL_MESSAGES = [
    ("1 Ada debater", "Ada debater 1 - Accuracy", 1),
    # Ballots on two metrics; on one metric, two wordings of each of two statements; on pairs.
    ("0 Ada debater Accuracy", "0 Ada debater Quality", "Ada debater 0 - Quality", 2),
    *(
        (*["1 Ref referee bias"] * 4, *["1 Ref referee preferred"] * 2, f"Ref referee 1 {rest}", place)
        for rest, place in (("Ada bias", 1), ("Ben bias", 3), ("Ben rank", 3), ("A@1 more_biased", 5))
    ),
    # A search: queries, then groups, then the summary. Two audits: of the first draft, and of the last one.
    *(
        ("1 Searcher debater", "1 Searcher debater", "1 Searcher debater", f"Searcher debater 1 - {metric}", place)
        for metric, place in (("search_queries", 1), ("search_flags", 3))
    ),
    *(
        ("3 Auditor evaluator", "3 Auditor evaluator", f"Auditor,_sim/x evaluator 3 - {metric}", place)
        for metric, place in (("outside_bias_first", 1), ("outside_bias", 2))
    ),
    # Who does not speak: a rule about a statement, about a draft, about what was decided; a scorer; another tool's.
    ("1 Ada debater", "1 Ben debater", "Rules coordinator 1 Ben leak", 2),
    ("0 Gen generator", "1 Gen generator", "1 toxicity evaluator", "rule coordinator 1 - length", 2),
    ("1 coordinator coordinator", "2 Judge evaluator", "coordinator coordinator 2 - final_bias", 1),
    ("1 Gen generator", "1 toxicity evaluator", "1 fluency evaluator", "ngrams_1 evaluator 1 - toxicity", 2),
    ("1 model generator", "2 model generator", "exact evaluator 3 - exact", 2),
    # The judge speaks, but not in this round.
    ("0 Judge evaluator", "1 Gen generator", "Judge evaluator 1 - bias", None),
]


@pytest.mark.parametrize("case", SEVERAL_MESSAGES, ids=lambda case: case[-2])
def test_the_message_is_found_where_a_judge_spoke_twice_or_not_at_all(case: tuple[Any, ...]) -> None:
    """Messages as "round speaker role ballot", numbered from 1; a verdict as "judge role round subject metric"."""
    *said, verdict, place = case
    messages = [
        Said(seq, int(round), speaker, role, json.dumps({f"{ballot[0]} on scale": 1.0}) if ballot else None)
        for seq, (round, speaker, role, *ballot) in enumerate(map(str.split, said), 1)
    ]
    judge, role, round, subject, metric = verdict.replace("-", "").split(" ")
    given = Given(judge.replace("_", " "), role, int(round), subject, metric)
    others = [given._replace(subject=name) for name in ("Ada", "Ben")] if subject in ("Ada", "Ben") else [given]
    assert list(places(others, messages))[others.index(given)] == place
