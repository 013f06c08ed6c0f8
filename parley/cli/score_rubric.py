"""`parley score rubric FILE`: several judges score your texts by a rubric."""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from parley.agents import ConfigError
from parley.base.text import visible
from parley.cli.commands import AddParser
from parley.cli.flags import add_flags, given
from parley.cli.needs import need_analysis
from parley.execute import Job, Options, explain
from parley.judging.scoring.study import RubricScores, ScoringConfig


def add_to(add_parser: AddParser) -> None:
    rubric = add_parser()
    rubric.add_argument("file", help="a .jsonl file, or a .txt file with one text per line")
    rubric.add_argument("--quiet", action="store_true", help="show no progress")
    rubric.add_argument("--json", action="store_true", help="print JSON")
    add_flags(rubric, ScoringConfig, "scoring", leave_out={"file"})
    add_flags(rubric, Options, "run")
    rubric.set_defaults(handler=lambda parsed, rest: _rubric(parsed))


def _rubric(parsed: argparse.Namespace) -> int:
    from parley.cli.run import execute_job

    try:
        options = Options.model_validate(given(parsed, Options))
    except ValidationError as error:
        raise ConfigError(explain(error, Options)) from None
    job = Job.make(RubricScores.name, {**given(parsed, ScoringConfig), "file": parsed.file}, options)
    need_analysis()
    status = execute_job(job, quiet=parsed.quiet, as_json=False) if not parsed.json else _run_silently(job)
    if status in (0, 1):
        _print(job.path, as_json=parsed.json)
    return status


def _run_silently(job: Job) -> int:
    import asyncio

    return 0 if asyncio.run(job.execute()).complete else 1


def _print(path: Path, *, as_json: bool) -> None:
    from parley import frames
    from parley.analysis.rldf import rubrics

    verdicts = frames.verdicts(path)
    if verdicts.empty:
        raise ConfigError(f"{path} has no finished units yet")
    scores, agreement = rubrics.scores(verdicts), rubrics.agreement(verdicts)
    warning = rubrics.severity_warning(verdicts)
    if as_json:
        tables = {"scores": scores, "agreement": agreement}
        rows = {name: [_without_nan(row) for row in table.to_dict("records")] for name, table in tables.items()}
        print(json.dumps({"run": str(path), **rows, "warning": warning or None}, indent=2))
        return
    style: dict[str, Any] = {"box": SIMPLE_HEAD, "padding": (0, 1, 0, 0), "pad_edge": False, "title_justify": "left"}
    table = Table(title="Scores, 0 to 100 (BS is severity: lower is better)", **style)
    for column in ("group", "metric", "mean", "95% interval", "texts", "unreadable"):
        table.add_column(column)
    for row in scores.itertuples():
        cells = (row.group or "all", row.metric, _number(row.estimate), _interval(row), row.clusters, row.unreadable)
        table.add_row(*(escape(visible(str(cell))) for cell in cells))
    console = Console()
    console.print(table)
    table = Table(title="Agreement between judges", **style)
    for column in ("metric", "coefficient", "value", "95% interval", "note"):
        table.add_column(column)
    for row in agreement.itertuples():
        agreed = (row.metric, row.coefficient, _number(row.estimate, 2), _interval(row, 2), row.note)
        table.add_row(*(escape(visible(str(cell))) for cell in agreed))
    console.print(table)
    if warning:
        console.print(escape(warning))


def _without_nan(row: dict[str, Any]) -> dict[str, Any]:
    return {key: None if isinstance(value, float) and math.isnan(value) else value for key, value in row.items()}


def _number(value: float, digits: int = 1) -> str:
    return "–" if math.isnan(value) else f"{value:.{digits}f}"


def _interval(row: Any, digits: int = 1) -> str:
    return "–" if math.isnan(row.low) else f"{row.low:.{digits}f} to {row.high:.{digits}f}"
