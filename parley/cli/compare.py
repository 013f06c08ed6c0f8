"""`parley compare BASELINE RUN`: two runs, or the two models of one run, on the same units."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field
from rich.text import Text

from parley.base.errors import ConfigError
from parley.base.text import visible
from parley.cli.command import Answer, Command
from parley.cli.flags import Positional
from parley.cli.report import write_files
from parley.cli.shared import need_analysis, newest_run, newest_runs, study_of
from parley.cli.tables import plain_table
from parley.runs import RunFile, explain_damage

if TYPE_CHECKING:
    from parley.analysis.page.report import Report

SHOWN = ("what", "first", "second", "estimate", "low", "high", "p_adjusted")


class Compare(Command):
    """Compare two runs, or two models of one run, on the same units: the second minus the first."""

    run: Positional[list[Path]] = Field(
        [],
        description="two run files, the baseline first, or one run with two models (default: the newest run in runs/; "
        "if it has one model, also the previous run of the same study)",
    )
    models: str | None = Field(None, title="A,B", description="the two models to compare, if there are more")
    out: Path | None = Field(None, title="DIR", description="also write a page and tables to this folder")

    def answer(self) -> Answer:
        need_analysis()
        from parley.reports import compare_runs  # loads pandas and matplotlib

        paths = self.run or _newest()
        with explain_damage(*paths):
            report = compare_runs(paths, self.models)
            return Answer(report.data(), [*_lines(report), *write_files(report, self.out)])


def _newest() -> list[Path]:
    """The newest run if it has several models, otherwise also the one before it of the same study."""
    newest = newest_run()
    with RunFile.open(newest) as file:
        info = file.info()
    models = info["config"].get("model") if isinstance(info["config"], dict) else None
    if isinstance(models, list) and len(models) > 1:
        return [newest]
    for path in newest_runs():
        if path != newest and study_of(path) == info["study"]:
            print(visible(f"compared with the run before it: {path}"), file=sys.stderr)
            return [path, newest]
    raise ConfigError(f"{newest} has one model, and no other run in runs/ is of {info['study']}: name two run files")


def _lines(report: Report) -> Iterator[Any]:
    """Cautions and sentences, then a table for each question."""
    yield Text(f"\n{visible(report.title)}", style="bold")
    if report.headline:
        yield Text(visible(report.headline.text))
    for line in report.cautions:
        yield Text.assemble(("Caution:", "bold yellow"), f" {visible(line)}")
    for line in report.words:
        yield Text(f"- {visible(line)}")
    for table in report.tables:
        if table.name != "largest":
            yield plain_table(f"\n{table.title}", replace(table, shown=SHOWN).view())
