"""The requests that the viewer answers: parameters by path, and request bodies as the models that parse them."""

from __future__ import annotations

from typing import Any, NamedTuple

from pydantic import BaseModel

from parley.viewer.api import NewExport
from parley.viewer.notes_api import LabelUndo, NewDraw, NewLabels, NewNote, NoteWithdrawal

READS = {
    "/api/runs": (),
    "/api/run": ("run",),
    "/api/pulse": ("run",),
    "/api/headline": ("run", "brief?"),
    "/api/figure": ("run", "name"),
    "/api/config": ("run",),
    "/api/units": ("run", "plan?", "after?"),
    "/api/search": ("run", "q", "prompts?", "unit?"),
    "/api/ballots": ("run", "unit?"),
    "/api/unit": ("run", "unit"),
    "/api/texts": ("run", "ids"),
    "/api/comparison": ("run", "with"),
    "/api/notes": ("run", "format?"),
    "/api/label/sets": ("run",),
    "/api/label": ("run", "set", "rater"),
}
"""Parameters by path; those with a question mark are optional."""
WRITES: dict[str, tuple[tuple[str, ...], type[BaseModel]]] = {
    "/api/export": (("run",), NewExport),
    "/api/notes": (("run",), NewNote),
    "/api/notes/withdraw": (("run",), NoteWithdrawal),
    "/api/label/sets": (("run", "f.phase?"), NewDraw),
    "/api/label": (("run",), NewLabels),
    "/api/label/undo": (("run",), LabelUndo),
}


class Operation(NamedTuple):
    method: str
    path: str
    query: dict[str, dict[str, Any]]
    """JSON schemas of the parameters, by name; a question mark after a name says that it is optional."""
    body: dict[str, dict[str, Any]]
    """JSON schemas of the fields of the body."""


def operations() -> list[Operation]:
    reads = [Operation("GET", path, _query(names), {}) for path, names in READS.items()]
    return reads + [
        Operation("POST", path, _query(names), model.model_json_schema()["properties"])
        for path, (names, model) in WRITES.items()
    ]


def _query(names: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    return {name: {"type": "string"} for name in names}
