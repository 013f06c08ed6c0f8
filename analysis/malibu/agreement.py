"""Do the judges agree, round by round, and did the discussion change their minds?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure as Drawing
from numpy.typing import NDArray

from parley.analysis.malibu.panel import PanelData, Verdicts, panel_data, values_in_order
from parley.analysis.reporting.figures import PALETTE, caption, legend_beside, plain_text, sheet, tidy
from parley.analysis.reporting.report import Figure, ReportContext, Section, Table
from parley.analysis.stats.agreement import fleiss_kappa, krippendorff_alpha
from parley.analysis.stats.proportions import cluster_proportion
from parley.analysis.stats.tables import factorize
from parley.base.text import plural

STATUSES = ("ok", "repaired", "unparsed", "refused", "cut")
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
    bases = base_of_scenario(judged)
    rows: list[dict[str, Any]] = []
    for (model, phase, round), group in judged.groupby(["model", "phase", "round"], sort=True, observed=True):
        for metric in values_in_order(group, "metric"):
            part = group[group["metric"] == metric]
            is_preference = metric == "preferred"
            table, scenarios, repeated = _items(part, "text" if is_preference else "value")
            coefficient = fleiss_kappa if is_preference else krippendorff_alpha
            estimate = coefficient(table, clusters=scenarios.map(bases), draws=draws, seed=seed)
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


def base_of_scenario(verdicts: pd.DataFrame) -> dict[str, str]:
    """The cluster of each scenario: its base, or the scenario itself where it has none."""
    scenarios = verdicts.drop_duplicates("scenario")
    names = scenarios["scenario"].astype(str)
    column = next((name for name in ("situation", "cluster", "base") if name in scenarios), "scenario")
    bases = scenarios[column].astype(object)
    bases = bases.where(bases.notna() & (bases != ""), names).astype(str)
    return dict(zip(names, bases, strict=True))


def _items(part: pd.DataFrame, column: str) -> tuple[NDArray[Any], pd.Series, int]:
    """Items (unit and side) by judges, the scenario of each item, and how many repeated verdicts were left out.

    Of two verdicts of a judge on one item the first counts. Everything is done on codes: pivoting a million strings is
    slow.
    """
    judge, judges = factorize(part["judge"], sort=False)
    unit, _ = factorize(part["unit"], sort=False)
    subject, subjects = factorize(part["subject"], sort=False) if "subject" in part else (np.zeros_like(unit), [""])
    item, items = pd.factorize(unit * (len(subjects) + 1) + subject)
    row = np.zeros(len(items), dtype=np.int64)
    row[item] = np.arange(len(item))  # any row of an item has its scenario
    values = part[column].to_numpy(dtype=float if column == "value" else object)
    table = np.full((len(row), len(judges)), np.nan if column == "value" else None, dtype=values.dtype)
    kept = ~pd.Series(item * len(judges) + judge).duplicated().to_numpy()
    table[item[kept], judge[kept]] = values[kept]
    return table, part["scenario"].iloc[row].astype(str), int((~kept).sum())


def changed_minds(verdicts: Verdicts) -> pd.DataFrame:
    """How often scores and preferences changed from a judge's first round to its last, and by how much scores did.

    Args:
        verdicts: One row per verdict, or their `PanelData`.
    """
    judged = panel_data(verdicts).without_chair
    rounds = judged.groupby("unit", observed=True)["round"].agg(["min", "max"])
    rounds = rounds[rounds["min"] < rounds["max"]]  # with a single round there was no chance to change
    if rounds.empty:
        return pd.DataFrame(columns=CHANGES)
    bases = base_of_scenario(judged)
    first = judged[judged["round"].to_numpy() == rounds["min"].reindex(judged["unit"]).to_numpy()]
    last = judged[judged["round"].to_numpy() == rounds["max"].reindex(judged["unit"]).to_numpy()]
    keys = ["model", "phase", "scenario", "unit", "judge", "metric"]
    keys += ["subject"] if "subject" in judged else []
    both = first.merge(last, on=keys, suffixes=("_first", "_last"))
    rows: list[dict[str, Any]] = []
    for (model, phase), group in both.groupby(["model", "phase"], sort=True, observed=True):
        is_preference = group["metric"] == "preferred"
        for what, part in (("scores", group[~is_preference]), ("preferences", group[is_preference])):
            column = "value" if what == "scores" else "text"
            before, after = part[f"{column}_first"], part[f"{column}_last"]
            known = before.notna() & after.notna()
            if not known.any():
                continue
            before, after = before[known].astype(object), after[known].astype(object)
            clusters = part["scenario"][known].astype(str).map(bases)
            changed = cluster_proportion((before != after).astype(float), clusters)
            mean_change = (after.astype(float) - before.astype(float)).mean() if what == "scores" else float("nan")
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


def parsing(verdicts: Verdicts) -> pd.DataFrame:
    """Parse statuses of the judges' replies, by model and phase. A reply is one judge in one round.

    Args:
        verdicts: One row per verdict, or their `PanelData`.
    """
    replies = panel_data(verdicts).all_verdicts.drop_duplicates(["unit", "judge", "round"])
    rows = []
    for (model, phase), group in replies.groupby(["model", "phase"], sort=True, observed=True):
        counts = group["status"].value_counts()
        rows.append({"model": str(model), "phase": int(phase)} | {name: int(counts.get(name, 0)) for name in STATUSES})
    return pd.DataFrame(rows, columns=["model", "phase", *STATUSES])


def agreement_section(data: PanelData, context: ReportContext) -> Section:
    """Agreement by round, as a table and a figure."""
    agreed = agreement(data, draws=context.draws, seed=context.seed)
    table = Table(
        name="agreement",
        title="Agreement between the judges, by round",
        frame=agreed,
        shown=(*data.model_column, "phase", "round", "metric", "coefficient", "value", "low", "high", "judges"),
        note="" if context.blind else "Judges may have heard each other in every round: agreement includes echo.",
    )
    figure = Figure(
        name="agreement",
        caption=f"Agreement between the judges by round ({data.counts}).",
        table="agreement",
        draw=lambda: agreement_figure(agreed, context.title, f"{data.counts}. {data.intervals}"),
    )
    return Section(tables=(table,), figures=(figure,))


def changed_minds_section(data: PanelData) -> Section:
    """How often judges changed their verdicts, as a table."""
    title = "Did the discussion change minds? From the first round to the last"
    return Section(tables=(Table(name="changed_minds", title=title, frame=changed_minds(data)),))


def parsing_section(data: PanelData) -> Section:
    """How replies were parsed, as a table."""
    return Section(tables=(Table(name="parsing", title="How replies were parsed", frame=parsing(data)),))


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
