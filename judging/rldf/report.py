"""The report of RLDF's debates: one run, or several that differ in one setting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from parley.analysis.reporting.report import NO_CONTEXT, Report, ReportContext, assemble
from parley.analysis.reporting.verdicts import require
from parley.judging.rldf.ablation import ablation_section
from parley.judging.rldf.debates import THRESHOLD, change_section, rounds_section
from parley.judging.rldf.second_referee import agreement_section, flags_section, rankings_section


def debates(verdicts: pd.DataFrame, context: ReportContext = NO_CONTEXT) -> Report:
    """Bias by round and role; for several runs that differ in one setting, first the ablation.

    Args:
        verdicts: One row per verdict; units of several runs have the run's number as a prefix, in the order of `runs`.
        context: What else the report is given.
    """
    require(verdicts, texts=("topic",))
    runs = _by_run(verdicts, context.runs)
    sections = [
        change_section(runs),
        rounds_section(runs),
        rankings_section(runs),
        agreement_section(runs),
        flags_section(runs),
    ]
    if len(runs) > 1:
        configs = {name: (run["config"], part) for (name, part), run in zip(runs.items(), context.runs, strict=True)}
        sections.insert(0, ablation_section(configs))
    return assemble(sections, context, "RLDF", threshold=THRESHOLD)


def _by_run(verdicts: pd.DataFrame, runs: Sequence[Mapping[str, Any]]) -> dict[str, pd.DataFrame]:
    """The frame of each run, by file name. With several runs, unit ids begin with the run's number and a colon."""
    if len(runs) < 2:
        return {str(runs[0]["file"]) if runs else "run": verdicts}
    number = verdicts["unit"].astype(str).str.partition(":")[0]
    return {f"{run['file']}": verdicts[number == str(nth)] for nth, run in enumerate(runs)}
