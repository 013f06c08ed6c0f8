"""What was run elsewhere, on its way into a run file: the viewer, `parley show`, frames and reports then serve it."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any

from parley import __version__
from parley.agents import ConfigError
from parley.runs import Record, RunFile

AT_ONCE = 200
"""Conversations written in one transaction."""


@dataclass(frozen=True, slots=True)
class Imported:
    """A run of another tool. `records` reads it anew each time, one conversation after the other."""

    study: str
    models: list[str]
    source: Path
    records: Callable[[], Iterator[Record]] = field(repr=False)
    config: Mapping[str, Any] = field(default_factory=dict)


def write_run(found: Imported, path: Path) -> tuple[int, int]:
    """The run file; how many conversations it holds, and how many of them failed where they were run."""
    if path.exists():
        raise ConfigError(f"{path} is there already: name another file with --out")
    units = [record.unit for record in found.records()]
    if not units:
        raise ConfigError(f"{found.source}: there is no conversation in it")
    plan = hashlib.sha256("\n".join(unit.id for unit in units).encode()).hexdigest()
    info = {
        "study": found.study,
        "target": f"imported {found.study}",
        "config": dict(found.config),
        "models": found.models,
        "sources": {found.source.name: _digest(found.source)},
        "plan": plan,
        "units": len(units),
        "versions": {"parley-autogen": __version__},
    }
    failed = 0
    with closing(RunFile.create(path, info, {}, units)) as file:
        file.note("imported", found.source.name)
        records = found.records()
        while some := list(islice(records, AT_ONCE)):
            failed += sum(record.outcome is None for record in some)
            file.write(some)
    return len(units), failed


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_json(path: Path, text: str | bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: not JSON ({error})") from None


def read_text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: {getattr(error, 'strerror', None) or 'not a text file'}") from None


def seconds(moment: object) -> float:
    """A moment as it stands in a log, in seconds since 1970; 0 where there is none."""
    try:
        return datetime.fromisoformat(str(moment)).timestamp()
    except ValueError:
        return 0.0


def facets_of(metadata: Any) -> dict[str, str | int | bool]:
    """What of a table of anything can be a facet: plain words and whole numbers."""
    rows = metadata.items() if isinstance(metadata, dict) else ()
    return {
        re.sub(r"\W", "_", str(key)): value
        for key, value in rows
        if isinstance(value, int) or (isinstance(value, str) and len(value) <= 200)
    }
