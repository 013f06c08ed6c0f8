"""`parley run STUDY`: plan, execute, record, resume."""

from __future__ import annotations

import argparse
import asyncio
import json
import shlex
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from parley.agents import Client
from parley.agents.models import catalogue
from parley.agents.providers import provider_of
from parley.base.errors import ConfigError
from parley.base.text import plural, visible
from parley.cli import Parser
from parley.cli.dry_run import dry_run
from parley.cli.flags import HelpAll, add_flags, count_advanced, given, read_config, split_config
from parley.cli.progress import ProgressView, fetch_with_bar
from parley.cli.shared import refuse_unknown
from parley.cli.signals import STOPPED_IN_TIME, Signals
from parley.runs import Engine, Result
from parley.runs.job import Job
from parley.runs.options import Options, validated
from parley.runs.studies import find_study, known_studies

if TYPE_CHECKING:
    from parley.cli.shared import AddParser


def add_to(add_parser: AddParser) -> None:
    parser = add_parser(
        description=f"Run a study: {', '.join(known_studies())}, or your own as file.py:Class. "
        "`parley run STUDY --help` shows its flags.",
        add_help=False,
    )
    parser.add_argument("study", nargs="?", help="the study's name")
    parser.set_defaults(handler=handle)


def parser_of(study: str, *, everything: bool) -> argparse.ArgumentParser:
    """The parser of `parley run STUDY`.

    Args:
        study: The study's name, or file.py:Class.
        everything: Whether its help shows the flags that few people change, too.
    """
    prog, schema = f"parley run {study}", find_study(study).Config
    more = "" if everything else f"{count_advanced(schema, Options)} more flags: {prog} --help-all"
    parser = Parser(prog=prog, usage=f"{prog} [flags]", description=find_study(study).__doc__, epilog=more)
    parser.add_argument(
        "--help-all",
        action=HelpAll,
        make=lambda: parser_of(study, everything=True).format_help().rstrip(),
        help="show every flag, including those that few people change, and exit",
    )
    parser.add_argument("--config", metavar="FILE", help="TOML or YAML file with the flags below as keys")
    parser.add_argument("--dry-run", action="store_true", help="print the plan and its expected cost, and send nothing")
    parser.add_argument("--report", action="store_true", help="print the report when the run is done")
    parser.add_argument("-q", "--quiet", action="store_true", help="show no progress")
    parser.add_argument("--json", action="store_true", help="print the result (or the dry run) as JSON")
    add_flags(parser, schema, f"the study {study}", everything=everything)
    add_flags(parser, Options, "the run", everything=everything)
    return parser


def handle(parsed: argparse.Namespace) -> int:
    if not parsed.study:
        _list_studies()
        return 0 if parsed.rest else 2
    flags, unknown = parser_of(parsed.study, everything=False).parse_known_args(parsed.rest)
    refuse_unknown(unknown, parser_of(parsed.study, everything=True))
    study = find_study(parsed.study)
    config: dict[str, Any] = {}
    options: dict[str, Any] = {}
    if flags.config:
        table = read_config(Path(flags.config))
        table.pop("study", None)
        config, options = split_config(table, study.Config, Options, flags.config)
    chosen = validated(Options, {**options, **given(flags, Options)})
    job = Job.make(parsed.study, {**config, **given(flags, study.Config)}, chosen)
    if flags.dry_run:
        return dry_run(job, as_json=flags.json)
    job.open_models()  # a missing key is reported before anything is spent
    if job.check is not None:
        if status := execute_job(job.check, quiet=flags.quiet, as_json=flags.json, last=False, hint=False):
            return status
        job = job.read_check()
    status = execute_job(job, quiet=flags.quiet, as_json=flags.json, hint=not flags.report)
    if flags.report and status in (0, 1) and job.stored_path.exists():
        from parley.cli.report import print_report  # it loads pandas

        print_report([job.stored_path], parsed.study)
    return status


def _list_studies() -> None:
    print("usage: parley run STUDY [flags]        `parley run STUDY --help` shows its flags\n")
    for name in known_studies():
        try:
            about = (find_study(name).__doc__ or "").partition("\n\n")[0]
        except ConfigError as error:  # an installed package is broken: list the others
            about = str(error)
        print(
            textwrap.fill(
                visible(" ".join(about.split())), 80, initial_indent=f"  {name:<15} ", subsequent_indent=" " * 18
            )
        )
    print("  file.py:Class   your own (`parley new study NAME` creates one)")


def execute_job(job: Job, *, quiet: bool, as_json: bool, last: bool = True, hint: bool = True) -> int:
    """Execute a job with a progress bar, print how it ended, and return the exit status.

    Args:
        job: What to execute.
        quiet: Show no progress.
        as_json: Print how it ended as JSON.
        last: Whether no further job follows: with `as_json`, an earlier one that succeeds prints nothing.
        hint: Whether to say how a complete run is read.
    """
    for client in job.open_models():
        fetch_weights(client)
    result = asyncio.run(_execute(job, quiet=quiet))
    if as_json and not last and result.complete:
        return 0
    return _print_result(job, result, as_json=as_json, hint=hint)


def fetch_weights(client: Client) -> None:
    """Download an embedded model's weights with a progress bar, unless they are on disk."""
    name = client.model
    if provider_of(client.name).embedded and name in catalogue.catalogue() and not catalogue.is_fetched(name):
        fetch_with_bar(name)


async def _execute(job: Job, *, quiet: bool) -> Result:
    console = Console(stderr=True)
    with (
        Signals(console, grace=job.options.grace, seconds_left=job.seconds_left()) as signals,
        ProgressView(console, job.size.units, job.size.calls, quiet=quiet) as view,
    ):

        def on_engine(engine: Engine) -> None:
            view.update(engine.progress)
            signals.attach(engine)

        return await job.execute(on_progress=view.update, on_engine=on_engine)


def _print_result(job: Job, result: Result, *, as_json: bool, hint: bool = True) -> int:
    progress, path = result.progress, result.rescued or job.stored_path
    early = STOPPED_IN_TIME if result.scheduled else 130 if result.interrupted else 1
    status = 0 if result.complete and not result.unread else early
    if as_json:
        line = {
            "run": str(path),
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
        print(json.dumps(line))
        return status
    print(f"{progress.done:,} of {plural(progress.total, 'unit')} done: {path}")
    if progress.cut and not result.unread:
        were = "reply was" if progress.cut == 1 else "replies were"
        print(f"{progress.cut:,} {were} cut off at the token limit: see --max-tokens")
    if result.unread:
        print(f"parley: {result.unread}", file=sys.stderr)
    if result.complete:
        quoted = shlex.quote(str(path))
        if hint:
            print(f"read it:  parley view {quoted}    parley report {quoted}    parley show {quoted}")
        return status
    stopped = visible(result.stopped or "")
    if progress.failed and (not result.first_error or visible(result.first_error) not in stopped):
        first = ", the first" if progress.failed > 1 else ""
        error = visible(result.first_error or "")
        print(f"parley: {plural(progress.failed, 'unit')} failed{first} with: {error}", file=sys.stderr)
    if stopped:
        print(f"parley: stopped: {stopped}", file=sys.stderr)
    if result.rescued is None:  # otherwise the file must be renamed first, as the reason above says
        print("run the same command again to resume", file=sys.stderr)
    return status
