"""What people say about a run, as the pages send and ask for it: notes, sets to label, labels."""

from __future__ import annotations

import asyncio
import csv
import io
from typing import Annotated, Any, Literal

from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field

from parley.agents import ConfigError, seed_from
from parley.viewer import labelling
from parley.viewer.api import ROOM, Whole, answer, download, read_body, read_query, wanted
from parley.viewer.labelling import SCALE
from parley.viewer.library import NotHere

routes = web.RouteTableDef()
Word = Annotated[str, Field(max_length=80)]


class NewNote(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    unit: str
    seq: Whole | None = None
    author: str = Field("", max_length=80)
    tag: str = Field("", max_length=60)
    comment: str = Field("", max_length=20_000)


class Withdrawal(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    id: Whole


@routes.get("/api/notes")
async def notes(request: web.Request) -> web.Response:
    name, room = wanted(request), request.app[ROOM]
    if request.query.get("format") == "csv":
        rows = await asyncio.to_thread(lambda: room.desk(name).notes.of())
        out = io.StringIO()
        writer = csv.writer(out)
        columns = ("unit", "seq", "author", "tag", "comment", "at")
        writer.writerow(columns)
        writer.writerows([_harmless(row[key]) for key in columns] for row in rows)
        return web.Response(text=out.getvalue(), content_type="text/csv", headers=download("notes.csv"))

    def work() -> dict[str, Any]:
        desk = room.desk(name)
        return {
            "notes": desk.notes.of(),
            "labels": desk.notes.labels(),
            "tags": labelling.tag_table(desk.notes, room.table(name)),
        }

    return await answer(work)


def _harmless(value: Any) -> Any:
    """A spreadsheet would take such a text for a formula."""
    return "'" + value if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")) else value


@routes.post("/api/notes")
async def add_note(request: web.Request) -> web.Response:
    name, room, note = wanted(request), request.app[ROOM], await read_body(request, NewNote)
    if not note.tag.strip() and not note.comment.strip():
        raise ConfigError("a note needs a tag or a comment")

    def work() -> dict[str, Any]:
        desk = room.desk(name)
        with desk.file() as file:
            if file.status(note.unit) is None:
                raise NotHere(f"there is no unit '{note.unit}' in this run")
        desk.notes.add(note.unit, note.seq, note.author.strip(), note.tag.strip(), note.comment.strip())
        return {"notes": desk.notes.of(note.unit)}

    return await answer(work)


@routes.post("/api/notes/withdraw")
async def withdraw_note(request: web.Request) -> web.Response:
    name, room, asked = wanted(request), request.app[ROOM], await read_body(request, Withdrawal)

    def work() -> dict[str, Any]:
        room.desk(name).notes.withdraw(asked.id)
        return {}

    return await answer(work)


class NewSet(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    count: int = Field(50, ge=1, le=1000)
    seed: Whole = 0


class Given(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    set: Whole
    item: Whole
    rater: str = Field(min_length=1, max_length=80)
    scores: list[tuple[Word, Word, Annotated[float, Field(ge=SCALE[0], le=SCALE[1])]]] = Field([], max_length=100)
    """(subject, metric, value)…"""
    preferred: Literal["A", "B", "tie"] | None = None


@routes.get("/api/label/sets")
async def label_sets(request: web.Request) -> web.Response:
    name, room = wanted(request), request.app[ROOM]

    def work() -> dict[str, Any]:
        desk, table = room.desk(name), room.table(name)
        sets = desk.notes.sets()
        return {
            "sets": [
                {
                    "id": one["id"],
                    "items": len(one["items"]),
                    "seed": one["seed"],
                    "at": one["at"],
                    "agreement": labelling.agreement(desk.notes, table, one["id"]),
                }
                for one in sets
            ]
        }

    return await answer(work)


@routes.post("/api/label/sets")
async def new_set(request: web.Request) -> web.Response:
    """A set of items from the units the address's filters leave."""
    name, room, new = wanted(request), request.app[ROOM], await read_body(request, NewSet)
    query, asked = read_query(request.query)

    def work() -> dict[str, Any]:
        desk, table = room.desk(name), room.table(name)
        done = table.status.get("done", 0)
        places = table.positions(query, desk.search(asked.q, asked=asked.asked))
        chosen = [table.ids[position] for position in places if done >> position & 1]
        filters = {key: list(values) for key, values in query.wanted.items()}
        with desk.file() as file:
            seed = seed_from("labelling", new.seed, file.info().get("plan"))
            return {"set": labelling.new_set(file, desk.notes, chosen, new.count, seed, {**filters, "q": asked.q})}

    return await answer(work)


@routes.get("/api/label")
async def label_item(request: web.Request) -> web.Response:
    name, room, rater = wanted(request), request.app[ROOM], wanted(request, "rater")
    nth = _number(wanted(request, "set"))

    def work() -> dict[str, Any]:
        desk = room.desk(name)
        with desk.file() as file:
            return labelling.item(file, desk.notes, nth, rater)

    return await answer(work)


@routes.post("/api/label")
async def label(request: web.Request) -> web.Response:
    name, room, given = wanted(request), request.app[ROOM], await read_body(request, Given)

    def work() -> dict[str, Any]:
        desk = room.desk(name)
        unit_id = labelling.unit_of(desk.notes, given.set, given.rater, given.item)
        rows: list[tuple[str, str, float | None, str | None]] = [(s, m, value, None) for s, m, value in given.scores]
        if given.preferred is not None:
            rows.append(("", "preferred", None, given.preferred))
        if not rows:
            raise ConfigError("nothing was said about this item")
        desk.notes.label(given.set, unit_id, given.rater, rows)
        return {}

    return await answer(work)


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ConfigError(f"'{text}' is not a number") from None
