"""The JSON interface for the pages. Files are read in threads, and opened for each request."""

from __future__ import annotations

import asyncio
import json
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeVar

from aiohttp import ClientPayloadError, web
from pydantic import BaseModel, Field, ValidationError

from parley.agents import ConfigError, ParleyError
from parley.base.text import encodable
from parley.reports.labels import as_csv, first_lines
from parley.runs import RunFile, reading
from parley.runs.diagnosis import find_damage
from parley.runs.notes import NotesFile
from parley.runs.reading import NotFound
from parley.viewer.export import config_page, export_page
from parley.viewer.index import excerpts, search_terms
from parley.viewer.open_run import OpenRun
from parley.viewer.reporter import Reporter
from parley.viewer.run_folder import FileStamp, RunFolder, file_stamp

BODY_TIMEOUT_SECONDS = 10.0
"""Seconds to read a request's body: notes and labels are small."""
MAX_BALLOTS = 200
MAX_SEARCH = 500
LISTING_SECONDS = 0.5
"""Time limit for reading a list of runs; the rest is read when the page asks again."""
ROW = ("name", "size", "study", "models", "suite", "units", "errors", "started", "cost", "state", "broken")
FOUND = ("cautions", "headline", "also", "unavailable", "pending")
"""Fields of a run and its report in a list of runs."""
Int64 = Annotated[int, Field(ge=-(2**63), lt=2**63)]
"""An integer that SQLite can store."""
M = TypeVar("M", bound=BaseModel)
routes = web.RouteTableDef()


class ViewerState:
    """Shared by all requests: the folder, and the opened runs.

    Args:
        folder: the run files to show.
    """

    def __init__(self, folder: RunFolder) -> None:
        self.folder = folder
        self.reporter = Reporter()
        self._runs: dict[str, tuple[int, OpenRun]] = {}
        self._rows: dict[str, tuple[FileStamp, dict[str, Any]]] = {}
        self._lock = threading.Lock()

    def run(self, name: str) -> OpenRun:
        """The run of this name, opened again if its file was replaced."""
        path = self.folder.path(name)
        with self._lock:
            inode, run = self._runs.get(name, (0, None))
            if run is None or inode != path.stat().st_ino:
                if run is not None:
                    run.close()
                run = OpenRun(path)
                self._runs[name] = (path.stat().st_ino, run)
            return run

    def row(self, name: str, path: Path, deadline: float) -> dict[str, Any]:
        """A run in the list of runs: only its name after the deadline, unless it was read before."""
        stamp = file_stamp(path)
        if (cached := self._rows.get(name)) and cached[0] == stamp:
            return cached[1]
        if time.monotonic() > deadline:
            return {"name": name, "unread": True}
        row: dict[str, Any] = {"name": name}
        try:
            summary = self.folder.summary(name)
            row = {key: summary[key] for key in ROW if key in summary}
            if "broken" not in row:
                headline = self.run(name).report(reporter=self.reporter)
                row["found"] = {key: headline.get(key) for key in FOUND}
                if row["state"] != "finished" or headline.get("pending"):
                    return row  # another one is read next time
        except (ParleyError, OSError) as error:  # it may have been deleted meanwhile
            row["broken"] = str(error).replace(f"{self.folder.root}{os.sep}", "")
        except Exception as error:  # whatever a file contains, the others are listed
            row["broken"] = find_damage(path) or f"it cannot be read ({type(error).__name__})"
        self._rows[name] = (stamp, row)
        return row

    def close(self) -> None:
        self.reporter.close()
        for _, run in self._runs.values():
            run.close()


STATE: web.AppKey[ViewerState] = web.AppKey("state", ViewerState)


async def respond(work: Callable[[], Any]) -> web.Response:
    """Run the work in a thread and send its result as JSON."""
    text = await asyncio.to_thread(lambda: json.dumps(work(), ensure_ascii=True, allow_nan=False))
    return web.Response(text=text, content_type="application/json")


