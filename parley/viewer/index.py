"""The search index: the full text and the figures of every finished unit, in a cache file.

The index is derived from the run, grows while the viewer is open, and may be deleted at any time. It is in Parley's
home, not next to the run, so that viewing changes nothing in the run's folder, and a read-only folder works.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from parley.base.home import home
from parley.runs import RunFile
from parley.runs.reading import parse_facets
from parley.runs.studies import facets_of, measures_of
from parley.viewer.figures import (
    IndexedUnit,
    UnitUsage,
    VerdictRow,
    answers_given,
    finite_or_none,
    unit_figures,
)

FORMAT = 17
"""Increased with every change of the schema or of a headline's contents; an index of another format is rebuilt."""
BATCH_SIZE = 400
# One document per unit, whose rowid is the unit's position in the plan, without a copy of the text: excerpts are read
# from the run for the rows shown. Prefixes are indexed: on 20,000 units `w*` took 2.2 s without and 18 ms with them;
# lists without word positions (detail=column) saved only a quarter of the time and could not find phrases.
TEXT_TABLE = """
CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5 (
    replies, prompts, content='', columnsize=0, tokenize='unicode61 remove_diacritics 2', prefix='1 2 3 4 5 6'
);
"""
SCHEMA = f"""
CREATE TABLE IF NOT EXISTS about (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS figures (seq INTEGER PRIMARY KEY, position INTEGER NOT NULL UNIQUE, row TEXT NOT NULL);
{TEXT_TABLE}"""
_JSON_MARKS = re.compile(r'"[^"\n]{1,60}"\s*:|[{}\[\]"]')
"""The keys and brackets of a reply that was not read."""
_TERM = re.compile(r'(-?)(?:"([^"]*)"?|(\S+))')


class SearchIndex:
    """The cache file of one run. Several processes may add to it concurrently.

    Args:
        run: the run file.
    """

    def __init__(self, run: Path) -> None:
        self.run = run
        self.path = _cache_path(run)
        try:
            self._prepare()
        except (sqlite3.DatabaseError, UnicodeError) as error:
            if isinstance(error, sqlite3.OperationalError):  # in use or read-only, not damaged
                raise
            for suffix in ("", "-wal", "-shm"):
                Path(f"{self.path}{suffix}").unlink(missing_ok=True)
            self._prepare()

    def _prepare(self) -> None:
        with RunFile.open(self.run) as file, closing(self._open()) as db:
            self._clear_if_other_run(db, run_identity(file))

    def _open(self) -> sqlite3.Connection:
        db = sqlite3.connect(self.path, isolation_level=None, timeout=30)
        if _format(db) != FORMAT:
            with suppress(sqlite3.OperationalError):  # another connection is changing it at this moment
                db.execute("PRAGMA journal_mode = WAL")
            db.execute("BEGIN IMMEDIATE")
            if _format(db) != FORMAT:  # unless another connection has created the tables meanwhile
                names = ("about", "figures", "words")
                tables = db.execute(f"SELECT name FROM sqlite_master WHERE name IN {names}").fetchall()
                for (name,) in tables:  # fetched before: sqlite_master is locked while it is being read
                    db.execute(f"DROP TABLE {name}")
                for statement in filter(str.strip, SCHEMA.split(";")):
                    db.execute(statement)
                db.execute(f"PRAGMA user_version = {FORMAT}")
            db.execute("COMMIT")
        db.execute("PRAGMA synchronous = OFF")  # if a power failure destroys it, it is rebuilt
        return db

    def _clear_if_other_run(self, db: sqlite3.Connection, identity: str) -> None:
        """Clear the index if the path now belongs to a different run."""
        row = db.execute("SELECT value FROM about WHERE key = 'run'").fetchone()
        if row is None or row[0] != identity:
            db.execute("BEGIN IMMEDIATE")
            db.execute("DELETE FROM figures")
            db.execute("DROP TABLE words")
            db.execute(TEXT_TABLE)
            db.execute("DELETE FROM about")
            db.execute("INSERT INTO about VALUES ('run', ?)", (identity,))
            db.execute("COMMIT")

    def rows(self, after: int = 0) -> tuple[int, str]:
        """The figures of units indexed after a number, as a JSON list, and the number for the next request."""
        with closing(self._open()) as db:
            # As one text: 100,000 rows one by one would keep the interpreter from other requests.
            last, rows = db.execute(
                "SELECT max(seq), '[' || group_concat(row, ',') || ']' FROM figures WHERE seq > ?", (after,)
            ).fetchone()
        return (after, "[]") if last is None else (last, rows)

    def store(self, key: str, value: Any) -> None:
        """Cache a value that is slow to compute from the run."""
        with closing(self._open()) as db:
            db.execute("INSERT OR REPLACE INTO about VALUES (?, ?)", (key, json.dumps(value)))

    def load(self, key: str) -> Any:
        with closing(self._open()) as db:
            row = db.execute("SELECT value FROM about WHERE key = ?", (key,)).fetchone()
        return json.loads(row[0]) if row else None

    def update(self) -> Iterator[int]:
        """Index the units finished since the last update; the number of units in each batch, once it is stored."""
        with closing(self._open()) as db:
            indexed = {row[0] for row in db.execute("SELECT position FROM figures")}
            with RunFile.open(self.run) as file:
                _, done = file.rows("SELECT position, id FROM units WHERE status = 'done' ORDER BY position")
            todo = [(position, unit) for position, unit in done if position not in indexed]
            for start in range(0, len(todo), BATCH_SIZE):
                batch = todo[start : start + BATCH_SIZE]
                with RunFile.open(self.run) as file:
                    units, texts = read_batch(file, batch)
                db.execute("BEGIN IMMEDIATE")
                first, last = batch[0][0], batch[-1][0]
                rows = db.execute("SELECT position FROM figures WHERE position BETWEEN ? AND ?", (first, last))
                added_meanwhile = {row[0] for row in rows}  # by another process
                db.executemany(
                    "INSERT INTO figures (position, row) VALUES (?, ?)",
                    [
                        (unit.position, json.dumps(unit, separators=(",", ":"), allow_nan=False))
                        for unit in units
                        if unit.position not in added_meanwhile
                    ],
                )
                db.executemany(
                    "INSERT INTO words (rowid, replies, prompts) VALUES (?, ?, ?)",
                    [row for row in texts if row[0] not in added_meanwhile],
                )
                db.execute("COMMIT")
                yield len(batch)

    def search(self, text: str, *, include_prompts: bool) -> list[int]:
        """Positions of the units whose replies, or also prompts, contain the search terms; none without a term."""
        if not (expression := fts_query(text)):
            return []
        scope = expression if include_prompts else f"{{replies}} : ({expression})"
        with closing(self._open()) as db:
            # As one JSON value: row by row, releasing and taking the interpreter lock takes three times as long.
            row = db.execute("SELECT json_group_array(rowid) FROM words WHERE words MATCH ?", (scope,)).fetchone()
        positions: list[int] = json.loads(row[0])
        return positions


