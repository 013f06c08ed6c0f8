"""Targets: truncated, corrupted, foreign and malicious run and notes files, read by everything that reads them."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import sqlite3
import tempfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from rich.console import Console

from parley.analysis.reporting.render import html, latex, markdown
from parley.base.text import visible
from parley.cli.report import everything
from parley.cli.show import Show
from parley.reports import load_run, make_report
from parley.runs import RunFile, explain_damage, frames
from parley.runs.notes import Answer, Item, NotesFile
from parley.runs.reading import read_unit
from parley.viewer import labelling
from parley.viewer.index import read_batch
from parley.viewer.run_folder import RunFolder
from parley.viewer.units import planned_units, progress_of
from tests.fuzz.checking import Rejected, Target, encoded
from tests.fuzz.strategies import ODD, VALUES, as_json, choose, edited_bytes, edited_tree, often
from tests.fuzz.workshop import RUNS

_FOLDER = tempfile.TemporaryDirectory(prefix="parley-fuzz-")
RUN, NOTED = (Path(_FOLDER.name) / name / "a.sqlite" for name in ("runs", "noted"))
ENDLESS = "AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"


def endless(table: str, columns: str) -> str:
    return f"CREATE VIEW {table} {ENDLESS} SELECT {', '.join(f'i AS {name}' for name in columns.split())} FROM n"


RUN_SQL = (
    "CREATE TRIGGER t AFTER INSERT ON units BEGIN DELETE FROM units; END",
    "DROP VIEW transcript; "
    + endless("transcript", "unit seq round speaker role persona text parse_status parsed expected"),
    f"DROP TABLE verdicts; CREATE VIEW verdicts {ENDLESS} SELECT * FROM n",
    "ALTER TABLE units ADD COLUMN big AS (zeroblob(1000000000))",
    "CREATE VIRTUAL TABLE words USING fts5(x)",
    "ALTER TABLE units ADD COLUMN big AS/**/(zeroblob(1000000000))",
    "CREATE/**/VIRTUAL/**/TABLE words USING fts5(x)",
    *(f"DROP TABLE {table}" for table in ("texts", "units", "run")),
    *(f"DELETE FROM {table}" for table in ("texts", "units", "run")),
    *("PRAGMA user_version = 99", "PRAGMA application_id = 7", "PRAGMA user_version = -1"),
    *(f"UPDATE units SET position = {position}" for position in ("0", "-5", "1e18")),
    "ALTER TABLE units RENAME COLUMN facets TO facet",
    "ALTER TABLE messages DROP COLUMN parsed",
)
RUN_COLUMNS = (
    "run.value units.id units.facets units.error messages.speaker messages.parsed messages.expected messages.round "
    "messages.text calls.prompt calls.latency calls.cost calls.prompt_tokens verdicts.judge verdicts.value "
    "verdicts.text verdicts.metric events.detail events.at texts.text prompts.text"
)
NOTES_SQL = (
    "DROP TABLE notes; " + endless("notes", "id unit seq author tag comment at withdrawn_at"),
    "DROP TABLE draws; " + endless("draws", "id kind seed settings at"),
    "CREATE TRIGGER t AFTER INSERT ON notes BEGIN DELETE FROM notes; END",
    "ALTER TABLE notes ADD COLUMN big/**/AS/**/(zeroblob(100000000))",
    *("DROP TABLE labels", "DELETE FROM notes", "PRAGMA application_id = 7", "PRAGMA user_version = 99"),
)
NOTES_COLUMNS = (
    "notes.unit notes.seq notes.author notes.tag notes.comment notes.at notes.withdrawn_at draws.kind draws.seed "
    "draws.settings draws.at items.unit items.text_id items.probability items.position labels.unit labels.rater "
    "labels.subject labels.question labels.value labels.judge_value labels.text labels.comment labels.position "
    "labels.simulated labels.at labels.draw"
)


def odd_value(draw: st.DrawFn) -> Any:
    """A value for a column: also a structure as JSON, and bytes in place of text."""
    value = choose(draw, VALUES)
    value = as_json(value) if isinstance(value, dict | list) or often(draw, 30) else value
    return value.encode("utf-8", "surrogatepass") if isinstance(value, str) and often(draw, 20) else value


@st.composite
def edited_database(draw: st.DrawFn, path: Path, corpus: Sequence[bytes], sql: Sequence[str], columns: str) -> bytes:
    """Changes the bytes of a SQLite file, or its content by a malicious statement or an odd value in a column."""
    content = choose(draw, corpus)
    if often(draw, 50):
        return draw(edited_bytes([content]))
    path.write_bytes(content)
    with contextlib.suppress(sqlite3.Error, OverflowError, UnicodeError), closing(sqlite3.connect(path)) as db:
        if path == RUN and often(draw, 70):  # otherwise the checksums find most changes, before anything else can
            db.execute("DELETE FROM checks")
        if often(draw, 30):
            db.executescript(choose(draw, sql))
        else:
            table, _, column = choose(draw, columns.split()).partition(".")
            db.execute(f"UPDATE {table} SET {column} = ?", (odd_value(draw),))
        db.commit()
    return path.read_bytes()


def write(path: Path, content: bytes) -> None:
    """The file, alone in its folder."""
    path.parent.mkdir(exist_ok=True)
    for old in path.parent.iterdir():
        old.unlink()
    path.write_bytes(content)


def read(content: bytes) -> None:
    write(RUN, content)
    summary = RunFolder(RUN).summary(RUN.name)
    with explain_damage(RUN):
        with RunFile.open(RUN) as file:
            file.info()
            file.check_plan()
            planned_units(file.rows("SELECT id, facets FROM units ORDER BY position")[1])
            progress_of(file)
            units = file.rows("SELECT position, id FROM units")[1][:3]
            read_batch(file, units)
            for _, unit in units:
                read_unit(file, unit)
        frames.verdicts(RUN)
        load_run(RUN)
    show_run(RUN)
    if "broken" in summary:
        raise Rejected(summary["broken"])


def show_run(path: Path) -> None:
    for listed in (True, False):
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            for line in Show(run=str(path), list=listed, prompts=True, thoughts=True).answer().lines:
                print(line)
        visible(printed.getvalue())


VERDICT_COLUMNS = ("round", "value", "sampled", "text", "metric", "subject", "judge", "role", "status")


@st.composite
def edited_content(draw: st.DrawFn, corpus: Sequence[bytes]) -> bytes:
    """Changes facets, verdicts or settings: an intact file with unexpected content."""
    write(RUN, choose(draw, corpus))
    with contextlib.suppress(sqlite3.Error, OverflowError, UnicodeError), closing(sqlite3.connect(RUN)) as db:
        for _ in range(draw(st.integers(1, 2))):
            choose(draw, (change_facet, change_facet, change_verdict, change_setting))(draw, db)
        db.commit()
    return RUN.read_bytes()


def change_facet(draw: st.DrawFn, db: sqlite3.Connection) -> None:
    """Removes, renames or changes a facet, of all units or of the first."""
    units = [(unit, json.loads(facets)) for unit, facets in db.execute("SELECT id, facets FROM units")]
    name, edit = choose(draw, list(units[0][1])), choose(draw, ("remove", "rename", "", ""))
    value = choose(draw, VALUES)
    for unit, facets in units if often(draw, 60) else units[:1]:
        if edit == "remove":
            facets.pop(name, None)
        elif edit == "rename":
            facets[choose(draw, ODD)] = facets.pop(name, None)
        else:
            facets[name] = value
        db.execute("UPDATE units SET facets = ? WHERE id = ?", (json.dumps(facets), unit))


def change_verdict(draw: st.DrawFn, db: sqlite3.Connection) -> None:
    value = choose(draw, (*VALUES, *ODD, "[/bold]", "[red]x"))
    value = json.dumps(value) if isinstance(value, dict | list) else value
    which = choose(draw, ("", " WHERE nth = 0", " WHERE rowid % 2"))
    db.execute(f"UPDATE verdicts SET {choose(draw, VERDICT_COLUMNS)} = ?{which}", (value,))
    if often(draw, 10):
        db.execute("DELETE FROM verdicts WHERE nth > 0")


def change_setting(draw: st.DrawFn, db: sqlite3.Connection) -> None:
    key, value = choose(draw, db.execute("SELECT key, value FROM run").fetchall())
    changed = draw(edited_tree([json.loads(value)]))
    db.execute("UPDATE run SET value = ? WHERE key = ?", (json.dumps(changed), key))


def read_report(content: bytes) -> None:
    write(RUN, content)
    with contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO(), "utf-8", errors="backslashreplace")):
        report = make_report([RUN], draws=20)
        json.dumps(report.data())
        for line in everything(report):
            Console().print(line)
    for table in report.tables:
        (markdown(table) + latex(table) + table.frame.to_csv()).encode()
    html(report, {figure.name: b"" for figure in report.figures}).encode()


def read_notes(content: bytes) -> None:
    """As the viewer reads them."""
    notes = NotesFile(NOTED)
    for old in NOTED.parent.glob("a.notes*"):
        old.unlink()
    notes.path.write_bytes(content)
    with RunFile.open(NOTED) as file:
        results: list[object] = [notes.notes(), notes.labels(), notes.units_by_tag()]
        for draw in notes.draws():
            results.append(labelling.draw_json(file, notes, draw))
            results.append(labelling.RaterView(file, notes, draw["id"], "ann").next_item())
    encoded(results)


def targets(run: Path, folder: Path) -> list[Target]:
    """Start from a run file that is intact, from the same run packed, from its notes, and from the runs in a folder."""
    content = run.read_bytes()
    write(RUN, content)
    write(NOTED, content)
    with RunFile.open(NOTED) as file:
        units = [unit for (unit,) in file.rows("SELECT id FROM units WHERE status = 'done' ORDER BY position")[1]][:4]
    notes = NotesFile(NOTED)
    for unit in units:
        notes.add(unit, None, "ann", "odd", "look at this")
    items = [Item(unit, unit, 0.5, n) for n, unit in enumerate(units)]
    draw = notes.add_draw("random", 0, items, {"asked": 4, "drawn": 4, "floor": 1.0, "scores": True, "filters": {}})
    answers = [Answer("", "Accuracy", 7.0, 7.0, None), Answer("", "preferred", 1.0, None, "A")]
    for rater in ("ann", "bob"):
        for unit in units:
            notes.add_labels(draw, unit, rater, answers)
    noted, corpus = [notes.path.read_bytes()], [content, gzip.compress(content)]
    runs = [(folder / f"{name}.sqlite").read_bytes() for name in (*RUNS, "imported")]
    return [
        Target("run file", corpus, edited_database(RUN, corpus, RUN_SQL, RUN_COLUMNS), read),
        Target("run file, reported", runs, edited_content(runs), read_report),
        Target("notes file", noted, edited_database(notes.path, noted, NOTES_SQL, NOTES_COLUMNS), read_notes),
    ]
