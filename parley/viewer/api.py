"""What the pages ask for, as JSON. Reading happens in threads, on files opened for the answer and closed again."""

from __future__ import annotations

import asyncio
import csv
import io
import json
from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Any, TypeVar

from aiohttp import web
from multidict import MultiMapping
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agents import ConfigError, seed_from
from parley.viewer import compare, labelling, reading
from parley.viewer.desk import Desk
from parley.viewer.export import export_page
from parley.viewer.library import Library, NotHere, stamp
from parley.viewer.table import Query, Table

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)
routes = web.RouteTableDef()
PAGE_SIZES = range(1, 501)


class Room:
    """The library and the desks that are open."""

    def __init__(self, library: Library) -> None:
        self.library = library
        self._desks: dict[str, Desk] = {}

    def desk(self, name: str) -> Desk:
        path = self.library.path(name)
        if name not in self._desks:
            self._desks[name] = Desk(path)
        return self._desks[name]

    def table(self, name: str) -> Table:
        table = self.desk(name).table(wait=True)
        assert table is not None
        return table

    def close(self) -> None:
        for desk in self._desks.values():
            desk.close()


ROOM: web.AppKey[Room] = web.AppKey("room", Room)


class Asked(BaseModel):
    """What stands in a page's address: the filters, the judge, the order, the page."""

    model_config = ConfigDict(frozen=True)

    judge: str = ""
    low: float | None = Field(None, allow_inf_nan=False)
    high: float | None = Field(None, allow_inf_nan=False)
    sort: str = "position"
    desc: bool = False
    page: int = Field(0, ge=0)
    size: int = Field(50, ge=1, le=500)
    q: str = Field("", max_length=500)
    asked: bool = False
    """Search what the table was asked, too."""


def read_query(given: MultiMapping[str]) -> tuple[Query, Asked]:
    try:
        asked = Asked.model_validate(
            {key: value for key, value in given.items() if key in Asked.model_fields and value}
        )
    except ValidationError as error:
        first = error.errors()[0]
        raise ConfigError(f"{first['loc'][0]}: {first['msg']}") from None
    wanted: dict[str, list[str]] = {}
    for key, value in given.items():
        if key.startswith(("f.", "d.")):
            wanted.setdefault(key, []).append(value)
    query = Query(wanted, asked.judge, asked.low, asked.high, asked.sort, asked.desc, asked.page, asked.size)
    return query, asked


async def _answer(work: Callable[[], Any]) -> web.Response:
    found = await asyncio.to_thread(lambda: json.dumps(work(), ensure_ascii=True, allow_nan=False))
    return web.Response(text=found, content_type="application/json")


async def _body(request: web.Request, model: type[M]) -> M:
    try:
        return model.model_validate_json(await request.text())
    except ValidationError as error:
        first = error.errors()[0]
        raise ConfigError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None


def _wanted(request: web.Request, key: str = "run") -> str:
    value = request.query.get(key)
    if not value:
        raise ConfigError(f"'{key}' is missing in the address")
    return value


@routes.get("/api/runs")
async def runs(request: web.Request) -> web.Response:
    library = request.app[ROOM].library

    def work() -> Mapping[str, Any]:
        return {"place": library.root.name or str(library.root), "runs": [{"name": name} for name in library.names()]}

    return await _answer(work)


@routes.get("/api/run")
async def run(request: web.Request) -> web.Response:
    name, room = _wanted(request), request.app[ROOM]
    return await _answer(lambda: room.library.summary(name))


@routes.get("/api/pulse")
async def pulse(request: web.Request) -> web.Response:
    """Whether anything was written since: cheap enough to ask every second."""
    name, room = _wanted(request), request.app[ROOM]

    def work() -> dict[str, Any]:
        path = room.library.path(name)
        return {"stamp": "-".join(map(str, stamp(path))), "notes": str(room.desk(name).notes.version())}

    return await _answer(work)


@routes.get("/api/headline")
async def headline(request: web.Request) -> web.Response:
    name, room = _wanted(request), request.app[ROOM]
    return await _answer(lambda: room.desk(name).headline())


@routes.get("/api/units")
async def units(request: web.Request) -> web.Response:
    name, room = _wanted(request), request.app[ROOM]
    query, asked = read_query(request.query)
    return await _answer(lambda: room.desk(name).page(query, asked.q, asked=asked.asked))


@routes.get("/api/unit")
async def unit(request: web.Request) -> web.Response:
    name, wanted, room = _wanted(request), _wanted(request, "unit"), request.app[ROOM]
    query, asked = read_query(request.query)

    def work() -> dict[str, Any]:
        desk = room.desk(name)
        with closing(desk.file()) as file:
            found = reading.unit_whole(file, wanted)
        found["notes"] = desk.notes.of(wanted)
        found["neighbours"] = _neighbours(desk, query, asked, int(found["position"]))
        return found

    return await _answer(work)


def _neighbours(desk: Desk, query: Query, asked: Asked, position: int) -> dict[str, Any]:
    """The units before and after in the list one came from."""
    table = desk.table()
    if table is None:
        return {}
    places = table.positions(query, desk.search(asked.q, asked=asked.asked))
    try:
        at = places.index(position)
    except ValueError:
        return {}
    partner = table.partner[position]
    return {
        "at": at,
        "of": len(places),
        "previous": table.ids[places[at - 1]] if at else None,
        "next": table.ids[places[at + 1]] if at + 1 < len(places) else None,
        "other_order": table.ids[partner] if partner >= 0 else None,
    }


@routes.get("/api/texts")
async def texts(request: web.Request) -> web.Response:
    name, ids, room = _wanted(request), _wanted(request, "ids").split(","), request.app[ROOM]

    def work() -> dict[str, str]:
        with closing(room.desk(name).file()) as file:
            return reading.texts(file, ids)

    return await _answer(work)


