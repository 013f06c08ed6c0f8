"""Tables for a terminal of 80 columns. Cells are plain text, never markup."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
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
INTERVAL = "95% interval"
MAX_ROWS = 24
"""Maximum rows printed; the files have all rows."""
MAX_ABOUT = 24
"""Width of a column of texts that comes first; only longer words are broken."""


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


def plain_table(title: str, frame: pd.DataFrame, most: int = MAX_ROWS, headings: int = 1) -> Table:
    """A frame as a table, with each interval in one column. Numbers wrap if the terminal is too narrow.

    Args:
        title: Title of the table.
        frame: The rows.
        most: Number of rows that are printed.
        headings: Number of columns, of those that come first, that say what a row is about: words are not broken.
    """
    import pandas as pd

    digits = _digits(frame)
    frame = _interval_column(frame, digits)
    more = f" ({plural(len(frame) - most, 'more row')} in the files)" if len(frame) > most else ""
    heads = {name: visible(str(name)).replace("_", " ") for name in frame.columns}
    precision = {"estimate": digits}
    cells = {
        name: [visible(_cell(name, value, precision.get(name, 2))) for value in frame[name].head(most)]
        for name in frame.columns
    }
    numeric = {name for name in frame.columns if pd.api.types.is_numeric_dtype(frame[name]) or name == INTERVAL}
    table = Table(title=escape(visible(title + more)), **STYLE)
    for place, (name, head) in enumerate(heads.items()):
        if name in numeric:  # as narrow as its numbers and the words of its heading
            longest = max(len(text) for text in ("", *head.split(), *cells[name]))
            head = "\n".join(textwrap.wrap(head, longest))
        if about := place < headings and name not in numeric:
            wrapped = (textwrap.wrap(text, MAX_ABOUT, break_on_hyphens=False) for text in cells[name])
            cells[name] = ["\n".join(lines) for lines in wrapped]
        table.add_column(escape(head), overflow="fold", no_wrap=about)
    for row in zip(*cells.values(), strict=True):
        table.add_row(*map(escape, row))
    return table


def _digits(frame: pd.DataFrame) -> int:
    """The decimals of a table's estimates and intervals: two, or more if all are below 0.1."""
    estimates = frame[[name for name in ("estimate", "low", "high") if name in frame]].abs().max().max()
    return 3 if 0.01 <= estimates < 0.1 else 4 if 0 < estimates < 0.01 else 2


def _cell(name: object, value: Any, digits: int = 2) -> str:
    """A cell with one precision in a column, and one minus sign; p-values as in sentences."""
    from parley.analysis.say import format_cell

    if isinstance(value, float) and math.isfinite(value):
        if re.fullmatch(r"(.*_)?p(_adjusted)?", str(name)):
            return p_text(value).removeprefix("= ")
        return f"{round(value, digits) + 0.0:.{digits}f}".replace("-", "−")
    return format_cell(value)


def _interval_column(frame: pd.DataFrame, digits: int) -> pd.DataFrame:
    """`low` and `high` as one column."""
    from parley.analysis.say import interval as in_words
    from parley.analysis.stats.results import ALPHA

    if "low" not in frame:
        return frame
    tested = frame["p_adjusted"] if "p_adjusted" in frame else [math.nan] * len(frame)
    intervals = [
        in_words(low, high, lambda end: _cell("", end, digits), excluded=p <= ALPHA) if high - low < math.inf else "–"
        for low, high, p in zip(frame["low"], frame["high"], tested, strict=True)
    ]
    return frame.assign(low=intervals).rename(columns={"low": INTERVAL}).drop(columns="high")
