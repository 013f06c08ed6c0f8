"""The JSON interface for notes, label sets and blind labels."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Annotated, Any, Literal

from aiohttp import web
from pydantic import BaseModel, Field

from parley.agents import ConfigError, seed_from
from parley.judging.labelled import SCALE
from parley.reports.labels.draws import DrawSettings, draw_items
from parley.reports.labels.files import as_csv
from parley.runs.reading import NotFound
from parley.viewer import labelling
from parley.viewer.api import (
    STATE,
    Int64,
    download,
    facet_filters,
    integer,
    read_body,
    required,
    respond_about_run,
)
from parley.viewer.labelling import RaterView
from parley.viewer.open_run import OpenRun

routes = web.RouteTableDef()
TextNumber = Annotated[int, Field(ge=0, lt=100)]
ShortText = Annotated[str, Field(max_length=80)]
NOTE_COLUMNS = ("unit", "seq", "author", "tag", "comment", "at")


class NewNote(BaseModel, extra="forbid", frozen=True):
    unit: str
    seq: Int64 | None = None
    author: str = Field("", max_length=80)
    tag: str = Field("", max_length=60)
    comment: str = Field("", max_length=20_000)


class NoteWithdrawal(BaseModel, extra="forbid", frozen=True):
    id: Int64


class NewDraw(BaseModel, extra="forbid", frozen=True):
    count: int = Field(50, ge=1, le=1000)
    kind: Literal["random", "sorted"] = "random"
    floor: float = Field(1.0, gt=0, le=1)
    scores: bool = False


class NewLabels(BaseModel, extra="forbid", frozen=True):
    """One rater's answers about one item; without any, it is skipped."""

    set: Int64
    item: Int64
    rater: str = Field(min_length=1, max_length=80)
    scores: list[tuple[TextNumber, ShortText, Annotated[float, Field(ge=SCALE[0], le=SCALE[1])]]] = Field(
        [], max_length=100
    )
    """(number of the text, metric, value)…"""
    choice: ShortText | None = None
    """The value of the chosen option: A, B or tie of a pair."""
    comment: str = Field("", max_length=2000)


class LabelUndo(BaseModel, extra="forbid", frozen=True):
    """Takes back a rater's last item."""

    set: Int64
    rater: str = Field(min_length=1, max_length=80)


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


@routes.get("/api/label/sets")
async def get_draws(request: web.Request) -> web.Response:
    def work(run: OpenRun) -> dict[str, Any]:
        with run.file() as file:
            return {"sets": [labelling.draw_json(file, run.notes, draw) for draw in run.notes.draws()]}

    return await respond_about_run(request, work)


@routes.post("/api/label/sets")
async def add_draw(request: web.Request) -> web.Response:
    """Draw items from the finished units that have the facets in the address."""
    new, filters = await read_body(request, NewDraw), facet_filters(request.query)

    def work(run: OpenRun) -> dict[str, Any]:
        with run.file() as file:
            number = len(run.notes.draws())  # so that each draw differs
            settings = DrawSettings(
                count=new.count,
                seed=seed_from("labelling", number, file.info().get("plan")),
                kind=new.kind,
                floor=new.floor,
                scores=new.scores,
                filters=filters,
            )
            return {"set": draw_items(file, run.notes, settings)}

    return await respond_about_run(request, work)


@routes.get("/api/label")
async def get_label_item(request: web.Request) -> web.Response:
    return await _next_item(request, integer("set", required(request, "set")), required(request, "rater"))


@routes.post("/api/label")
async def add_labels(request: web.Request) -> web.Response:
    """Store the answers, and send the next item."""
    new = await read_body(request, NewLabels)
    return await _next_item(
        request, new.set, new.rater, lambda view: view.store(new.item, new.scores, new.choice, new.comment)
    )


@routes.post("/api/label/undo")
async def undo_labels(request: web.Request) -> web.Response:
    """Take back the rater's last item, and send it again."""
    undo = await read_body(request, LabelUndo)
    return await _next_item(request, undo.set, undo.rater, RaterView.undo)


async def _next_item(
    request: web.Request, draw: int, rater: str, change: Callable[[RaterView], None] = lambda view: None
) -> web.Response:
    """Change a rater's labels, and send the item that is next."""

    def work(run: OpenRun) -> dict[str, Any]:
        with run.file() as file:
            view = RaterView(file, run.notes, draw, rater)
            change(view)
            return view.next_item()

    return await respond_about_run(request, work)
