"""The JSON interface that the pages read. Files are read in threads, and opened for each request."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from aiohttp import ClientPayloadError, web
from multidict import MultiMapping
from pydantic import BaseModel, Field, ValidationError

from parley.agents import ConfigError
from parley.runs import RunFile, reading
from parley.runs.notes import NotesFile
from parley.runs.reading import NotFound
from parley.runs.studies import facets_of
from parley.viewer import compare
from parley.viewer.export import config_page, export_page
from parley.viewer.grid import MAX_BALLOTS, ballots, grid
from parley.viewer.open_run import OpenRun
from parley.viewer.reporter import Reporter
from parley.viewer.run_folder import RunFolder, file_stamp
from parley.viewer.table import UnitQuery, UnitTable

BODY_TIMEOUT_SECONDS = 10.0
"""Seconds to read a request's body: notes and labels are small."""
MAX_FACET_CHOICES = 200
"""A facet with more values is not offered for comparison."""
MAX_FOUND = 10
BRIEF = ("headline", "also", "unavailable", "pending")
"""What a list of runs shows of each."""
Int64 = Annotated[int, Field(ge=-(2**63), lt=2**63)]
"""An integer that SQLite can store."""
M = TypeVar("M", bound=BaseModel)
routes = web.RouteTableDef()


class ViewerState:
    """What all requests share: the folder, and the runs opened so far.

    Args:
        folder: the run files to show.
    """

    def __init__(self, folder: RunFolder) -> None:
        self.folder = folder
        self.reporter = Reporter()
        self._runs: dict[str, tuple[int, OpenRun]] = {}
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

    def close(self) -> None:
        self.reporter.close()
        for _, run in self._runs.values():
            run.close()


STATE: web.AppKey[ViewerState] = web.AppKey("state", ViewerState)


def read_query(values: MultiMapping[str]) -> UnitQuery:
    """The parameters of an address; its filters are those that begin with "f." or "d."."""
    filters: dict[str, list[str]] = {}
    for key, value in values.items():
        if key.startswith(("f.", "d.")):
            filters.setdefault(key, []).append(value)
    given = {key: value for key, value in values.items() if key in UnitQuery.model_fields and value}
    try:
        return UnitQuery.model_validate({**given, "filters": filters})
    except ValidationError as error:
        raise ConfigError(_first_problem(error)) from None


def _first_problem(error: ValidationError) -> str:
    problem = error.errors()[0]
    return f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}"


async def respond(work: Callable[[], Any]) -> web.Response:
    """Run the work in a thread and send its result as JSON."""
    text = await asyncio.to_thread(lambda: json.dumps(work(), ensure_ascii=True, allow_nan=False))
    return web.Response(text=text, content_type="application/json")


async def respond_about_run(request: web.Request, work: Callable[[OpenRun], Any]) -> web.Response:
    """The same for work on the run that the address names."""
    name, state = required(request), request.app[STATE]
    return await respond(lambda: work(state.run(name)))


async def respond_from_file(request: web.Request, read: Callable[[RunFile], Any]) -> web.Response:
    """The same for what is read from the file of that run."""

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
        raise ConfigError(_first_problem(error)) from None


def required(request: web.Request, key: str = "run") -> str:
    """A parameter that the address must have."""
    value = request.query.get(key)
    if not value:
        raise ConfigError(f"the address needs {key}=…")
    return value


@routes.get("/api/runs")
async def get_runs(request: web.Request) -> web.Response:
    folder = request.app[STATE].folder

    def work() -> dict[str, Any]:
        return {
            "folder": folder.root.name or str(folder.root),
            "runs": folder.names(),
        }

    return await respond(work)


@routes.get("/api/run")
async def get_run(request: web.Request) -> web.Response:
    name, state = required(request), request.app[STATE]
    return await respond(lambda: state.folder.summary(name))


@routes.get("/api/pulse")
async def get_pulse(request: web.Request) -> web.Response:
    """Changes with every write to the run or its notes: cheap enough to request every second."""
    name, state = required(request), request.app[STATE]

    def work() -> dict[str, Any]:
        path = state.folder.path(name)
        return {"stamp": "-".join(map(str, file_stamp(path))), "notes": str(NotesFile(path).version())}

    return await respond(work)


@routes.get("/api/headline")
async def get_headline(request: web.Request) -> web.Response:
    """What the run found. In a list of runs, `brief` leaves out what only the run's own page shows."""
    reporter, brief = request.app[STATE].reporter, bool(request.query.get("brief"))

    def work(run: OpenRun) -> dict[str, Any]:
        found = run.headline(reporter, first=not brief)
        return {key: found.get(key) for key in BRIEF} if brief else found

    return await respond_about_run(request, work)


