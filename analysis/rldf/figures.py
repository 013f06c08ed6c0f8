"""RLDF's figures and forest plots: debates, ablations, framings and rubric scores."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from parley.analysis.reporting.figures import PALETTE, caption, dots, legend_beside, plain_text, sheet, tidy
from parley.analysis.reporting.forest import Forest, estimates
from parley.analysis.rldf.debates import AGAIN, FIRST, SAME_DEBATES, THRESHOLD
from parley.analysis.rldf.framing import LABELS

MARKERS = "os^Dv"


def rounds_figure(rounds: pd.DataFrame, title: str, note: str) -> Figure:
    """Mean bias by round: all roles and the blind referee on the left, each role on the right, with 95% intervals over
    topics."""
    figure, axes = sheet(8.6, 3.6, 2, sharey=True)
    left, right = axes.flat
    judges = list(dict.fromkeys(rounds["judge"]))
    for n, judge in enumerate(judges):
        rows = rounds[(rounds["role"] == "all") & (rounds["judge"] == judge)]
        _line(left, rows, n, JUDGES[judge], 0.06 * (n - (len(judges) - 1) / 2))
    if len(judges) == 1:
        note += " No blind referee scored these debates."
    roles = list(dict.fromkeys(rounds.loc[rounds["role"] != "all", "role"]))
    for n, role in enumerate(roles):
        _line(right, rounds[rounds["role"] == role], n + len(judges), str(role), 0.06 * (n - (len(roles) - 1) / 2))
    for axis, heading in ((left, "all roles"), (right, "by role")):
        axis.axhline(THRESHOLD, color="#999999", linewidth=0.8, linestyle=":", zorder=0)
        axis.set(xlabel="round", ylim=(-0.2, 10.2), xticks=sorted(set(rounds["round"])))
        axis.set_title(heading, fontsize=9)
        tidy(axis, "both")
    left.set_ylabel("referee's bias score (0 to 10)")
    legend_beside(figure, (left, right))
    caption(figure, title, f"{note} Dotted: the threshold ({THRESHOLD:g}) between low and high bias.")
    return figure


def ablation_figure(setting: str, table: pd.DataFrame, title: str, note: str) -> Figure:
    """Bias of the last round by the setting that was varied."""
    figure, axes = sheet(5.4, 1.5 + 0.3 * len(table))
    axis = axes.flat[0]
    names = [f"{setting} {value}" for value in table[setting]]
    dots(axis, names, table["estimate"], table["low"], table["high"], [PALETTE[0]] * len(table))
    axis.set(xlabel="bias score of the last round (0 to 10)")
    note = f"On {table['shared_topics'].iloc[0]} topics and the roles that all runs have. {note}"
    caption(figure, title, note)
    return figure


def framing_figure(frames: pd.DataFrame, title: str, note: str) -> Figure:
    """Biases admitted by framing (the paper's figure 1)."""
    counted = frames[frames["metric"] == "biases"]
    figure, axes = sheet(5.4, 2.6)
    axis = axes.flat[0]
    names = [LABELS[frame] for frame in counted["frame"]]
    dots(axis, names, counted["estimate"], counted["low"], counted["high"], [PALETTE[0]] * len(counted))
    axis.set(xlabel="biases admitted per answer")
    caption(figure, title, note)
    return figure


def _line(axis: Axes, rows: pd.DataFrame, nth: int, label: str, shift: float) -> None:
    tint, x = PALETTE[nth % len(PALETTE)], rows["round"] + shift
    axis.vlines(x, rows["low"], rows["high"], color=tint, linewidth=1.4)
    marker = MARKERS[(nth - 1) % len(MARKERS)]
    axis.plot(x, rows["estimate"], marker + "-", color=tint, markersize=5, linewidth=1.2, label=plain_text(label))


JUDGES = {
    FIRST: "referee, who knows the round",
    AGAIN: "second referee, blind",
    SAME_DEBATES: "first referee, on the blind one's debates",
}
OVER_TOPICS = "95% intervals over topics."
POINTS = "bias score (points of 10)"


def debate_forests(change: pd.DataFrame, by_round: pd.DataFrame) -> Iterator[Forest]:
    """Does debating lower the score? Then the scores themselves.

    Args:
        change: Last round minus first; with the column `run` if there are several runs.
        by_round: Mean scores by round and role.
    """

    def group(row: Any) -> str:
        judge = JUDGES[row.judge]
        return f"{row.run} · {judge}" if hasattr(row, "run") else judge

    if len(change):
        yield Forest(
            name="change",
            question="Does debating lower the bias score?",
            axis=f"change of the {POINTS}, last round minus first",
            estimates=estimates(change, lambda row: _role(row.role), value="estimate", group=group),
            table="change",
            note=f"Within debates; below 0 the score fell. {OVER_TOPICS}",
        )
    if len(by_round):
        yield Forest(
            name="by-round",
            question="How biased is each round?",
            axis=POINTS,
            estimates=estimates(
                by_round,
                lambda row: f"round {row.round}",
                value="estimate",
                group=lambda row: f"{group(row)} · {_role(row.role)}",
            ),
            reference=None,
            table="by_round",
            note=OVER_TOPICS,
        )


def _role(role: str) -> str:
    return "all roles" if role == "all" else str(role)


def ablation_forest(setting: str, table: pd.DataFrame) -> Forest:
    """Runs that differ in one setting, each against the first.

    Args:
        setting: The setting.
        table: One row per run.
    """
    first = table[setting].iloc[0]
    against = [("referee", "against_first", "against"), ("second referee, blind", "against_blind", "blind")]
    lines = [
        line
        for judge, value, ends in against
        for line in estimates(
            table,
            lambda row: f"{setting} {getattr(row, setting, row.run)}",
            value=value,
            ends=(f"{ends}_low", f"{ends}_high"),
            group=lambda row, judge=judge: judge,  # type: ignore[misc]
        )
    ]
    return Forest(
        name="ablation",
        question=f"Does {setting} change the bias of the last round?",
        axis=f"difference in {POINTS} from {setting} {first}",
        estimates=tuple(lines),
        table="ablation",
        note=f"On the topics and roles that all runs have. {OVER_TOPICS}",
    )


def framing_forests(gaps: pd.DataFrame, frames: pd.DataFrame) -> Iterator[Forest]:
    """Do framings differ? Then the biases admitted under each.

    Args:
        gaps: Second framing minus first.
        frames: Means by framing.
    """
    yield Forest(
        name="differences",
        question="Does the framing change how many biases are admitted?",
        axis="difference in biases admitted per answer",
        estimates=estimates(
            gaps, lambda row: f"{LABELS[row.second]} − {LABELS[row.first]}", value="estimate", p="p_holm"
        ),
        table="differences",
        note="95% intervals and paired t tests over topics; p-values Holm-corrected.",
    )
    yield Forest(
        name="frames",
        question="How many biases are admitted under each framing?",
        axis="biases admitted per answer",
        estimates=estimates(frames[frames["metric"] == "biases"], lambda row: LABELS[row.frame], value="estimate"),
        reference=None,
        table="frames",
        note=OVER_TOPICS,
    )


def rubric_forest(scores: pd.DataFrame) -> Forest:
    """Mean scores by metric and group.

    Args:
        scores: From `rubrics.scores`.
    """
    metrics = list(scores["metric"].unique())
    by_metric = scores.sort_values("metric", key=lambda column: column.map(metrics.index), kind="stable")
    return Forest(
        name="scores",
        question="How do the texts score by the rubric?",
        axis="mean score (0 to 100)",
        estimates=estimates(
            by_metric,
            lambda row: str(row.group or "all texts"),
            value="estimate",
            group=lambda row: str(row.metric),
            units=lambda row: {"group": (row.group,)} if row.group else {},
        ),
        reference=None,
        table="scores",
        note="95% intervals over texts. BS is bias severity: lower is better.",
    )
