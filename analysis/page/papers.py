"""A report in its paper's form: only the paper's tables and figures, in its order, with its numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import pandas as pd

from parley.analysis.page.forest_figure import draw_forest
from parley.analysis.page.report import Figure, Report, Table

NOT_PRINTED = {
    *("family", "p_adjusted", "assumption", "clusters", "note", "table"),
    *("losses", "ties", "rate_ties_half", "half_low", "half_high"),  # MALIBU
}
"""Columns that no paper's table has. The files keep them."""
ALIKE = ("measure", "model", "paper_model", "ours_by")
"""Columns that are left out where all rows have the same."""


def as_its_paper(report: Report, first: Sequence[Table] = ()) -> Report:
    """The tables with a place in the paper, and the figures drawn from these, including forest plots.

    Args:
        report: The whole report. A report without such tables gives one without tables.
        first: The tables that come first, as they are: the claims, and those in the paper's layout.
    """
    # By section; sorting is stable, so within a section the report's own order holds.
    kept = sorted((table for table in report.tables if table.paper), key=lambda table: table.paper.partition(",")[0])

    def drawn() -> Iterator[Figure]:
        for table in kept:
            for figure in report.figures:
                if figure.table == table.name:
                    yield replace(figure, caption=f"{_number(table)}. {figure.caption}")
            for plot in report.forests:
                if plot.table == table.name:
                    draw = partial(draw_forest, plot)
                    yield Figure(plot.name, f"{_number(table)}. {plot.question}", table.name, draw)

    return replace(
        report,
        title=f"{report.title}: the paper's claims, tables and figures",
        words=(),
        beside=(),
        blocked="",
        tables=(*first, *map(_as_printed, kept)),
        figures=tuple(drawn()),
        forests=(),
    )


def _number(table: Table) -> str:
    """The paper's number, then its section: "Figure 4 (section 4.1)", "Table III (STARDTOX V)"."""
    section, _, number = table.paper.partition(", ")
    return f"{number[:1].upper()}{number[1:]} ({'' if section[1:2].isalpha() else 'section '}{section})"


def _as_printed(table: Table) -> Table:
    """A table under the paper's number, with the paper's tests only: these take verdicts as independent."""
    frame = table.frame
    if "assumption" in frame:
        frame = frame[frame["assumption"] == "independent"]
    alike = {name for name in ALIKE if name in frame and frame[name].nunique() == 1}
    shown = tuple(name for name in table.view() if name not in NOT_PRINTED | alike)
    return replace(table, title=f"{_number(table)}. {table.title}", frame=frame, shown=shown)


def without_run(printed: pd.DataFrame, both: pd.DataFrame, by: str) -> str:
    """The systems of a paper's table that these runs do not have, as a sentence for the table's note.

    Args:
        printed: The paper's cells.
        both: Those with a number of ours.
        by: The column with the systems.
    """
    names = [str(name) for name in dict.fromkeys(printed[by]) if name not in set(both[by])]
    return f"Only in the paper: {', '.join(names)}. " if names and len(both) else ""


def read_published(path: Path, about: Sequence[str], columns: str = "measure") -> pd.DataFrame:
    """A paper's printed numbers, one row each: what it is about, the number as `paper`; `sd` if it has one.

    The first line that is no comment names the columns: what a row is about, then the columns of numbers; `-` is a
    number that the paper does not print. `0.5±0.1` has a standard deviation.

    Args:
        path: The file.
        about: The columns that say what a row is about.
        columns: What the columns of numbers are.
    """
    printed = pd.read_csv(path, sep=" ", na_values="-", comment="#")
    cells = printed.melt(id_vars=list(about), var_name=columns, value_name="paper", ignore_index=False)
    cells = cells.sort_index(kind="stable").dropna(ignore_index=True)
    parts = cells["paper"].astype(str).str.partition("±")
    numbers = cells.assign(paper=parts[0].astype(float))
    return numbers.assign(sd=pd.to_numeric(parts[2])) if parts[2].any() else numbers
