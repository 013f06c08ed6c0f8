"""Reports of RLDF's studies: debates (one run, or several that differ in one setting), framings, rubric scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import pandas as pd

from parley.analysis.reporting.forest import Forest, filled
from parley.analysis.reporting.report import NO_CONTEXT, Figure, Report, ReportContext, Table
from parley.analysis.reporting.verdicts import require
from parley.analysis.rldf import ablation, framing, rubrics
from parley.analysis.rldf import debates as rldf
from parley.analysis.rldf.figures import (
    ablation_figure,
    ablation_forest,
    debate_forests,
    framing_figure,
    framing_forests,
    rounds_figure,
    rubric_forest,
)
from parley.base.text import plural

OVER_TOPICS = "Intervals are 95%, over topics: statements of one debate are not independent, topics are."
PRINTED = ("by_round", "change")
"""The tables printed in a terminal; the page has all."""
TITLES = {
    "by_round": "Bias score by round and role",
    "change": "Last round minus first, within debates",
    "rankings": "Do the referee's rankings follow from its scores?",
    "refereed_again": "Agreement with a second, blind referee",
    "flags": "Statements that broke role, revealed it, refused, repeated instructions or themselves, or were cut off",
}
AGAINST = (
    "against_first: this run's last round minus that of the first row, on the topics and roles that all runs have; "
    "against_blind: the same by the blind referee. " + OVER_TOPICS
)
ABLATED = (
    "estimate",
    "low",
    "high",
    "high_share",
    "change",
    "against_first",
    "against_low",
    "against_high",
    "against_blind",
    "blind_low",
    "blind_high",
    "clusters",
)
SHOWN = {
    "by_round": ("judge", "role", "round", "estimate", "low", "high", "high_share", "unreadable", "clusters"),
    "change": ("judge", "role", "first", "last", "estimate", "low", "high", "clusters"),
    "rankings": ("judge", "reports", "unreadable", "no_ranking", "contradicted", "estimate", "low", "high"),
    "refereed_again": ("what", "estimate", "low", "high", "n", "note"),
    "flags": ("role", "flag", "count", "estimate", "low", "high"),
}


def debates(verdicts: pd.DataFrame, context: ReportContext = NO_CONTEXT) -> Report:
    """Bias by round and role; for several runs that differ in one setting, first the ablation.

    Args:
        verdicts: One row per verdict; units of several runs have the run's number as a prefix, in the order of `runs`.
        context: What the report is given beside them.
    """
    title = context.title or "RLDF"
    require(verdicts, texts=("topic",))
    runs = context.runs
    parts = _by_run(verdicts, runs)
    several = len(parts) > 1
    words: list[str] = []
    tables: list[Table] = []
    figures: list[Figure] = []
    forests: list[Forest] = []
    if several:
        by_run = {name: (run["config"], part) for (name, part), run in zip(parts.items(), runs, strict=True)}
        try:
            setting, table = ablation.ablation(by_run)
        except ValueError as error:
            words.append(f"{str(error)[0].upper()}{str(error)[1:]}.")
        else:
            words += ablation.notes(by_run)
            forests.append(ablation_forest(setting, table))
            tables.append(
                Table(
                    name="ablation",
                    title=f"One setting varied: {setting}",
                    frame=table,
                    shown=(setting, *ABLATED),
                    note=AGAINST,
                    printed=True,
                )
            )
            figures.append(
                Figure(
                    name="ablation",
                    caption=f"Bias of the last round by {setting}, on the topics and roles that all runs have.",
                    table="ablation",
                    draw=lambda: ablation_figure(setting, table, title, OVER_TOPICS),
                )
            )
    frames: dict[str, list[pd.DataFrame]] = {}
    for name, part in parts.items():
        words += [f"{name}: {line}" if several else line for line in rldf.summary(part)]
        for key, frame in rldf.tables(part).items():
            if len(frame):
                frames.setdefault(key, []).append(frame.assign(run=name) if several else frame)
        rounds, heading = rldf.tables(part)["by_round"], f"{title} · {name}" if several else title
        figures.append(
            Figure(
                name=f"rounds-{len(figures)}" if several else "rounds",
                caption=f"Mean bias score by round ({plural(part['topic'].nunique(), 'topic')})"
                f"{f', {name}' if several else ''}.",
                table="by_round",
                draw=partial(rounds_figure, rounds, heading, OVER_TOPICS),
            )
        )
    first = ("run",) if several else ()
    for key, listed in frames.items():
        tables.append(
            Table(
                name=key,
                title=TITLES[key],
                frame=pd.concat(listed, ignore_index=True),
                shown=(*first, *SHOWN[key]),
                note=OVER_TOPICS,
                printed=key in PRINTED,
            )
        )
    shown = {table.name: table.frame for table in tables}
    forests += debate_forests(shown.get("change", pd.DataFrame()), shown.get("by_round", pd.DataFrame()))
    return Report(
        title=title,
        words=tuple(words),
        tables=tuple(tables),
        figures=tuple(figures),
        forests=filled(forests),
        settings={"threshold": rldf.THRESHOLD},
        cautions=tuple(context.cautions),
        runs=tuple(context.runs),
    )


def _by_run(verdicts: pd.DataFrame, runs: Sequence[Mapping[str, Any]]) -> dict[str, pd.DataFrame]:
    """The frame of each run, by file name. With several runs, unit ids begin with the run's number and a colon."""
    if len(runs) < 2:
        return {str(runs[0]["file"]) if runs else "run": verdicts}
    number = verdicts["unit"].astype(str).str.partition(":")[0]
    return {f"{run['file']}": verdicts[number == str(nth)] for nth, run in enumerate(runs)}


