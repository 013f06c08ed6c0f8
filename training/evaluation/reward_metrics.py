"""A reward model on held-out pairs: accuracy, also with matched lengths and with masked persona words, and
calibration.

A frame has one row per pair: topic, chosen, rejected (scores), chosen_masked, rejected_masked, changed (whether masking
changed a text), words_chosen, words_rejected. Pairs of one topic are not independent: intervals are clustered by topic.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from parley.analysis.page.figures import PALETTE, caption, sheet, tidy
from parley.analysis.stats.proportions import cluster_proportion, wilson
from parley.analysis.stats.results import columns
from parley.analysis.stats.tables import Floats

MATCHED_RATIO = 1.1
"""Lengths are matched if the longer text has at most this many times the shorter's words."""
BINS = 10
ALL, MATCHED, MISLEADING, MASKED = "all pairs", "lengths matched", "length misleads", "persona words masked"
LENGTH, AGREES = "length alone", "agrees with length"


def quality(held_out: pd.DataFrame, train: pd.DataFrame) -> pd.DataFrame:
    """Accuracies by control, each with its interval.

    `length alone` is a rule that prefers the longer (or shorter) text, as the training pairs do.

    Args:
        held_out: Pairs with scores.
        train: Pairs with their lengths, from which the rule is derived.
    """
    correct = ranked(held_out["chosen"], held_out["rejected"])
    masked = ranked(held_out["chosen_masked"], held_out["rejected_masked"])
    gap = (held_out["words_chosen"] - held_out["words_rejected"]).to_numpy(dtype=float)
    by_length = ranked(preferred_length(train) * gap, np.zeros(len(gap)))
    longer = np.maximum(held_out["words_chosen"], held_out["words_rejected"]).to_numpy(dtype=float)
    shorter = np.minimum(held_out["words_chosen"], held_out["words_rejected"]).to_numpy(dtype=float)
    topics = held_out["topic"].to_numpy()
    every = np.ones(len(gap), dtype=bool)
    rows: list[tuple[str, Floats, np.ndarray]] = [
        (ALL, correct, every),
        (LENGTH, by_length, every),
        (MATCHED, correct, longer <= MATCHED_RATIO * shorter),
        (MISLEADING, correct, by_length == 0),
        (AGREES, np.where(correct == by_length, 1.0, 0.0), by_length != 0.5),
        (MASKED, masked, every),
    ]
    accuracies = [(name, cluster_proportion(values[included], topics[included])) for name, values, included in rows]
    frame = pd.DataFrame(
        [
            {"control": name, **columns(line, "accuracy", "n", topics="clusters", note="note")}
            for name, line in accuracies
        ]
    )
    changed = int(held_out["changed"].sum())
    frame.loc[frame["control"] == MASKED, "note"] = f"masking changed {changed} of {len(held_out)} pairs"
    return frame


def ranked(chosen: Any, rejected: Any) -> Floats:
    """1 if the chosen answer scores higher, 0 if lower, 0.5 for a tie."""
    first, second = np.asarray(chosen, dtype=float), np.asarray(rejected, dtype=float)
    ranks: Floats = np.where(first > second, 1.0, np.where(first < second, 0.0, 0.5))
    return ranks


def preferred_length(train: pd.DataFrame) -> float:
    """+1 if the training data's chosen texts are mostly the longer ones, −1 if mostly the shorter."""
    gap = (train["words_chosen"] - train["words_rejected"]).to_numpy(dtype=float)
    return 1.0 if (gap > 0).sum() >= (gap < 0).sum() else -1.0


def reliability(held_out: pd.DataFrame) -> pd.DataFrame:
    """Accuracy by bins of confidence, which is the larger of σ(margin) and 1 − σ(margin)."""
    margin = (held_out["chosen"] - held_out["rejected"]).to_numpy(dtype=float)
    confidence = 1 / (1 + np.exp(-np.abs(margin)))
    correct = ranked(margin, np.zeros(len(margin)))
    bin_of = np.minimum(((confidence - 0.5) * 2 * BINS).astype(int), BINS - 1)
    rows = []
    for number in range(BINS):
        in_bin = bin_of == number
        accuracy = wilson(float(correct[in_bin].sum()), int(in_bin.sum()))
        rows.append(
            {
                "from": 0.5 + number / (2 * BINS),
                "to": 0.5 + (number + 1) / (2 * BINS),
                "n": int(in_bin.sum()),
                "confidence": float(confidence[in_bin].mean()) if in_bin.any() else np.nan,
                **columns(accuracy, "accuracy"),
            }
        )
    return pd.DataFrame(rows)


