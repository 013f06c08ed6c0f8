"""The report of `parley train ablate`: the policy at each level, as a table and as the paper's figures 8 to 12 draw it.

A dataset named after a mode or teacher of the paper is shown next to its tables 2, 4, 5, 13 and 14.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import pandas as pd
from matplotlib.figure import Figure as Drawing

from parley.analysis.page.figures import caption, colours, legend_beside, sheet, tidy
from parley.analysis.page.report import Figure, Report, Table
from parley.judging.rldf.report import published_table
from parley.training.evaluation.metrics import LOWER_IS_BETTER
from parley.training.repeats import FACTORS

MODES = {"self-reflection": "S-R", "teacher-student": "T-S"}
"""Modes of debating, by their names in the paper's tables 2 and 4."""
_NAMED_LEVEL = re.compile(rf"({'|'.join(FACTORS)}) (\d+)")


def policy_scores(factor: str, level: str, evaluation: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The policy's BS, CE and LS by bias type at one level; none if no judge scored it.

    Args:
        factor: The ablated factor.
        level: Its value. A dataset called "roles 4" is the level 4 of `roles`.
        evaluation: The result of `evaluate`.
    """
    if named := _NAMED_LEVEL.fullmatch(level):
        factor, level = named.groups()
    rows = [row for row in evaluation.get("rubric_by_bias", []) if row["system"] == "RLDF"]
    return [{"factor": factor, "level": level, **{key: row[key] for key in row if key != "system"}} for row in rows]


def ablation_report(
    rows: Sequence[Mapping[str, Any]], scores: Sequence[Mapping[str, Any]], base: str, cautions: Sequence[str] = ()
) -> Report:
    """All levels in one report.

    Args:
        rows: One per level, as `repeats.ablation_summary` gives them.
        scores: The results of `policy_scores` for all levels.
        base: The model that was trained.
        cautions: The evaluations' cautions.
    """
    title = f"RLDF on {base}: ablations"
    by_level = pd.DataFrame(list(scores))
    tables = [
        Table("ablation", "The policy trained at each level", pd.DataFrame(list(rows)), note=LOWER_IS_BETTER),
        Table("ablation_by_bias", "BS, CE and LS of the policy by bias type", by_level, note=LOWER_IS_BETTER),
    ]
    if len(by_level):
        named = by_level[by_level["factor"] == "data"].assign(system=lambda part: part["level"].replace(MODES))
        tables.append(published_table(pd.DataFrame(), named))
    filled = tuple(table for table in tables if len(table.frame))
    return Report(title=title, cautions=tuple(cautions), tables=filled, figures=tuple(_figures(by_level, title)))


def _figures(scores: pd.DataFrame, title: str) -> Iterator[Figure]:
    """One figure per bias type, as in the paper (figure 8 is for age)."""
    if not len(scores):
        return
    drawn = scores[scores["factor"].isin(FACTORS)].astype({"level": int}, errors="ignore")
    for bias, part in drawn.groupby("bias", sort=False):
        note = (
            f"{bias}: points of 100 with 95% intervals over topics. {LOWER_IS_BETTER} The paper draws this for four "
            "models, without numbers."
        )
        yield Figure(f"ablation_{bias}", note, "ablation_by_bias", partial(ablation_figure, part, title, note))


def ablation_figure(scores: pd.DataFrame, title: str, note: str) -> Drawing:
    """A panel per factor: each metric against the factor's values.

    Args:
        scores: Scores of one bias type: factor, level (numbers), metric, mean, low, high.
        title: Title of the figure.
        note: Printed below it.
    """
    factors = [factor for factor in FACTORS if (scores["factor"] == factor).any()]
    tints = colours(list(scores["metric"]))
    figure, axes = sheet(1.4 + 2.4 * len(factors), 3.4, len(factors), sharey=True)
    for axis, factor in zip(axes[0], factors, strict=True):
        for metric, part in scores[scores["factor"] == factor].groupby("metric", sort=False):
            line = part.sort_values("level")
            axis.vlines(line["level"], line["low"], line["high"], color=tints[metric], linewidth=1.2)
            axis.plot(line["level"], line["mean"], "o-", color=tints[metric], markersize=4, linewidth=1.2, label=metric)
        axis.set(xlabel=factor, xticks=sorted(set(scores[scores["factor"] == factor]["level"])))
        tidy(axis, "y")
    axes[0, 0].set_ylabel("points of 100")
    legend_beside(figure, axes[0])
    caption(figure, title, note)
    return figure
