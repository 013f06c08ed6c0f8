"""Do the judges agree, round by round, and did the discussion change their minds?"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure as Drawing
from numpy.typing import NDArray

from parley.analysis.malibu.panel import PanelData, Verdicts, panel_data, values_in_order
from parley.analysis.malibu.rounds import before_and_after
from parley.analysis.reporting.figures import PALETTE, caption, legend_beside, plain_text, sheet, tidy
from parley.analysis.reporting.report import Figure, ReportContext, Section, Table
from parley.analysis.stats.agreement import fleiss_kappa, krippendorff_alpha
from parley.analysis.stats.proportions import cluster_proportion
from parley.analysis.stats.tables import factorize
from parley.base.text import plural

AGREEMENT = [
    "model",
    "phase",
    "round",
    "metric",
    "coefficient",
    "value",
    "low",
    "high",
    "judges",
    "n",
    "clusters",
    "note",
]
CHANGES = ["model", "phase", "what", "changed", "low", "high", "mean_change", "n", "clusters"]


def agreement(verdicts: Verdicts, *, draws: int = 2000, seed: int = 0) -> pd.DataFrame:
    """Krippendorff's α of the scores and Fleiss' κ of the preferences, by model, phase and round.

    Args:
        verdicts: One row per verdict, or their `PanelData`.
        draws: Draws of the bootstrap over bases, or over scenarios where they have none.
        seed: Seed of all draws.
    """
    judged = panel_data(verdicts).without_chair
    rows: list[dict[str, Any]] = []
    for (model, phase, round), group in judged.groupby(["model", "phase", "round"], sort=True, observed=True):
        for metric in values_in_order(group, "metric"):
            part = group[group["metric"] == metric]
            is_preference = metric == "preferred"
            table, bases, repeated = _items(part, "text" if is_preference else "value")
            coefficient = fleiss_kappa if is_preference else krippendorff_alpha
            estimate = coefficient(table, clusters=bases, draws=draws, seed=seed)
            notes = [estimate.note, f"{plural(repeated, 'repeated verdict')} left out" if repeated else ""]
            rows.append(
                {
                    "model": str(model),
                    "phase": int(phase),
                    "round": int(round),
                    "metric": metric,
                    "coefficient": "Fleiss' κ" if is_preference else "Krippendorff's α",
                    "value": estimate.estimate,
                    "low": estimate.low,
                    "high": estimate.high,
                    "judges": table.shape[1],
                    "n": estimate.n,
                    "clusters": estimate.clusters,
                    "note": "; ".join(filter(None, notes)),
                }
            )
    return pd.DataFrame(rows, columns=AGREEMENT)


def _items(part: pd.DataFrame, column: str) -> tuple[NDArray[Any], pd.Series, int]:
    """Items (unit and side) by judges, the base of each item, and how many repeated verdicts were left out.

    Of two verdicts of a judge on one item the first counts. Everything is done on codes: pivoting a million strings is
    slow.
    """
    judge, judges = factorize(part["judge"], sort=False)
    unit, _ = factorize(part["unit"], sort=False)
    subject, subjects = factorize(part["subject"], sort=False) if "subject" in part else (np.zeros_like(unit), [""])
    item, items = pd.factorize(unit * (len(subjects) + 1) + subject)
    row = np.zeros(len(items), dtype=np.int64)
    row[item] = np.arange(len(item))  # any row of an item has its base
    values = part[column].to_numpy(dtype=float if column == "value" else object)
    table = np.full((len(row), len(judges)), np.nan if column == "value" else None, dtype=values.dtype)
    kept = ~pd.Series(item * len(judges) + judge).duplicated().to_numpy()
    table[item[kept], judge[kept]] = values[kept]
    return table, part["situation"].iloc[row].astype(str), int((~kept).sum())


def changed_minds(verdicts: Verdicts) -> pd.DataFrame:
    """How often scores and preferences changed from a judge's first round to its last, and by how much scores did.

    Args:
        verdicts: One row per verdict, or their `PanelData`.
    """
    both = before_and_after(panel_data(verdicts), controls=True)
    rows: list[dict[str, Any]] = []
    for (model, phase), group in both.groupby(["model", "phase"], sort=True, observed=True):
        is_preference = group["metric"] == "preferred"
        for what, part in (("scores", group[~is_preference]), ("preferences", group[is_preference])):
            if part.empty:
                continue
            changed = cluster_proportion((part["before"] != part["after"]).astype(float), part["situation"].astype(str))
            mean_change = (part["after"] - part["before"]).mean() if what == "scores" else math.nan
            rows.append(
                {
                    "model": str(model),
                    "phase": int(phase),
                    "what": what,
                    "changed": changed.estimate,
                    "low": changed.low,
                    "high": changed.high,
                    "mean_change": mean_change,
                    "n": changed.n,
                    "clusters": changed.clusters,
                }
            )
    return pd.DataFrame(rows, columns=CHANGES)


def agreement_section(data: PanelData, context: ReportContext) -> Section:
    """Agreement by round, as a table and a figure."""
    agreed = agreement(data, draws=context.draws, seed=context.seed)
    counts = data.counts(data.without_chair)
    table = Table(
        name="agreement",
        title="Agreement between the judges, by round",
        frame=agreed,
        shown=(*data.model_column, "phase", "round", "metric", "coefficient", "value", "low", "high", "judges"),
        note="" if context.blind else "Judges may have heard each other in every round: agreement includes echo.",
    )
    figure = Figure(
        name="agreement",
        caption=f"Agreement between the judges by round ({counts}).",
        table="agreement",
        draw=lambda: agreement_figure(agreed, context.title, f"{counts}. {data.intervals}"),
    )
    return Section(tables=(table,), figures=(figure,))


def agreement_figure(agreement: pd.DataFrame, title: str, note: str) -> Drawing:
    """Agreement by round: scores and preferences, one line per metric."""
    panels = list(agreement[["model", "phase"]].drop_duplicates().itertuples(index=False))
    figure, axes = sheet(3.2 * len(panels) + 0.8, 3.6, len(panels), sharey=True)
    for axis, (model, phase) in zip(axes.flat, panels, strict=True):
        rows = agreement[(agreement["model"] == model) & (agreement["phase"] == phase)]
        for nth, (metric, part) in enumerate(rows.groupby("metric", sort=False)):
            place = part["round"] + (nth - 2) * 0.06
            tint = PALETTE[nth % len(PALETTE)]
            axis.plot(place, part["value"], "o-", color=tint, markersize=4, label=plain_text(str(metric)))
            axis.vlines(place, part["low"], part["high"], color=tint, linewidth=1.2)
        rounds = sorted(set(rows["round"]))
        axis.set_xticks(rounds)
        axis.set(xlabel="round", xlim=(min(rounds) - 0.4, max(rounds) + 0.4))
        axis.set_title(
            plain_text(f"phase {phase}" + (f", {model}" if agreement["model"].nunique() > 1 else "")), fontsize=9
        )
        axis.axhline(0, color="#999999", linewidth=0.8, zorder=0)
        tidy(axis, "y")
    axes.flat[0].set_ylabel("agreement (α, κ)")
    legend_beside(figure, axes.flat)
    caption(figure, title, note)
    return figure