@routes.get("/api/compare")
async def comparison(request: web.Request) -> web.Response:
    name, room, given = _wanted(request), request.app[ROOM], request.query
    query, _ = read_query(given)

    def work() -> dict[str, Any]:
        a = room.table(name)
        if other := given.get("with"):
            b = room.table(other)
            pairs = compare.same_units(a, b)
        else:
            b = a
            pairs = compare.swapped_units(a, given.get("facet", ""), given.get("x", ""), given.get("y", ""))
        found = compare.differences(a, b, pairs, query.judge, query.page, query.size)
        found["facets"] = {key: col.labels for key, col in a.facets.items() if 2 <= len(col.labels) <= 200}
        found["judges"] = [judge for judge in a.lenses if judge]
        found["sizes"] = [a.size, b.size]
        return found

    return await _answer(work)


class NewNote(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    unit: str
    seq: int | None = None
    author: str = Field("", max_length=80)
    tag: str = Field("", max_length=60)
    comment: str = Field("", max_length=20_000)


class Withdrawal(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    id: int


@routes.get("/api/notes")
async def notes(request: web.Request) -> web.Response:
    name, room = _wanted(request), request.app[ROOM]
    if request.query.get("format") == "csv":
        rows = await asyncio.to_thread(lambda: room.desk(name).notes.of())
        out = io.StringIO()
        writer = csv.writer(out)
        columns = ("unit", "seq", "author", "tag", "comment", "at")
        writer.writerow(columns)
        writer.writerows([_harmless(row[key]) for key in columns] for row in rows)
        return web.Response(text=out.getvalue(), content_type="text/csv", headers=_download("notes.csv"))

    def work() -> dict[str, Any]:
        desk = room.desk(name)
        return {
            "notes": desk.notes.of(),
            "labels": desk.notes.labels(),
            "tags": labelling.tag_table(desk.notes, room.table(name)),
        }

    return await _answer(work)


def _harmless(value: Any) -> Any:
    """A spreadsheet would take such a text for a formula."""
    return "'" + value if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")) else value


def _download(name: str) -> dict[str, str]:
    return {"Content-Disposition": f'attachment; filename="{name}"'}


@routes.post("/api/notes")
async def add_note(request: web.Request) -> web.Response:
    name, room, note = _wanted(request), request.app[ROOM], await _body(request, NewNote)
    if not note.tag.strip() and not note.comment.strip():
        raise ConfigError("a note needs a tag or a comment")

    def work() -> dict[str, Any]:
        desk = room.desk(name)
        with closing(desk.file()) as file:
            if file.status(note.unit) is None:
                raise NotHere(f"there is no unit '{note.unit}' in this run")
        desk.notes.add(note.unit, note.seq, note.author.strip(), note.tag.strip(), note.comment.strip())
        return {"notes": desk.notes.of(note.unit)}

    return await _answer(work)


@routes.post("/api/notes/withdraw")
async def withdraw_note(request: web.Request) -> web.Response:
    name, room, asked = _wanted(request), request.app[ROOM], await _body(request, Withdrawal)

    def work() -> dict[str, Any]:
        room.desk(name).notes.withdraw(asked.id)
        return {}

    return await _answer(work)


class NewSet(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    count: int = Field(50, ge=1, le=1000)
    seed: int = 0


class Given(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    set: int
    item: int
    rater: str = Field(min_length=1, max_length=80)
    scores: list[tuple[str, str, float]] = []
    """(subject, metric, value)…"""
    preferred: str | None = None


@routes.get("/api/label/sets")
async def label_sets(request: web.Request) -> web.Response:
    name, room = _wanted(request), request.app[ROOM]

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

    return await _answer(work)


@routes.post("/api/label/sets")
async def new_set(request: web.Request) -> web.Response:
    """A set of items from the units the address's filters leave."""
    name, room, wanted = _wanted(request), request.app[ROOM], await _body(request, NewSet)
    query, asked = read_query(request.query)

    def work() -> dict[str, Any]:
        desk, table = room.desk(name), room.table(name)
        done = table.status.get("done", 0)
        places = table.positions(query, desk.search(asked.q, asked=asked.asked))
        chosen = [table.ids[position] for position in places if done >> position & 1]
        filters = {key: list(values) for key, values in query.wanted.items()}
        with closing(desk.file()) as file:
            seed = seed_from("labelling", wanted.seed, file.info().get("plan"))
            return {"set": labelling.new_set(file, desk.notes, chosen, wanted.count, seed, {**filters, "q": asked.q})}

    return await _answer(work)


@routes.get("/api/label")
async def label_item(request: web.Request) -> web.Response:
    name, room, rater = _wanted(request), request.app[ROOM], _wanted(request, "rater")
    nth = _number(_wanted(request, "set"))

    def work() -> dict[str, Any]:
        desk = room.desk(name)
        with closing(desk.file()) as file:
            return labelling.item(file, desk.notes, nth, rater)

    return await _answer(work)


@routes.post("/api/label")
async def label(request: web.Request) -> web.Response:
    name, room, given = _wanted(request), request.app[ROOM], await _body(request, Given)

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

    return await _answer(work)


@routes.get("/api/export")
async def export(request: web.Request) -> web.Response:
    name, room = _wanted(request), request.app[ROOM]
    query, asked = read_query(request.query)
    page = await asyncio.to_thread(
        lambda: export_page(room.library, room.desk(name), name, query, asked.q, asked.asked)
    )
    return web.Response(text=page, content_type="text/html", headers=_download(f"{name.replace('/', '-')}.html"))


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ConfigError(f"'{text}' is not a number") from None
