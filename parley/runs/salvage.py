"""Copies what can still be read of a damaged run to a new run file.

A bad page ends a scan of its table, but not a search by key. The ids of the units are therefore collected from several
tables and indexes, each from both ends, and every unit is then looked up by its id. A unit is copied only if all of it
can be read and fits its checksums and the hashes of its texts; otherwise it is planned again in the new file, or left
out if even its facets are lost. Only a text of a prompt may be missing, since many units share one: what a model was
told, never what it said.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Iterator, Set
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from parley.base.errors import ConfigError
from parley.judging import Unit
from parley.runs.opening import PRIVATE_FILES, NotOpened, RunFileError, beside, copy_file
from parley.runs.rows import Row, Rows, Tally, finite, text_id
from parley.runs.schema import is_damaged, stored_checks, texts_of
from parley.runs.store import RunFile
from parley.runs.tables import CALLS, MESSAGES, OUTCOME, VERDICTS

LOST = "(this text could not be read when the run was salvaged)"
CHUNK = 200
"""Units written in one transaction."""
UNREADABLE = (sqlite3.Error, ValueError, TypeError, LookupError, OverflowError, RecursionError)
"""What reading damaged rows may raise."""
IDS = (
    "SELECT id FROM units ORDER BY id",
    "SELECT id FROM units ORDER BY id DESC",
    "SELECT id FROM units INDEXED BY units_by_status ORDER BY status, position",
    "SELECT id FROM units INDEXED BY units_by_status ORDER BY status DESC, position DESC",
    "SELECT unit FROM checks ORDER BY unit",
    "SELECT unit FROM checks ORDER BY unit DESC",
)


class _SalvagePlan(NamedTuple):
    position: int
    facets: dict[str, Any]
    planned: bool
    """True if the unit had not been run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Salvaged:
    """How much of a run was copied."""

    copied: int
    """Finished and failed units that are in the new file."""
    planned: int
    """Units that had not been run."""
    incomplete: int
    """Copied units that lack a text of their prompts."""
    again: int
    """Units that lost something: they are planned again."""
    gone: int
    """Units whose facets could not be read: they are not in the new file."""
    has_settings: bool
    """Whether config and models of the run could be read."""

    @property
    def lost(self) -> int:
        return self.again + self.gone


def salvage(damaged: Path, target: Path) -> Salvaged:
    """Copy every unit that can be read to a new run file.

    Args:
        damaged: The run file, which is not changed.
        target: The new run file, which must not exist.
    """
    if target.exists():
        raise ConfigError(f"{target} already exists: name another file with --out")
    with RunFile.open(damaged, salvage=True) as old:
        ids = _ids(old)
        plans = {unit: plan for unit in ids if (plan := _plan(old, unit))}
        if not plans:
            raise RunFileError(f"no unit of {damaged} can be read; nothing was copied")
        order = sorted(plans, key=lambda unit: (plans[unit].position, unit))
        info = _info(old)
        settings = info.keys() >= {"study", "config", "models"}
        total = info.get("units")
        gone = max(len(ids), total if isinstance(total, int) else 0) - len(order)
        if gone:  # its plan is no longer the study's: it can be read, but not resumed
            info |= {"units": len(order), "plan": f"salvaged, {gone} lost"}
        info = {"study": "salvaged", "target": "salvaged", "config": {}, "models": [], "sources": {}} | info
        units = (Unit(unit, plans[unit].facets) for unit in order)
        try:
            with RunFile.create(target, info, _prompts(old), units) as new:
                copied, incomplete = copy_units(old, new, [unit for unit in order if not plans[unit].planned])
                for event in _readable(old, ["SELECT at, kind, detail FROM events"]):
                    with suppress(*UNREADABLE):  # such as a NULL where none can be
                        new.db.execute("INSERT INTO events VALUES (?, ?, ?)", event)
                new.note("salvaged", f"from {damaged.name}")
                with suppress(OSError, NotOpened):  # without its own reply cache it is resumed at a higher price
                    for suffix in PRIVATE_FILES[:2]:
                        copy_file(beside(damaged, suffix), beside(target, suffix))
        except BaseException:
            for part in ("", "-wal", "-shm"):  # half a run would be taken for what could be saved
                target.with_name(target.name + part).unlink(missing_ok=True)
            raise
    planned = sum(plan.planned for plan in plans.values())
    return Salvaged(
        copied=copied,
        incomplete=incomplete,
        planned=planned,
        again=len(order) - planned - copied,
        gone=gone,
        has_settings=settings,
    )