def fts_query(text: str) -> str:
    """The search as an FTS5 expression: all words are required; "a phrase", prefix*, -excluded. Any text is valid."""
    required: list[str] = []
    excluded: list[str] = []
    for minus, phrase, word in _TERM.findall(text.replace("\x00", " ")):  # SQLite ends a string at a NUL
        term = phrase or word
        star = "*" if word.endswith("*") and len(word) > 1 else ""
        if re.search(r"\w", term):
            quoted = '"' + term.rstrip("*").replace('"', '""') + '"' + star
            (excluded if minus else required).append(quoted)
    if not required:
        return ""
    return " AND ".join(required) if not excluded else f"({' AND '.join(required)}) NOT ({' OR '.join(excluded)})"


def search_terms(text: str) -> list[str]:
    """The required words and phrases of a search, to highlight them."""
    terms = [(phrase or word.rstrip("*")) for minus, phrase, word in _TERM.findall(text) if not minus]
    return [term for term in terms if re.search(r"\w", term)]


def _format(db: sqlite3.Connection) -> int:
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def _cache_path(run: Path) -> Path:
    resolved = run.resolve()
    name = f"{resolved.stem}-{hashlib.blake2b(os.fsencode(resolved), digest_size=6).hexdigest()}.sqlite"
    for folder in (home() / "viewer", Path(tempfile.gettempdir()) / "parley-viewer"):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            # In a folder that all share, someone else's may be there already.
            if hasattr(os, "getuid") and folder.stat().st_uid != os.getuid():
                continue
            with closing(sqlite3.connect(folder / name)) as db:
                db.execute("PRAGMA user_version").fetchone()
                db.execute("BEGIN IMMEDIATE")
            return folder / name
        except (OSError, sqlite3.Error):
            continue
    raise OSError(f"the viewer's cache cannot be written to {home()}: set PARLEY_HOME to a writable folder")


