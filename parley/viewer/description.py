"""The viewer's interface in OpenAPI's words, at /api/openapi.json: for programs that read runs through it, and for the
tests, which make up requests from it. What may be sent is taken from the models that read it."""

from __future__ import annotations

from typing import Any

from aiohttp import web
from pydantic import BaseModel

from parley import __version__
from parley.viewer.annotations import Given, NewNote, NewSet, Withdrawal
from parley.viewer.api import Asked

routes = web.RouteTableDef()
TEXT = {"type": "string"}
FILTERED = "filtered"
"""Stands for what a page's address may hold: see `api.Asked`, and f.FACET and d.FIGURE for filters."""
READS: dict[str, tuple[str, ...]] = {
    "/api/runs": (),
    "/api/run": ("run",),
    "/api/pulse": ("run",),
    "/api/headline": ("run",),
    "/api/units": ("run", FILTERED),
    "/api/unit": ("run", "unit", FILTERED),
    "/api/texts": ("run", "ids"),
    "/api/compare": ("run", "with?", "facet?", "x?", "y?", FILTERED),
    "/api/export": ("run", FILTERED),
    "/api/notes": ("run", "format?"),
    "/api/label/sets": ("run",),
    "/api/label": ("run", "set", "rater"),
    "/api/openapi.json": (),
}
WRITES: dict[str, tuple[tuple[str, ...], type[BaseModel]]] = {
    "/api/notes": (("run",), NewNote),
    "/api/notes/withdraw": (("run",), Withdrawal),
    "/api/label/sets": (("run", FILTERED), NewSet),
    "/api/label": (("run",), Given),
}
WRONG = {"400": "something to mend in the request", "404": "no such run or unit", "500": "the run file is at fault"}


def description() -> dict[str, Any]:
    paths: dict[str, dict[str, Any]] = {}
    for path, names in READS.items():
        paths.setdefault(path, {})["get"] = _operation(names)
    for path, (names, model) in WRITES.items():
        body = {"required": True, "content": {"application/json": {"schema": model.model_json_schema()}}}
        paths.setdefault(path, {})["post"] = {**_operation(names), "requestBody": body}
    return {"openapi": "3.1.0", "info": {"title": "Parley's viewer", "version": __version__}, "paths": paths}


def _operation(names: tuple[str, ...]) -> dict[str, Any]:
    asked = Asked.model_json_schema()["properties"] | {"f.phase": TEXT, "d.status": TEXT}
    found = []
    for name in names:
        if name == FILTERED:
            found += [{"name": key, "in": "query", "required": False, "schema": kind} for key, kind in asked.items()]
        else:
            plain = name.removesuffix("?")
            found.append({"name": plain, "in": "query", "required": plain == name, "schema": TEXT})
    said = {"200": "what was asked for", **WRONG}
    return {"parameters": found, "responses": {status: {"description": what} for status, what in said.items()}}


@routes.get("/api/openapi.json")
async def openapi(request: web.Request) -> web.Response:
    return web.json_response(description())
