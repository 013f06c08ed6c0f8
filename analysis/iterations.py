"""Critique loops by iteration: the verdicts after each revision, the share of units revised, and its figure.

Iteration k is the state after the k-th revision; an item that was revised less often carries its last state over.

What else revisions changed (words, length, refusals, identity words) is in the overcorrection section:
`parley.judging.overcorrection` says what each measure is. Only revised items are counted: unrevised ones would hide a
loop that empties the others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from parley.analysis.page.figures import LINE, PALETTE, caption, legend_beside, plain_text, sheet, tidy
from parley.analysis.page.report import Section, Table
from parley.analysis.verdicts import MissingColumns
from parley.base.text import plural

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

MOST = 100
"""Limit on iterations: someone else's run file may contain any number."""


def at_each_iteration(verdicts: pd.DataFrame, planned: pd.Series) -> pd.DataFrame:
    """Every verdict once for each iteration that it applies to.

    Args:
        verdicts: Rows whose `round` is the iteration that they were made at.
        planned: For each row, the number of revisions that its unit could have had.

    Returns:
        The rows with two more columns: `iteration`, and `carried` where the verdict is from an earlier one.
    """
    if len(planned) and planned.max() > MOST:
        raise MissingColumns(f"its units have up to {planned.max():.6g} iterations, and a report shows {MOST} at most")
    parts = []
    for k in range(int(planned.max()) + 1 if len(planned) else 0):
        made = verdicts[(verdicts["round"] <= k) & (planned >= k)]
        last = made.groupby(["unit", "metric"], observed=True, sort=False)["round"].transform("max")
        current = made[made["round"] == last]
        parts.append(current.assign(iteration=k, carried=current["round"] < k))
    return pd.concat(parts, ignore_index=True) if parts else verdicts.assign(iteration=0, carried=False)


def shares_refined(verdicts: pd.DataFrame, planned: pd.Series, by: list[str]) -> pd.DataFrame:
    """The share of units that were revised a k-th time, in groups that could have been (the paper's figure 3).

    Args:
        verdicts: Rows whose `round` is the iteration that they were made at.
        planned: For each row, the number of revisions that its unit could have had.
        by: Columns to group by.
    """
    units = verdicts.assign(planned=planned).groupby([*by, "unit"], observed=True, sort=False)
    revisions = units.agg(revisions=("round", "max"), planned=("planned", "max")).reset_index()
    rows = [
        {
            **dict(zip(by, key if isinstance(key, tuple) else (key,), strict=True)),
            "iteration": k,
            "refined": int((group["revisions"] >= k).sum()),
            "n": len(group),
            "share": float((group["revisions"] >= k).mean()),
        }
        for key, group in revisions[revisions["planned"] > 0].groupby(by, observed=True, sort=False)
        for k in range(1, int(group["planned"].max()) + 1)
    ]
    return pd.DataFrame(rows, columns=[*by, "iteration", "refined", "n", "share"])


COUNTED_TWICE = "An item revised twice counts twice, so a bar may exceed 100."


def refined_figure(shares: pd.DataFrame, by: list[str], title: str, note: str) -> Drawing:
    """One bar per group, stacked by iteration; its length is the number of revisions per 100 items.

    Args:
        shares: The result of `iterations.shares_refined`.
        by: Columns that the groups are made of.
        title: Title of the figure.
        note: Small print below it.
    """
    groups = shares[by].drop_duplicates()
    labels = [" · ".join(map(str, row)) for row in groups.itertuples(index=False)]
    figure, axes = sheet(7.2, 1.6 + 1.4 * LINE * len(labels))
    axis = axes.flat[0]
    left = np.zeros(len(labels))
    for k, part in shares.groupby("iteration"):
        width = groups.merge(part, on=by, how="left")["share"].fillna(0).to_numpy(dtype=float) * 100
        axis.barh(range(len(labels)), width, left=left, color=PALETTE[(int(k) - 1) % len(PALETTE)], label=f"{k}")
        left += width
    axis.set_yticks(range(len(labels)), [plain_text(label) for label in labels])
    axis.invert_yaxis()
    axis.set_xlabel("revisions per 100 items, by iteration")
    legend_beside(figure, [axis], title="iteration")
    tidy(axis)
    caption(figure, title, note)
    return figure


