"""`parley replicate PAPER`: all runs of a paper as run files in one folder, and then what its claims come to."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from parley.base.errors import ConfigError, ParleyError
from parley.base.home import say
from parley.cli.command import Answer, Command
from parley.cli.dry_run import dollars, total
from parley.cli.flags import Positional, Repeated
from parley.cli.paper_plan import NotHere, Replication, papers
from parley.cli.paper_steps import Step, StudyStep
from parley.cli.report import paper_lines, write_page
from parley.cli.shared import need_analysis
from parley.cli.signals import STOPPED_IN_TIME
from parley.cli.tables import cell_table
from parley.cli.train import read_setting
from parley.runs import RunFile
from parley.runs.notes import runs_in
from parley.runs.options import Options
from parley.runs.studies import study_class
from parley.training.config import TRAINED

if TYPE_CHECKING:
    from parley.analysis.page.report import Report
    from parley.reports.loading import LoadedRun

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
        settings = dict(map(read_setting, self.set))
        replication = Replication(
            paper=self.paper, model=self.model, data=self.data, out=self._folder(), scale=self.scale, settings=settings
        )
        listed = list(replication.steps(self.only, self.part(Options)))
        steps = [step for step in listed if isinstance(step, Step)]
        missing = [str(step) for step in listed if isinstance(step, NotHere)]
        if self.dry_run:
            return _dry_run(replication, steps, missing)
        need_analysis()
        for line in missing:
            say(line)
        if not steps:
            raise ConfigError(f"nothing of {self.paper} can be run here")
        status = self._execute(steps)
        data = {"out": replication.out, "missing": missing}
        if status in (STOPPED_IN_TIME, 130):
            return Answer(data, status=status)
        report = _report(replication, steps)
        page = write_page(report, replication.out / "report")
        return Answer({**data, "report": report.data()}, [*paper_lines(report), f"page: {page}"], status)

    def _folder(self) -> Path:
        name = re.sub(r"[^A-Za-z0-9.]+", "-", self.model.partition("?")[0].partition("/")[2]).strip("-")
        return Path(self.out or f"runs/{self.paper}-{name}-{self.scale:g}")

    def _execute(self, steps: Sequence[Step]) -> int:
        """Run what is left of each step; returns the exit status."""
        finished = {step.name for step in steps if step.is_done()}  # first of all: one may have other settings
        status = 0
        for number, step in enumerate(steps, 1):
            say(f"{number} of {len(steps)}: {step.name}, {step.about}{': done' * (step.name in finished)}")
            if step.name in finished:
                continue
            try:
                ended, last = step.run(budget=self._budget_left(step), quiet=self.quiet or self.as_json)
            except ParleyError as error:
                if isinstance(error, ConfigError) and isinstance(step, StudyStep):
                    raise  # the model cannot be used
                say(f"{step.name} is not measured: {error}")
                ended, last = 1, False
            status = max(status, ended)
            if last:
                break
        return status

    def _budget_left(self, step: Step) -> float | None:
        """The budget of a step, to which its own spending is added: what the folder's other runs left of the whole."""
        if self.budget_cost is None:
            return None
        spent = 0.0
        for path in runs_in(self._folder()):
            if path != step.path:
                with RunFile.open(path) as file:
                    spent += file.spent().cost
        return max(0.0, self.budget_cost - spent)


def _dry_run(replication: Replication, steps: Sequence[Step], missing: Sequence[str]) -> Answer:
    """What each step would do and cost, with the sum."""
    rows = [{"step": step.name, "about": step.about, **step.estimates()} for step in steps]
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


def _report(replication: Replication, steps: Sequence[Step]) -> Report:
    """The paper's claims over all runs of the folder."""
    from parley.reports.papers import paper_report  # loads pandas and matplotlib

    # Other processes may have run other steps.
    top = (path for path in runs_in(replication.out) if path.parent == replication.out)
    runs = {*top, *(path for step in steps for path in step.run_files())}
    names = {model: name for step in steps for model, name in step.names().items()}
    systems = {model: name for model, name in names.items() if name in TRAINED}
    others = {model: name for model, name in names.items() if name not in TRAINED}
    return paper_report(replication.paper, [_loaded(run, others) for run in sorted(runs) if _has_values(run)], systems)


def _has_values(run: Path) -> bool:
    """Whether a run has results that a paper's claims are about."""
    with RunFile.open(run) as file:
        return file.counts()["done"] > 0 and bool(study_class(str(file.info()["study"])).claims)


def _loaded(run: Path, names: Mapping[str, str]) -> LoadedRun:
    """A run, in which some models have other names."""
    from parley.reports.loading import load_run

    loaded = load_run(run)
    loaded.verdicts["model"] = loaded.verdicts["model"].astype(str).replace(dict(names))
    return replace(loaded, models=[names.get(model, model) for model in loaded.models])
