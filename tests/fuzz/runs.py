"""Target: run files that are cut, flipped, foreign or hostile, read by all that reads run files."""

from __future__ import annotations

import contextlib
import io
import json
import random
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

from parley import frames
from parley.analysis.reporting.render import html, latex, markdown
from parley.cli import show
from parley.cli.text import visible
from parley.reports import load_run, make_report
from parley.runs import RunFile, explain_damage
from parley.viewer.index import _read
from parley.viewer.library import Library
from parley.viewer.reading import unit_whole
from parley.viewer.table import UnitTable
from tests.fuzz import mutation
from tests.fuzz.dictionary import ODD, VALUES
from tests.fuzz.files import PLACE
from tests.fuzz.loop import Rejected, Target
from tests.fuzz.workshop import RUNS

RUN = PLACE / "runs" / "a.sqlite"
HOSTILE = (
    "CREATE TRIGGER t AFTER INSERT ON units BEGIN DELETE FROM units; END",
    "DROP VIEW transcript; CREATE VIEW transcript AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
    "SELECT i AS unit, i AS seq, i AS round, i AS speaker, i AS role, i AS persona, i AS text, i AS parse_status, "
    "i AS parsed, i AS expected FROM n",
    "DROP TABLE verdicts; CREATE VIEW verdicts AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
    "SELECT * FROM n",
    "ALTER TABLE units ADD COLUMN big AS (zeroblob(1000000000))",
    "CREATE VIRTUAL TABLE words USING fts5(x)",
    "DROP TABLE texts",
    "DROP TABLE units",
    "DROP TABLE run",
    "DELETE FROM run",
    "DELETE FROM texts",
    "DELETE FROM units",
    "PRAGMA user_version = 99",
    "PRAGMA application_id = 7",
    "PRAGMA user_version = -1",
    "UPDATE units SET position = 0",
    "UPDATE units SET position = -5",
    "UPDATE units SET position = 1e18",
    "ALTER TABLE units RENAME COLUMN facets TO facet",
    "ALTER TABLE messages DROP COLUMN parsed",
)
COLUMNS = (
    "run.value",
    "units.id",
    "units.facets",
    "units.error",
    "messages.speaker",
    "messages.parsed",
    "messages.expected",
    "messages.round",
    "messages.text",
    "calls.prompt",
    "calls.latency",
    "calls.cost",
    "calls.prompt_tokens",
    "verdicts.judge",
    "verdicts.value",
    "verdicts.text",
    "verdicts.metric",
    "events.detail",
    "events.at",
    "texts.text",
    "prompts.text",
)


def make(rng: random.Random, kept: Sequence[bytes]) -> bytes:
    """Bytes of the file changed, or its content, by whoever can write SQL."""
    found = kept[0] if rng.random() < 0.7 else rng.choice(kept)
    if rng.random() < 0.5:
        return mutation.raw(rng, found)
    RUN.write_bytes(found)
    with contextlib.suppress(sqlite3.Error, OverflowError, UnicodeError), closing(sqlite3.connect(RUN)) as db:
        if rng.random() < 0.3:
            db.executescript(rng.choice(HOSTILE))
        else:
            table, _, column = rng.choice(COLUMNS).partition(".")
            value = rng.choice(VALUES)
            value = mutation.as_json(value) if isinstance(value, dict | list) or rng.random() < 0.3 else value
            value = value.encode("utf-8", "surrogatepass") if isinstance(value, str) and rng.random() < 0.2 else value
            db.execute(f"UPDATE {table} SET {column} = ?", (value,))
        db.commit()
    return RUN.read_bytes()


def feed(content: bytes) -> None:
    for old in RUN.parent.iterdir():
        old.unlink()
    RUN.write_bytes(content)
    summary = Library(RUN).summary(RUN.name)
    with explain_damage(RUN):
        with RunFile.open(RUN) as file:
            file.info()
            UnitTable(file)
            units = file.rows("SELECT position, id FROM units")[1][:3]
            _read(file, units)
            for _, unit in units:
                unit_whole(file, unit)
        frames.verdicts(RUN)
        load_run(RUN)
    show_it(RUN)
    if "broken" in summary:
        raise Rejected(summary["broken"])