def run_identity(file: RunFile) -> str:
    _, first = file.rows("SELECT min(at) FROM events")
    return json.dumps([file.info().get("plan"), first[0][0]])


def read_batch(file: RunFile, batch: Sequence[tuple[int, str]]) -> tuple[list[IndexedUnit], list[tuple[int, str, str]]]:
    """Figures and texts (position, replies, prompts) of units given by position and id."""
    ids = [unit for _, unit in batch]
    marks = ",".join("?" * len(ids))
    info = file.info()
    measures, declared = measures_of(info), facets_of(info)
    rows = file.rows(f"SELECT id, facets FROM units WHERE id IN ({marks})", ids)[1]
    facets = {unit: parse_facets(text) for unit, text in rows}
    messages: dict[str, list[tuple[Any, ...]]] = {unit: [] for unit in ids}
    verdicts: dict[str, list[VerdictRow]] = {unit: [] for unit in ids}
    for unit, *row in file.rows(
        "SELECT m.unit, m.speaker, m.role, m.parse_status, t.text, m.parsed "
        "FROM messages m JOIN texts t ON t.id = m.text "
        f"WHERE m.unit IN ({marks}) ORDER BY m.unit, m.seq",
        ids,
    )[1]:
        messages[unit].append(tuple(row))
    for unit, *values in file.rows(
        f"SELECT unit, judge, role, round, subject, value, text, metric FROM verdicts WHERE unit IN ({marks})", ids
    )[1]:
        verdicts[unit].append(VerdictRow(*values))
    totals = {
        row[0]: row[1:]
        for row in file.rows(
            "SELECT unit, sum(prompt_tokens + completion_tokens), sum(latency), "
            f"CASE WHEN count(cost) = count(*) THEN sum(cost) END, sum(cached) FROM calls WHERE unit IN ({marks}) "
            "GROUP BY unit",
            ids,
        )[1]
    }
    units, texts = [], []
    for position, unit in batch:
        spoken = [message for message in messages[unit] if message[1] != "narrator"]
        replies_read = [(speaker, status) for speaker, _, status, *_ in spoken]
        figures = unit_figures(verdicts[unit], replies_read, measures, facets[unit])
        tokens, latency, cost, cached = totals.get(unit, (0, 0.0, 0.0, 0))
        usage = UnitUsage(len(messages[unit]), tokens, finite_or_none(latency), finite_or_none(cost), cached)
        units.append(IndexedUnit(position, figures, answers_given(verdicts[unit], facets[unit], declared), usage))
        replies = "\n\n".join(reply_words(text, parsed) for *_, text, parsed in spoken)
        prompts = "\n\n".join(text for _, role, _, text, _ in messages[unit] if role == "narrator")
        texts.append((position, replies, prompts))
    return units, texts


def reply_words(text: str, parsed: str | None) -> str:
    """A reply in words, without JSON's keys and brackets.

    Args:
        text: the reply.
        parsed: its parsed value, as JSON; None if unreadable.
    """
    if "{" not in text:
        return text
    if parsed is None:
        return _JSON_MARKS.sub(" ", text)
    around = text[: text.index("{")], text[text.rfind("}") + 1 :] if "}" in text else ""
    return "\n".join(filter(None, (around[0].strip(), *_strings(json.loads(parsed)), around[1].strip())))


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _strings(inner)


def excerpts(
    file: RunFile, units: Sequence[str], terms: Sequence[str], *, include_prompts: bool
) -> dict[str, dict[str, Any]]:
    """For each unit the first message that contains one of the terms, with the text around it."""
    if not units or not terms:
        return {}
    marks = ",".join("?" * len(units))
    _, rows = file.rows(
        f"SELECT unit, seq, speaker, role, text, parsed FROM transcript WHERE unit IN ({marks}) ORDER BY unit, seq",
        units,
    )
    folded_terms = [term.casefold() for term in terms]
    excerpt_by_unit: dict[str, dict[str, Any]] = {}
    for unit, seq, speaker, role, text, parsed in rows:
        if unit in excerpt_by_unit or (role == "narrator" and not include_prompts):
            continue
        text = text if role == "narrator" else reply_words(text, parsed)
        folded = text.casefold()
        starts = [start for term in folded_terms if (start := folded.find(term)) >= 0]
        if starts:
            start = max(0, min(starts) - 60)
            cut = ["…" * (start > 0), "…" * (start + 200 < len(text))]
            excerpt_by_unit[unit] = {"seq": seq, "speaker": speaker, "text": text[start : start + 200].join(cut)}
    return excerpt_by_unit
