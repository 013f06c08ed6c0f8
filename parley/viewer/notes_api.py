"""The JSON interface for notes."""

from __future__ import annotations

import asyncio
from typing import Any

from aiohttp import web
from pydantic import BaseModel, Field

from parley.agents import ConfigError
from parley.reports.labels import as_csv
from parley.runs.reading import NotFound
from parley.viewer.api import (
    STATE,
    Int64,
    download,
    read_body,
    required,
    respond_about_run,
)
from parley.viewer.open_run import OpenRun

routes = web.RouteTableDef()
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
        return web.Response(text=as_csv(notes, NOTE_COLUMNS), content_type="text/csv", headers=download("notes.csv"))

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
