"""Do the judges agree, round by round, and did talking change their minds?"""

from __future__ import annotations

from typing import Any

import pandas as pd

from parley.analysis.malibu.panel import checked, in_order
from parley.analysis.stats.agreement import fleiss_kappa, krippendorff_alpha
from parley.analysis.stats.proportions import cluster_proportion

STATUSES = ("ok", "repaired", "unparsed", "refused")


def agreement(verdicts: pd.DataFrame, *, draws: int = 2000, seed: int = 0) -> pd.DataFrame:
    """Krippendorff's α of the scores, and Fleiss' κ of the preferences, by model and round; drawn over scenarios."""
    verdicts = checked(verdicts)
    spoken = verdicts[verdicts["role"] != "chair"]
    rows: list[dict[str, Any]] = []
    for (model, phase, round), group in spoken.groupby(["model", "phase", "round"], sort=True, observed=True):
        place = {"model": str(model), "phase": int(phase), "round": int(round)}
        for metric in in_order(group, "metric"):
            part = group[group["metric"] == metric]
            stated = metric == "preferred"
            table = _items(part, "text" if stated else "value")
            coefficient = fleiss_kappa if stated else krippendorff_alpha
            found = coefficient(table.to_numpy(), clusters=table.index, draws=draws, seed=seed)
            rows.append(
                place
                | {
                    "metric": metric,
                    "coefficient": "Fleiss' κ" if stated else "Krippendorff's α",
                    "value": found.estimate,
                    "low": found.low,
                    "high": found.high,
                    "judges": table.shape[1],
                    "n": found.n,
                    "note": found.note,
                }
            )
    columns = ["model", "phase", "round", "metric", "coefficient", "value", "low", "high", "judges", "n", "note"]
    return pd.DataFrame(rows, columns=columns)


def _items(part: pd.DataFrame, column: str) -> pd.DataFrame:
    """Items (unit and side) by judges. Words become codes first: pivoting a million words takes long."""
    judge, judges = pd.factorize(part["judge"])
    subject = part["subject"].astype(str) if "subject" in part else ""
    wide = part[["scenario", "unit"]].astype(str).assign(subject=subject, judge=judge, said=part[column].astype(object))
    table = wide.set_index(["scenario", "unit", "subject", "judge"])["said"].unstack("judge")
    table.columns = [str(judges[code]) for code in table.columns]
    return table.droplevel(["unit", "subject"])


def changed_minds(verdicts: pd.DataFrame) -> pd.DataFrame:
    """From a judge's first round to its last: how often a score or a preference changed, and by how much scores did."""
    verdicts = checked(verdicts)
    spoken = verdicts[verdicts["role"] != "chair"]
    keys = ["model", "phase", "scenario", "unit", "judge", "metric"]
    keys += ["subject"] if "subject" in spoken else []
    rows: list[dict[str, Any]] = []
    ends = spoken.groupby("unit", observed=True)["round"].agg(["min", "max"])
    ends = ends[ends["min"] < ends["max"]]  # who was asked once had no chance to change
    first = spoken[spoken["round"].to_numpy() == ends["min"].reindex(spoken["unit"]).to_numpy()]
    last = spoken[spoken["round"].to_numpy() == ends["max"].reindex(spoken["unit"]).to_numpy()]
    if ends.empty:
        return pd.DataFrame(
            columns=["model", "phase", "what", "changed", "low", "high", "mean_change", "n", "clusters"]
        )
    both = first.merge(last, on=keys, suffixes=("_first", "_last"))
    for (model, phase), group in both.groupby(["model", "phase"], sort=True, observed=True):
        stated = group["metric"] == "preferred"
        for what, part in (("scores", group[~stated]), ("preferences", group[stated])):
            column = "value" if what == "scores" else "text"
            before, after = part[f"{column}_first"], part[f"{column}_last"]
            known = before.notna() & after.notna()
            if not known.any():
                continue
            before, after = before[known].astype(object), after[known].astype(object)
            found = cluster_proportion((before != after).astype(float), part["scenario"][known])
            moved = (after.astype(float) - before.astype(float)).mean() if what == "scores" else float("nan")
            rows.append(
                {
                    "model": str(model),
                    "phase": int(phase),
                    "what": what,
                    "changed": found.estimate,
                    "low": found.low,
                    "high": found.high,
                    "mean_change": moved,
                    "n": found.n,
                    "clusters": found.clusters,
                }
            )
    return pd.DataFrame(
        rows, columns=["model", "phase", "what", "changed", "low", "high", "mean_change", "n", "clusters"]
    )


def parsing(verdicts: pd.DataFrame) -> pd.DataFrame:
    """How the judges' replies could be read, by model and phase. A reply is one judge in one round."""
    verdicts = checked(verdicts)
    replies = verdicts.drop_duplicates(["unit", "judge", "round"])
    rows = []
    for (model, phase), group in replies.groupby(["model", "phase"], sort=True, observed=True):
        counts = group["status"].value_counts()
        rows.append({"model": str(model), "phase": int(phase)} | {name: int(counts.get(name, 0)) for name in STATUSES})
    return pd.DataFrame(rows, columns=["model", "phase", *STATUSES])
