"""Does talking amplify bias? The effect of identity in the judges' first ballots and in their last round.

    table = talking(verdicts)

Both effects come from the same judges on the same units, and the change is tested within them: last round minus
first, within judge and scenario, averaged over scenarios and bases, with sign flips over bases. It is the change of the
gap, not of its size: where noise differs between rounds, |after| - |before| is not 0 on average even if nothing
happened. Only the name of a shown change depends on the first ballots: it amplifies a bias that they showed if it
has the same sign. Units whose judges heard ballots on another label, as a control, are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure as Drawing

from parley.analysis.malibu.contrasts import nested_means, tested, with_holm
from parley.analysis.malibu.panel import PanelData, ScenarioGaps, Verdicts, panel_data
from parley.analysis.malibu.rounds import before_and_after
from parley.analysis.reporting.figures import LINE, PALETTE, caption, dots, plain_text, sheet
from parley.analysis.reporting.report import Figure, ReportContext, Section, Table
from parley.analysis.stats.results import ALPHA
from parley.analysis.stats.tables import Floats

AMPLIFIED, REDUCED, REVERSED, APPEARED, MOVED, UNSHOWN = (
    "amplified",
    "reduced",
    "reversed",
    "appeared",
    "moved",
    "no change shown",
)
TALKING = [
    *("model", "phase", "category", "first", "second", "before", "before_low", "before_high"),
    *("after", "after_low", "after_high", "difference", "low", "high", "p", "p_adjusted", "conclusion"),
    *("clusters", "note"),
]


def talking(verdicts: Verdicts) -> pd.DataFrame:
    """Every planned pair of identities: the gap before talking and after, and how much it changed.

    Phase 1: points of the scale. Phase 2: net preference, the share of judges who preferred the first identity minus
    the share who preferred the second. Holm's correction is over the pairs of a model and phase.

    Args:
        verdicts: One row per verdict, or their `PanelData`.
    """
    both = before_and_after(panel_data(verdicts))
    rows = [*_scored(both), *_preferred(both)]
    table = pd.DataFrame(rows, columns=[*TALKING, "before_p", "after_p"])
    if table.empty:
        return table[TALKING]
    table = with_holm(table, ["model", "phase"])
    for moment in ("before", "after"):
        corrected = with_holm(table.assign(p=table[f"{moment}_p"]), ["model", "phase"])["p_adjusted"]
        table[f"{moment}_p"] = corrected
    return table.assign(conclusion=[_conclusion(row) for row in table.itertuples()])[TALKING]


def _scored(both: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Phase 1 as three runs of one round: the scores before and after talking, and their change."""
    scores = both[(both["phase"] == 1) & (both["metric"] != "preferred")]
    values = scores["before"], scores["after"], scores["after"] - scores["before"]
    rounds = [PanelData(scores.assign(value=value)) for value in values]
    for model in rounds[0].models:
        for category, first, second in rounds[0].pairs(model):
            facets = {"model": model, "phase": 1, "category": category, "first": first, "second": second}
            yield facets | _row([each.table(model).gaps(first, second) for each in rounds])


def _preferred(both: pd.DataFrame) -> Iterator[dict[str, Any]]:
    votes = both[(both["phase"] == 2) & (both["metric"] == "preferred") & (both["control"] == "")]
    if votes.empty:
        return
    first_is_a = (votes["identity_a"].astype(object) == votes["identity"].astype(object)).to_numpy()
    sign = np.where(first_is_a, 1.0, -1.0)
    before, after = (sign * votes[name].to_numpy() for name in ("before", "after"))
    levels = ["model", "category", "identity", "other", "cluster", "scenario", "order", "assignment", "judge"]
    levels = [name for name in levels if name in votes]
    by_base = nested_means(np.stack([before, after, after - before], axis=1), votes[levels], keep=5)
    for (model, category, first, second), part in by_base.groupby(level=[0, 1, 2, 3], sort=False):
        facets = {"model": str(model), "phase": 2, "category": str(category), "first": str(first)}
        yield facets | {"second": str(second)} | _row(list(part.to_numpy(dtype=float).T))


