"""The paper's tables 3 and 5 beside the same cells recomputed from its authors' logs, and beside our own runs.

`published.txt` has the tables as they are printed, errors included. All three columns are as the paper counts
(`as_the_paper_counts`): only so are they the same quantity.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from parley.analysis.bbq.mabrf.tables import PAPER, by_category, by_context
from parley.analysis.bbq.mabrf.tests import PLAIN, SEARCH

MEASURES = ("acc0", "acc1", "bias0", "bias1")
KEYS = ["table", "model", "search", "part", "measure"]
ROUNDING = 0.005 + 1e-9
"""The paper's numbers have two decimals."""
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
    wide = pd.read_csv(Path(__file__).with_name("published.txt"), sep=" ", na_values="-")
    wide["search"] = wide["search"] == "yes"
    return wide.melt(id_vars=KEYS[:-1], var_name="measure", value_name="paper").dropna(ignore_index=True)


def paper_model(name: str) -> str | None:
    """The paper's name of a model; None if it is not one of the paper's.

    Args:
        name: A model's name, perhaps with its provider, its options and its run file.
    """
    bare = re.split(r"[? ]", name)[0].rpartition("/")[2].lower()
    return next((known for pattern, known in _MODELS if pattern.fullmatch(bare)), None)


def reproduction(frame: pd.DataFrame) -> pd.DataFrame:
    """Every cell that one of these runs has: the paper's number, the one recomputed from its logs, and ours.

    Args:
        frame: The items of the runs. Without any from a log or of a model of the paper's, the result is empty.
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
    cells = pd.DataFrame(rows).pivot_table(index=KEYS, columns="by", values="value", aggfunc="mean").reset_index()
    table = cells.merge(published(), on=KEYS, how="left")
    for column in ("recomputed", "ours"):
        if column not in table:
            table[column] = float("nan")
    table["comes_back"] = ((table["paper"] - table["recomputed"]).abs() <= ROUNDING).where(table["recomputed"].notna())
    return table[[*KEYS, "paper", "recomputed", "ours", "comes_back"]].rename_axis(columns=None)


def _cells(frame: pd.DataFrame) -> Iterator[dict[str, Any]]:
    if frame.empty:
        return
    names = dict(zip(PAPER, ("acc0", "acc1", "bias0", "bias1"), strict=True))
    for number, by, table, shown in (
        (3, "context", by_context(frame), ("acc1", "bias1")),
        (5, "category", by_category(frame), MEASURES),
    ):
        for row in table.to_dict("records"):
            if row[by] == "all":
                continue
            for column, measure in names.items():
                if measure in shown:
                    yield {"table": number, "part": row[by], "measure": measure, "value": row[column]}


def in_words(table: pd.DataFrame) -> Iterator[str]:
    """How many cells come back from the authors' logs; the table says which do not."""
    known = table[table["comes_back"].notna()] if len(table) else table
    if len(known):
        yield (
            f"Of the paper's {len(known)} cells that these logs cover, {int(known['comes_back'].astype(bool).sum())} "
            "come back to its two decimals."
        )
