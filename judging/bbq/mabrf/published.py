"""The paper's tables 3 and 5, next to the same cells of our own runs.

`published.txt` has the tables as they are printed, errors included. Ours count as the paper does
(`as_the_paper_counts`), so they are the same quantity.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from parley.analysis.reporting.published import read_published
from parley.judging.bbq.mabrf.tables import PAPER, PLAIN, SEARCH, WHOLE, by_category, by_context

KEYS = ["table", "search", "part", "measure"]


def next_to_published(frame: pd.DataFrame) -> pd.DataFrame:
    """The paper's cells, a column for each of its models, next to those of our runs.

    Args:
        frame: The items of the runs.
    """
    rows = [
        {"ours_by": model, "search": method == SEARCH, **cell}
        for (model, method), part in frame.groupby(["model", "method"], sort=False)
        if method in (PLAIN, SEARCH)
        for cell in _cells(part)
    ]
    if not rows:
        return pd.DataFrame()
    printed = read_published(Path(__file__).with_name("published.txt"), ("table", "model", "search", "part"))
    printed["search"] = printed["search"] == "yes"
    order = printed[KEYS].drop_duplicates()
    theirs = printed.pivot(index=KEYS, columns="model", values="paper").reset_index().rename_axis(columns=None)
    return order.merge(theirs, on=KEYS).merge(pd.DataFrame(rows), on=KEYS)


def _cells(frame: pd.DataFrame) -> Iterator[dict[str, Any]]:
    before_and_after = {name.removeprefix("paper_"): name for name in PAPER}
    after = {name: column for name, column in before_and_after.items() if name.endswith("1")}
    for number, by, table, measures in (
        (3, "context", by_context(frame), after),
        (5, "category", by_category(frame), before_and_after),
    ):
        for row in table[table[by] != WHOLE].to_dict("records"):
            for measure, column in measures.items():
                yield {"table": number, "part": row[by], "measure": measure, "ours": row[column], "rows": row["n"]}
