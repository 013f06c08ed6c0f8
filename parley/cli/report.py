"""`parley report RUN…`: one screen in the terminal; a page, tables and figures as files.

`parley report DATASET` reports what a reward model could learn from a dataset's pairs besides their content.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field
from rich.console import Console
from rich.text import Text

from parley.base.errors import ConfigError
from parley.base.files import MANIFEST
from parley.base.home import say
from parley.base.text import visible
from parley.cli.command import Answer, Command, Terminal
from parley.cli.flags import Positional, Repeated
from parley.cli.shared import need_analysis, newest_run
from parley.cli.tables import MAX_ROWS, plain_table
from parley.runs import explain_damage
from parley.runs.example import example_runs
from parley.training.exported import read_export, referee_checks

if TYPE_CHECKING:
    from parley.analysis.page.report import Report as Results
    from parley.analysis.stats.results import Line

BESIDE = 4
"""Columns of a paper's table that are printed beside each other."""
CHANGING = {"draws", "seed", "margin", "study", "labels", "as_is"}  # with these the viewer's report is another


class Report(Command):
    """Report on runs of one study, or on the pairs of a dataset."""

    alone: ClassVar = {"example": ("run",)}

    run: Positional[list[Path]] = Field(
        [],
        description="run files, or the folder of a dataset of `parley export` (default: the newest run in runs/)",
    )
    example: bool = Field(False, description="report on the real run that ships with Parley")
    out: Path | None = Field(None, title="DIR", description="folder for the files (default: next to the first run)")
    figures: Literal["main", "all"] = Field(
        "main",
        description="draw only the forest plot of the main question, or all figures, as SVG, PDF and PNG",
    )
    files: bool = Field(True, description="print only, write nothing")
    labels: Repeated[list[Path]] = Field(
        [],
        title="FILE",
        description="CSV file of `parley export RUN --format csv` with people's scores: show how far they agree; "
        "may be given several times",
    )
    draws: int = Field(2000, description="number of bootstrap and permutation draws")
    seed: int = Field(0, description="seed of the draws")
    margin: float | None = Field(
        None, description="largest difference that still counts as none (default: the run's planned margin)"
    )
    study: str | None = Field(None, title="FILE.py:CLASS", description="use the report of your own study")
    paper: bool = Field(
        False,
        description="only what the study's paper has: its tables and figures, in its order, printed values beside ours",
    )
    as_is: bool = Field(
        False, description="report on a run whose budget ended: no more units are to come; estimates, no verdicts"
    )
    as_json: bool = Field(False, alias="json", description="print JSON; write no files unless --out is given")

    def answer(self) -> Answer:
        need_analysis()
        from parley.reports import make_report  # loads pandas and matplotlib
        from parley.viewer.reporter import keep

        if len(self.run) == 1 and (self.run[0] / MANIFEST).is_file():
            dataset = dataset_report(self.run[0], self.seed)
            return Answer(dataset.data(), chain(dataset_lines(dataset), write_files(dataset, self.out)))
        paths = [example_runs()["silent"]] if self.example else self.run or [newest_run()]
        with explain_damage(*paths):  # also while it is drawn
            report = make_report(
                paths,
                draws=self.draws,
                seed=self.seed,
                margin=self.margin,
                study=self.study,
                labels=self.labels,
                as_is=self.as_is,
                paper=self.paper,
            )
            if self.paper and not report.tables:
                raise ConfigError("--paper: no table of this report is in a paper")
            written = self.files and (not self.as_json or self.out is not None)
            folder = self.out or report_folder(paths[0], "-paper" if self.paper else "-report")
            page = write_page(report, folder, self.figures) if written else None
            if page and len(paths) == 1 and not self.paper and not self.model_fields_set & CHANGING:
                keep(paths[0], report)
            if self.as_json:
                return Answer(report.data(), ())
            if self.paper:
                return Answer(None, [*paper_lines(report), *([f"page: {page}"] if page else [])])
            from parley.cli.first_screen import first_screen  # imported late: it loads AutoGen

            return Answer(None, list(first_screen(report, paths, page, Console())))


def report_folder(run: Path, ending: str = "-report") -> Path:
    """The default folder for a report's files."""
    return run.parent / f"{run.stem}{ending}"


