"""A card as the report of its run: its sentences, its lines as a table, and the labels' lines as the main plot."""

from __future__ import annotations

import math
from dataclasses import replace

import pandas as pd

from parley.analysis.card.record import Card
from parley.analysis.card.words import LABELS, asks, can_judge, sentences, verdict
from parley.analysis.reporting.forest import Forest
from parley.analysis.reporting.report import Report, ReportContext, Table
from parley.analysis.stats.results import Line

COLUMNS = ("group", "line", "what", "estimate", "low", "high", "verdict", "n")


def card_report(card: Card, context: ReportContext) -> Report:
    """The report of a card's run.

    Args:
        card: The card.
        context: Title, cautions and record of the run.
    """
    rows = [
        (asks(line.group), line.name, line.label, line.estimate, line.low, line.high, verdict(line), line.n)
        for line in card.lines
    ]
    table = Table(
        name="card",
        title="The lines of the card",
        frame=pd.DataFrame(rows, columns=COLUMNS),
        note="Verdicts are corrected (Holm) within a family of lines; the battery's file has null values and margins.",
    )
    labels = Forest(
        name="labels",
        question="Do labels move the scores of the same answers?",
        axis="difference in score (1 to 9)",
        lines=tuple(replace(line, group="") for line in card.lines if _drawn(line)),
        table=table.name,
    )
    judging = card.by_name.get("judge")
    return Report(
        title=context.title,
        words=tuple(sentences(card)),
        cautions=(
            # This card says itself what a shipped one says about the same model.
            *(caution for caution in context.cautions if caution not in context.model_cautions.values()),
            *([can_judge(judging)] if judging and not card.judges else []),
        ),
        tables=(table,),
        forests=(labels,),
        runs=tuple(context.runs),
    )


def _drawn(line: Line) -> bool:
    return line.name in LABELS and math.isfinite(line.estimate)