def calibration_error(bins: pd.DataFrame) -> float:
    """Expected calibration error (ECE): |accuracy − confidence|, weighted by the pairs per bin; NaN without pairs."""
    used = bins[bins["n"] > 0]
    if used.empty:
        return float("nan")
    return float(((used["accuracy"] - used["confidence"]).abs() * used["n"]).sum() / used["n"].sum())


def _with_interval(row: Any) -> str:
    """An accuracy with its interval, if it has one."""
    if np.isnan(row.accuracy):
        return f"– (n = {row.n})"
    interval = "" if np.isnan(row.low) else f"{row.low:.2f} to {row.high:.2f}, "
    return f"{row.accuracy:.2f} ({interval}n = {row.n})"


def better_than_chance(table: pd.DataFrame) -> bool:
    """Whether the whole interval of the accuracy on held-out pairs lies above one half.

    Args:
        table: The table of `quality`.
    """
    (low,) = table[table["control"] == ALL]["low"]
    return bool(low > 0.5)


def held_out_accuracy(table: pd.DataFrame) -> str:
    """The accuracy on held-out pairs with its interval, for a sentence.

    Args:
        table: The table of `quality`.
    """
    (row,) = table[table["control"] == ALL].itertuples()
    return _with_interval(row)


def conclusions(table: pd.DataFrame) -> list[str]:
    """Conclusions from the table of `quality`, in sentences; first, whether the model learnt more than length."""
    rows = {row.control: row for row in table.itertuples()}
    accuracy = {name: _with_interval(row) for name, row in rows.items()}
    lines = [f"Accuracy on held-out pairs: {accuracy[ALL]}; by length alone: {accuracy[LENGTH]}."]
    matched, misleading = rows[MATCHED], rows[MISLEADING]
    if misleading.high < 0.5 and not matched.low > 0.5:
        lines.append(
            f"It has learnt length: accuracy {accuracy[MISLEADING]} where length misleads, {accuracy[MATCHED]} where "
            "lengths are matched."
        )
    elif matched.low > 0.5:
        lines.append(f"It has learnt more than length: accuracy {accuracy[MATCHED]} where lengths are matched.")
    else:
        lines.append(
            "These pairs do not show whether it has learnt more than length: "
            f"accuracy {accuracy[MATCHED]} where lengths are matched, {accuracy[MISLEADING]} where length misleads."
        )
    return [*lines, f"With persona words masked: {accuracy[MASKED]}."]


def reliability_figure(bins: pd.DataFrame, held_out: pd.DataFrame) -> Figure:
    """Accuracy against confidence; a calibrated model lies on the diagonal.

    Args:
        bins: The table of `reliability`.
        held_out: The pairs of the table, for their number.
    """
    figure, axes = sheet(4.6, 4.4)
    axis = axes[0, 0]
    used = bins[bins["n"] > 0]
    axis.plot([0.5, 1], [0.5, 1], color="#777777", linewidth=0.9, linestyle="--")
    axis.vlines(used["confidence"], used["low"], used["high"], color=PALETTE[0], linewidth=1.4)
    axis.scatter(used["confidence"], used["accuracy"], s=10 + 90 * used["n"] / used["n"].max(), color=PALETTE[0])
    axis.set(xlim=(0.49, 1.01), ylim=(0, 1.03), xlabel="confidence, σ of the margin", ylabel="accuracy")
    tidy(axis, "y")
    note = f"{len(held_out)} held-out pairs; bars are 95% Wilson intervals. ECE {calibration_error(bins):.3f}."
    caption(figure, "Calibration of the reward model", note)
    return figure
