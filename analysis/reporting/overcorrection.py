"""What else revisions changed, by iteration: words, length, refusals and identity words.

`parley.judging.overcorrection` says what each measure is. Only revised items are counted: unrevised ones would hide a
loop that empties the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pandas as pd

from parley.analysis.reporting.iterations import at_each_iteration
from parley.analysis.reporting.report import Section, Table
from parley.base.text import plural

MEASURES = ("words_kept", "length", "refusal", "identity_words_kept")
EMPTIED = 20.0
"""Percent of words kept, or of length, below which a report warns."""
LEFT = {"words_kept": "of their content words", "length": "of their length"}
NOTE = (
    "Only revised items; each draft compared with the first, in percent. words_kept: content words of the first draft "
    "that are still there; length: in words; refusal: drafts that refuse or are empty; identity_words_kept: identity "
    "words of the first draft that are still there. Means over clusters."
)


def by_iteration(verdicts: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """One row per group and iteration, with the mean of each measure over clusters; empty if nothing was measured.

    Args:
        verdicts: One row per verdict, with `unit`, `metric`, `round`, `value`, `status` and `cluster`.
        by: Columns to group by.
    """
    counted = verdicts[verdicts["metric"].astype(str).isin(MEASURES)]
    refused = (counted["metric"].astype(str) == "refusal") & (counted["status"].astype(str) == "refused")
    counted = counted.assign(value=counted["value"].where(~refused, 100.0))
    rounds = counted.groupby("unit", observed=True)["round"].transform("max")
    revised = counted[rounds > 0]
    if revised.empty:
        return pd.DataFrame(columns=[*by, "iteration", "n", *MEASURES])
    planned = revised.groupby(by, observed=True)["round"].transform("max")
    frame = at_each_iteration(revised.assign(metric=revised["metric"].astype(str)), planned)
    means = frame.groupby([*by, "iteration", "metric", "cluster"], sort=False, observed=True)["value"].mean()
    table = means.groupby([*by, "iteration", "metric"], sort=False, observed=True).mean().unstack("metric")
    table.insert(0, "n", frame.groupby([*by, "iteration"], sort=False, observed=True)["unit"].nunique())
    measured = [name for name in MEASURES if name in table and table[name].notna().any()]
    return table[["n", *measured]].reset_index().rename_axis(columns=None)


def overcorrection_section(changes: pd.DataFrame, by: Iterable[str]) -> Section:
    """The measures as a table, with a warning for each group that has next to nothing left.

    Args:
        changes: From `by_iteration`.
        by: The columns that name a group.
    """
    table = Table("overcorrection", "What else revisions changed (%)", changes, note=NOTE)
    return Section(tables=[table], warnings=list(_emptied(changes, list(by))))


def _emptied(changes: pd.DataFrame, names: list[str]) -> Iterator[str]:
    last = changes.drop_duplicates(names, keep="last") if len(changes) else changes
    for row in last.to_dict("records"):
        if min(row.get(name, float("inf")) for name in ("words_kept", "length")) < EMPTIED:
            group = ", ".join(str(row[name]) for name in names)
            kept = [f"{row[name]:.0f}% {label}" for name, label in LEFT.items() if row.get(name, float("nan")) >= 0]
            yield (
                f"{group}: next to nothing of the first drafts is left in {plural(int(row['n']), 'revised item')}, "
                f"which have {' and '.join(kept)}."
            )