async def respond_about_run(request: web.Request, work: Callable[[OpenRun], Any]) -> web.Response:
    """Like `respond`, for work on the run that the address names."""
    name, state = required(request), request.app[STATE]
    return await respond(lambda: work(state.run(name)))


async def respond_from_file(request: web.Request, read: Callable[[RunFile], Any]) -> web.Response:
    """Like `respond`, for data from the file of that run."""

    def work(run: OpenRun) -> Any:
        with run.file() as file:
            return read(file)

    return await respond_about_run(request, work)


async def read_body(request: web.Request, model: type[M]) -> M:
    """The request's body, read as UTF-8 whatever charset its header names, within a time limit."""
    try:
        async with asyncio.timeout(BODY_TIMEOUT_SECONDS):
            return model.model_validate_json(await request.read())
    except TimeoutError:
        raise web.HTTPRequestTimeout from None
    except (web.RequestPayloadError, ClientPayloadError) as error:
        raise ConfigError(f"the request's body cannot be read: {error}") from None
    except ValidationError as error:
        problem = error.errors()[0]
        raise ConfigError(f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}") from None


def required(request: web.Request, key: str = "run") -> str:
    """A parameter that the address must have."""
    value = request.query.get(key)
    if not value:
        raise ConfigError(f"the address needs {key}=…")
    return value


@routes.get("/api/runs")
async def get_runs(request: web.Request) -> web.Response:
    """The names of all runs; with `rows`, also their results."""
    state, with_rows = request.app[STATE], bool(request.query.get("rows"))

    def work() -> dict[str, Any]:
        paths, deadline = state.folder.paths(), time.monotonic() + LISTING_SECONDS
        rows = [state.row(name, path, deadline) for name, path in paths.items()] if with_rows else []
        folder = encodable(state.folder.root.name or str(state.folder.root))
        return {"folder": folder, "runs": [*paths], "rows": rows}

    return await respond(work)


@routes.get("/api/run")
async def get_run(request: web.Request) -> web.Response:
    name, state = required(request), request.app[STATE]
    return await respond(lambda: state.folder.summary(name))


@routes.get("/api/pulse")
async def get_pulse(request: web.Request) -> web.Response:
    """Changes with every write to the run or its notes: cheap enough for every second. Empty once it is deleted."""
    name, state = required(request), request.app[STATE]

    def work() -> dict[str, Any]:
        try:
            path = state.folder.path(name)
        except NotFound:
            return {"stamp": "", "notes": ""}
        return {"stamp": "-".join(map(str, file_stamp(path))), "notes": str(NotesFile(path).version())}

    return await respond(work)


@routes.get("/api/headline")
async def get_headline(request: web.Request) -> web.Response:
    """The run's results."""
    return await respond_about_run(request, lambda run: run.report(reporter=request.app[STATE].reporter, first=True))


@routes.get("/api/config")
async def get_config(request: web.Request) -> web.Response:
    return await respond_from_file(request, config_page)


@routes.get("/api/units")
async def get_units(request: web.Request) -> web.Response:
    """All units in columns, or those new since the last request; the page filters, sorts and counts them."""
    name, state, plan = required(request), request.app[STATE], request.query.get("plan", "")
    after = integer("after", request.query.get("after", "0"))
    text = await asyncio.to_thread(lambda: state.run(name).units(plan, after))
    return web.Response(text=text, content_type="application/json")


@routes.get("/api/search")
async def get_matches(request: web.Request) -> web.Response:
    """The positions of the units that contain some words; for units in the address, the text around the words.

    Without words, the first line of each unit's text.
    """
    units, prompts = request.query.getall("unit", [])[:MAX_BALLOTS], bool(request.query.get("prompts"))
    words = request.query.get("q", "") if units else required(request, "q")
    if len(words) > MAX_SEARCH:
        raise ConfigError(f"q: a search has at most {MAX_SEARCH} characters")

    def work(run: OpenRun) -> Any:
        if not units:
            return run.search(words, prompts=prompts)
        with run.file() as file:
            return first_lines(file, units) | excerpts(file, units, search_terms(words), include_prompts=prompts)

    return await respond_about_run(request, work)


