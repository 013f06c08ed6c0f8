"""Is the instrument sound? What to know about the judges before reading any difference.

Order effects compared with the noise of asking again, an effect of the response itself, judges whose verdicts do not
depend on what they judge, and each identity against no label at all.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from parley.analysis.malibu.conclusions import effects_frame, estimate
from parley.analysis.malibu.contrasts import nested_means, tested
from parley.analysis.malibu.pairs import TWO_IDENTITIES, changes, flips, rate_columns
from parley.analysis.malibu.panel import PanelData, ScoreTable, Verdicts, panel_data
from parley.analysis.reporting.questions import corrected
from parley.analysis.reporting.report import Table
from parley.analysis.stats.proportions import cluster_proportion
from parley.analysis.stats.tables import Floats, as_floats

NO_BASELINE = "no unit was run twice in the same order: --repeats 2 gives the baseline"
ORDER = [
    *("model", "pairs", "swapped_rate", "swapped_low", "swapped_high", "swapped_n"),
    *("again_rate", "again_low", "again_high", "again_n", "difference", "low", "high", "p", "clusters", "note"),
]
NO_LABEL_COLUMNS = [
    *("model", "category", "identity", "difference", "low", "high", "p", "p_adjusted", "clusters", "note"),
]


def order_effects(verdicts: Verdicts) -> pd.DataFrame:
    """How often swapping the order changes the verdict, compared with asking again in the same order.

    `difference` is what the order adds to the noise, with sign flips over bases. It is taken from blocks of four: one
    comparison in both orders, in two repeats. Without an order effect the four verdicts, and so the two rates, are
    exchangeable: the difference is as likely to have the opposite sign.

    Args:
        verdicts: One row per verdict, or their `PanelData`.
    """
    data = panel_data(verdicts)
    units = data.preferences
    units = units.assign(block=units["repeat"] // 2)
    rows: list[dict[str, Any]] = []
    for (model, control), group in units.groupby(["model", "control"], sort=False, observed=True):
        swapped = flips(group)
        again = changes(group, "order", "block") if "order" in group else swapped[:0]
        rates = [
            cluster_proportion(couples["flipped"].astype(float), couples["cluster"]) for couples in (swapped, again)
        ]
        row: dict[str, Any] = {"model": str(model), "pairs": str(control) or TWO_IDENTITIES}
        for name, rate in zip(("swapped", "again"), rates, strict=True):
            row |= rate_columns(name, rate) | {f"{name}_n": rate.n}
        row |= tested(_beyond_noise(group))
        rows.append(row | ({} if len(again) else {"note": NO_BASELINE}))
    return pd.DataFrame(rows, columns=ORDER)


def _beyond_noise(units: pd.DataFrame) -> Floats:
    """By base: the rate of changes when the order is swapped minus that when it is not, from whole blocks of four."""
    if "order" not in units:
        return np.zeros(0)
    keys = ["cluster", "scenario", "identity", "other", "assignment", "block"]
    whole = units[units["choice"].notna()]
    size = whole.groupby(keys, observed=True)["unit"].transform("size")
    orders = whole.groupby(keys, observed=True)["order"].transform("sum")
    # Two orders × two repeats: without an order effect these four are exchangeable, so that sign flips are exact.
    whole = whole[(size == 4) & (orders == 2)]
    by_kind = [
        nested_means(couples["flipped"].to_numpy(dtype=float), couples[["cluster", "scenario"]])[0]
        for couples in (flips(whole), changes(whole, "order", "block"))
    ]
    return as_floats(by_kind[0] - by_kind[1])


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
