"""What a report is: tables, figures and sentences, free of how they are shown; `render` writes them down.

A study's report is a function from its frames to one of these; see `parley.analysis.malibu.report` for the longest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
from matplotlib.figure import Figure as Drawing


@dataclass(frozen=True, slots=True)
class Table:
    """A frame with a title; `shown` are the columns a page has room for (all are in the files).

    A terminal shows the tables that are `printed`.
    """

    name: str
    title: str
    frame: pd.DataFrame
    shown: tuple[str, ...] = ()
    note: str = ""
    printed: bool = False

    def view(self) -> pd.DataFrame:
        """The columns to show; notes only where there are any."""
        names = [name for name in self.shown or self.frame.columns if name in self.frame]
        silent = "note" in names and not self.frame["note"].fillna("").astype(bool).any()
        return self.frame[[name for name in names if not (silent and name == "note")]]


@dataclass(frozen=True, slots=True)
class Figure:
    """A drawing, what it shows and from how much, and the name of the table it was drawn from."""

    name: str
    caption: str
    table: str
    draw: Callable[[], Drawing]


@dataclass(frozen=True, slots=True)
class Report:
    """What a study found: sentences, cautions, tables and figures, to be printed, written or read as data."""

    title: str
    words: tuple[str, ...] = ()
    cautions: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()
    runs: tuple[Mapping[str, Any], ...] = ()
    """Which runs this was made from: file, study, models, seed, versions, counts."""
    settings: Mapping[str, Any] = field(default_factory=dict)

    def table(self, name: str) -> pd.DataFrame:
        return next(table.frame for table in self.tables if table.name == name)

    def data(self) -> dict[str, Any]:
        """Everything as plain values: frames as lists of rows, what is not known as None."""
        return {
            "title": self.title,
            "runs": [plain(run) for run in self.runs],
            "cautions": list(self.cautions),
            "summary": list(self.words),
            "settings": plain(self.settings),
            **{table.name: plain(table.frame) for table in self.tables},
        }


def plain(value: Any) -> Any:
    """Frames as lists of rows, NaN as None, numpy's numbers as Python's."""
    if isinstance(value, pd.DataFrame):
        return [{str(k): plain(v) for k, v in row.items()} for row in value.to_dict("records")]
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    if hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def shown(value: Any) -> str:
    """A cell as people read it: two or three digits, "–" where there is nothing."""
    value = plain(value)
    if value is None or value == "":
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.2g}" if 0 < abs(value) < 0.01 else f"{value:.2f}"
    return str(value)
