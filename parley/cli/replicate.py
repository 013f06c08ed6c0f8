"""`parley replicate PAPER`: all runs of a paper as run files in one folder, and then what its claims come to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from parley.base.errors import ConfigError, ParleyError
from parley.base.home import say
from parley.cli.command import Answer, Command
from parley.cli.dry_run import dollars, estimates, total
from parley.cli.flags import Positional, Repeated
from parley.cli.paper_steps import NotHere, Replication, StudyStep, papers
from parley.cli.report import dataset_lines, report_folder, write_page
from parley.cli.run import execute, how_it_ended
from parley.cli.shared import need_analysis
from parley.cli.tables import cell_table
from parley.cli.train import value_of
from parley.runs import RunFile
from parley.runs.options import Options

if TYPE_CHECKING:
    from parley.analysis.page.report import Report

NUMBERS = ("units", "calls", "prompt_tokens", "completion_tokens")


class Replicate(Options, Command):
    """Run all that a paper ran, on a model of yours, and compare. Finished runs are skipped, and an interrupted one
    resumes."""

    usage: ClassVar = "parley replicate PAPER --model MODEL [--data DIR] [--scale 0.1] [--dry-run] [flags]"
    epilog: ClassVar = f"papers: {', '.join(papers())}. docs/papers.md says how each differs from its paper."
    no_flag: ClassVar = ("prompts_from", "budget_calls", "budget_tokens")

    paper: Positional[str] = Field(title="PAPER", description="stardtox, mabrf, rldf or malibu")
    model: str = Field(description="model under test, as provider/model")
    data: Path = Field(
        Path("data"),
        title="DIR",
        description="folder with BBQ, RealToxicityPrompts, SQuAD, BBQHard.csv, and articles to search",
    )
    scale: float = Field(1.0, gt=0, le=1, description="share of the paper's size to run")
    only: list[str] = Field([], title="NAME", description="only these steps, as --dry-run names them")
    set: Repeated[list[str]] = Field(
        [], title="KEY=VALUE", description="replace a setting in every step that has it, or with STEP.KEY=VALUE in one"
    )
    out: str | None = Field(
        None, title="FOLDER", description="folder of the run files (default: runs/<paper>-<model>-<scale>)"
    )
    dry_run: bool = Field(False, description="print the steps and their expected cost, and send nothing")
    quiet: bool = Field(False, description="show no progress")

    def answer(self) -> Answer:
        settings = dict(map(_setting, self.set))
        replication = Replication(
            paper=self.paper, model=self.model, data=self.data, out=self._folder(), scale=self.scale, settings=settings
        )
        listed = list(replication.steps(self.only, self.part(Options)))
        steps = [step for step in listed if isinstance(step, StudyStep)]
        missing = [str(step) for step in listed if isinstance(step, NotHere)]
        if self.dry_run:
            return _dry_run(replication, steps, missing)
        need_analysis()
        for line in missing:
            say(line)
        if not steps:
            raise ConfigError(f"nothing of {self.paper} can be run here")
        status = self._execute(steps)
        reports = list(_reports(step for step in steps if step.path.exists()))
        data = {"out": replication.out, "missing": missing, "reports": [report.data() for report, _ in reports]}
        return Answer(data, _report_lines(reports), status or int(bool(missing)))

    def _folder(self) -> Path:
        name = re.sub(r"[^A-Za-z0-9.]+", "-", self.model.partition("?")[0].partition("/")[2]).strip("-")
        return Path(self.out or f"runs/{self.paper}-{name}-{self.scale:g}")

    def _execute(self, steps: Sequence[StudyStep]) -> int:
        """Run what is left of each step; returns the exit status."""
        finished = {step.name for step in steps if step.is_done()}  # first of all: one may have other settings
        status = 0
        for number, step in enumerate(steps, 1):
            say(f"{number} of {len(steps)}: {step.name}, {step.about}{': done' * (step.name in finished)}")
            if step.name in finished:
                continue
            step.job.options = step.job.options.model_copy(update=self._budget_left(step))
            try:
                ended, result = execute(step.job, quiet=self.quiet or self.as_json)
            except ConfigError:
                raise  # the model cannot be used
            except ParleyError as error:
                say(f"{step.name} is not measured: {error}")
                status = 1
                continue
            answer = how_it_ended(ended, result, hint=False)
            for line in answer.lines:
                say(line)
            status = max(status, answer.status)
            if result.stopped:  # by the user, a budget or a server: the next step would fare no better
                break
        return status

    def _budget_left(self, step: StudyStep) -> dict[str, float]:
        """The budget of a step, to which its own spending is added: what the folder's other runs left of the whole."""
        if self.budget_cost is None:
            return {}
        spent = 0.0
        for path in step.path.parent.glob("*.sqlite"):
            if path != step.path:
                with RunFile.open(path) as file:
                    spent += file.spent().cost
        return {"budget_cost": max(0.0, self.budget_cost - spent)}


def _setting(text: str) -> tuple[str, Any]:
    """A setting and its value, as typed: KEY=VALUE."""
    key, equals, value = text.partition("=")
    if not equals:
        raise ConfigError(f"--set {text}: expected KEY=VALUE, such as temperature=0.2")
    return key.strip(), value_of(value.strip())


def _dry_run(replication: Replication, steps: Sequence[StudyStep], missing: Sequence[str]) -> Answer:
    """What each step would do and cost, with the sum."""
    rows = [{"step": step.name, "about": step.about, **estimates(step.job)} for step in steps]
    sums = {name: sum(row[name] for row in rows) for name in NUMBERS} | {"cost": total(row["cost"] for row in rows)}
    data = {"out": replication.out, "steps": rows, "sum": sums, "missing": missing}
    return Answer(data, _dry_run_lines(replication, rows, sums, missing))


def _dry_run_lines(
    replication: Replication, rows: Sequence[dict[str, Any]], sums: dict[str, Any], missing: Sequence[str]
) -> Iterator[Any]:
    yield f"{replication.paper} on {replication.model}: nothing was sent"
    columns = ("step", "units", "calls", "tokens in", "tokens out", "cost")
    cells = [
        (name, *(f"{row[number]:,}" for number in NUMBERS), "unknown" if row["cost"] is None else dollars(row["cost"]))
        for name, row in (*((row["step"], row) for row in rows), ("sum", sums))
    ]
    yield cell_table(columns, cells, whole="step")
    yield from (f"  {row['step']}: {row['about']}" for row in rows)
    yield from dict.fromkeys(note for row in rows for note in row["notes"])
    yield from missing
    yield f"run files: {replication.out}"


def _reports(steps: Iterable[StudyStep]) -> Iterator[tuple[Report, Path]]:
    """The report of each run as its paper has it, where it has any of it, with its page."""
    from parley.analysis.page.papers import as_its_paper
    from parley.reports import make_report  # loads pandas and matplotlib

    for step in steps:
        whole = make_report([step.path])
        of_paper = as_its_paper(whole)
        report = of_paper if of_paper.tables else whole
        yield report, write_page(report, report_folder(step.path, "-paper"))


def _report_lines(reports: Iterable[tuple[Report, Path]]) -> Iterator[Any]:
    for report, page in reports:
        yield from dataset_lines(report, most=200)
        yield f"page: {page}"
