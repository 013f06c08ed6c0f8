"""Tables in the terminal, narrow enough for 80 columns. Cells are others' words, never markup."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from parley.base.text import p_text, plural, visible

if TYPE_CHECKING:
    import pandas as pd

STYLE: dict[str, Any] = {
    "title_justify": "left",
    "caption_justify": "left",
    "box": SIMPLE_HEAD,
    "padding": (0, 1, 0, 0),
    "pad_edge": False,
}
INTERVAL, CONTRAST = "95% interval", "difference"
MIN_TEXT = 12
"""A column of texts is never narrower than this, or than its longest text."""
MAX_ROWS = 24
"""Rows of a table that are printed; the files have all of them."""


def cell_table(
    columns: Sequence[str], rows: Iterable[Sequence[object]], title: str = "", left: int = 1, whole: str = ""
) -> Table:
    """A table of cells as they are. Text may wrap, numbers may not.

    Args:
        columns: The headings.
        rows: The cells of each row.
        title: Title of the table.
        left: The number of columns with texts, which come first; numbers are flush right.
        whole: A column of texts that must not wrap.
    """
    table = Table(title=escape(visible(title)) or None, **STYLE)
    for place, column in enumerate(columns):
        is_text = place < left
        no_wrap = not is_text or column == whole
        head = escape(visible(column))
        table.add_column(head, justify="left" if is_text else "right", no_wrap=no_wrap, overflow="fold")
    for row in rows:
        table.add_row(*(escape(visible(str(cell))) for cell in row))
    return table


def number(value: float | None, digits: int = 2) -> str:
    """A number for a cell; a dash where there is none."""
    return "–" if value is None or math.isnan(value) else f"{value:.{digits}f}"


def interval(low: float, high: float, digits: int = 1) -> str:
    """An interval for a cell; a dash where there is none."""
    return "–" if math.isnan(low) else f"{low:.{digits}f} to {high:.{digits}f}"


def plain_table(title: str, frame: pd.DataFrame, width: int | None = None) -> Table:
    """A frame with each interval in one column. Text may wrap, numbers may not.

    Columns that the terminal has no room for are left out, and named below the table.

    Args:
        title: Title of the table.
        frame: The rows.
        width: Width of the terminal in characters (default: as it is).
    """
    import pandas as pd

    digits = _digits(frame)
    frame = _interval_columns(_with_contrasts(frame), digits)
    more = f" ({plural(len(frame) - MAX_ROWS, 'more row')} in the files)" if len(frame) > MAX_ROWS else ""
    heads = {name: visible(str(name)).replace("_", " ") for name in frame.columns}
    precision = {"estimate": digits}
    cells = {
        name: [visible(_cell(name, value, precision.get(name, 2))) for value in frame[name].head(MAX_ROWS)]
        for name in frame.columns
    }
    numeric = {name for name in frame.columns if pd.api.types.is_numeric_dtype(frame[name]) or INTERVAL in str(name)}
    needed = {name: _needed(heads[name], cells[name], name in numeric) for name in frame.columns}
    kept, left_out = _fitting(needed, width or Console().width)
    missing = ", ".join(heads[name] for name in left_out)
    note = f"Not shown, for lack of width: {missing} (widen the terminal, or use --json)" if left_out else None
    table = Table(title=escape(visible(title + more)), caption=escape(note) if note else None, **STYLE)
    for name in kept:
        is_number = name in numeric
        head = "\n".join(textwrap.wrap(heads[name], needed[name])) if is_number else heads[name]
        table.add_column(escape(head), no_wrap=is_number, overflow="fold")
    if left_out:
        table.add_column("…", no_wrap=True)
    for row in zip(*(cells[name] for name in kept), strict=True):
        table.add_row(*map(escape, row), *(["…"] if left_out else []))
    return table


def _digits(frame: pd.DataFrame) -> int:
    """The decimals of a table's estimates and their intervals: two, and more where all of them are below 0.1."""
    estimates = frame[[name for name in ("estimate", "low", "high") if name in frame]].abs().max().max()
    return 3 if 0.01 <= estimates < 0.1 else 4 if 0 < estimates < 0.01 else 2


def _cell(name: object, value: Any, digits: int = 2) -> str:
    """A cell with one precision in a column, and one minus sign; p-values as in sentences."""
    from parley.analysis.reporting.report import format_cell

    if isinstance(value, float) and math.isfinite(value):
        if re.fullmatch(r"(.*_)?p(_adjusted)?", str(name)):
            return p_text(value).removeprefix("= ")
        return f"{round(value, digits) + 0.0:.{digits}f}".replace("-", "−")
    return format_cell(value)


def _with_contrasts(frame: pd.DataFrame) -> pd.DataFrame:
    """What is compared as one column, "female − male", where the frame has two for it."""
    import pandas as pd

    if not {"first", "second"} <= set(frame.columns) or pd.api.types.is_numeric_dtype(frame["first"]):
        return frame  # a comparison of runs has their two values in these columns
    pairs = zip(frame["first"], frame["second"], strict=True)
    compared = [" − ".join(str(name) for name in pair if name == name and name not in ("", None)) for pair in pairs]
    place = list(frame.columns).index("first")
    rest = frame.drop(columns=["first", "second"])
    rest.insert(min(place, len(rest.columns)), CONTRAST, compared)
    return rest


def _needed(head: str, cells: Sequence[str], is_number: bool) -> int:
    """The fewest characters for a column: numbers and words of the heading stay whole, other texts wrap."""
    words = max(map(len, head.split()), default=1)
    longest = max(map(len, cells), default=1)
    return max(words, longest if is_number else min(longest, MIN_TEXT))


def _fitting(needed: Mapping[Any, int], width: int) -> tuple[list[Any], list[Any]]:
    """The columns that fit, and those that do not: the last ones, but never what is estimated and concluded."""
    kept: list[Any] = list(needed)
    left_out: list[Any] = []
    while sum(needed[name] + 2 for name in kept) + (3 if left_out else 0) > width:
        droppable = [name for name in kept[1:] if name not in ("estimate", INTERVAL, "verdict", CONTRAST)] or kept[1:]
        if not droppable:
            break
        left_out.insert(0, droppable[-1])
        kept.remove(droppable[-1])
    return kept, left_out


def _interval_columns(frame: pd.DataFrame, digits: int) -> pd.DataFrame:
    """`low` and `high` as one column, and likewise `x_low` and `x_high`; if a mean has two, the one over scenarios."""
    import pandas as pd

    names = {str(name) for name in frame.columns}
    if not names & {"low", "cluster_low"}:
        return frame
    dropped = {"n", "clusters"} | ({"low", "high"} if "cluster_low" in names else set())
    columns: dict[str, Any] = {}
    for name in map(str, frame.columns):
        stem = name.removesuffix("low")
        if name in dropped or (name.endswith("high") and f"{name.removesuffix('high')}low" in names):
            continue
        if stem != name and f"{stem}high" in names:
            ends = zip(frame[name], frame[f"{stem}high"], strict=True)
            head = INTERVAL if stem in ("", "cluster_") else f"{stem}{INTERVAL}"
            decimals = digits if head == INTERVAL else 2
            columns[head] = [
                f"{_cell('', low, decimals)} to {_cell('', high, decimals)}" if high - low < math.inf else "–"
                for low, high in ends
            ]
        else:
            columns[name] = frame[name]
    return pd.DataFrame(columns, index=frame.index)
