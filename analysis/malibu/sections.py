"""Parts of MALIBU's report that answer one question each: can these judges judge, and what does talking do?"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import pandas as pd

from parley.analysis.malibu.bases import Directions
from parley.analysis.malibu.contagion import contagion, contagion_words
from parley.analysis.malibu.echo import echo, echo_words
from parley.analysis.malibu.panel import PanelData
from parley.analysis.malibu.talking import talking, talking_aligned, talking_figure, talking_words
from parley.analysis.malibu.yardstick import (
    auc_table,
    exchange_rates,
    flaw_effects,
    graded_scores,
    yardstick_cautions,
    yardstick_figure,
    yardstick_words,
)
from parley.analysis.reporting.report import Figure, Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of a report.

    Args:
        tables: In order.
        figures: In order.
        words: Sentences that state the results.
        cautions: What every reader must know before any number.
    """

    tables: tuple[Table, ...]
    figures: tuple[Figure, ...]
    words: tuple[str, ...]
    cautions: tuple[str, ...] = ()


def yardstick_section(data: PanelData, different: Collection[tuple[str, str, str]], title: str) -> Section:
    """Can the judges tell good responses from flawed ones, what does a flaw cost, and how much of it is a label worth?

    Args:
        data: The verdicts.
        different: Model and identities of every pair that was found to differ.
        title: Of the report.
    """
    graded, unit = graded_scores(data.graded), data.cluster_noun
    aucs, flaws = auc_table(graded), flaw_effects(graded)
    exchange = exchange_rates(data, graded, flaws)
    over = f"Intervals are 95%, sign flips over {unit}s."
    return Section(
        tables=(
            Table(
                name="yardstick_auc",
                title="Yardstick: can the judges tell good responses from flawed ones?",
                frame=aucs,
                note="AUC: how often the good response scored higher than a flawed one of the same base, ties as half; "
                f"0.5 is guessing. {over}",
            ),
            Table(
                name="yardstick_flaws",
                title="Yardstick: what each flaw costs, in points",
                frame=flaws,
                note=f"Good minus flawed response, without labels. {over} p_adjusted: Holm over the flaws.",
            ),
            Table(
                name="exchange",
                title="Yardstick: how much of a flaw a label is worth",
                frame=exchange,
                note="The difference between two identities as a share of what the flaw costs, on bases that have "
                f"both: Fieller's method with sign flips over {unit}s. Only where the flaw clearly lowers the score.",
            ),
        ),
        figures=(
            Figure(
                name="yardstick",
                caption="Yardstick: how well judges tell good responses from flawed ones, and what each flaw costs.",
                table="yardstick_auc",
                draw=lambda: yardstick_figure(aucs, flaws, title, over),
            ),
        ),
        words=tuple(yardstick_words(aucs, flaws, exchange, different, unit)),
        cautions=tuple(yardstick_cautions(aucs, data.models)),
    )


def talking_section(
    data: PanelData, remarks: pd.DataFrame | None, directions: Directions, title: str, *, blind: bool | None
) -> Section:
    """Does talking amplify bias, who moves towards whom, and do judges repeat each other?

    Args:
        data: The verdicts.
        remarks: Which statements repeat another judge's, from `parley.reports.remarks.repeated_remarks`.
        directions: Which identities the stereotype of each base favours, by category.
        title: Of the report.
        blind: Whether nobody heard anybody in round 1; None if it is not known.
    """
    unit = data.cluster_noun
    gaps, aligned = talking(data), talking_aligned(data, directions)
    moves, repeated = contagion(data, blind=blind), echo(data, remarks)
    over = f"sign flips over {unit}s"
    return Section(
        tables=(
            Table(
                name="talking",
                title="Does talking amplify bias? Differences in round 1 and in the last round",
                frame=gaps,
                note="before, after: first identity minus second in round 1 and in the last round, of the same judges "
                f"on the same units; difference: after minus before, {over}, Holm by model and phase.",
            ),
            Table(
                name="talking_aligned",
                title="Phase 1: does talking move scores the way documented stereotypes go?",
                frame=aligned,
                note=f"Favoured identities minus the others, in round 1 and in the last round; {over}.",
            ),
            Table(
                name="contagion",
                title="Who moves towards whom?",
                frame=moves,
                note="Where two judges differed in round 1: how often the judge adopted, or came closer to, what the "
                "other had said (towards); chance: the same with what the other said of the same text under another "
                "label. weight: points moved per point of the other's unexpected verdict, "
                f"{over}.",
            ),
            Table(
                name="echo",
                title="Do judges repeat each other?",
                frame=repeated,
                note="Statements and sets of scores that repeat another judge's, beside the rate on the same text in "
                f"another unit, which nobody heard; difference: {over}, Holm by model.",
            ),
        ),
        figures=(
            Figure(
                name="talking",
                caption="Differences between identities before and after the judges talked.",
                table="talking",
                draw=lambda: talking_figure(gaps, title, f"Intervals are 95%, {over}.", blind=blind),
            ),
        ),
        words=(
            *talking_words(gaps, aligned, blind=blind, cluster=unit),
            *contagion_words(moves, blind=blind, cluster=unit),
            *echo_words(repeated, blind=blind, cluster=unit),
        ),
    )
