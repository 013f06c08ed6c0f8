"""The paper's tables 3 and 5, next to the same cells recomputed from its authors' logs and from our own runs.

`published.txt` has the tables as they are printed, errors included. All three columns count as the paper does
(`as_the_paper_counts`), so they are the same quantity.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from parley.analysis.bbq.mabrf.tables import PAPER, PLAIN, SEARCH, WHOLE, by_category, by_context
from parley.analysis.reporting.published import read_published
from parley.base.text import plural

MEASURES = ("acc0", "acc1", "bias0", "bias1")
KEYS = ["table", "model", "search", "part", "measure"]
ROUNDING = 0.005 + 1e-9
"""The paper's numbers have two decimals."""
PAPER_ROWS = {3: 55, 5: 10}
"""The rows of a cell, by table: 110 in two contexts, and in eleven categories."""
LOG = "log"
"""The facet `source` of units that were read from the authors' logs."""
_MODELS = (
    (re.compile(r"claude-3-haiku(?:-\d+)?"), "claude-3-haiku"),
    (re.compile(r"gpt-3\.5-turbo(?:-\d+)?"), "gpt-3.5-turbo"),
    (re.compile(r"gpt-4(?:-\d{4})?"), "gpt-4"),
    (re.compile(r"deepseek-(?:reasoner|r1)"), "deepseek"),
)


@cache
def published() -> pd.DataFrame:
    """The paper's cells: table, model, search, part (a context or a category), measure, and the number printed."""
    cells = read_published(Path(__file__).with_name("published.txt"), KEYS[:-1])
    return cells.assign(search=cells["search"] == "yes")


def paper_model(name: str) -> str | None:
    """The paper's name for a model; None if the paper does not have it.

    Args:
        name: A model's name, perhaps with its provider, its options and its run file.
    """
    bare = re.split(r"[? ]", name)[0].rpartition("/")[2].lower()
    return next((known for pattern, known in _MODELS if pattern.fullmatch(bare)), None)


def reproduction(frame: pd.DataFrame) -> pd.DataFrame:
    """Every cell that one of these runs has: the paper's number, the one recomputed from its logs, and ours.

    Args:
        frame: The items of the runs. The result is empty if none comes from a log or a model of the paper.
    """
    rows = []
    for (model, method), part in frame.groupby(["model", "method"], sort=False):
        known = paper_model(str(model))
        if method in (PLAIN, SEARCH) and known is not None:
            logged = part["source"].astype(str) == LOG if "source" in part else pd.Series(False, index=part.index)
            for column, items in (("recomputed", part[logged]), ("ours", part[~logged])):
                rows += [{"model": known, "search": method == SEARCH, "by": column, **cell} for cell in _cells(items)]
    if not rows:
        return pd.DataFrame()
    cells = pd.DataFrame(rows).groupby([*KEYS, "by"]).agg(value=("value", "mean"), rows=("rows", "sum")).unstack("by")
    table = cells["value"].reindex(columns=["recomputed", "ours"])
    counts = cells["rows"].reindex(columns=["recomputed", "ours"]).fillna(0).astype(int).add_prefix("rows_")
    table = table.join(counts).reset_index().merge(published(), on=KEYS, how="left")
    agrees = (table["paper"] - table["recomputed"]).abs() <= ROUNDING
    # A cell with missing rows is another quantity, and would agree only by chance.
    table["comes_back"] = agrees.where(table["rows_recomputed"] == table["table"].map(PAPER_ROWS))
    order = [*KEYS, "paper", "recomputed", "ours", "rows_recomputed", "rows_ours", "comes_back"]
    return table[order].rename_axis(columns=None)


def next_to_published(frame: pd.DataFrame) -> pd.DataFrame:
    """The paper's cells, a column for each of its models, next to those of runs with other models.

    Args:
        frame: The items of the runs. The result is empty if all models are the paper's: `reproduction` has these.
    """
    rows = [
        {"ours_by": model, "search": method == SEARCH, **cell}
        for (model, method), part in frame.groupby(["model", "method"], sort=False)
        if method in (PLAIN, SEARCH) and paper_model(str(model)) is None
        for cell in _cells(part)
    ]
    if not rows:
        return pd.DataFrame()
    keys = [key for key in KEYS if key != "model"]
    order = published()[keys].drop_duplicates()
    theirs = published().pivot(index=keys, columns="model", values="paper").reset_index().rename_axis(columns=None)
    return order.merge(theirs, on=keys).merge(pd.DataFrame(rows).rename(columns={"value": "ours"}), on=keys)


def _cells(frame: pd.DataFrame) -> Iterator[dict[str, Any]]:
    if frame.empty:
        return
    column_of = dict(zip(MEASURES, PAPER, strict=True))
    for number, by, table, measures in (
        (3, "context", by_context(frame), ("acc1", "bias1")),
        (5, "category", by_category(frame), MEASURES),
    ):
        for row in table[table[by] != WHOLE].to_dict("records"):
            for measure in measures:
                value = row[column_of[measure]]
                yield {"table": number, "part": row[by], "measure": measure, "value": value, "rows": row["n"]}


def in_words(table: pd.DataFrame) -> Iterator[str]:
    """How many cells come back from the authors' logs; the table says which do not."""
    logged = table[table["rows_recomputed"] > 0] if len(table) else table
    known = logged[logged["comes_back"].notna()] if len(table) else table
    if cut := len(logged) - len(known):
        yield f"The logs have only some rows of {plural(cut, 'cell')} (rows_recomputed): these are not compared."
    if len(known):
        yield (
            f"{int(known['comes_back'].astype(bool).sum())} of the paper's {plural(len(known), 'cell')} in these logs "
            "come back to its two decimals."
        )
