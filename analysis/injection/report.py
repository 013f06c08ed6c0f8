"""The report on injection: the effects of attempts by kind and by judge, and what a fence prevents."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from parley.analysis.injection.effects import MOVED, malibu_alone, pairs
from parley.analysis.injection.fence import fence_section, readings_section
from parley.analysis.injection.judges import judges_section
from parley.analysis.injection.kinds import by_kind, kinds_section, single_kinds
from parley.analysis.reporting.report import NO_CONTEXT, Report, ReportContext, Section, assemble
from parley.analysis.reporting.systems import cost_sentence


def report(verdicts: pd.DataFrame, context: ReportContext = NO_CONTEXT) -> Report:
    """The report of one run or several.

    Args:
        verdicts: One row per verdict.
        context: What else the report is given.
    """
    scores = pairs(verdicts)
    if scores.empty:
        return assemble([Section(words=["No attempt has been judged yet."])], context, "Injection")
    kinds = by_kind(scores)
    sections = [
        kinds_section(scores, kinds),
        judges_section(scores),
        fence_section(scores),
        Section(words=list(single_kinds(kinds))),  # last: sentences are limited, and these were not planned
        readings_section(verdicts),
        Section(costs=cost_sentence(context.units, "judgement", lambda units: units["model"].astype(str))),
    ]
    report = assemble(sections, context, "Injection", moved_from=MOVED)
    if not malibu_alone(scores):
        return report
    plain = (replace(table, frame=table.frame.drop(columns="judged_by", errors="ignore")) for table in report.tables)
    return replace(report, tables=tuple(plain))
