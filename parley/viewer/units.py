"""The units of a run as the page gets them: a table in columns, which the page filters, sorts and counts by itself.

Facets come from the plan and never change: they are sent once, as labels and a code for each unit. Figures are sent as
units are indexed. `static/units.js` is the only place that answers a query; an exported page brings the same table.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

from parley.runs import RunFile
from parley.runs.reading import parse_facets
from parley.viewer.figures import UnitFigures, UnitUsage

PAGE = {"fields": UnitFigures._fields, "usage": UnitUsage._fields}
"""What the numbers in a row of figures are."""


def planned_units(rows: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """The ids of units, and their facets as columns.

    Args:
        rows: the id of each unit, and its facets as JSON.
    """
    labels: dict[str, dict[str, int]] = {}
    codes: dict[str, array[int]] = {}
    for position, (_, text) in enumerate(rows):
        for name, value in parse_facets(text).items():
            if name not in codes:
                labels[name], codes[name] = {}, array("i", [-1]) * len(rows)
            numbers = labels[name]
            codes[name][position] = numbers.setdefault(value, len(numbers))
    facets = {name: {"labels": list(labels[name]), "codes": column.tolist()} for name, column in codes.items()}
    return {"ids": [unit for unit, _ in rows], "facets": facets}


def progress_of(file: RunFile) -> dict[str, Any]:
    """What changes while a run continues: how far each unit is, by the first letter of its status, and errors.

    Args:
        file: the run.
    """
    letters = "SELECT substr(status, 1, 1) AS letter FROM units ORDER BY position"
    status = file.rows(f"SELECT group_concat(letter, '') FROM ({letters})")[1][0][0] or ""
    errors = dict(file.rows("SELECT position, error FROM units WHERE status = 'failed'")[1])
    return {"status": status, "errors": errors, "done": status.count("d")}