MEASURES = ("words_kept", "length", "refusal", "identity_words_kept")
EMPTIED = 20.0
"""Percent of words kept, or of length, below which a report warns."""
MANY_COPIES = 0.1
"""Share of revisions that equal the draft before, from which on a report warns."""
LEFT = {"words_kept": "of their content words", "length": "of their length"}
NOTE = (
    "Only revised items; each draft compared with the first, in percent. revised: revisions made at this iteration; "
    "copied: those that equal the draft before, in numbers. words_kept: content words of the first draft "
    "that are still there; length: in words; refusal: drafts that refuse or are empty; identity_words_kept: identity "
    "words of the first draft that are still there. Means over clusters."
)


def by_iteration(verdicts: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """One row per group and iteration, with the mean of each measure over clusters; empty if nothing was measured.

    Args:
        verdicts: One row per verdict, with `unit`, `metric`, `round`, `value`, `status` and `cluster`.
        by: Columns to group by.
    """
    metric = verdicts["metric"].astype(str)
    counted = verdicts.assign(metric=metric)[metric.isin(MEASURES)]
    refused = (counted["metric"] == "refusal") & (counted["status"].astype(str) == "refused")
    counted = counted.assign(value=counted["value"].where(~refused, 100.0))
    rounds = counted.groupby("unit", observed=True)["round"].transform("max")
    revised = counted[rounds > 0]
    if revised.empty:
        return pd.DataFrame(columns=[*by, "iteration", "n", "revised", "copied", *MEASURES])
    planned = revised.groupby(by, observed=True)["round"].transform("max")
    frame = at_each_iteration(revised, planned)
    means = frame.groupby([*by, "iteration", "metric", "cluster"], sort=False, observed=True)["value"].mean()
    table = means.groupby([*by, "iteration", "metric"], sort=False, observed=True).mean().unstack("metric")
    made = revised[(revised["metric"] == "refusal") & (revised["round"] > 0)]
    counts = made.assign(copied=made["status"] == "copied").groupby([*by, "round"], sort=False, observed=True)["copied"]
    counts = counts.agg(revised="size", copied="sum").rename_axis([*by, "iteration"]).reindex(table.index, fill_value=0)
    table[["revised", "copied"]] = counts
    table.insert(0, "n", frame.groupby([*by, "iteration"], sort=False, observed=True)["unit"].nunique())
    measured = [name for name in MEASURES if name in table and table[name].notna().any()]
    return table[["n", "revised", "copied", *measured]].reset_index().rename_axis(columns=None)


def overcorrection_section(changes: pd.DataFrame, by: Iterable[str], titled: Collection[str] = ()) -> Section:
    """The measures as a table, with a warning for each group that has next to nothing left or many copies.

    Args:
        changes: From `by_iteration`.
        by: The columns that name a group.
        titled: The systems that the run is about: what is left of their texts is said on the first screen.
    """
    table, names = Table("overcorrection", "What else revisions changed (%)", changes, note=NOTE), list(by)
    return Section(
        tables=[table],
        warnings=[*_emptied(changes, names), *_copied(changes, names)],
        beside=[
            f"{group}: on average, {kept}." for row, group, kept in _left(changes, names) if row["system"] in titled
        ],
    )


def _left(changes: pd.DataFrame, names: list[str]) -> Iterator[tuple[dict[str, Any], str, str]]:
    """The last row of each group, its name, and what is left of its first drafts, in words."""
    last = changes.drop_duplicates(names, keep="last") if len(changes) else changes
    for row in last.to_dict("records"):
        kept = [f"{row[name]:.0f}% {label}" for name, label in LEFT.items() if row.get(name, float("nan")) >= 0]
        group = ", ".join(str(row[name]) for name in names)
        yield row, group, f"{plural(int(row['n']), 'revised item')} have {' and '.join(kept)}"


def _copied(changes: pd.DataFrame, names: list[str]) -> Iterator[str]:
    for key, group in changes.groupby(names, sort=False):
        revised, copied = int(group["revised"].sum()), int(group["copied"].sum())
        if revised and copied >= MANY_COPIES * revised:
            yield (
                f"{', '.join(map(str, key))}: {copied:,} of {plural(revised, 'revision')} ({copied / revised:.0%}) "
                "equal the draft before them, so the loop changed nothing there."
            )


def _emptied(changes: pd.DataFrame, names: list[str]) -> Iterator[str]:
    for row, group, kept in _left(changes, names):
        if min(row.get(name, float("inf")) for name in LEFT) < EMPTIED:
            yield f"{group}: revisions leave next to nothing of the first drafts. On average, {kept}."
