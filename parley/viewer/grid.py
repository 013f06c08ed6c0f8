"""The grid: a row per situation, a column per varied value, a unit's score in each cell, the largest spread first.

It is the screen of a silent run, where a unit is one number: one situation under all identities. Any study has a grid
if its units have a text and something varied on it: a method, a model, an attempt.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from typing import Any

from parley.runs import RunFile
from parley.runs.rows import finite
from parley.viewer.table import UnitQuery, UnitTable

MAX_COLUMNS = 60
MAX_BALLOTS = 200


def grid(table: UnitTable, query: UnitQuery, rows: str = "", columns: str = "") -> dict[str, Any]:
    """The cells of a page of rows; `columns` is empty where the study has no natural grid.

    Args:
        table: the run's units.
        query: filters, judge and page; the order is that of the spread.
        rows: the facet of the rows; "": the most natural.
        columns: the facet of the columns; "": the most natural.
    """
    row_facets = table.named("text")[::-1]  # the last one says most exactly what a unit is about
    column_facets = [
        name for name in [*table.named("identity")[:1], *table.named("varied")] if len(table.facets[name].labels) > 1
    ]
    row_facet = rows if rows in table.facets else next(iter(row_facets), "")
    found: dict[str, Any] = {"row_facets": row_facets, "column_facets": column_facets, "columns": [], "rows": []}
    for column_facet in [columns] if columns in table.facets else [name for name in column_facets if name != row_facet]:
        if not row_facet:
            break
        part, positions = _one_part(table, query, column_facet)
        labels = _labels(table, column_facet, positions)
        if 1 < len(labels) <= MAX_COLUMNS:
            cells = _cells(table, query.judge, row_facet, column_facet, positions)
            ordered = sorted(cells.items(), key=lambda item: -_spread(item[1].values()))
            shown = ordered[query.page * query.size :][: query.size]
            return found | {
                "row_facet": row_facet,
                "column_facet": column_facet,
                "part": part,
                "columns": labels,
                "total": len(ordered),
                "rows": [_row(table, name, by_column, labels) for name, by_column in shown],
            }
    return found


Cell = list[tuple[int, float]]
"""The units of a cell, by position, with their scores."""


def _one_part(table: UnitTable, query: UnitQuery, column_facet: str) -> tuple[dict[str, str], list[int]]:
    """The scored units of the part of the study that varies the columns' facet most, and which part that is."""
    scores = table.figures(query.judge).score
    plan = query.model_copy(update={"sort": "position", "desc": False})
    positions = [position for position in table.positions(plan) if not math.isnan(scores[position])]
    if (side := f"{column_facet}_a") in table.facets:  # a pair has two of them, and one score for both
        positions = [position for position in positions if table.facets[side].codes[position] < 0]
    for facet in table.named("part"):
        if f"f.{facet}" not in query.filters:
            by_part: dict[str, list[int]] = {}
            for position in positions:
                by_part.setdefault(_label(table, facet, position), []).append(position)
            if len(by_part) > 1:
                sizes = {part: (len(_labels(table, column_facet, own)), len(own)) for part, own in by_part.items()}
                part = max(sizes, key=sizes.__getitem__)
                return {facet: part}, by_part[part]
    return {}, positions


def _label(table: UnitTable, facet: str, position: int) -> str:
    column = table.facets[facet]
    code = column.codes[position]
    return column.labels[code] if code >= 0 else ""


def _labels(table: UnitTable, facet: str, positions: Iterable[int]) -> list[str]:
    return list(dict.fromkeys(_label(table, facet, position) for position in positions))


def _cells(
    table: UnitTable, judge: str, row_facet: str, column_facet: str, positions: Iterable[int]
) -> dict[str, dict[str, Cell]]:
    scores = table.figures(judge).score
    cells: dict[str, dict[str, Cell]] = {}
    for position in positions:
        row, column = (_label(table, facet, position) for facet in (row_facet, column_facet))
        cells.setdefault(row, {}).setdefault(column, []).append((position, scores[position]))
    return cells


def _mean(cell: Cell) -> float:
    return sum(score for _, score in cell) / len(cell)


def _spread(cells: Iterable[Cell]) -> float:
    means = [_mean(cell) for cell in cells]
    return max(means) - min(means)


def _row(table: UnitTable, name: str, by_column: dict[str, Cell], labels: Sequence[str]) -> dict[str, Any]:
    first = next(iter(by_column.values()))[0][0]
    return {
        "name": name,
        "facets": table.row(first)["facets"],
        "spread": _spread(by_column.values()),
        "cells": [
            {"score": _mean(cell), "units": [table.ids[position] for position, _ in cell]}
            if (cell := by_column.get(label))
            else None
            for label in labels
        ],
    }


def ballots(file: RunFile, units: Sequence[str]) -> dict[str, dict[str, float]]:
    """By unit, the probabilities that were read from its last message; units without any are left out.

    Args:
        file: the run.
        units: the units' ids.
    """
    marks = ",".join("?" * len(units))
    _, rows = file.rows(
        f"SELECT unit, expected FROM messages WHERE unit IN ({marks}) AND expected IS NOT NULL ORDER BY unit, seq",
        units,
    )
    return {unit: finite(json.loads(expected)) for unit, expected in rows}