def copy_units(old: RunFile, new: RunFile, units: Iterable[str]) -> tuple[int, int]:
    """Copy the units that can be read; returns how many, and how many of them lack a text of their prompts."""
    copied = incomplete = 0
    readable = (rows for unit in units if (rows := _rows(old, unit)))
    while chunk := list(islice(readable, CHUNK)):
        copied += len(new.write(chunk))
        incomplete += sum(LOST in rows.texts for rows in chunk)
    return copied, incomplete


def _readable(file: RunFile, queries: Iterable[str]) -> Iterator[Row]:
    """The rows of each query up to its first damaged page."""
    for sql in queries:
        with suppress(*UNREADABLE):
            yield from islice(file.db.execute(sql), file.db.size())


def _ids(file: RunFile) -> list[str]:
    return list(dict.fromkeys(unit for (unit,) in _readable(file, IDS) if isinstance(unit, str)))


def _changed(file: RunFile, unit: str, *parts: str) -> bool:
    """Whether these parts differ from their checksums. If those cannot be read, the unit itself may still be whole."""
    stored: dict[str, int] = {}
    with suppress(*UNREADABLE):
        stored = stored_checks(file.db, unit)
    return is_damaged(file.db, unit, {name: stored[name] for name in parts if name in stored})


def _plan(file: RunFile, unit: str) -> _SalvagePlan | None:
    """The planned unit; None if it cannot be read, or was changed."""
    sql = "SELECT position, facets, status FROM units WHERE id = ?"
    with suppress(*UNREADABLE):
        position, text, status = file.db.execute(sql, (unit,)).fetchone()
        facets = json.loads(text)
        if isinstance(facets, dict) and not _changed(file, unit, "plan"):
            return _SalvagePlan(int(position), facets, status == "planned")
    return None


def _rows(file: RunFile, unit: str) -> Rows | None:
    """All of a unit; None if something cannot be read, or was changed."""
    db = file.db
    with suppress(*UNREADABLE):
        if _changed(file, unit, "outcome", "verdicts"):
            return None
        status = db.execute(f"SELECT {', '.join(OUTCOME)}, id FROM units WHERE id = ?", (unit,)).fetchone()
        messages, calls, verdicts = (
            db.execute(table.select, (unit,)).fetchall() for table in (MESSAGES, CALLS, VERDICTS)
        )
        messages = [_storable(message) for message in messages]
        texts = texts_of(db, unit)
        whole = {text: number for number, text in texts.items() if text is not None}
        if lost := texts.keys() - whole.values():
            messages, calls = _without(lost, messages), _without_prompts(lost, calls)
            whole[LOST] = text_id(LOST)
        return Rows(
            id=unit,
            unit=status,
            messages=messages,
            calls=calls,
            verdicts=verdicts,
            texts=whole,
            tally=Tally(),
            statuses={},
            error=(status[1] or "") if status[0] == "failed" else None,
        )
    return None


def _storable(message: Row) -> Row:
    """The message without expected scores that JSON cannot store, which older versions wrote all the same."""
    named = MESSAGES.named(message)
    if named["expected"]:
        named["expected"] = json.dumps(finite(json.loads(named["expected"])))
    return tuple(named.values())


def _without(lost: Set[int], messages: Iterable[Row]) -> list[Row]:
    """Messages without the lost texts; LookupError if one is what a model said."""
    new = []
    for message in map(MESSAGES.named, messages):
        if message["thought"] in lost or (message["text"] in lost and message["role"] != "narrator"):
            raise LookupError(message["text"])
        message |= {name: text_id(LOST) for name in ("persona", "text") if message[name] in lost}
        new.append(tuple(message.values()))
    return new


def _without_prompts(lost: Set[int], calls: Iterable[Row]) -> list[Row]:
    """Calls without the lost texts; LookupError if one is a reply or its thinking."""
    new = []
    for call in map(CALLS.named, calls):
        if call["reply"] in lost or call["thought"] in lost:
            raise LookupError(call["reply"])
        pieces = [(*piece[:2], text_id(LOST) if piece[2] in lost else piece[2]) for piece in json.loads(call["prompt"])]
        new.append(tuple((call | {"prompt": json.dumps(pieces, separators=(",", ":"))}).values()))
    return new


def _info(file: RunFile) -> dict[str, Any]:
    info = {}
    for key, value in _readable(file, ["SELECT key, value FROM run", "SELECT key, value FROM run ORDER BY key DESC"]):
        with suppress(*UNREADABLE):
            info[key] = json.loads(value)
    return info


def _prompts(file: RunFile) -> dict[str, str]:
    rows = _readable(
        file, ["SELECT name, hash, text FROM prompts", "SELECT name, hash, text FROM prompts ORDER BY 1 DESC"]
    )
    return {name: text for name, digest, text in rows if hashlib.sha256(str(text).encode()).hexdigest() == digest}