FACTS = (
    "round", "value", "sampled", "text", "metric", "subject", "judge", "role", "status",
)  # fmt: skip
"""Columns of verdicts, as reports read them."""


def remade(sound: Sequence[Path]) -> Callable[[random.Random, Sequence[bytes]], bytes]:
    """Runs of studies with reports of their own, sound as files, whose facets, verdicts or settings are others'."""

    def make(rng: random.Random, kept: Sequence[bytes]) -> bytes:
        RUN.write_bytes(rng.choice(sound).read_bytes())
        with contextlib.suppress(sqlite3.Error, OverflowError, UnicodeError), closing(sqlite3.connect(RUN)) as db:
            for _ in range(rng.choice((1, 1, 2))):
                rng.choice((_facet, _facet, _facet, _verdict, _setting))(rng, db)
            db.commit()
        return RUN.read_bytes()

    return make


def _facet(rng: random.Random, db: sqlite3.Connection) -> None:
    """A facet of all units, or of one, is gone, another, or named otherwise."""
    units = [(unit, json.loads(facets)) for unit, facets in db.execute("SELECT id, facets FROM units")]
    name, kind, value = rng.choice(list(units[0][1])), rng.randrange(4), rng.choice(VALUES)
    for unit, facets in units if rng.random() < 0.6 else units[:1]:
        if kind == 0:
            facets.pop(name, None)
        elif kind == 1:
            facets[rng.choice(ODD)] = facets.pop(name, None)
        else:
            facets[name] = value
        db.execute("UPDATE units SET facets = ? WHERE id = ?", (json.dumps(facets), unit))


def _verdict(rng: random.Random, db: sqlite3.Connection) -> None:
    value = rng.choice((*VALUES, *ODD, "[/bold]", "[red]x"))
    value = json.dumps(value) if isinstance(value, dict | list) else value
    db.execute(
        f"UPDATE verdicts SET {rng.choice(FACTS)} = ?" + rng.choice(("", " WHERE nth = 0", " WHERE rowid % 2")),
        (value,),
    )
    if rng.random() < 0.1:
        db.execute("DELETE FROM verdicts WHERE nth > 0")


def _setting(rng: random.Random, db: sqlite3.Connection) -> None:
    key, value = rng.choice(db.execute("SELECT key, value FROM run").fetchall())
    db.execute("UPDATE run SET value = ? WHERE key = ?", (json.dumps(mutation.tree(rng, json.loads(value))), key))


def report(content: bytes) -> None:
    from parley.cli.report import show

    for old in RUN.parent.iterdir():
        old.unlink()
    RUN.write_bytes(content)
    with contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO(), "utf-8", errors="backslashreplace")):
        made = make_report([RUN], draws=20)
        show(made, None, as_json=True)
        show(made, None, as_json=False)
    for table in made.tables:
        (markdown(table) + latex(table) + table.frame.to_csv()).encode()
    html(made, {figure.name: b"" for figure in made.figures}).encode()


def reports(place: Path) -> Target:
    sound = [place / f"{study}.sqlite" for study in RUNS] + [place / "imported.sqlite"]
    begun = [path.read_bytes() for path in sound]
    for content in begun:
        report(content)
    return Target("run file, reported", begun, remade(sound), report, 0.25)


def show_it(path: Path) -> None:
    from argparse import Namespace

    for listed in (True, False):
        with contextlib.redirect_stdout(io.StringIO()) as said:
            show.handle(Namespace(run=str(path), unit=None, list=listed, json=False, prompts=True), [])
        visible(said.getvalue())


def target(sound: Path) -> Target:
    RUN.parent.mkdir(exist_ok=True)
    return Target("run file", [sound.read_bytes()], make, feed, 0.25)
