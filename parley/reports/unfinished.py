"""What a report on unfinished runs says, and the cautions on all runs."""

from __future__ import annotations

from collections.abc import Sequence

from parley.analysis.page.report import Report
from parley.base.text import plural
from parley.reports.cautions import cautions, cut_cautions, scale_cautions, unfinished_cautions
from parley.reports.loading import LoadedRun, all_models


def without_early_verdicts(report: Report, runs: Sequence[LoadedRun], *, as_is: bool = False) -> Report:
    """The report, without verdicts while a run has units that were not tried (failed units were).

    Args:
        report: The report.
        runs: Its runs.
        as_is: Whether no more units are to come.
    """
    to_come = sum(run.unit_counts["planned"] for run in runs)
    if not to_come:
        return report
    of_all = f"of {plural(sum(sum(run.unit_counts.values()) for run in runs), 'unit')}"
    return report.without_verdicts(
        f"No verdict: {to_come:,} {of_all} {'was' if to_come == 1 else 'were'} not run."
        if as_is
        else f"No verdict yet: {to_come:,} {of_all} {'is' if to_come == 1 else 'are'} to come."
    )


def cautions_on(runs: Sequence[LoadedRun], *, as_is: bool = False) -> tuple[str, ...]:
    """Cautions about runs, for any study.

    Args:
        runs: The runs.
        as_is: Whether no more units are to come.
    """
    return (
        *cautions(all_models(runs)),
        *(
            line
            for run in runs
            for line in unfinished_cautions(run.unit_counts, run.file if len(runs) > 1 else "", as_is=as_is)
        ),
        *cut_cautions(run.replies for run in runs),
        *scale_cautions(run.on_scale for run in runs),
    )
