"""The part of a report about the analysis plan: what was planned before the data, and what was not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from parley.analysis.page.report import Report, Table
from parley.analysis.say import json_values
from parley.base.text import plural

TABLES = "tables"
"""The key of a plan that says which tables of the report are planned."""
NOT_PLANNED = "not planned"
PUBLISHED = "published"
"""Tables that show a paper's numbers next to a run's."""
WAS = {"unread": "missing", "unread_differences": "missing_differences"}
"""Earlier names of tables, in older plans."""
NO_PLAN = (
    "No analysis plan was stored when the run began, so nothing in this report is known to have been planned in "
    "advance."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRun:
    """A run of a study that plans its analysis.

    Args:
        run: Name of the run.
        plan: The plan that was stored when the run began; None if the run has none.
        intact: Whether the plan still has the hash that was stored with it.
    """

    run: str
    plan: Mapping[str, Any] | None
    intact: bool = True


def with_analysis_plan(report: Report, runs: Sequence[PlannedRun], margin: float | None = None) -> Report:
    """The report, with notes on what was and was not planned.

    Args:
        report: The report to add to; returned unchanged if there are no such runs.
        runs: Its runs; none if their study plans no analysis.
        margin: The margin of equivalence that the report was made with, if it has one.
    """
    if not runs:
        return report
    whole = [run for run in runs if run.plan is not None and run.intact]
    cautions = [
        f"The analysis plan of {run.run} is not the one that was stored when the run began, and is not used."
        for run in runs
        if not run.intact
    ]
    statuses = pd.DataFrame([row for run in whole for row in _statuses(report, run)])
    table = Table(
        "planned",
        "Which tables were planned before the data",
        statuses,
        shown=("run", "table", "part", "status") if len(whole) > 1 else ("table", "part", "status"),
        note="planned: decided before the data. "
        "exploratory: suggests questions, answers none. not planned: not in the plan.",
    )
    return replace(
        report,
        words=(*report.words, *_once(runs, lambda run: _sentences(report, run))),
        # Another margin changes the question, so it comes before cautions about the models.
        cautions=(
            *_once(runs, lambda run: _other_margin(run, margin)),
            *_once(runs, lambda run: _other_parts(report, run)),
            *report.cautions,
            *cautions,
        ),
        tables=(*report.tables, *([table] if len(table.frame) else [])),
    )


def _once(runs: Sequence[PlannedRun], sentences: Callable[[PlannedRun], Iterator[str]]) -> Iterator[str]:
    """The sentences on each run, and one for all runs that share it."""
    by_sentence: dict[str, list[str]] = {}
    for run in runs:
        for sentence in sentences(run):
            by_sentence.setdefault(sentence, []).append(run.run)
    for sentence, names in by_sentence.items():
        yield sentence if len(names) == len(runs) else f"{', '.join(names)}: {sentence}"


def _sentences(report: Report, run: PlannedRun) -> Iterator[str]:
    if run.plan is None:
        yield NO_PLAN
    if run.plan is None or not run.intact:
        return
    unplanned = [row["table"] for row in _statuses(report, run) if row["status"] == NOT_PLANNED]
    yield from _other_families(report, run.plan)
    yield "The analysis was planned before the data; the table 'planned' says which tables follow the plan." + (
        f" Tables that were not planned: {', '.join(unplanned)}." if unplanned else ""
    )


def _other_families(report: Report, plan: Mapping[str, Any]) -> Iterator[str]:
    """Says which families of tests are not those of the plan: an older one may test a contrast in two of them."""
    planned = {name: family.get("tests", 0) for name, family in (plan.get("families") or {}).items()}
    other = [
        f"{name} over {plural(tests, 'test')} (planned: {planned.get(name, 'none')})"
        for name, tests in report.families.items()
        if tests and planned and tests != planned.get(name)
    ]
    if other:
        yield f"Each contrast has one test, so the corrections differ from the plan's: {', '.join(other)}."


def _other_parts(report: Report, run: PlannedRun) -> Iterator[str]:
    """Names what the report did in another way than a plan of its own version says: contrasts, thresholds, tests."""
    plan = run.plan if run.plan is not None and run.intact else {}
    if plan.get("version") == report.plan.get("version"):
        other = [name for name, done in report.plan.items() if name != "margin" and plan.get(name) != json_values(done)]
        if other:
            yield f"This report does not follow the analysis plan in: {', '.join(other)}."


def _other_margin(run: PlannedRun, margin: float | None) -> Iterator[str]:
    planned = run.plan.get("margin") if run.plan is not None and run.intact else None
    if margin is not None and isinstance(planned, int | float) and planned != margin:
        yield f"This report was made with a margin of ±{margin:g}, and ±{planned:g} was planned."


def _statuses(report: Report, run: PlannedRun) -> Iterator[dict[str, str]]:
    """The plan's status of each table that has rows."""
    tables = (run.plan or {}).get(TABLES)
    planned = tables if isinstance(tables, Mapping) else {}
    for table in report.tables:
        if not len(table.frame) or table.name.startswith(PUBLISHED):
            continue
        status = planned.get(table.name, planned.get(WAS.get(table.name, ""), NOT_PLANNED))
        parts = status if isinstance(status, Mapping) else {"": status}
        for part, text in parts.items():
            yield {"run": run.run, "table": table.name, "part": str(part) or "all of it", "status": str(text)}
