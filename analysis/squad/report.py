"""SQuAD's report: does search help, how good are the answers, what did the search agent do, and MABRF's table 4."""

from __future__ import annotations

import pandas as pd

from parley.analysis.reporting.report import NO_CONTEXT, Report, ReportContext, Section, Table, assemble
from parley.analysis.reporting.systems import cost_sentence
from parley.analysis.reporting.verdicts import MissingColumns, require, uncategorised
from parley.analysis.squad.answers import answers, scores_section, systems
from parley.analysis.squad.arms import arms_section
from parley.analysis.squad.reproduction import reproduction_section
from parley.analysis.stats.resampling import words_on_draws


def report(verdicts: pd.DataFrame, context: ReportContext = NO_CONTEXT) -> Report:
    """The report of one run or several.

    Args:
        verdicts: One row per verdict.
        context: What else the report is given.
    """
    require(verdicts, texts=("question_id", "paragraph"), numbers=("repeat", "paragraph_shown"))
    frame = answers(verdicts)
    if frame.empty:
        raise MissingColumns("none of its verdicts is an answer")
    searched = Table("searches", "Searches per item", searches(verdicts), note="Means over items with search.")
    sections = [
        Section(warnings=words_on_draws(context.draws)),
        arms_section(frame),
        scores_section(frame, context),
        Section(tables=[searched], costs=cost_sentence(context.units, "question", systems)),
        reproduction_section(frame),
    ]
    return assemble(sections, context, "SQuAD v2", draws=context.draws, seed=context.seed)


def searches(verdicts: pd.DataFrame) -> pd.DataFrame:
    """What the search agent did, by system; empty without search."""
    frame = uncategorised(verdicts)
    metric = frame["metric"].str.removeprefix("search_")
    searched = frame[frame["metric"].str.startswith("search_")].assign(what=metric)
    if searched.empty:
        return pd.DataFrame()
    searched = searched.assign(system=systems(frame).loc[searched.index])
    table = searched.pivot_table(index="system", columns="what", values="value", aggfunc="mean", sort=False)
    for what, name in (("queries", "queries_unread"), ("unknown_sources", "summaries_unread")):
        rows = searched[searched["what"] == what]
        table[name] = rows["status"].isin(["unparsed", "refused", "cut"]).groupby(rows["system"]).sum()
    return table.reset_index().rename_axis(columns=None)
