"""Target: truncated, corrupted, foreign and malicious run files, read by everything that reads run files."""

from __future__ import annotations

import contextlib
import io
import random
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from parley import frames
from parley.cli import show
from parley.cli.text import visible
from parley.reports import load_run
from parley.runs import RunFile, explain_damage
from parley.viewer.index import read_batch
from parley.viewer.reading import read_unit
from parley.viewer.run_folder import RunFolder
from parley.viewer.table import UnitTable
from tests.fuzz import mutation
from tests.fuzz.dictionary import VALUES
from tests.fuzz.files import FOLDER
from tests.fuzz.loop import Rejected, Target

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


def show_run(path: Path) -> None:
    from argparse import Namespace

    for listed in (True, False):
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            show.handle(Namespace(run=str(path), unit=None, list=listed, json=False, prompts=True), [])
        visible(printed.getvalue())


def target(run: Path) -> Target:
    """Starts from a run file that is intact."""
    RUN.parent.mkdir(exist_ok=True)
    return Target("run file", [run.read_bytes()], mutate, read, 0.25)
