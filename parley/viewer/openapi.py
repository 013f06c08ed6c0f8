"""The viewer's interface in OpenAPI format, served at /api/openapi.json: for programs that read runs through it, and
for the tests, which generate requests from it. Request bodies are described by the models that parse them."""

from __future__ import annotations

from typing import Any

from aiohttp import web
from pydantic import BaseModel

from parley import __version__
from parley.viewer.notes_api import LabelUndo, NewAbout, NewDraw, NewLabels, NewNote, NoteWithdrawal
from parley.viewer.table import UnitQuery

routes = web.RouteTableDef()
TEXT = {"type": "string"}
PAGE_PARAMS = "page parameters"
"""Stands for all fields of `UnitQuery`, with two examples of its filters (f.FACET, d.FIGURE)."""
READS: dict[str, tuple[str, ...]] = {
    "/api/runs": (),
    "/api/run": ("run",),
    "/api/pulse": ("run",),
    "/api/headline": ("run", "brief?"),
    "/api/figure": ("run", "name"),
    "/api/config": ("run",),
    "/api/units": ("run", PAGE_PARAMS),
    "/api/grid": ("run", "rows?", "columns?", PAGE_PARAMS),
    "/api/ballots": ("run", "unit?"),
    "/api/unit": ("run", "unit", PAGE_PARAMS),
    "/api/find": ("run", "text"),
    "/api/texts": ("run", "ids"),
    "/api/compare": ("run", "with?", "facet?", "x?", "y?", PAGE_PARAMS),
    "/api/comparison": ("run", "with"),
    "/api/export": ("run", PAGE_PARAMS),
    "/api/notes": ("run", "format?"),
    "/api/label/sets": ("run",),
    "/api/label": ("run", "set", "rater"),
    "/api/openapi.json": (),
}
"""Parameters by path; those with a question mark are optional."""
WRITES: dict[str, tuple[tuple[str, ...], type[BaseModel]]] = {
    "/api/notes": (("run",), NewNote),
    "/api/about": (("run",), NewAbout),
    "/api/notes/withdraw": (("run",), NoteWithdrawal),
    "/api/label/sets": (("run", PAGE_PARAMS), NewDraw),
    "/api/label": (("run",), NewLabels),
    "/api/label/undo": (("run",), LabelUndo),
}
RESPONSES = {
    "200": "the result",
    "400": "the request is wrong",
    "404": "no such run or unit",
    "500": "the run file is damaged or cannot be read",
}


def openapi_description() -> dict[str, Any]:
    paths: dict[str, dict[str, Any]] = {}
    for path, names in READS.items():
        paths.setdefault(path, {})["get"] = _operation(names)
    for path, (names, model) in WRITES.items():
        body = {"required": True, "content": {"application/json": {"schema": model.model_json_schema()}}}
        paths.setdefault(path, {})["post"] = {**_operation(names), "requestBody": body}
    return {"openapi": "3.1.0", "info": {"title": "Parley's viewer", "version": __version__}, "paths": paths}


def _operation(names: tuple[str, ...]) -> dict[str, Any]:
    page_params = UnitQuery.model_json_schema()["properties"] | {"f.phase": TEXT, "d.status": TEXT}
    del page_params["filters"]
    parameters = []
    for name in names:
        if name == PAGE_PARAMS:
            parameters += [
                {"name": key, "in": "query", "required": False, "schema": schema} for key, schema in page_params.items()
            ]
        else:
            key = name.removesuffix("?")
            parameters.append({"name": key, "in": "query", "required": key == name, "schema": TEXT})
    responses = {status: {"description": text} for status, text in RESPONSES.items()}
    return {"parameters": parameters, "responses": responses}


@routes.get("/api/openapi.json")
async def get_openapi(request: web.Request) -> web.Response:
    return web.json_response(openapi_description())
