"""A reward model on held-out pairs: how often it ranks them right, what is left of that when lengths are matched and
persona words masked, and whether its confidence means what it says.

A frame has one row a pair: topic, chosen, rejected (scores), chosen_masked, rejected_masked, changed (whether masking
changed a text), words_chosen, words_rejected. Pairs of one topic are not independent: intervals are over topics.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from parley.analysis.reporting.figures import PALETTE, caption, sheet, tidy
from parley.analysis.stats.proportions import cluster_proportion, wilson
from parley.analysis.stats.results import Estimate
from parley.analysis.stats.tables import Floats

MATCHED = 1.1
"""Lengths are matched where the longer text has at most this many times the shorter's words."""
BINS = 10
ALL, SAME, MISLED, MASKED = "all pairs", "lengths matched", "length misleads", "persona words masked"
LENGTH, AGREES = "length alone", "agrees with length"


def quality(held_out: pd.DataFrame, train: pd.DataFrame) -> pd.DataFrame:
    """Accuracies by control, each with its interval; `length alone` is what a ruler would reach."""
    right, masked = ranked(held_out["chosen"], held_out["rejected"]), None
    if "chosen_masked" in held_out:
        masked = ranked(held_out["chosen_masked"], held_out["rejected_masked"])
    gap = (held_out["words_chosen"] - held_out["words_rejected"]).to_numpy(dtype=float)
    by_ruler = ranked(prefers(train) * gap, np.zeros(len(gap)))
    longer = np.maximum(held_out["words_chosen"], held_out["words_rejected"]).to_numpy(dtype=float)
    shorter = np.minimum(held_out["words_chosen"], held_out["words_rejected"]).to_numpy(dtype=float)
    topics = held_out["topic"].to_numpy()
    every = np.ones(len(gap), dtype=bool)
    told = by_ruler != 0.5
    rows: list[tuple[str, Floats, np.ndarray]] = [
        (ALL, right, every),
        (LENGTH, by_ruler, every),
        (SAME, right, longer <= MATCHED * shorter),
        (MISLED, right, by_ruler == 0),
        (AGREES, np.where(right == by_ruler, 1.0, 0.0), told),
    ]
    if masked is not None:
        rows.append((MASKED, masked, every))
    frame = pd.DataFrame([{"control": name, **_row(values[kept], topics[kept])} for name, values, kept in rows])
    if masked is not None and "changed" in held_out:
        changed = int(held_out["changed"].sum())
        frame.loc[frame["control"] == MASKED, "note"] = f"masking changed {changed} of {len(held_out)} pairs"
    return frame


def ranked(chosen: Any, rejected: Any) -> Floats:
    """1 where the chosen one scores higher, 0 where lower, a half where neither does."""
    first, second = np.asarray(chosen, dtype=float), np.asarray(rejected, dtype=float)
    found: Floats = np.where(first > second, 1.0, np.where(first < second, 0.0, 0.5))
    return found


def prefers(train: pd.DataFrame) -> float:
    """+1 where the training data's chosen texts are mostly the longer ones, −1 where mostly the shorter."""
    gap = (train["words_chosen"] - train["words_rejected"]).to_numpy(dtype=float)
    return 1.0 if (gap > 0).sum() >= (gap < 0).sum() else -1.0


def _row(values: Floats, topics: np.ndarray) -> dict[str, Any]:
    found: Estimate = cluster_proportion(values, topics)
    return {
        "accuracy": found.estimate,
        "low": found.low,
        "high": found.high,
        "n": found.n,
        "topics": found.clusters,
        "note": found.note,
    }


def reliability(held_out: pd.DataFrame) -> pd.DataFrame:
    """By confidence (the larger of σ(margin) and its complement): how often the model was right."""
    margin = (held_out["chosen"] - held_out["rejected"]).to_numpy(dtype=float)
    confidence = 1 / (1 + np.exp(-np.abs(margin)))
    right = ranked(margin, np.zeros(len(margin)))
    place = np.minimum(((confidence - 0.5) * 2 * BINS).astype(int), BINS - 1)
    rows = []
    for at in range(BINS):
        here = place == at
        found = wilson(float(right[here].sum()), int(here.sum()))
        rows.append(
            {
                "from": 0.5 + at / (2 * BINS),
                "to": 0.5 + (at + 1) / (2 * BINS),
                "n": int(here.sum()),
                "confidence": float(confidence[here].mean()) if here.any() else np.nan,
                "accuracy": found.estimate,
                "low": found.low,
                "high": found.high,
            }
        )
    return pd.DataFrame(rows)


def calibration_error(bins: pd.DataFrame) -> float:
    """Expected calibration error: |accuracy − confidence|, weighted by the pairs in a bin. NaN where there are none."""
    used = bins[bins["n"] > 0]
    if used.empty:
        return float("nan")
    return float(((used["accuracy"] - used["confidence"]).abs() * used["n"]).sum() / used["n"].sum())


def _ends(row: Any) -> str:
    """An accuracy with its interval, as far as there is one."""
    if np.isnan(row.accuracy):
        return f"– (n = {row.n})"
    interval = "" if np.isnan(row.low) else f"{row.low:.2f} to {row.high:.2f}, "
    return f"{row.accuracy:.2f} ({interval}n = {row.n})"


def words(table: pd.DataFrame) -> list[str]:
    """What the table says, in sentences; a model that has only learnt length is said to have."""
    found = {row.control: row for row in table.itertuples()}
    ends = {name: _ends(row) for name, row in found.items()}
    lines = [f"Right in {ends[ALL]} of held-out pairs; length alone is right in {ends[LENGTH]}."]
    same, misled = found[SAME], found[MISLED]
    if misled.high < 0.5 and not same.low > 0.5:
        lines.append(
            f"It has learnt length: where length misleads it is right in {ends[MISLED]}, and where lengths are "
            f"matched in {ends[SAME]}."
        )
    elif same.low > 0.5:
        lines.append(f"It has learnt more than length: where lengths are matched it is right in {ends[SAME]}.")
    else:
        lines.append(
            f"These pairs do not show whether it has learnt more than length: {ends[SAME]} where lengths are matched, "
            f"{ends[MISLED]} where length misleads."
        )
    if MASKED in found:
        lines.append(f"With persona words masked: {ends[MASKED]}.")
    return lines


def plain(table: pd.DataFrame) -> list[dict[str, Any]]:
    """As JSON takes it: NaN is null."""
    rows = table.to_dict("records")
    return [
        {str(key): None if isinstance(value, float) and np.isnan(value) else value for key, value in row.items()}
        for row in rows
    ]


def reliability_figure(bins: pd.DataFrame, held_out: pd.DataFrame) -> Figure:
    figure, axes = sheet(4.6, 4.4)
    axis = axes[0, 0]
    used = bins[bins["n"] > 0]
    axis.plot([0.5, 1], [0.5, 1], color="#777777", linewidth=0.9, linestyle="--")
    axis.vlines(used["confidence"], used["low"], used["high"], color=PALETTE[0], linewidth=1.4)
    axis.scatter(used["confidence"], used["accuracy"], s=10 + 90 * used["n"] / used["n"].max(), color=PALETTE[0])
    axis.set(xlim=(0.49, 1.01), ylim=(0, 1.03), xlabel="confidence, σ of the margin", ylabel="ranked right")
    tidy(axis, "y")
    note = f"{len(held_out)} held-out pairs; bars are 95% Wilson intervals. ECE {calibration_error(bins):.3f}."
    caption(figure, "Is the reward model as sure as it is right?", note)
    return figure