def _row(by_base: Sequence[Floats | ScenarioGaps]) -> dict[str, Any]:
    before, after, change = (tested(values) for values in by_base)
    row = dict(change)
    for name, test in (("before", before), ("after", after)):
        row |= {name: test["difference"], **{f"{name}_{key}": test[key] for key in ("low", "high", "p")}}
    return row


def _conclusion(row: Any) -> str:
    """What a change is called. `before_p` and `after_p` are corrected too."""
    if not row.p_adjusted <= ALPHA:
        return UNSHOWN
    if not row.before_p <= ALPHA:
        return APPEARED if row.after_p <= ALPHA else MOVED
    if row.difference * row.before > 0:
        return AMPLIFIED
    return REVERSED if row.after * row.before < 0 and row.after_p <= ALPHA else REDUCED


def talking_figure(table: pd.DataFrame, title: str, note: str, *, blind: bool | None = None) -> Drawing:
    """The gap of every pair before talking and after, with intervals: one panel per model and phase.

    Args:
        table: The table of `talking`.
        title: Title of the figure.
        note: The small print.
        blind: Whether nobody heard anybody in round 1.
    """
    panels = list(table[["model", "phase"]].drop_duplicates().itertuples(index=False))
    longest = int(table.groupby(["model", "phase"], sort=False).size().max())
    figure, axes = sheet(4.2 * len(panels) + 0.8, 1.9 + 1.6 * LINE * longest, len(panels))
    several = table["model"].nunique() > 1
    for axis, (model, phase) in zip(axes.flat, panels, strict=True):
        rows = table[(table["model"] == model) & (table["phase"] == phase)]
        names = [f"{row.first} − {row.second}{'*' if row.conclusion != UNSHOWN else ''}" for row in rows.itertuples()]
        for moment, shift, tint, marker, label in (
            ("before", -0.17, PALETTE[0], "o", "blind ballots" if blind else "round 1"),
            ("after", 0.17, PALETTE[1], "D", "last round"),
        ):
            low, high = (rows[f"{moment}_{end}"] for end in ("low", "high"))
            dots(axis, names, rows[moment], low, high, [tint] * len(rows), shift=shift, marker=marker, label=label)
        axis.axvline(0, color="#999999", linewidth=0.8, zorder=0)
        axis.set_xlabel("points" if phase == 1 else "net preference (share of judges)", fontsize=8)
        axis.set_title(plain_text(f"phase {phase}" + (f", {model}" if several else "")), fontsize=9)
        axis.tick_params(labelsize=8)
    figure.legend(*axes.flat[0].get_legend_handles_labels(), loc="outside upper right", fontsize=7, frameon=False)
    caption(figure, title, f"{note} *: the change is significant (p ≤ 0.05 after Holm correction).")
    return figure


def talking_section(data: PanelData, context: ReportContext) -> Section:
    """Whether talking amplifies bias: a table and a figure."""
    gaps, judged = talking(data), before_and_after(data)
    compared = (judged["phase"] == 1) == (judged["metric"] != "preferred")  # in pairs, the preference is the verdict
    counts = data.counts(judged[compared & (judged["control"] == "")])
    over = f"sign flips over {data.cluster_noun}s"
    figure = Figure(
        name="talking",
        caption=f"Differences between identities before and after the judges talked ({counts} per round).",
        table="talking",
        draw=lambda: talking_figure(
            gaps, context.title, f"{counts} per round. Intervals are 95%, {over}.", blind=context.blind
        ),
    )
    return Section(
        tables=(
            Table(
                name="talking",
                title="Does talking amplify bias? Differences in round 1 and in the last round",
                frame=gaps,
                note="before, after: first identity minus second in round 1 and in the last round, of the same judges "
                f"on the same units; difference: after minus before, {over}, Holm by model and phase.",
            ),
        ),
        figures=(figure,),
    )
