"""`parley run STUDY`: plan, execute, record, resume."""

from __future__ import annotations

import argparse
import asyncio
import json
import shlex
import signal
import sys
import textwrap
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from rich.console import Console

from parley.agents import Client, ConfigError
from parley.agents.models import catalogue
from parley.agents.models.batches import PRICE
from parley.agents.models.prices import Price
from parley.agents.models.registry import client_class, split_name
from parley.cli.commands import AddParser
from parley.cli.flags import add_flags, given, read_config, refuse_unknown, split_config
from parley.cli.progress import ProgressView, fetch_with_bar
from parley.cli.text import visible
from parley.execute import Job, Options, explain
from parley.runs import Engine, InterimLooks, Result
from parley.studies import find_study, known_studies


def add_to(add_parser: AddParser) -> None:
    parser = add_parser(
        description=f"Run a study: {', '.join(known_studies())}, or your own as file.py:Class. "
        "`parley run STUDY --help` shows its flags.",
        add_help=False,
    )
    parser.add_argument("study", nargs="?", help="the study's name")
    parser.set_defaults(handler=handle)


def _parser(study: str) -> argparse.ArgumentParser:
    prog = f"parley run {study}"
    parser = argparse.ArgumentParser(prog=prog, usage=f"{prog} [flags]", description=find_study(study).__doc__)
    parser.add_argument("--config", metavar="FILE", help="TOML or YAML with the same keys as the flags below")
    parser.add_argument("--dry-run", action="store_true", help="print what would be done, and send nothing")
    parser.add_argument("--report", action="store_true", help="print the report when the run is done")
    parser.add_argument("--quiet", action="store_true", help="no progress")
    parser.add_argument("--json", action="store_true", help="print the result (or the dry run) as JSON")
    add_flags(parser, find_study(study).Config, f"the study {study}")
    add_flags(parser, Options, "the run")
    return parser


def handle(parsed: argparse.Namespace, rest: list[str]) -> int:
    if not parsed.study:
        _list_studies()
        return 0 if rest else 2
    parser = _parser(parsed.study)
    flags, unknown = parser.parse_known_args(rest)
    refuse_unknown(unknown, parser)
    study = find_study(parsed.study)
    config: dict[str, Any] = {}
    options: dict[str, Any] = {}
    if flags.config:
        table = read_config(Path(flags.config))
        table.pop("study", None)
        config, options = split_config(table, study.Config, Options, flags.config)
    try:
        chosen = Options.model_validate({**options, **given(flags, Options)})
    except ValidationError as error:
        raise ConfigError(explain(error, Options)) from None
    job = Job.make(parsed.study, {**config, **given(flags, study.Config)}, chosen)
    if flags.dry_run:
        return _dry_run(job, as_json=flags.json)
    job.open_models()  # a key that is missing is missed before anything is spent
    if job.first is not None:
        if status := carry_out(job.first, quiet=flags.quiet, as_json=flags.json, last=False):
            return status
        job = job.advance()
        if job.refused:
            print(f"{job.refused} scenarios have no accepted responses and are left out", file=sys.stderr)
    status = carry_out(job, quiet=flags.quiet, as_json=flags.json)
    if flags.report and status in (0, 1):
        from parley.cli.report import print_report

        print_report([job.path], parsed.study)
    return status


def _list_studies() -> None:
    print("usage: parley run STUDY [flags]        `parley run STUDY --help` shows its flags\n")
    for name in known_studies():
        try:
            about = (find_study(name).__doc__ or "").partition("\n\n")[0]
        except ConfigError as error:  # of a package that somebody installed: the others are still there
            about = str(error)
        print(
            textwrap.fill(
                visible(" ".join(about.split())), 80, initial_indent=f"  {name:<15} ", subsequent_indent=" " * 18
            )
        )
    print("  file.py:Class   your own (`parley new study NAME` begins one)")


def carry_out(job: Job, *, quiet: bool, as_json: bool, last: bool = True) -> int:
    """A job with its progress and its closing line; the exit status. With `as_json`, one object for the last job."""
    for client in job.open_models():
        fetch_weights(client)
    result = asyncio.run(_go(job, quiet=quiet))
    if as_json and not last and result.complete:
        return 0
    return _tell(job, result, as_json=as_json)


def fetch_weights(client: Client) -> None:
    """The embedded model's, with a bar, where they are not here yet."""
    name = client.model
    if client.provider in ("local", "hf") and name in catalogue.catalogue() and not catalogue.is_fetched(name):
        fetch_with_bar(name)


async def _go(job: Job, *, quiet: bool) -> Result:
    loop = asyncio.get_running_loop()
    this = asyncio.current_task()
    console = Console(stderr=True)

    with ProgressView(console, job.size.units, quiet=quiet) as view:

        def watch(engine: Engine) -> None:
            view.start(engine.progress)
            presses = 0

            def pressed() -> None:
                nonlocal presses
                presses += 1
                if presses == 1:
                    engine.interrupt()
                    console.print(engine.executor.on_interrupt)
                elif this is not None:
                    this.cancel()

            with suppress(NotImplementedError):  # Windows has no such handlers
                loop.add_signal_handler(signal.SIGINT, pressed)
                loop.add_signal_handler(signal.SIGTERM, pressed)

        return await job.go(on_progress=view.update, on_engine=watch)


