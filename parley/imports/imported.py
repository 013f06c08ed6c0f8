"""Runs of other tools, written as run files: `parley show`, the viewer, frames and reports can then read them."""

from __future__ import annotations

import gzip
import hashlib
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any

from parley import __version__
from parley.agents import ConfigError
from parley.base.text import without_surrogates
from parley.runs import Record, RunFile

UNREADABLE = (AttributeError, LookupError, TypeError, ValueError, OverflowError, RecursionError)
"""What reading a conversation of an unexpected shape raises."""
CHUNK = 200
"""Conversations written in one transaction."""
SOURCE = "log"
"""The facet `source` of a unit that was read from another's log, so that reports can name recomputed values."""
MAX_UNPACKED = 512 * 2**20
"""Maximum size of an unpacked file in bytes: a few kilobytes of gzip may unpack to far more than any memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """A run of another tool."""

    study: str
    models: list[str]
    source: Path
    """The file it was read from."""
    records: Callable[[], Iterator[Record]] = field(repr=False)
    """Reads the file from its beginning, one conversation after the other."""
    config: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    """What was counted while it was read, in lines."""


def write_run(imported: Imported, path: Path) -> tuple[int, int]:
    """Write a run file; returns how many conversations it has, and how many of them had failed.

    Args:
        imported: The run.
        path: The run file, which must not exist.
    """
    if path.exists():
        raise ConfigError(f"{path} already exists: name another file with --out")
    units = [record.unit for record in imported.records()]
    if not units:
        raise ConfigError(f"{imported.source} contains no conversations")
    plan = hashlib.sha256("\n".join(unit.id for unit in units).encode()).hexdigest()
    info = {
        "study": imported.study,
        "target": f"imported {imported.study}",
        "config": dict(imported.config),
        "models": imported.models,
        "sources": {imported.source.name: _digest(imported.source)},
        "plan": plan,
        "units": len(units),
        "versions": {"parley-autogen": __version__},
    }
    failed = 0
    with RunFile.create(path, info, {}, units) as file:
        file.note("imported", imported.source.name)
        records = imported.records()
        while chunk := list(islice(records, CHUNK)):
            failed += sum(rows.failed for rows in file.write(chunk))  # also those that SQLite could not store
    return len(units), failed


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_json(path: Path, text: str | bytes) -> Any:
    try:
        return without_surrogates(json.loads(text))
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: not JSON ({error})") from None


def whole_number(value: object) -> int:
    """A count of tokens or retries, 0 if there is none; ValueError if it is not one that can be stored."""
    number = float(value or 0)  # type: ignore[arg-type]
    if not 0 <= number < 2**53:
        raise ValueError(f"{value} is not a count")
    return int(number)


def duration(value: object) -> float:
    """Seconds, 0 if there are none; ValueError if they are not a finite number."""
    number = float(value or 0)  # type: ignore[arg-type]
    if not math.isfinite(number):
        raise ValueError(f"{value} is not a duration")
    return number


def seconds(timestamp: object) -> float:
    """An ISO timestamp in seconds since 1970; 0 if it is not one."""
    try:
        return datetime.fromisoformat(str(timestamp)).timestamp()
    except (ValueError, OverflowError, OSError):  # also a year that the system's clock does not reach
        return 0.0


def facets_of(metadata: Any) -> dict[str, str | int | bool]:
    """The entries of metadata that can be facets: integers and short strings."""
    items = metadata.items() if isinstance(metadata, dict) else ()
    return {
        re.sub(r"\W", "_", str(key)): value
        for key, value in items
        if isinstance(value, int) or (isinstance(value, str) and len(value) <= 200)
    }


def read_log(path: Path) -> str:
    """The text of a file, unpacked if its name ends in .gz.

    Args:
        path: The file.
    """
    try:
        if path.suffix != ".gz":
            return path.read_text("utf-8-sig")
        with gzip.open(path) as file:
            content = file.read(MAX_UNPACKED + 1)
        if len(content) > MAX_UNPACKED:
            raise ConfigError(f"{path} has more than {MAX_UNPACKED // 2**20} MiB unpacked")
        return content.decode("utf-8-sig")
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: {getattr(error, 'strerror', None) or 'not a text file'}") from None


def bare_name(path: Path) -> str:
    """The name of a file without .gz and its suffix."""
    return Path(path.name.removesuffix(".gz")).stem