@routes.get("/api/figure")
async def get_figure(request: web.Request) -> web.Response:
    """A figure of the report, as SVG."""
    name, figure, state = required(request), required(request, "name"), request.app[STATE]

    def work() -> str:
        if (picture := state.run(name).pictures().get(figure)) is None:
            raise NotFound(f"there is no figure '{figure}' of this run")
        return picture

    return web.Response(text=await asyncio.to_thread(work), content_type="image/svg+xml")


@routes.get("/api/config")
async def get_config(request: web.Request) -> web.Response:
    return await respond_from_file(request, config_page)


@routes.get("/api/units")
async def get_units(request: web.Request) -> web.Response:
    query = read_query(request.query)
    return await respond_about_run(request, lambda run: run.page(query))


@routes.get("/api/grid")
async def get_grid(request: web.Request) -> web.Response:
    query = read_query(request.query)
    rows, columns = (request.query.get(key, "") for key in ("rows", "columns"))

    def work(run: OpenRun) -> dict[str, Any]:
        table = run.loaded_table()
        progress = run.progress(table)  # before the cells: units indexed meanwhile are asked for again
        return grid(table, query, rows, columns) | progress

    return await respond_about_run(request, work)


@routes.get("/api/ballots")
async def get_ballots(request: web.Request) -> web.Response:
    """The probabilities that were read from silent ballots, by unit."""
    units = request.query.getall("unit", [])[:MAX_BALLOTS]
    return await respond_from_file(request, lambda file: ballots(file, units))


@routes.get("/api/unit")
async def get_unit(request: web.Request) -> web.Response:
    unit_id, query = required(request, "unit"), read_query(request.query)

    def work(run: OpenRun) -> dict[str, Any]:
        with run.file() as file:
            unit = reading.read_unit(file, unit_id)
            varied = [facet.name for facet in facets_of(file.info()) if facet.kind in ("identity", "varied")]
            unit["labels"] = reading.other_labels(file, unit_id, varied)
        unit["notes"] = run.notes.notes(unit_id)
        table = run.table()
        if table is None:
            run.start_indexing()
        unit["figures"] = None if table is None else table.row(int(unit["position"]))
        unit["neighbours"] = {} if table is None else _neighbours(run, table, query, int(unit["position"]))
        return unit

    return await respond_about_run(request, work)


def _neighbours(run: OpenRun, table: UnitTable, query: UnitQuery, position: int) -> dict[str, Any]:
    """The units before and after in the filtered list that the page was opened from."""
    positions = table.positions(query, run.search(query))
    try:
        index = positions.index(position)
    except ValueError:
        return {}
    partner = table.partner[position]
    return {
        "index": index,
        "total": len(positions),
        "previous": table.ids[positions[index - 1]] if index else None,
        "next": table.ids[positions[index + 1]] if index + 1 < len(positions) else None,
        "other_order": table.ids[partner] if partner >= 0 else None,
    }


@routes.get("/api/find")
async def get_units_by_name(request: web.Request) -> web.Response:
    """The first units that have all words of a text in their ids or facets."""
    text = required(request, "text")
    return await respond_about_run(request, lambda run: {"units": run.loaded_table().find(text, MAX_FOUND)})


@routes.get("/api/texts")
async def get_texts(request: web.Request) -> web.Response:
    ids = required(request, "ids").split(",")
    return await respond_from_file(request, lambda file: reading.read_texts(file, ids))


@routes.get("/api/compare")
async def get_comparison(request: web.Request) -> web.Response:
    state, params, query = request.app[STATE], request.query, read_query(request.query)

    def work(run: OpenRun) -> dict[str, Any]:
        a = run.loaded_table()
        if other := params.get("with"):
            b = state.run(other).loaded_table()
            pairs = compare.match_by_id(a, b)
        else:
            b = a
            pairs = compare.match_by_facet(a, params.get("facet", ""), params.get("x", ""), params.get("y", ""))
        result = compare.differences(a, b, pairs, query.judge, query.page, query.size)
        result["facets"] = {
            facet: column.labels for facet, column in a.facets.items() if 2 <= len(column.labels) <= MAX_FACET_CHOICES
        }
        result["judges"] = a.judges()
        result["points"] = compare.points(a, b, pairs, query.judge)
        return result

    return await respond_about_run(request, work)


@routes.get("/api/comparison")
async def get_tested_comparison(request: web.Request) -> web.Response:
    """Another run minus this one, with intervals and tests, as `parley compare` gives them."""
    other, state = required(request, "with"), request.app[STATE]
    return await respond_about_run(request, lambda run: run.comparison(state.folder.path(other), state.reporter))


def download(name: str) -> dict[str, str]:
    return {"Content-Disposition": f'attachment; filename="{name}"'}


@routes.get("/api/export")
async def get_export(request: web.Request) -> web.Response:
    name, state, query = required(request), request.app[STATE], read_query(request.query)
    page = await asyncio.to_thread(lambda: export_page(state.folder, state.run(name), name, query))
    return web.Response(text=page, content_type="text/html", headers=download(f"{name.replace('/', '-')}.html"))
