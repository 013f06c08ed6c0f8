"""The report of a card's run, for `parley report` and the viewer: the card's lines, each with a link to its units."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from urllib.parse import parse_qs

import pandas as pd

from parley.analysis.card.lines import card_lines
from parley.analysis.card.record import Line
from parley.analysis.card.words import GROUPS, line_sentences, verdict
from parley.analysis.malibu.panel import values_in_order
from parley.analysis.reporting.forest import Estimate, Forest
from parley.analysis.reporting.report import NO_CONTEXT, Report, ReportContext, Section, Table, assemble
from parley.analysis.reporting.verdicts import MissingColumns

AXES = {"points": "points", "share": "share", "auc": "share of comparisons in which the good answer is above"}
SHOWN = ("model", "line", "what", "estimate", "low", "high", "p_corrected", "verdict", "ballots", "bases")
FIRST = "judging"
"""The group that the headline is about: a judge that cannot judge makes the rest moot."""


def report(verdicts: pd.DataFrame, context: ReportContext = NO_CONTEXT) -> Report:
    """The lines of each model's card as tables, plots and sentences.

    Args:
        verdicts: One row per verdict of runs of the study `card`.
        context: What the report is given; its plan has the battery's lines.
    """
    if not context.plan.get("lines") or "part" not in verdicts:
        raise MissingColumns("the run has no intact plan with the battery's lines")
    sampled = context.plan.get("readout") == "sampled"
    models = values_in_order(verdicts, "model")
    cards = {
        model: card_lines(
            verdicts[verdicts["model"] == model], context.plan["lines"], context.directions, sampled=sampled
        )
        for model in models
    }
    sections = [Section(tables=(_table(cards),), words=tuple(_sentences(cards)), forests=tuple(_forests(cards)))]
    return assemble(sections, context, "What can this judge do?")


def _sentences(cards: dict[str, tuple[Line, ...]]) -> Iterator[str]:
    for model, lines in cards.items():
        for sentence in line_sentences(lines):
            yield f"{model}: {sentence}" if len(cards) > 1 else sentence


def _table(cards: dict[str, tuple[Line, ...]]) -> Table:
    rows = [
        {
            "model": model,
            "group": line.group,
            "line": line.id,
            "what": line.title,
            **line.model_dump(
                include={"unit", "null", "margin", "worse", "estimate", "low", "high", "p", "p_corrected"}
            ),
            "verdict": verdict(line),
            "ballots": line.n,
            "bases": line.clusters,
        }
        for model, lines in cards.items()
        for line in lines
    ]
    return Table(
        name="card",
        title="The card's lines",
        frame=pd.DataFrame(rows),
        shown=SHOWN if len(cards) > 1 else SHOWN[1:],
        note="Intervals are 95% over bases; p_corrected: Holm within the line's family.",
        printed=True,
    )


def _forests(cards: dict[str, tuple[Line, ...]]) -> Iterator[Forest]:
    """One plot for all lines of a group that share a unit and a null value; what the headline is about comes first."""
    lines = [(model, line) for model, own in cards.items() for line in own if line.estimate is not None]

    def kind(pair: tuple[str, Line]) -> tuple[bool, str, str, float]:
        line = pair[1]
        return line.group != FIRST, line.group, line.unit, line.null

    for (_, group, unit, null), members in groupby(sorted(lines, key=kind), key=kind):
        own = list(members)
        yield Forest(
            name=f"card-{group}-{unit}-{null:g}",
            question=GROUPS[group],
            axis=AXES[unit],
            estimates=tuple(_estimate(model, line, cards) for model, line in own),
            reference=null,
            scale="points" if unit == "points" else "share",
            table="card",
            note="95% intervals over bases; p-values after Holm's correction within a family.",
        )


def _estimate(model: str, line: Line, cards: dict[str, tuple[Line, ...]]) -> Estimate:
    facets = {key.removeprefix("f."): tuple(values) for key, values in parse_qs(line.units or "").items()}
    return Estimate(
        label=line.title,
        value=float(line.estimate or 0.0),
        low=line.low,
        high=line.high,
        p=line.p_corrected,
        group=model if len(cards) > 1 else "",
        n=line.n,
        units=facets | ({"model": (model,)} if len(cards) > 1 else {}),
        secondary=line.group == FIRST and line.id != "judge",
    )
