"""The run files of a folder, each with the summary that the runs page shows. A file that cannot be read is listed as
broken, with the reason."""

from __future__ import annotations

import re
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from parley.agents import ParleyError
from parley.base.text import encodable
from parley.runs import RunFile
from parley.runs.notes import runs_in
from parley.runs.opening import beside
from parley.runs.reading import NotFound
from parley.runs.studies import facets_of, measures_of

FileStamp = tuple[int, ...]
STOPPED_AFTER_SECONDS = 120.0
"""If locks cannot be listed, a run without a write for this long counts as stopped."""


def file_stamp(path: Path) -> FileStamp:
    """Changes with every write to the run: time and size of the file and of its write-ahead log."""
    stamp: list[int] = []
    for file in (path, beside(path, "-wal")):
        try:
            stat = file.stat()
            stamp += [stat.st_mtime_ns, stat.st_size]
        except OSError:
            stamp += [0, 0]
    return tuple(stamp)


class RunFolder:
    """One run file, or all run files below a folder. Runs are named by their path below it; no other name is accepted.

    Args:
        path: a run file or a folder.
    """

    def __init__(self, path: Path) -> None:
        self.selected = path
        self.root = path if path.is_dir() else path.parent
        self._summaries: dict[str, tuple[FileStamp, dict[str, Any], float]] = {}

    def paths(self) -> dict[str, Path]:
        """The runs by name, the newest first; a name that is not UTF-8 is escaped."""
        if self.root != self.selected:
            return {encodable(self.selected.name): self.selected}
        if not self.root.is_dir():
            raise NotFound("the folder of these runs was moved or deleted: start the viewer again where they are")
        paths = sorted(runs_in(self.root), key=file_stamp, reverse=True)
        return {encodable(path.relative_to(self.root).as_posix()): path for path in paths}

    def path(self, name: str) -> Path:
        if (path := self.paths().get(name)) is None:
            raise NotFound(f"there is no run '{name}' in this folder")
        return path

    def summary(self, name: str) -> dict[str, Any]:
        """The run's summary for the runs page; read again only when the file has changed."""
        path = self.path(name)
        stamp = file_stamp(path)
        cached = self._summaries.get(name)
        if cached is None or (cached[0] != stamp and time.monotonic() > cached[2]):
            started = time.monotonic()
            summary = _summary(name, path)
            # A large run changes all the time while it runs: at most a tenth of the time goes into its summary.
            cached = (stamp, summary, time.monotonic() + 10 * (time.monotonic() - started))
            self._summaries[name] = cached
        summary = dict(cached[1])
        if "broken" not in summary:
            summary["state"] = run_state(path, summary["units"])
        return summary


def _summary(name: str, path: Path) -> dict[str, Any]:
    stat = path.stat()
    base = {"name": name, "size": stat.st_size, "changed": stat.st_mtime}
    try:
        with RunFile.open(path) as file:
            info, units = file.info(), file.counts()
            calls, tokens, cost, priced = file.spent()
            _, events = file.rows("SELECT at, kind, detail FROM events ORDER BY at")
            _, errors = file.rows(
                "SELECT error, count(*) FROM units WHERE status = 'failed' GROUP BY error ORDER BY 2 DESC LIMIT 5"
            )
            _, labels = file.rows("SELECT substr(name, 7), text FROM prompts WHERE name LIKE 'label/%'")
        config, wordings = info["config"], {wording: in_words(text) for wording, text in labels}
        return {
            **base,
            "study": str(info["study"]),
            "models": [str(model) for model in info["models"]],
            "suite": str(config.get("suite") or "") if isinstance(config, dict) else "",
            "measures": [asdict(measure) for measure in measures_of(info)],
            "config": config,
            "versions": info.get("versions"),
            "facets": [
                asdict(replace(facet, words=wordings) if facet.name == "wording" else facet)
                for facet in facets_of(info)
            ],
            "units": units,
            "started": events[0][0] if events else None,
            "last_event": {"at": events[-1][0], "kind": events[-1][1], "detail": events[-1][2]} if events else None,
            "calls": calls,
            "tokens": tokens,
            "cost": cost if priced else None,
            "errors": [{"error": error or "(no reason was stored)", "units": count} for error, count in errors],
        }
    except (ParleyError, KeyError, ValueError, TypeError) as error:
        reason = str(error) if isinstance(error, ParleyError) else f"{path} is not a complete run file ({error!r})"
        return {**base, "broken": encodable(reason.replace(f"{path}", path.name))}


def in_words(template: str) -> str:
    """A label's wording with a gap in place of the identity: "Answer, written by …:"."""
    text = template.replace("{answer}", "Answer").replace("{a} ", "a ")
    return " ".join(re.sub(r"\{\w+\}", "…", text).split())


def run_state(path: Path, units: dict[str, int]) -> str:
    """finished, running or stopped."""
    if units["planned"] == 0 and units["failed"] == 0:
        return "finished"
    lock = beside(path, ".lock")
    if not lock.exists():
        return "stopped"
    locked = _is_locked(lock)
    if locked is None:
        locked = time.time() - max(file_stamp(path)[0::2]) / 1e9 < STOPPED_AFTER_SECONDS
    return "running" if locked else "stopped"


def _is_locked(lock: Path) -> bool | None:
    """Whether a process has the lock, according to the kernel's list; None if there is no such list.

    Trying to take the lock would be simpler, but could make a run that starts at that moment fail.
    """
    try:
        inode = lock.stat().st_ino
        lines = Path("/proc/locks").read_text("ascii").splitlines()
    except OSError:
        return None
    return any(fields[1] == "FLOCK" and fields[-3].endswith(f":{inode}") for fields in map(str.split, lines))