def _tell(job: Job, result: Result, *, as_json: bool) -> int:
    progress = result.progress
    status = 0 if result.complete else 130 if result.interrupted else 1
    if as_json:
        line = {
            "run": str(job.path),
            "units": progress.total,
            "done": progress.done,
            "failed": progress.failed,
            "spared": progress.spared,
            "calls": progress.calls,
            "cached": progress.cached,
            "tokens": progress.tokens,
            "cost": progress.cost if progress.cost_known else None,
            "seconds": round(progress.elapsed, 2),
            "stopped": result.stopped,
            "error": result.first_error,
        }
        print(json.dumps(line))
        return status
    rest = f", {progress.spared} are not needed any more" if progress.spared else ""
    print(f"{progress.done} of {progress.total} units are done{rest}: {job.path}")
    if result.complete:
        named = shlex.quote(str(job.path))
        print(f"read it:  parley report {named}    parley show {named}")
        return 0
    if progress.failed:
        why = visible(result.first_error or "")
        print(f"parley: {progress.failed} units failed, the first with: {why}", file=sys.stderr)
    if result.stopped:
        print(f"parley: stopped: {visible(result.stopped)}", file=sys.stderr)
    print("the same command goes on from here", file=sys.stderr)
    return status


def _dry_run(job: Job, *, as_json: bool) -> int:
    jobs = [job.first, job] if job.first else [job]
    names = list(dict.fromkeys(name for one in jobs for name in one.study.models()))
    costs = [_estimated_cost(one) for one in jobs]
    batch = job.options.executor == "batch"
    share = PRICE if batch else 1.0
    cost = None if None in costs else share * sum(one or 0.0 for one in costs)
    cached = 0.0 if batch else sum(_cached_tokens(one) for one in jobs)  # a batch promises no cache
    least = costs if batch else [_estimated_cost(one, cached=True) for one in jobs]
    cost_if_cached = None if None in least else share * sum(one or 0.0 for one in least)
    plan = {
        "study": job.study.name,
        "models": names,
        "units": sum(one.size.units for one in jobs),
        "calls": sum(one.size.calls for one in jobs),
        "prompt_tokens": sum(one.size.prompt_tokens for one in jobs),
        "completion_tokens": sum(one.size.completion_tokens for one in jobs),
        "cached_tokens": round(cached),
        "cost": cost,
        "cost_if_cached": cost_if_cached,
        "run": str(job.path),
    }
    looks = InterimLooks.of(job.study)
    if looks is not None:
        plan["looks"] = looks.schedule()
    if as_json:
        print(json.dumps(plan))
        return 0
    price = "unknown (set ?price_in= and ?price_out=)" if cost is None else _dollars(cost)
    print(f"{job.study.name} on {', '.join(names)}: nothing was sent")
    if job.first:
        print(f"  first        {job.first.study.name}: {job.first.size.units:,} units, at least one call each")
    print(f"  units        {plan['units']:>12,}\n  calls        {plan['calls']:>12,}")
    print(f"  tokens in    {plan['prompt_tokens']:>12,}   (estimated)")
    if cached:
        print(f"  of these     {plan['cached_tokens']:>12,}   (at most, from the vendor's prompt cache)")
    print(f"  tokens out   {plan['completion_tokens']:>12,}   (estimated)")
    print(f"  cost         {price:>12}   (estimated{', at the price of batches' * batch})")
    if cached and cost_if_cached is not None and cost_if_cached != cost:
        print(f"  with cache   {_dollars(cost_if_cached):>12}   (estimated, if all of these are)")
    print(f"  run file     {job.path}")
    if looks is not None:
        steps = ", ".join(map(str, looks.schedule()))
        print(f"  at most      {len(looks.planned)} comparisons are looked at after {steps} scenarios")
    return 0


def _dollars(cost: float) -> str:
    """To the cent, and a small sum to a hundredth of one."""
    return f"${cost:.2f}" if cost >= 1 or cost == 0 else f"${cost:.4f}"


def _cached_tokens(job: Job) -> float:
    """Prompt tokens that vendors may bill as cached: beginnings that an earlier call of the same unit had."""
    return sum(_shares(job, client) for client, _ in _clients(job))


def _clients(job: Job) -> list[tuple[type[Client], Price]]:
    named = [(client_class(plain), plain, options) for plain, options in map(split_name, job.study.models())]
    return [(client, client.price_for(plain, options)) for client, plain, options in named]


def _shares(job: Job, client: type[Client]) -> float:
    billed = sum(calls * client.billed_as_cached(tokens) for tokens, calls in job.size.shared.items())
    return billed / len(job.study.models())


def _estimated_cost(job: Job, *, cached: bool = False) -> float | None:
    """Models that share a study are taken to share its tokens evenly.

    With `cached`, as if vendors found all that they may; unknown where they charge for keeping it or tell no price.
    """
    size, clients = job.size, _clients(job)
    costs = []
    for client, price in clients:
        found = _shares(job, client) if cached else 0.0
        if found and (price.cached is None or price.written_factor != 1):
            return None
        costs.append(price.cost(size.prompt_tokens / len(clients), size.completion_tokens / len(clients), found))
    return None if None in costs else sum(one or 0.0 for one in costs)
