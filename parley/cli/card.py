"""`parley card MODEL…`: what a model can do as a judge, from a fixed battery of silent ballots.

For every model it runs the study `card`, or resumes it, and writes a page, a picture, Markdown for a model card and
JSON. A run file in place of a model makes its card again, without calls.
"""

from __future__ import annotations

import argparse
import re
import sys
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from parley.base.errors import ConfigError
from parley.base.text import plural
from parley.cli.dry_run import dollars, dry_run, estimated_cost
from parley.cli.flags import add_flags, given
from parley.cli.run import execute_job
from parley.cli.shared import AddParser, need_analysis
from parley.cli.tables import STYLE
from parley.runs.job import Job
from parley.runs.options import Options, validated
from parley.runs.studies import find_study

if TYPE_CHECKING:
    from parley.analysis.card.record import Card

STUDY = "card"
FILES = (".json", ".md", ".png", ".svg")


def add_to(add_parser: AddParser) -> None:
    parser = add_parser(
        description="Ask a model a fixed, versioned battery of questions as a judge, and write its card: a page, a "
        "picture, Markdown for a model card, and JSON. The same command resumes it."
    )
    parser.add_argument("model", nargs="+", metavar="MODEL", help="models as provider/model, or run files of cards")
    parser.add_argument("--brief", action="store_true", help="at most 400 calls: the same as --size brief")
    parser.add_argument("--folder", metavar="DIR", default="cards", help="where cards are written (default: cards)")
    parser.add_argument("--dry-run", action="store_true", help="print calls, tokens and price, and send nothing")
    parser.add_argument("--all", action="store_true", help="print every line of the card, with reasons")
    parser.add_argument("--quiet", action="store_true", help="show no progress, and print only where the files are")
    add_flags(parser, find_study(STUDY).Config, "the battery", leave_out=("model",), everything=False)
    add_flags(parser, Options, "the run", everything=False)
    parser.set_defaults(handler=handle)


def handle(parsed: argparse.Namespace) -> int:
    need_analysis()
    from parley.reports.cards import RUN_SUFFIXES  # it loads pandas

    if parsed.brief and parsed.size not in (None, "brief"):
        raise ConfigError(f"--brief is --size brief, and --size {parsed.size} was given too")
    if parsed.out and len(parsed.model) > 1:
        raise ConfigError("--out names one run file, and there are several models")
    if len(set(parsed.model)) < len(parsed.model):
        raise ConfigError("a model is given twice")
    options = validated(Options, given(parsed, Options))
    config = {key: value for key, value in given(parsed, find_study(STUDY).Config).items() if key != "model"}
    config |= {"size": "brief"} if parsed.brief else {}
    jobs = [
        Path(name) if name.endswith(RUN_SUFFIXES) else Job.make(STUDY, {**config, "model": name}, options)
        for name in parsed.model
    ]
    if parsed.dry_run:
        for job in jobs:
            for line in dry_run(job).lines if isinstance(job, Job) else ():
                print(line)
        return 0
    for job in jobs:  # a missing key is reported before anything is spent
        if isinstance(job, Job):
            job.open_models()
    statuses = [_run(job, parsed.quiet) if isinstance(job, Job) else (0, job) for job in jobs]
    for status, path in statuses:
        if status == 0:
            _write(path, Path(parsed.folder), quiet=parsed.quiet, everything=parsed.all)
    return max(status for status, _ in statuses)


def _run(job: Job, quiet: bool) -> tuple[int, Path]:
    """Say what it will cost, and run it."""
    size, cost = job.size, estimated_cost(job)
    price = "price unknown" if cost is None else dollars(cost)
    print(
        f"{job.study.models()[0]}: {plural(size.calls, 'call')}, about {size.prompt_tokens:,} tokens in and "
        f"{size.completion_tokens:,} out, {price}: {job.path}",
        file=sys.stderr,
    )
    return execute_job(job, quiet=quiet), job.stored_path


def _write(path: Path, folder: Path, *, quiet: bool, everything: bool) -> None:
    from parley.reports.cards import make_card, write_card_files

    card = make_card(path)
    folder.mkdir(parents=True, exist_ok=True)
    stem = folder / card_stem(card)
    write_card_files(card, stem, path.parent)
    if not quiet:
        print_card(card, everything=everything)
    print(f"card: {stem}.html    {', '.join(suffix for suffix in FILES)}")


def card_stem(card: Card) -> str:
    """The name of a card's files: the model's, a hash of its options if it has any, and the size if it is brief."""
    plain, options, _ = card.model.name.partition("?")
    name = re.sub(r"[^A-Za-z0-9.]+", "-", plain).strip("-")
    name += f"-{sha256(card.model.name.encode()).hexdigest()[:6]}" if options else ""
    return f"{name}-brief" if card.battery.size == "brief" else name


def print_card(card: Card, *, everything: bool = False) -> None:
    """The sentences and the main lines in the terminal, or all lines."""
    from parley.analysis.card.words import POINTS, SHARES, interval, number, sentences, verdict

    table = Table(
        title=f"{card.model.name} as a judge · {card.battery.name} {card.battery.version}, {card.battery.size}",
        **STYLE,
    )
    for head in ("line", "what", "estimate", "95% interval", "verdict"):
        table.add_column(head, no_wrap=head in ("estimate", "95% interval"))
    group = ""
    for line in card.lines:
        if not everything and line.name not in (*SHARES, *POINTS) and line.group != "talk":
            continue
        if everything and line.group != group:
            group = line.group
            table.add_section()
        # The reason for a verdict is in a sentence above, or in the whole table.
        found = verdict(line) if everything else line.verdict
        table.add_row(line.name, line.label, number(line.estimate, line), interval(line) or "–", found)
    console = Console()
    for sentence in sentences(card):
        console.print(f"- {sentence}", markup=False, highlight=False)
    console.print(table, markup=False)
    if not everything:
        console.print(f"{plural(len(card.lines), 'line')} in all: the page, or --all", style="dim", highlight=False)
