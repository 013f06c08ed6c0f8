"""What the pages ask for, as JSON. Reading happens in threads, on files opened for the answer and closed again."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Mapping
from typing import Annotated, Any, TypeVar

from aiohttp import ClientPayloadError, web
from multidict import MultiMapping
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from parley.agents import ConfigError
from parley.viewer import compare, reading
from parley.viewer.context import ViewerContext
from parley.viewer.export import export_page
from parley.viewer.library import Library, stamp
from parley.viewer.notes import Notes
from parley.viewer.table import Query, UnitTable

PATIENCE = 10.0
"""Seconds for what is sent with a request: notes and labels are small."""
Whole = Annotated[int, Field(ge=-(2**63), lt=2**63)]
"""A number that a database can hold."""
T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)
routes = web.RouteTableDef()


class Room:
    """The library and the desks that are open."""

    def __init__(self, library: Library) -> None:
        self.library = library
        self._desks: dict[str, tuple[int, ViewerContext]] = {}
        self._lock = threading.Lock()

    def desk(self, name: str) -> ViewerContext:
        """The run's desk; a new one when another file stands at its place."""
        path = self.library.path(name)
        with self._lock:
            number, desk = self._desks.get(name, (0, None))
            if desk is None or number != path.stat().st_ino:
                if desk is not None:
                    desk.close()
                desk = ViewerContext(path)
                self._desks[name] = (path.stat().st_ino, desk)
            return desk

    def table(self, name: str) -> UnitTable:
        table = self.desk(name).table(wait=True)
        assert table is not None
        return table

    def close(self) -> None:
        for _, desk in self._desks.values():
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


async def answer(work: Callable[[], Any]) -> web.Response:
    found = await asyncio.to_thread(lambda: json.dumps(work(), ensure_ascii=True, allow_nan=False))
    return web.Response(text=found, content_type="application/json")


async def read_body(request: web.Request, model: type[M]) -> M:
    """What was sent, as UTF-8 whatever its header says; whoever sends it drop by drop is not waited for."""
    try:
        async with asyncio.timeout(PATIENCE):
            return model.model_validate_json(await request.read())
    except TimeoutError:
        raise web.HTTPRequestTimeout from None
    except (web.RequestPayloadError, ClientPayloadError) as error:
        raise ConfigError(f"what was sent cannot be read: {error}") from None
    except ValidationError as error:
        first = error.errors()[0]
        raise ConfigError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None


def wanted(request: web.Request, key: str = "run") -> str:
    value = request.query.get(key)
    if not value:
        raise ConfigError(f"'{key}' is missing in the address")
    return value


@routes.get("/api/runs")
async def runs(request: web.Request) -> web.Response:
    library = request.app[ROOM].library

    def work() -> Mapping[str, Any]:
        return {"place": library.root.name or str(library.root), "runs": [{"name": name} for name in library.names()]}

    return await answer(work)


@routes.get("/api/run")
async def run(request: web.Request) -> web.Response:
    name, room = wanted(request), request.app[ROOM]
    return await answer(lambda: room.library.summary(name))


@routes.get("/api/pulse")
async def pulse(request: web.Request) -> web.Response:
    """Whether anything was written since: cheap enough to ask every second."""
    name, room = wanted(request), request.app[ROOM]

    def work() -> dict[str, Any]:
        path = room.library.path(name)
        return {"stamp": "-".join(map(str, stamp(path))), "notes": str(Notes(path).version())}

    return await answer(work)


@routes.get("/api/headline")
async def headline(request: web.Request) -> web.Response:
    name, room = wanted(request), request.app[ROOM]
    return await answer(lambda: room.desk(name).headline())


@routes.get("/api/units")
async def units(request: web.Request) -> web.Response:
    name, room = wanted(request), request.app[ROOM]
    query, asked = read_query(request.query)
    return await answer(lambda: room.desk(name).page(query, asked.q, asked=asked.asked))


@routes.get("/api/unit")
async def unit(request: web.Request) -> web.Response:
    name, unit_id, room = wanted(request), wanted(request, "unit"), request.app[ROOM]
    query, asked = read_query(request.query)

    def work() -> dict[str, Any]:
        desk = room.desk(name)
        with desk.file() as file:
            found = reading.unit_whole(file, unit_id)
        found["notes"] = desk.notes.of(unit_id)
        found["neighbours"] = _neighbours(desk, query, asked, int(found["position"]))
        return found

    return await answer(work)


def _neighbours(desk: ViewerContext, query: Query, asked: Asked, position: int) -> dict[str, Any]:
    """The units before and after in the list one came from."""
    table = desk.table()
    if table is None:
        desk.begin()
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
    name, ids, room = wanted(request), wanted(request, "ids").split(","), request.app[ROOM]

    def work() -> dict[str, str]:
        with room.desk(name).file() as file:
            return reading.texts(file, ids)

    return await answer(work)


@routes.get("/api/compare")
async def comparison(request: web.Request) -> web.Response:
    name, room, given = wanted(request), request.app[ROOM], request.query
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

    return await answer(work)


def download(name: str) -> dict[str, str]:
    return {"Content-Disposition": f'attachment; filename="{name}"'}


@routes.get("/api/export")
async def export(request: web.Request) -> web.Response:
    name, room = wanted(request), request.app[ROOM]
    query, asked = read_query(request.query)
    page = await asyncio.to_thread(
        lambda: export_page(room.library, room.desk(name), name, query, asked.q, asked.asked)
    )
    return web.Response(text=page, content_type="text/html", headers=download(f"{name.replace('/', '-')}.html"))
