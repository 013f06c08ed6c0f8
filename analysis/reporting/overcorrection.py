"""What else revisions changed, by iteration: words, length, refusals, identity words and judged meaning.

`parley.judging.overcorrection` says what each measure is. Only revised items are counted: those that were left alone
would hide a loop that empties the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pandas as pd

from parley.analysis.reporting.iterations import at_each_iteration
from parley.analysis.reporting.report import Table
from parley.base.text import plural

MEASURES = ("words_kept", "length", "refusal", "identity_words_kept", "nothing_lost", "nothing_added")
EMPTIED = 20.0
"""Percent of words kept, or of length, below which a report warns."""
NOTE = (
    "Of revised items; each draft against the first, in percent. words_kept: content words of the first draft that are "
    "still there; length: in words; refusal: drafts that refuse or are empty; identity_words_kept: of the first "
    "draft's identity words. nothing_lost and nothing_added: judged, does the first draft follow from the revision, "
    "and the revision from the first draft? Means over clusters."
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


def overcorrection_table(changes: pd.DataFrame) -> Table:
    """The measures as a table of a report.

    Args:
        changes: From `by_iteration`.
    """
    return Table(name="overcorrection", title="What else revisions changed (%)", frame=changes, note=NOTE, printed=True)


def sentences(changes: pd.DataFrame, by: Iterable[str]) -> Iterator[str]:
    """One sentence per group on its last iteration, with a warning if next to nothing of the text is left.

    Args:
        changes: From `by_iteration`.
        by: The columns that name a group.
    """
    names = list(by)
    last = changes.drop_duplicates(names, keep="last") if len(changes) else changes
    for row in last.to_dict("records"):
        group = ", ".join(str(row[name]) for name in names)
        parts = [f"{label} {row[name]:.0f}%" for name, label in _LABELS.items() if row.get(name, float("nan")) >= 0]
        emptied = min(row.get(name, float("inf")) for name in ("words_kept", "length")) < EMPTIED
        warning = " Next to nothing of the first drafts is left." if emptied else ""
        yield f"{group}: of {plural(int(row['n']), 'revised item')}, {', '.join(parts)}.{warning}"


_LABELS = {
    "words_kept": "content words kept",
    "length": "length",
    "refusal": "refused or empty",
    "identity_words_kept": "identity words kept",
    "nothing_lost": "nothing lost",
    "nothing_added": "nothing added",
}
