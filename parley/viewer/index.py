"""What makes a large run fast to search: the full text and the figures of every finished unit, in a cache file.

It is derived, grows unit by unit while the viewer is open, and may be deleted at any time. It lives in Parley's home
and not beside the run, so that looking at a run changes nothing in its folder. Why: docs/decisions.md.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from parley.agents.home import home
from parley.runs import RunFile
from parley.viewer.figures import Spent, UnitFigures, VerdictRow, unit_figures

FORMAT = 2
BATCH = 400
SCHEMA = """
CREATE TABLE IF NOT EXISTS about (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS figures (
    position INTEGER PRIMARY KEY, seen TEXT NOT NULL,
    messages INTEGER NOT NULL, tokens INTEGER NOT NULL, latency REAL NOT NULL, cost REAL, cached INTEGER NOT NULL
);
CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5 (
    said, asked, content='', columnsize=0, tokenize='unicode61 remove_diacritics 2'
);
"""
_TERM = re.compile(r'(-?)(?:"([^"]*)"?|(\S+))')


class SearchIndex:
    """The cache file of one run. Several processes may add to it."""

    def __init__(self, run: Path) -> None:
        self.run = run
        self.path = _place(run)
        with RunFile.open(run) as file, closing(self._open()) as db:
            self._begin_anew_if_another_run(db, _identity(file))

    def _open(self) -> sqlite3.Connection:
        db = sqlite3.connect(self.path, isolation_level=None, timeout=30)
        if db.execute("PRAGMA user_version").fetchone()[0] != FORMAT:
            old = db.execute("SELECT name FROM sqlite_master WHERE name IN ('about', 'figures', 'words')").fetchall()
            for (name,) in old:  # read to the end first: a table that is being read is locked
                db.execute(f"DROP TABLE {name}")
            db.execute("PRAGMA journal_mode = WAL")
            db.executescript(SCHEMA)
            db.execute(f"PRAGMA user_version = {FORMAT}")
        db.execute("PRAGMA synchronous = OFF")  # derived: lost in a power cut, it is made again
        return db

    def _begin_anew_if_another_run(self, db: sqlite3.Connection, identity: str) -> None:
        """The same path may hold another run than last time."""
        found = db.execute("SELECT value FROM about WHERE key = 'run'").fetchone()
        if found is None or found[0] != identity:
            db.execute("BEGIN IMMEDIATE")
            db.execute("DELETE FROM figures")
            db.execute("DROP TABLE words")
            db.execute(next(part for part in SCHEMA.split(";") if "fts5" in part))
            db.execute("DELETE FROM about")
            db.execute("INSERT INTO about VALUES ('run', ?)", (identity,))
            db.execute("COMMIT")

    def figures(self) -> list[tuple[int, dict[str, UnitFigures], Spent]]:
        """All there are by now."""
        with closing(self._open()) as db:
            return [_unpacked(row) for row in db.execute("SELECT * FROM figures")]

    def remember(self, key: str, value: Any) -> None:
        """Keep something costly that was computed from the run."""
        with closing(self._open()) as db:
            db.execute("INSERT OR REPLACE INTO about VALUES (?, ?)", (key, json.dumps(value)))

    def recall(self, key: str) -> Any:
        with closing(self._open()) as db:
            found = db.execute("SELECT value FROM about WHERE key = ?", (key,)).fetchone()
        return json.loads(found[0]) if found else None

    def catch_up(self) -> Iterator[list[tuple[int, dict[str, UnitFigures], Spent]]]:
        """Add what was finished since last time, a batch at a time; each batch is kept when it is given."""
        with closing(self._open()) as db:
            known = {row[0] for row in db.execute("SELECT position FROM figures")}
            with RunFile.open(self.run) as file:
                _, done = file.rows("SELECT position, id FROM units WHERE status = 'done' ORDER BY position")
            todo = [(position, unit) for position, unit in done if position not in known]
            for start in range(0, len(todo), BATCH):
                batch = todo[start : start + BATCH]
                with RunFile.open(self.run) as file:
                    rows, texts = _read(file, batch)
                db.execute("BEGIN IMMEDIATE")
                low, high = batch[0][0], batch[-1][0]
                new = {row[0] for row in rows} - {
                    row[0]
                    for row in db.execute("SELECT position FROM figures WHERE position BETWEEN ? AND ?", (low, high))
                }
                db.executemany(
                    "INSERT INTO figures VALUES (?, ?, ?, ?, ?, ?, ?)",
                    [(p, json.dumps(seen, separators=(",", ":")), *spent) for p, seen, spent in rows if p in new],
                )
                db.executemany(
                    "INSERT INTO words (rowid, said, asked) VALUES (?, ?, ?)", [row for row in texts if row[0] in new]
                )
                db.execute("COMMIT")
                yield rows

    def matching(self, query: str, *, asked: bool) -> list[int]:
        """Positions of the units in which the words occur: in what was said, or also in what the table was asked."""
        expression = fts_query(query)
        if not expression:
            return []
        with closing(self._open()) as db:
            scope = expression if asked else f"{{said}} : ({expression})"
            # As one value: a row at a time, giving the interpreter up and taking it back costs three times as much.
            found = db.execute("SELECT json_group_array(rowid) FROM words WHERE words MATCH ?", (scope,)).fetchone()
        positions: list[int] = json.loads(found[0])
        return positions


def fts_query(text: str) -> str:
    """Words are all wanted; "a phrase", a beginning*, -unwanted. Nothing typed can be a syntax error."""
    wanted: list[str] = []
    unwanted: list[str] = []
    for minus, phrase, word in _TERM.findall(text.replace("\x00", " ")):  # where SQLite would take it for the end
        term = phrase or word
        star = "*" if word.endswith("*") and len(word) > 1 else ""
        if re.search(r"\w", term):
            quoted = '"' + term.rstrip("*").replace('"', '""') + '"' + star
            (unwanted if minus else wanted).append(quoted)
    if not wanted:
        return ""
    return " AND ".join(wanted) if not unwanted else f"({' AND '.join(wanted)}) NOT ({' OR '.join(unwanted)})"


def search_terms(text: str) -> list[str]:
    """The wanted words and phrases, for marking them in a text."""
    found = [(phrase or word.rstrip("*")) for minus, phrase, word in _TERM.findall(text) if not minus]
    return [term for term in found if re.search(r"\w", term)]


def _place(run: Path) -> Path:
    whole = run.resolve()
    name = f"{whole.stem}-{hashlib.blake2b(str(whole).encode(), digest_size=6).hexdigest()}.sqlite"
    for folder in (home() / "viewer", Path(tempfile.gettempdir()) / "parley-viewer"):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if not _is_ours(folder):  # in a folder that all share, someone else's may be there already
                continue
            with closing(sqlite3.connect(folder / name)) as db:
                db.execute("PRAGMA user_version").fetchone()
                db.execute("BEGIN IMMEDIATE")
            return folder / name
        except (OSError, sqlite3.Error):
            continue
    raise OSError(f"no place for the viewer's cache; set PARLEY_HOME to a folder that can be written ({home()})")


def _is_ours(folder: Path) -> bool:
    return not hasattr(os, "getuid") or folder.stat().st_uid == os.getuid()


def _identity(file: RunFile) -> str:
    _, first = file.rows("SELECT min(at) FROM events")
    return json.dumps([file.info().get("plan"), first[0][0]])


def _unpacked(row: Sequence[Any]) -> tuple[int, dict[str, UnitFigures], Spent]:
    return row[0], {judge: UnitFigures(*values) for judge, values in json.loads(row[1]).items()}, Spent(*row[2:])


def _read(
    file: RunFile, batch: Sequence[tuple[int, str]]
) -> tuple[list[tuple[int, dict[str, UnitFigures], Spent]], list[tuple[int, str, str]]]:
    """Figures and texts of some units."""
    ids = [unit for _, unit in batch]
    marks = ",".join("?" * len(ids))
    messages: dict[str, list[tuple[Any, ...]]] = {unit: [] for unit in ids}
    verdicts: dict[str, list[VerdictRow]] = {unit: [] for unit in ids}
    for unit, *row in file.rows(
        f"SELECT m.unit, m.speaker, m.role, m.parse_status, t.text FROM messages m JOIN texts t ON t.id = m.text "
        f"WHERE m.unit IN ({marks}) ORDER BY m.unit, m.seq",
        ids,
    )[1]:
        messages[unit].append(tuple(row))
    for unit, *values in file.rows(
        f"SELECT unit, judge, role, round, subject, value, text FROM verdicts WHERE unit IN ({marks})", ids
    )[1]:
        verdicts[unit].append(VerdictRow(*values))
    spent = {
        row[0]: row[1:]
        for row in file.rows(
            "SELECT unit, sum(prompt_tokens + completion_tokens), sum(latency), "
            f"CASE WHEN count(cost) = count(*) THEN sum(cost) END, sum(cached) FROM calls WHERE unit IN ({marks}) "
            "GROUP BY unit",
            ids,
        )[1]
    }
    rows, texts = [], []
    for position, unit in batch:
        replies = [(speaker, status) for speaker, role, status, _ in messages[unit] if role != "narrator"]
        tokens, latency, cost, cached = spent.get(unit, (0, 0.0, 0.0, 0))
        seen = unit_figures(verdicts[unit], replies)
        rows.append((position, seen, Spent(len(messages[unit]), tokens, latency, cost, cached)))
        said = "\n\n".join(text for _, role, _, text in messages[unit] if role != "narrator")
        asked = "\n\n".join(text for _, role, _, text in messages[unit] if role == "narrator")
        texts.append((position, said, asked))
    return rows, texts