def print_report(path: Path, study: str) -> None:
    """The report of a run that has just ended."""
    need_analysis()
    from parley.cli.first_screen import first_screen
    from parley.reports import make_report  # loads pandas and matplotlib
    from parley.viewer.reporter import keep

    report, console = make_report([path], study=study), Terminal()
    page = write_page(report, report_folder(path))
    if ":" not in study:  # the viewer knows shipped studies only
        keep(path, report)
    for line in first_screen(report, [path], page, console):
        console.print(line, highlight=False, soft_wrap=True)


def write_page(report: Results, folder: Path, figures: Literal["main", "all"] = "main") -> Path:
    """Write a report's page, tables and figures to a folder, and return the page."""
    from parley.analysis.page.render import write

    return write(report, folder, figures=figures)


def write_files(report: Results, folder: Path | None) -> list[str]:
    """Write a report's files if there is a folder for them; returns their location."""
    if not folder:
        return []
    page = write_page(report, folder)
    return [f"page: {page}    tables and figures: {page.parent}"]


def dataset_lines(report: Results, most: int = MAX_ROWS) -> Iterator[Any]:
    """The sentences and tables of a dataset's report, or of one as its paper has it."""
    yield Text(f"\n{visible(report.title)}", style="bold")
    if report.headline:
        yield Text(visible(report.headline.text), style="bold")
    for table in report.tables:
        view, headings = table.view(), table.headings
        # A layout is as wide as the paper's page: as many columns at a time as 80 characters hold.
        step = BESIDE if table.layout is not None else len(view.columns)
        for start in range(headings, len(view.columns), step):
            part = view.iloc[:, [*range(headings), *range(start, min(start + step, len(view.columns)))]]
            yield plain_table(table.title, part, most, headings)
    for line in report.words:
        yield Text(f"- {visible(line)}")


def paper_lines(report: Results) -> Iterator[Any]:
    """A paper's page: each claim with its verdicts as lines, those that were not measured last; then the tables."""
    claims = [table for table in report.tables if table.name.endswith("claims")]
    for table in claims:
        yield Text(f"\n{visible(table.title)}", style="bold")
        measured = table.frame["clusters"] > 0
        for claim, rows in table.frame[measured].groupby("claim", sort=False):
            yield Text(f"\n{visible(str(claim))}")
            for row in rows.to_dict("records"):
                yield Text(f"  {visible(str(row.get('verdict', 'no verdict yet')))}", style="bold")
                yield from (Text(f"    {visible(line)}") for line in _claimed(row))
        for claim, rows in table.frame[~measured].groupby("claim", sort=False):
            whys = dict.fromkeys(rows.get("verdict", ()))
            yield Text(f"\n{visible(str(claim))}\n  {visible('; '.join(whys))}")
        yield Text(f"\n{table.note}")
    yield from dataset_lines(replace(report, tables=tuple(each for each in report.tables if each not in claims)), 200)


def _claimed(row: Mapping[str, Any]) -> Iterator[str]:
    """What was tested, the paper's values, and ours."""
    yield str(row["tested"])
    held = f", which bears it out: {row['their_table']}" if row["their_table"] else ""
    yield f"paper: {row['paper'] or '–'}{held}"
    yield f"ours:  {row['ours']}" + (f"; power {row['power']}" if row["power"] else "")


def dataset_report(folder: Path, seed: int = 0) -> Any:
    """The report on an export's preference pairs.

    Args:
        folder: The folder.
        seed: Seed of the folds, sign flips and bootstrap.
    """
    from parley.judging.rldf.preferences.report import preference_report

    pairs, manifest = read_export(folder)
    for line in referee_checks(manifest):
        say(line)
    instructions = manifest.get("instructions")
    return preference_report(
        pairs,
        instructions=instructions if isinstance(instructions, str) else "",
        title=f"Audit of {folder.name}",
        seed=seed,
        blind=_blind(manifest),
    )


def _blind(manifest: dict[str, Any]) -> Line | None:
    """The blind referee's line from the export's audit, which includes pairs that it contradicted."""
    from parley.analysis.stats.results import Estimate
    from parley.judging.rldf.preferences.audit import BLIND, audit_line

    try:
        row = next(row for row in manifest["audit"]["shortcuts"] if "blind" in row["predictor"] and row["n"])
        stored = {name: row[name] for name in ("estimate", "low", "high", "p")}
        numbers = {name: math.nan if value is None else float(value) for name, value in stored.items()}
        counts = {name: int(row[name]) for name in ("n", "clusters")}
        return audit_line(Estimate(**numbers, **counts), BLIND)  # type: ignore[arg-type]
    except (KeyError, TypeError, ValueError, StopIteration):
        return None
