"""The JSON interface for notes, label sets and blind labels."""

from __future__ import annotations

import asyncio
import csv
import io
from typing import Annotated, Any

from aiohttp import web
from pydantic import BaseModel, Field

from parley.agents import ConfigError, seed_from
from parley.reports.label_draw import DrawSettings, draw_items, why_fewer
from parley.reports.label_texts import SCALE, label_item
from parley.runs.notes import AboutRun, NotesFile
from parley.runs.reading import NotFound
from parley.viewer import labelling
from parley.viewer.api import STATE, Int64, download, read_body, read_query, required, respond

routes = web.RouteTableDef()
TextNumber = Annotated[int, Field(ge=0, lt=100)]
ShortText = Annotated[str, Field(max_length=80)]
NOTE_COLUMNS = ("unit", "seq", "author", "tag", "comment", "at")
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


class NewNote(BaseModel, extra="forbid", frozen=True):
    unit: str
    seq: Int64 | None = None
    author: str = Field("", max_length=80)
    tag: str = Field("", max_length=60)
    comment: str = Field("", max_length=20_000)


class NewAbout(BaseModel, extra="forbid", frozen=True):
    """What people call a run."""

    name: str = Field("", max_length=120)
    group: str = Field("", max_length=80)
    tags: list[Annotated[str, Field(max_length=60)]] = Field([], max_length=20)


class NoteWithdrawal(BaseModel, extra="forbid", frozen=True):
    id: Int64


class NewLabelSet(BaseModel, extra="forbid", frozen=True):
    count: int = Field(50, ge=1, le=1000)
    seed: Int64 = 0


class NewLabels(BaseModel, extra="forbid", frozen=True):
    """One rater's labels of one item."""

    set: Int64
    item: Int64
    rater: str = Field(min_length=1, max_length=80)
    scores: list[tuple[TextNumber, ShortText, Annotated[float, Field(ge=SCALE[0], le=SCALE[1])]]] = Field(
        [], max_length=100
    )
    """(number of the text, metric, value)…"""
    choice: ShortText | None = None
    """The value of the chosen option: A, B or tie of a pair."""


@routes.get("/api/notes")
async def get_notes(request: web.Request) -> web.Response:
    name, state = required(request), request.app[STATE]
    if request.query.get("format") == "csv":
        notes = await asyncio.to_thread(lambda: state.run(name).notes.notes())
        text = io.StringIO()
        writer = csv.writer(text)
        writer.writerow(NOTE_COLUMNS)
        writer.writerows([_not_a_formula(note[column]) for column in NOTE_COLUMNS] for note in notes)
        return web.Response(text=text.getvalue(), content_type="text/csv", headers=download("notes.csv"))

    def work() -> dict[str, Any]:
        notes, table = state.run(name).notes, state.table(name)
        positions = table.positions_by_id()
        return {
            "notes": [
                note | {"facets": table.row(positions[note["unit"]])["facets"] if note["unit"] in positions else {}}
                for note in notes.notes()
            ],
            "labels": notes.labels(),
            "tags": labelling.tag_table(notes, table),
        }

    return await respond(work)


def _not_a_formula(value: Any) -> Any:
    """The value, quoted if a spreadsheet would run it as a formula."""
    return "'" + value if isinstance(value, str) and value.startswith(FORMULA_STARTS) else value


@routes.post("/api/notes")
async def add_note(request: web.Request) -> web.Response:
    name, state, note = required(request), request.app[STATE], await read_body(request, NewNote)
    if not note.tag.strip() and not note.comment.strip():
        raise ConfigError("a note needs a tag or a comment")

    def work() -> dict[str, Any]:
        run = state.run(name)
        with run.file() as file:
            if file.status(note.unit) is None:
                raise NotFound(f"there is no unit '{note.unit}' in this run")
        run.notes.add(note.unit, note.seq, note.author.strip(), note.tag.strip(), note.comment.strip())
        return {"notes": run.notes.notes(note.unit)}

    return await respond(work)


@routes.post("/api/about")
async def describe_run(request: web.Request) -> web.Response:
    """Name, group and tag a run, in its notes file."""
    name, state, new = required(request), request.app[STATE], await read_body(request, NewAbout)

    def work() -> dict[str, Any]:
        tags = tuple(dict.fromkeys(tag.strip() for tag in new.tags if tag.strip()))
        NotesFile(state.folder.path(name)).describe_run(AboutRun(new.name.strip(), new.group.strip(), tags))
        return state.folder.about(name)

    return await respond(work)


@routes.post("/api/notes/withdraw")
async def withdraw_note(request: web.Request) -> web.Response:
    name, state, withdrawal = required(request), request.app[STATE], await read_body(request, NoteWithdrawal)

    def work() -> dict[str, Any]:
        state.run(name).notes.withdraw(withdrawal.id)
        return {}

    return await respond(work)


@routes.get("/api/label/sets")
async def get_label_sets(request: web.Request) -> web.Response:
    name, state = required(request), request.app[STATE]

    def work() -> dict[str, Any]:
        run = state.run(name)
        with run.file() as file:
            return {
                "sets": [
                    {
                        "id": draw["id"],
                        "items": draw["settings"].get("drawn"),
                        "fewer": why_fewer(draw["settings"]),
                        "seed": draw["seed"],
                        "at": draw["at"],
                        "agreement": labelling.agreement(file, run.notes, draw["id"]),
                    }
                    for draw in run.notes.draws()
                ]
            }

    return await respond(work)


@routes.post("/api/label/sets")
async def add_label_set(request: web.Request) -> web.Response:
    """Draw a set from the finished units that match the filters in the address."""
    name, state, new = required(request), request.app[STATE], await read_body(request, NewLabelSet)
    query, params = read_query(request.query)

    def work() -> dict[str, Any]:
        run, table = state.run(name), state.table(name)
        done = table.status.get("done", 0)
        positions = table.positions(query, run.search(params.q, include_prompts=params.prompts))
        units = [table.ids[position] for position in positions if done >> position & 1]
        filters = {**{key: list(values) for key, values in query.filters.items()}, "q": params.q}
        with run.file() as file:
            seed = seed_from("labelling", new.seed, file.info().get("plan"))
            settings = DrawSettings(count=new.count, seed=seed, filters=filters)
            return {"set": draw_items(file, run.notes, units, settings)}

    return await respond(work)


@routes.get("/api/label")
async def get_label_item(request: web.Request) -> web.Response:
    name, state, rater = required(request), request.app[STATE], required(request, "rater")
    set_id = _integer("set", required(request, "set"))

    def work() -> dict[str, Any]:
        run = state.run(name)
        with run.file() as file:
            return labelling.next_item(file, run.notes, set_id, rater)

    return await respond(work)


@routes.post("/api/label")
async def add_labels(request: web.Request) -> web.Response:
    name, state, labels = required(request), request.app[STATE], await read_body(request, NewLabels)

    def work() -> dict[str, Any]:
        run = state.run(name)
        unit = labelling.unit_of_item(run.notes, labels.set, labels.rater, labels.item)
        with run.file() as file:
            rows = labelling.label_rows(label_item(file, unit), labels.scores, labels.choice)
        run.notes.add_labels(labels.set, unit, labels.rater, rows)
        return {}

    return await respond(work)


def _integer(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ConfigError(f"{name} needs a number, got '{text}'") from None
