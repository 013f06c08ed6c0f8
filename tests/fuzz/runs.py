"""Targets: truncated, corrupted, foreign and malicious run files, read by everything that reads run files."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import random
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from parley.analysis.reporting.render import html, latex, markdown
from parley.base.text import visible
from parley.cli import show
from parley.cli.report import show as print_report
from parley.reports import load_run, make_report
from parley.runs import RunFile, explain_damage, frames
from parley.viewer.index import read_batch
from parley.viewer.reading import read_unit
from parley.viewer.run_folder import RunFolder
from parley.viewer.table import UnitTable
from tests.fuzz import mutation
from tests.fuzz.dictionary import ODD, VALUES
from tests.fuzz.files import FOLDER
from tests.fuzz.loop import MAX_COMMAND_SECONDS, Rejected, Target
from tests.fuzz.workshop import RUNS

RUN = FOLDER / "runs" / "a.sqlite"
MALICIOUS_SQL = (
    "CREATE TRIGGER t AFTER INSERT ON units BEGIN DELETE FROM units; END",
    "DROP VIEW transcript; CREATE VIEW transcript AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
    "SELECT i AS unit, i AS seq, i AS round, i AS speaker, i AS role, i AS persona, i AS text, i AS parse_status, "
    "i AS parsed, i AS expected FROM n",
    "DROP TABLE verdicts; CREATE VIEW verdicts AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
    "SELECT * FROM n",
    "ALTER TABLE units ADD COLUMN big AS (zeroblob(1000000000))",
    "CREATE VIRTUAL TABLE words USING fts5(x)",
    "ALTER TABLE units ADD COLUMN big AS/**/(zeroblob(1000000000))",
    "CREATE/**/VIRTUAL/**/TABLE words USING fts5(x)",
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


def mutate(rng: random.Random, corpus: Sequence[bytes]) -> bytes:
    """Changes the file's bytes, or its content through SQL."""
    content = corpus[0] if rng.random() < 0.7 else rng.choice(corpus)
    if rng.random() < 0.5:
        return mutation.raw(rng, content)
    RUN.write_bytes(content)
    with contextlib.suppress(sqlite3.Error, OverflowError, UnicodeError), closing(sqlite3.connect(RUN)) as db:
        if rng.random() < 0.7:  # otherwise the checksums find most changes, before anything else can
            db.execute("DELETE FROM checks")
        if rng.random() < 0.3:
            db.executescript(rng.choice(MALICIOUS_SQL))
        else:
            table, _, column = rng.choice(COLUMNS).partition(".")
            value = rng.choice(VALUES)
            value = mutation.as_json(value) if isinstance(value, dict | list) or rng.random() < 0.3 else value
            value = value.encode("utf-8", "surrogatepass") if isinstance(value, str) and rng.random() < 0.2 else value
            db.execute(f"UPDATE {table} SET {column} = ?", (value,))
        db.commit()
    return RUN.read_bytes()


def read(content: bytes) -> None:
    for old in RUN.parent.iterdir():
        old.unlink()
    RUN.write_bytes(content)
    summary = RunFolder(RUN).summary(RUN.name)
    with explain_damage(RUN):
        with RunFile.open(RUN) as file:
            file.info()
            UnitTable(file)
            units = file.rows("SELECT position, id FROM units")[1][:3]
            read_batch(file, units)
            for _, unit in units:
                read_unit(file, unit)
        frames.verdicts(RUN)
        load_run(RUN)
    show_run(RUN)
    if "broken" in summary:
        raise Rejected(summary["broken"])


VERDICT_COLUMNS = ("round", "value", "sampled", "text", "metric", "subject", "judge", "role", "status")


def mutate_content(rng: random.Random, corpus: Sequence[bytes]) -> bytes:
    """Changes facets, verdicts or settings: an intact file with unexpected content."""
    RUN.write_bytes(rng.choice(corpus))
    with contextlib.suppress(sqlite3.Error, OverflowError, UnicodeError), closing(sqlite3.connect(RUN)) as db:
        for _ in range(rng.choice((1, 1, 2))):
            rng.choice((change_facet, change_facet, change_facet, change_verdict, change_setting))(rng, db)
        db.commit()
    return RUN.read_bytes()


def change_facet(rng: random.Random, db: sqlite3.Connection) -> None:
    """Removes, renames or changes a facet, of all units or of the first."""
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


def change_verdict(rng: random.Random, db: sqlite3.Connection) -> None:
    value = rng.choice((*VALUES, *ODD, "[/bold]", "[red]x"))
    value = json.dumps(value) if isinstance(value, dict | list) else value
    db.execute(
        f"UPDATE verdicts SET {rng.choice(VERDICT_COLUMNS)} = ?"
        + rng.choice(("", " WHERE nth = 0", " WHERE rowid % 2")),
        (value,),
    )
    if rng.random() < 0.1:
        db.execute("DELETE FROM verdicts WHERE nth > 0")


def change_setting(rng: random.Random, db: sqlite3.Connection) -> None:
    key, value = rng.choice(db.execute("SELECT key, value FROM run").fetchall())
    db.execute("UPDATE run SET value = ? WHERE key = ?", (json.dumps(mutation.tree(rng, json.loads(value))), key))


def read_report(content: bytes) -> None:
    for old in RUN.parent.iterdir():
        old.unlink()
    RUN.write_bytes(content)
    with contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO(), "utf-8", errors="backslashreplace")):
        report = make_report([RUN], draws=20)
        print_report(report, None, as_json=True)
        print_report(report, None, as_json=False)
    for table in report.tables:
        (markdown(table) + latex(table) + table.frame.to_csv()).encode()
    html(report, {figure.name: b"" for figure in report.figures}).encode()


def show_run(path: Path) -> None:
    from argparse import Namespace

    for listed in (True, False):
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            show.handle(
                Namespace(run=str(path), unit=None, list=listed, json=False, prompts=True, plan=False, thoughts=True),
                [],
            )
        visible(printed.getvalue())


def target(run: Path) -> Target:
    """Starts from a run file that is intact, and from the same run packed."""
    RUN.parent.mkdir(exist_ok=True)
    content = run.read_bytes()
    return Target("run file", [content, gzip.compress(content)], mutate, read)


def report_target(folder: Path) -> Target:
    """Starts from the prepared runs in a folder."""
    runs = [(folder / f"{name}.sqlite").read_bytes() for name in (*RUNS, "imported")]
    return Target("run file, reported", runs, mutate_content, read_report, MAX_COMMAND_SECONDS)
