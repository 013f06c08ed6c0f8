"""`parley run STUDY`: plan, execute, record, resume."""

from __future__ import annotations

import argparse
import asyncio
import os
import shlex
import sys
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Self

from pydantic import Field, PrivateAttr

from parley.agents import Client
from parley.agents.models import catalogue
from parley.agents.providers import SAMPLED, provider_of
from parley.base.errors import ConfigError
from parley.base.text import plural, visible
from parley.cli import Parser
from parley.cli.command import Answer, Command, Terminal
from parley.cli.dry_run import dry_run
from parley.cli.flags import Positional, add_flags, count_advanced, given, read_config, split_config
from parley.cli.progress import ProgressView, fetch_with_bar
from parley.cli.shared import AddParser
from parley.cli.signals import STOPPED_IN_TIME, Signals
from parley.cli.writing import refuse_overwriting, save, suffix_of, write
from parley.runs import Engine, Result
from parley.runs.job import Job, complete, study_maker
from parley.runs.options import Options, validated
from parley.runs.prompts import write_prompts
from parley.runs.studies import find_study, known_studies

WRITING = ("to", "force")
"""The flags of studies that write topics or scenarios."""


class Run(Command):
    """Run a study, or resume it."""

    needs: ClassVar = {"force": "to"}

    study: Positional[str] = Field(description="the study's name, or your own as file.py:Class")
    config: Path | None = Field(None, title="FILE", description="TOML or YAML file with these flags as keys")
    dry_run: bool = Field(False, description="print the plan and its expected cost, and send nothing")
    report: bool = Field(False, description="print the report when the run is done")
    to: Path | None = Field(None, title="FILE", description="write what the run made to this file")
    force: bool = Field(False, description="overwrite an existing file")
    prompts_to: Path | None = Field(None, title="FOLDER", description="write the prompts there as text files, and end")
    quiet: bool = Field(False, description="show no progress")

    _config: dict[str, Any] = PrivateAttr(default_factory=dict)
    _options: Options = PrivateAttr(default_factory=Options)

    @classmethod
    def add_to(cls, add_parser: AddParser, words: Sequence[str] = ()) -> argparse.ArgumentParser:
        """Add the flags of the typed study, whose name is the first word that is not a flag."""
        study = next((word for word in words if not word.startswith("-")), None)
        if study is None:
            parser = add_parser(add_help=False)
            parser.add_argument("-h", "--help", dest="asked", action="store_true")
            parser.set_defaults(handler=_list_studies)
            return parser
        parser = parser_of(study, everything="--help-all" in words, make=add_parser)
        parser.set_defaults(handler=cls.handle)
        return parser

    @classmethod
    def read(cls, parsed: argparse.Namespace) -> Self:
        command = super().read(parsed)
        study = find_study(command.study)
        table = read_config(command.config) if command.config else {}
        table, schema = {str(key).replace("-", "_"): value for key, value in table.items()}, study.Config
        flags = [key for key in table if key in cls.model_fields and (suffix_of(study) or key not in WRITING)]
        command = validated(cls, {key: table.pop(key) for key in flags} | given(parsed, cls))
        config, options = split_config(table, schema, Options, str(command.config))
        command._config = {**config, **given(parsed, schema)}
        command._options = validated(Options, {**options, **given(parsed, Options)})
        return command

    def answer(self) -> Answer:
        if self.prompts_to:
            number = write_prompts(self.prompts_to, study_maker(self.study, self._config))
            return Answer({"prompts": self.prompts_to}, [f"{plural(number, 'prompt')}: {self.prompts_to}"])
        job = Job.make(self.study, self._config, self._options)
        if self.dry_run:
            return dry_run(job)
        if self.to:
            self._check_target(job, self.to)
        ended, result = execute(job, quiet=self.quiet)
        answer = how_it_ended(ended, result, hint=not self.report and not self.to)
        if not self.as_json and (self.report or self.to):  # print how the run ended before its report
            for line in answer.lines:
                print(visible(line))
            answer = replace(answer, lines=())
        if self.report and answer.status in (0, 1) and result.progress.done and job.path.exists():
            from parley.cli.report import print_report  # it loads pandas

            print_report(job.path, self.study)
        # If the file was removed meanwhile, that was already reported.
        if self.to and ended.path == job.path and (not answer.status or job.path.exists()):
            return self._write(job, self.to, answer)
        return answer

    def _check_target(self, job: Job, target: Path) -> None:
        """Raise `ConfigError` if the run's output cannot be written to this file."""
        if target.exists() and any(os.path.exists(path) and target.samefile(path) for path in self._inputs(job)):
            raise ConfigError(f"{target} is read or written by this run; choose another name with --to")
        refuse_overwriting(target, job.path, suffix_of(type(job.study)), force=self.force)

    def _write(self, job: Job, target: Path, answer: Answer) -> Answer:
        """Write the run's output to this file; returns the answer."""
        written = write(job.study, job.path)
        save(written, target, job.path, force=self.force)
        data, lines = {**answer.data, "to": target}, [f"{written.about}: {target}"]
        return Answer(data, lines, answer.status or int(written.missing))

    def _inputs(self, job: Job) -> Iterator[str]:
        """The run file, the config, and all settings that may name a file."""
        for value in (job.path, self.config, *self._config.values(), *job.options.model_dump().values()):
            yield from (str(part) for part in (value if isinstance(value, list | tuple) else [value]))


