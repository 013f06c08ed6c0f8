"""The run files of a folder, and what each says of itself at a glance. Broken ones are listed as broken, with why."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from parley.agents import ParleyError
from parley.runs import RunFile
from parley.runs.interim import counts

Stamp = tuple[int, ...]
QUIET_AFTER = 120.0
"""Seconds without a write after which a run that holds no lock we can see counts as stopped."""


class NotHere(ParleyError):
    """A run, unit or message that is not there."""


def stamp(path: Path) -> Stamp:
    """Changes whenever something was written to the run: the file's and its write-ahead log's time and size."""
    found: list[int] = []
    for one in (path, path.with_name(path.name + "-wal")):
        try:
            state = one.stat()
            found += [state.st_mtime_ns, state.st_size]
        except OSError:
            found += [0, 0]
    return tuple(found)


class Library:
    """One run file, or all of a folder. Runs are named by their path below it; nothing else can be asked for."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.root = place if place.is_dir() else place.parent
        self._summaries: dict[str, tuple[Stamp, dict[str, Any], float]] = {}

    def names(self) -> list[str]:
        if not self.place.is_dir():
            return [self.place.name]
        found = [path for path in self.root.rglob("*.sqlite") if not path.name.endswith(".notes.sqlite")]
        found = [path for path in found if path.is_file()]
        found.sort(key=lambda path: path.stat().st_mtime, reverse=True)
        return [path.relative_to(self.root).as_posix() for path in found]

    def path(self, name: str) -> Path:
        if name not in self.names():
            raise NotHere(f"there is no run '{name}' here")
        return self.root / name

    def summary(self, name: str) -> dict[str, Any]:
        """What the runs page shows; read again only when the file has changed."""
        path = self.path(name)
        now = stamp(path)
        known = self._summaries.get(name)
        if known is None or (known[0] != now and time.monotonic() > known[2]):
            begun = time.monotonic()
            summary = _summary(name, path)
            # A large run that is going on changes all the time: at most a tenth of the time goes into its summary.
            known = (now, summary, time.monotonic() + 10 * (time.monotonic() - begun))
            self._summaries[name] = known
        summary = dict(known[1])
        if "broken" not in summary:
            summary["state"] = state(path, summary["units"])
        return summary


def _summary(name: str, path: Path) -> dict[str, Any]:
    bare = {"name": name, "size": path.stat().st_size, "changed": path.stat().st_mtime}
    try:
        with RunFile.open(path) as file:
            info, units = file.info(), counts(file)
            calls, tokens, cost, priced = file.spent()
            _, events = file.rows("SELECT at, kind, detail FROM events ORDER BY at")
            _, errors = file.rows(
                "SELECT error, count(*) FROM units WHERE status = 'failed' GROUP BY error ORDER BY 2 DESC LIMIT 5"
            )
        config = info["config"]
        return {
            **bare,
            "study": str(info["study"]),
            "models": [str(model) for model in info["models"]],
            "suite": str(config.get("suite") or "") if isinstance(config, dict) else "",
            "config": config,
            "versions": info.get("versions"),
            "units": units,
            "started": events[0][0] if events else None,
            "last_event": {"at": events[-1][0], "kind": events[-1][1], "detail": events[-1][2]} if events else None,
            "calls": calls,
            "tokens": tokens,
            "cost": cost if priced else None,
            "errors": [{"error": error or "(no reason was kept)", "units": count} for error, count in errors],
        }
    except (ParleyError, KeyError, ValueError, TypeError) as error:
        why = str(error) if isinstance(error, ParleyError) else f"{path} lacks what a run has ({error!r})"
        return {**bare, "broken": why.replace(f"{path}", path.name)}


def state(path: Path, units: dict[str, int]) -> str:
    """finished, running, or stopped."""
    if units["planned"] == 0 and units["failed"] == 0:
        return "finished"
    lock = path.with_name(path.name + ".lock")
    if not lock.exists():
        return "stopped"
    held = _held(lock)
    if held is None:
        held = time.time() - max(stamp(path)[0::2]) / 1e9 < QUIET_AFTER
    return "running" if held else "stopped"


def _held(lock: Path) -> bool | None:
    """Whether a process holds the lock, as the kernel lists it; None where there is no such list.

    Asking by taking the lock would be simpler, and could make a run that starts at that moment give up.
    """
    try:
        inode = lock.stat().st_ino
        lines = Path("/proc/locks").read_text("ascii").splitlines()
    except OSError:
        return None
    return any(fields[1] == "FLOCK" and fields[-3].endswith(f":{inode}") for fields in map(str.split, lines))


def unit_ids(file: RunFile) -> list[str]:
    """The ids in the order of the plan; a unit's place in this list is its position."""
    return [row[0] for row in file.rows("SELECT id FROM units ORDER BY position")[1]]


def facets_of(text: str) -> dict[str, str]:
    """Facets as text: what is shown, filtered and compared."""
    return {
        key: value if isinstance(value, str) else str(value) if type(value) is int else json.dumps(value)
        for key, value in json.loads(text).items()
    }
