"""A card as the report of its run: its sentences, its lines as a table, and the labels' lines as the main plot."""

from __future__ import annotations

import math
from urllib.parse import parse_qs

import pandas as pd

from parley.analysis.card.record import Card
from parley.analysis.card.words import GROUPS, can_judge, sentences, verdict
from parley.analysis.reporting.forest import Forest
from parley.analysis.reporting.report import Report, ReportContext, Table
from parley.analysis.stats.results import Line

LABELS = ("gender", "race", "religion")
COLUMNS = ("group", "line", "what", "estimate", "low", "high", "verdict", "n")


def card_report(card: Card, context: ReportContext) -> Report:
    """The report of a card's run.

    Args:
        card: The card.
        context: Title, cautions and record of the run.
    """
    rows = [
        (GROUPS[line.group], line.id, line.title, line.estimate, line.low, line.high, verdict(line), line.n)
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
        lines=tuple(
            Line(
                label=line.title,
                estimate=line.estimate,
                low=_known(line.low),
                high=_known(line.high),
                p_adjusted=_known(line.p_corrected),
                n=line.n,
                units=_facets(line.units or ""),
            )
            for line in card.lines
            if line.id in LABELS and line.estimate is not None
        ),
        table=table.name,
    )
    judging = card.find("judge")
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


def _known(number: float | None) -> float:
    return math.nan if number is None else number


def _facets(units: str) -> dict[str, tuple[str, ...]]:
    """The facets of a line's units, as plots have them."""
    return {name.removeprefix("f."): tuple(values) for name, values in parse_qs(units).items()}
