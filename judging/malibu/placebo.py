"""Placebo labels: what weekdays, which mean nothing, do to the scores of the same answers.

A judge that moves its scores with them moves scores for no reason, so its differences between identities may have none
either. Their pairs are a family of their own, beside which no other test is corrected.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from parley.analysis.effects import Estimand, Question, of_model
from parley.analysis.page.report import Section, section
from parley.analysis.stats.results import ALPHA, Line
from parley.base.text import plural
from parley.judging.malibu.contrasts import SCORE
from parley.judging.malibu.decisions import planned_lines
from parley.judging.malibu.panel_data import PanelData
from parley.judging.malibu.plan import PLACEBO_TABLE
from parley.judging.malibu.scores import EFFECT
from parley.judging.malibu.words import in_points, in_test


def placebo_section(data: PanelData, margin: float) -> Section:
    """The pairs of placebo labels, with a sentence for each model; empty if the run has none.

    Args:
        data: The verdicts.
        margin: Points within which two labels count as alike.
    """
    if data.placebo.empty:
        return Section()
    weekdays = PanelData(data.placebo)
    lines = planned_lines(weekdays, margin)
    shown = sorted((line for line in lines if line.p_adjusted <= ALPHA), key=lambda line: abs(line.estimate))
    moved = {line.about.model: line for line in shown}  # the largest of each model
    question = Question(
        name=PLACEBO_TABLE,
        ask="Placebo: pairs of weekdays on the same answers",
        measures={
            SCORE: Estimand(
                words=data.difference, ask="Do weekdays, which mean nothing, move the scores?", says=in_points
            )
        },
        cluster=weekdays.cluster_noun,
        arms="identity",
        note="First minus second. Intervals are simultaneous, and p_adjusted is Holm's, for these pairs alone.",
        shown=(*data.model_column, *EFFECT),
        stated=False,
    )
    return replace(
        section(question, lines),
        warnings=[
            f"{data.prefix(model)}Labels without meaning move this judge's scores, too: {in_points(line)} "
            f"({in_test(line)})."
            for model, line in moved.items()
        ],
        beside=list(_at_most(weekdays, lines, [model for model in weekdays.models if model not in moved])),
    )


def _at_most(data: PanelData, lines: Sequence[Line], models: Sequence[str]) -> Iterator[str]:
    """How far weekdays may differ, for each model of which no pair was shown to."""
    for model in models:
        tested = [line for line in of_model(lines, model) if line.clusters]
        if not tested:
            continue
        limit = max(abs(end) for line in tested for end in (line.low, line.high))
        clusters = plural(min(line.clusters or 0 for line in tested), data.cluster_noun)
        read = data.labelled_verdicts.loc[data.labelled_verdicts["model"] == model, "value"].notna()
        among = "" if read.all() else f", among the {read.mean():.0%} of ballots that were read"
        says = f"{clusters} cannot bound what weekdays do to the scores"
        if math.isfinite(limit):
            most = math.ceil(100 * limit - 1e-9) / 100
            over = f"{plural(len(tested), 'pair')} over {clusters}{among}"
            says = f"weekdays differ by at most {most:.2f} points (simultaneous 95% limit of {over})"
        yield f"{data.prefix(model)}Placebo labels, which mean nothing: {says}."
