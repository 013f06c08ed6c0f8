"""A new run file: its tables, the plan, the prompts and what the run was started with."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from parley.agents import ParleyError
from parley.judging import Unit
from parley.runs.checks import add_plan_checks
from parley.runs.failures import RunFileError, reason
from parley.runs.schema import APPLICATION_ID, FORMAT, statements


def create_file(path: Path, info: Mapping[str, Any], prompts: Mapping[str, str], plan: Iterable[Unit]) -> None:
    """Write the file under another name, then rename it."""
    part = path.with_name(path.name + ".part")
    try:
        part.unlink(missing_ok=True)
        db = sqlite3.connect(part, isolation_level=None)
        db.execute("PRAGMA journal_mode = OFF")
        _fill_database(db, info, prompts, plan)
        db.close()
        part.replace(path)
    except sqlite3.IntegrityError as error:
        part.unlink(missing_ok=True)
        raise ParleyError(f"the study planned two units with the same id ({error})") from None
    except (sqlite3.Error, OSError) as error:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        raise RunFileError(f"{path} cannot be written: {reason(error)}") from None


def _fill_database(
    db: sqlite3.Connection, info: Mapping[str, Any], prompts: Mapping[str, str], plan: Iterable[Unit]
) -> None:
    db.execute("BEGIN IMMEDIATE")
    for statement in statements():
        db.execute(statement)
    rows = ((unit.id, n, json.dumps(dict(unit.facets), ensure_ascii=False)) for n, unit in enumerate(plan))
    db.executemany("INSERT INTO units (id, position, facets) VALUES (?, ?, ?)", rows)
    add_plan_checks(db)
    hashed = [(name, hashlib.sha256(text.encode()).hexdigest(), text) for name, text in prompts.items()]
    db.executemany("INSERT INTO prompts VALUES (?, ?, ?)", hashed)
    db.executemany("INSERT INTO run VALUES (?, ?)", [(key, json.dumps(value)) for key, value in info.items()])
    db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    db.execute(f"PRAGMA user_version = {FORMAT}")
    db.execute("COMMIT")