def framings(verdicts: pd.DataFrame, context: ReportContext = NO_CONTEXT) -> Report:
    """Biases admitted under three framings of the same answers.

    Args:
        verdicts: One row per verdict.
        context: What the report is given beside them.
    """
    title = context.title or "Framing"
    require(verdicts, texts=("topic",))
    frames, gaps = framing.by_frame(verdicts), framing.differences(verdicts)
    answers = plural(verdicts["topic"].nunique(), "answer")
    note = f"{answers}, each under all three framings. Intervals are 95%, over topics."
    tables = (
        Table(
            name="frames",
            title="Biases admitted, by framing",
            frame=frames,
            shown=("frame", "metric", "estimate", "low", "high", "any", "unreadable"),
            note="biases: the number the model gave; named: the number it listed.",
            printed=True,
        ),
        Table(
            name="differences",
            title="Second framing minus first, on the same answers",
            frame=gaps,
            shown=("first", "second", "estimate", "low", "high", "p", "p_holm", "clusters"),
            note="p: paired t test over topics; p_holm: Holm-corrected for the three comparisons.",
        ),
    )
    figure = Figure(
        name="framing",
        caption=f"Biases admitted by framing. {note}",
        table="frames",
        draw=lambda: framing_figure(frames, title, note),
    )
    return Report(
        title=title,
        words=tuple(framing.summary(verdicts)),
        tables=tables,
        figures=(figure,),
        forests=filled(framing_forests(gaps, frames)),
        cautions=tuple(context.cautions),
        runs=tuple(context.runs),
    )


def rubric_scores(verdicts: pd.DataFrame, context: ReportContext = NO_CONTEXT) -> Report:
    """Mean scores by group, and whether the judges agree.

    Args:
        verdicts: One row per verdict.
        context: What the report is given beside them.
    """
    require(verdicts, texts=("item", "group", "model"))
    means = rubrics.scores(verdicts)
    tables = (
        Table(
            name="scores",
            title="Scores, 0 to 100 (BS is bias severity: lower is better)",
            frame=means,
            shown=("group", "metric", "estimate", "low", "high", "clusters", "unreadable"),
            note="Intervals are 95%, over texts.",
            printed=True,
        ),
        Table(
            name="agreement",
            title="Agreement between the judges",
            frame=rubrics.agreement(verdicts, draws=context.draws, seed=context.seed),
            shown=("metric", "coefficient", "estimate", "low", "high", "note"),
            printed=True,
        ),
    )
    warning = rubrics.severity_warning(verdicts)
    return Report(
        title=context.title or "Rubric",
        words=(warning,) if warning else (),
        tables=tables,
        forests=filled((rubric_forest(means),)),
        settings={"draws": context.draws, "seed": context.seed},
        cautions=tuple(context.cautions),
        runs=tuple(context.runs),
    )