def parser_of(study: str, *, everything: bool, make: AddParser = Parser) -> argparse.ArgumentParser:
    """The parser of `parley run STUDY`.

    Args:
        study: The study's name, or file.py:Class.
        everything: Whether its help also shows flags that few people change.
        make: Makes the parser.
    """
    prog, study_class = f"parley run {study}", find_study(study)
    more = "" if everything else f"{count_advanced(study_class.Config, Options)} more flags: {prog} --help-all"
    parser = make(prog=prog, usage=f"{prog} [flags]", description=study_class.__doc__, epilog=more)
    parser.add_argument("study", help=argparse.SUPPRESS)
    about = "show every flag, including those that few people change, and exit"
    parser.add_argument("--help-all", action="help", help=about)
    parser.add_argument("-q", dest="quiet", action="store_const", const=True, help=argparse.SUPPRESS)
    add_flags(parser, Run, leave_out=("study", *(() if suffix_of(study_class) else WRITING)))
    add_flags(parser, study_class.Config, f"the study {study}", everything=everything)
    add_flags(parser, Options, "the run", everything=everything)
    return parser


def _list_studies(parsed: argparse.Namespace) -> int:
    print("usage: parley run STUDY [flags]        `parley run STUDY --help` shows its flags\n")
    for name in known_studies():
        try:
            about = (find_study(name).__doc__ or "").partition("\n\n")[0]
        except ConfigError as error:  # an installed package is broken: list the others
            about = str(error)
        words = visible(" ".join(about.split()))
        print(textwrap.fill(words, 80, initial_indent=f"  {name:<15} ", subsequent_indent=" " * 18))
    print("  file.py:Class   your own (`parley new study NAME` creates one)")
    return 0 if parsed.asked else 2


def execute(job: Job, *, quiet: bool) -> tuple[Job, Result]:
    """Execute a job, after its check, with a progress bar; returns the job and its result.

    Args:
        job: What to execute.
        quiet: Show no progress.
    """
    for part in (job.check, job):
        for client in part.open_models() if part else ():
            fetch_weights(client)
    return asyncio.run(complete(job, partial(_execute, quiet=quiet)))


def fetch_weights(client: Client) -> None:
    """Download an embedded model's weights with a progress bar, unless they are on disk."""
    name = client.model
    if provider_of(client.name).embedded and name in catalogue.catalogue() and not catalogue.is_fetched(name):
        fetch_with_bar(name)


async def _execute(job: Job, *, quiet: bool) -> Result:
    console = Terminal(stderr=True)
    with (
        Signals(console, grace=job.options.grace, seconds_left=job.seconds_left()) as signals,
        ProgressView(console, job.size.units, quiet=quiet) as view,
    ):

        def on_engine(engine: Engine) -> None:
            view.update(engine.progress)
            signals.attach(engine.interrupt, engine.end_within)

        result = await job.execute(on_progress=view.update, on_engine=on_engine)
        signals.scheduled = result.scheduled
        return result


def how_it_ended(job: Job, result: Result, *, hint: bool = True) -> Answer:
    """How a job ended, for the terminal and as JSON; problems are printed at once.

    Args:
        job: The job.
        result: Its result.
        hint: Whether to say how to read a complete run.
    """
    progress, path = result.progress, job.path
    early = STOPPED_IN_TIME if result.scheduled else 130 if result.interrupted else 1
    data = {
        "run": path,
        "units": progress.total,
        "done": progress.done,
        "failed": progress.failed,
        "calls": progress.calls,
        "cached": progress.cached,
        "tokens": progress.tokens,
        "cost": progress.cost if progress.cost_known else None,
        "seconds": round(progress.elapsed, 2),
        "stopped": result.stopped,
        "error": result.first_error,
        "cut": progress.cut,
        "unread": result.unread,
    }
    return Answer(data, _ending(path, result, hint=hint), 0 if result.complete and not result.unread else early)


def _ending(path: Path, result: Result, *, hint: bool) -> Iterator[str]:
    progress = result.progress
    yield f"{progress.done:,} of {plural(progress.total, 'unit')} done: {path}"
    if progress.cut and not result.unread:
        were = "reply was" if progress.cut == 1 else "replies were"
        yield f"{progress.cut:,} {were} cut off at the token limit: see --max-tokens"
    if result.unread:
        print(f"parley: {visible(result.unread)}", file=sys.stderr)
    if result.complete:
        quoted = shlex.quote(str(path))
        if hint:
            yield f"read it:  parley view {quoted}    parley report {quoted}    parley show {quoted}"
        return
    stopped = visible(result.stopped or "")
    if progress.failed and (not result.first_error or visible(result.first_error) not in stopped):
        first = ", the first" if progress.failed > 1 else ""
        error = visible(result.first_error or "")
        print(f"parley: {plural(progress.failed, 'unit')} failed{first} with: {error}", file=sys.stderr)
    if stopped:
        print(f"parley: stopped: {stopped}", file=sys.stderr)
    if (
        SAMPLED not in f"{stopped} {result.first_error}"
    ):  # otherwise the model needs another name, as the message above says
        print("run the same command again to resume", file=sys.stderr)