@routes.get("/api/ballots")
async def get_ballots(request: web.Request) -> web.Response:
    """The probabilities that were read from silent ballots, by unit."""
    units = request.query.getall("unit", [])[:MAX_BALLOTS]
    return await respond_from_file(request, lambda file: reading.read_ballots(file, units))


@routes.get("/api/unit")
async def get_unit(request: web.Request) -> web.Response:
    unit_id = required(request, "unit")

    def work(run: OpenRun) -> dict[str, Any]:
        with run.file() as file:
            return reading.read_unit(file, unit_id) | {"notes": run.notes.notes(unit_id)}

    return await respond_about_run(request, work)


@routes.get("/api/texts")
async def get_texts(request: web.Request) -> web.Response:
    ids = required(request, "ids").split(",")
    return await respond_from_file(request, lambda file: reading.read_texts(file, ids))


@routes.get("/api/comparison")
async def get_tested_comparison(request: web.Request) -> web.Response:
    """Another run minus this one, with intervals and tests, as in `parley compare`."""
    other, state = required(request, "with"), request.app[STATE]
    return await respond_about_run(
        request, lambda run: run.report(state.folder.path(other), reporter=state.reporter, first=True)
    )


class NewExport(BaseModel, extra="forbid", frozen=True):
    units: list[str]


@routes.post("/api/export")
async def export(request: web.Request) -> web.Response:
    """A page with these units, in one file."""
    name, state, new = required(request), request.app[STATE], await read_body(request, NewExport)
    page = await asyncio.to_thread(lambda: export_page(state.folder, state.run(name), name, new.units))
    return web.Response(text=page, content_type="text/html")


def integer(name: str, text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        raise ConfigError(f"{name} needs a number, got '{text}'") from None
    if not -(2**63) <= number < 2**63:  # what SQLite can store
        raise ConfigError(f"{name} is too large: '{text}'")
    return number


NOTE_COLUMNS = ("unit", "seq", "author", "tag", "comment", "at")


class NewNote(BaseModel, extra="forbid", frozen=True):
    unit: str
    seq: Int64 | None = None
    author: str = Field("", max_length=80)
    tag: str = Field("", max_length=60)
    comment: str = Field("", max_length=20_000)


class NoteWithdrawal(BaseModel, extra="forbid", frozen=True):
    id: Int64


@routes.get("/api/notes")
async def get_notes(request: web.Request) -> web.Response:
    name, state = required(request), request.app[STATE]
    if request.query.get("format") == "csv":
        notes = await asyncio.to_thread(lambda: state.run(name).notes.notes())
        saved = {"Content-Disposition": 'attachment; filename="notes.csv"'}
        return web.Response(text=as_csv(notes, NOTE_COLUMNS), content_type="text/csv", headers=saved)

    return await respond_about_run(request, lambda run: {"notes": run.notes.notes()})


@routes.post("/api/notes")
async def add_note(request: web.Request) -> web.Response:
    note = await read_body(request, NewNote)
    if not note.tag.strip() and not note.comment.strip():
        raise ConfigError("a note needs a tag or a comment")

    def work(run: OpenRun) -> dict[str, Any]:
        with run.file() as file:
            if file.status(note.unit) is None:
                raise NotFound(f"there is no unit '{note.unit}' in this run")
        run.notes.add(note.unit, note.seq, note.author.strip(), note.tag.strip(), note.comment.strip())
        return {"notes": run.notes.notes(note.unit)}

    return await respond_about_run(request, work)


@routes.post("/api/notes/withdraw")
async def withdraw_note(request: web.Request) -> web.Response:
    withdrawal = await read_body(request, NoteWithdrawal)
    return await respond_about_run(request, lambda run: run.notes.withdraw(withdrawal.id))
