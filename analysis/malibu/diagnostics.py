"""Is the instrument sound? What to know about the judges before reading any difference.

Each identity against no label at all, and silent ballots that were read twice.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pandas as pd

from parley.analysis.malibu.conclusions import effects_frame, estimate
from parley.analysis.malibu.panel import PanelData, ScoreTable, Verdicts, panel_data
from parley.analysis.reporting.questions import corrected
from parley.analysis.reporting.report import Table

NO_LABEL_COLUMNS = [
    *("model", "category", "identity", "difference", "low", "high", "p", "p_adjusted", "clusters", "note"),
]


def no_label_differences(verdicts: Verdicts) -> pd.DataFrame:
    """Phase 1: every identity minus no label, by the same judge on the same scenario and metric, by model.

    It tells whether one identity is raised or another lowered. Sign flips over bases; Holm over a model's identities.

    Args:
        verdicts: One row per verdict, or their `PanelData`.
    """
    data = panel_data(verdicts)
    scores, lines = data.final_scores, []
    for model in data.models:
        group = scores[scores["model"] == model]
        if not (group["identity"] == "").any():
            continue
        raised = ScoreTable.of(_minus_no_label(group))
        for label in filter(None, raised.identities):
            about = {"model": model, "category": data.categories.get(label, ""), "identity": label}
            lines.append(replace(estimate(raised.alone(label)), about=about))
    return effects_frame(corrected(lines), NO_LABEL_COLUMNS)


def _minus_no_label(scores: pd.DataFrame) -> pd.DataFrame:
    """The labelled scores minus the one without a label of the same judge, scenario and metric.

    The clusters are those of the labelled scores: no label has no wording.
    """
    keys = ["scenario", "judge", "metric"]
    without = scores[scores["identity"] == ""].groupby(keys, observed=True)["value"].mean()
    labelled = scores[scores["identity"] != ""]
    beside = without.reindex(pd.MultiIndex.from_frame(labelled[keys])).to_numpy(dtype=float)
    return labelled.assign(value=labelled["value"].to_numpy(dtype=float) - beside)


def no_label_table(data: PanelData) -> Table:
    """Each identity minus no label, as a table."""
    return Table(
        name="no_label",
        title="Phase 1: each identity minus no label",
        frame=no_label_differences(data),
        note=f"On the same scenarios, sign flips over {data.cluster_noun}s: is one identity raised, or another one "
        "lowered?",
    )


def second_readings(data: PanelData) -> pd.DataFrame:
    """How far two readings of the same silent ballot lie apart, by model, in points.

    Args:
        data: The verdicts.
    """
    keys = ["model", "scenario", "identity", "wording", "judge", "metric"]
    keys = [key for key in keys if key in data.again]
    rows: list[dict[str, Any]] = []
    if len(data.again):
        both = data.again[[*keys, "value"]].merge(
            data.final_scores[[*keys, "value"]], on=keys, suffixes=("_again", "_first")
        )
        both = both.assign(apart=(both["value_again"] - both["value_first"]).abs()).dropna(subset="apart")
        for model, part in both.groupby("model", sort=False, observed=True):
            spread = {"mean": float(part["apart"].mean()), "largest": float(part["apart"].max())}
            rows.append({"model": str(model), "ballots": len(part), **spread})
    return pd.DataFrame(rows, columns=["model", "ballots", "mean", "largest"])
