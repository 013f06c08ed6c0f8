"""`parley card MODEL…`: what a model can do as a judge, from a fixed battery of silent ballots.

For every model it runs the study `card`, or resumes it, and writes a page, a picture, Markdown for a model card and
JSON. A run file in place of a model makes its card again, without calls.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pydantic import Field, PrivateAttr
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from parley.base.errors import ConfigError
from parley.base.text import plural, visible
from parley.cli.command import Answer, Command
from parley.cli.dry_run import dollars, dry_run, estimated_cost
from parley.cli.flags import Positional, add_flags, given
from parley.cli.run import execute, how_it_ended
from parley.cli.shared import AddParser, need_analysis
from parley.cli.tables import STYLE
from parley.runs.job import Job
from parley.runs.options import Options, validated
from parley.runs.studies import find_study

if TYPE_CHECKING:
    from parley.analysis.card.record import Card

STUDY = "card"
FILES = (".json", ".md", ".png", ".svg")


class MakeCard(Command):
    """Ask a model a fixed, versioned battery of questions as a judge, and write its card: a page, a picture, Markdown
    for a model card, and JSON. The same command resumes it."""

    model: Positional[list[str]] = Field(description="models as provider/model, or run files of cards")
    brief: bool = Field(False, description="at most 400 calls: the same as --size brief")
    folder: Path = Field(Path("cards"), title="DIR", description="where cards are written")
    dry_run: bool = Field(False, description="print calls, tokens and price, and send nothing")
    all: bool = Field(False, description="print every line of the card, with reasons")
    quiet: bool = Field(False, description="show no progress, and print only where the files are")

    _config: dict[str, Any] = PrivateAttr(default_factory=dict)
    _options: Options = PrivateAttr(default_factory=Options)

    @classmethod
    def add_to(cls, add_parser: AddParser, words: Sequence[str] = ()) -> argparse.ArgumentParser:
        parser = super().add_to(add_parser, words)
        add_flags(parser, find_study(STUDY).Config, "the battery", leave_out=("model",), everything=False)
        add_flags(parser, Options, "the run", everything=False)
        return parser

    @classmethod
    def read(cls, parsed: argparse.Namespace) -> Self:
        command = super().read(parsed)
        config = {key: value for key, value in given(parsed, find_study(STUDY).Config).items() if key != "model"}
        if command.brief and config.setdefault("size", "brief") != "brief":
            raise ConfigError(f"--brief is --size brief, and --size {config['size']} was given too")
        command._config, command._options = config, validated(Options, given(parsed, Options))
        return command

    def answer(self) -> Answer:
        need_analysis()
        from parley.reports.cards import RUN_SUFFIXES  # it loads pandas

        if self._options.out and len(self.model) > 1:
            raise ConfigError("--out names one run file, and there are several models")
        if len(set(self.model)) < len(self.model):
            raise ConfigError("a model is given twice")
        jobs = [
            Path(name)
            if name.endswith(RUN_SUFFIXES)
            else Job.make(STUDY, {**self._config, "model": name}, self._options)
            for name in self.model
        ]
        if self.dry_run:
            plans = [dry_run(job) for job in jobs if isinstance(job, Job)]
            return Answer([plan.data for plan in plans], [line for plan in plans for line in plan.lines])
        for job in jobs:  # a missing key is reported before anything is spent
            if isinstance(job, Job):
                job.open_models()
        made = [_run(job, quiet=self.quiet, as_json=self.as_json) if isinstance(job, Job) else (0, job) for job in jobs]
        written = [self._write(path) for status, path in made if status == 0]
        return Answer([stem for stem, _ in written], [line for _, lines in written for line in lines], max(made)[0])

    def _write(self, path: Path) -> tuple[str, list[Any]]:
        """Write the files of a card; where they are, and what is printed."""
        from parley.reports.cards import make_card, write_card_files

        card = make_card(path)
        self.folder.mkdir(parents=True, exist_ok=True)
        stem = self.folder / card_stem(card)
        write_card_files(card, stem, path.parent)
        shown = [] if self.quiet else list(card_lines(card, everything=self.all))
        return f"{stem}.json", [*shown, f"card: {stem}.html    {', '.join(FILES)}"]


def _run(job: Job, *, quiet: bool, as_json: bool) -> tuple[int, Path]:
    """Say what it will cost, and run it."""
    usage, cost = job.usage, estimated_cost(job)
    price = "price unknown" if cost is None else dollars(cost)
    print(
        f"{job.study.models()[0]}: {plural(usage.calls, 'call')}, about {usage.prompt_tokens:,} tokens in and "
        f"{usage.completion_tokens:,} out, {price}: {job.path}",
        file=sys.stderr,
    )
    answer = how_it_ended(*execute(job, quiet=quiet))
    for line in () if as_json else answer.lines:
        print(visible(line))
    return answer.status, job.stored_path


def card_stem(card: Card) -> str:
    """The name of a card's files: the model's, a hash of its options if it has any, and the size if it is brief."""
    plain, options, _ = card.model.name.partition("?")
    name = re.sub(r"[^A-Za-z0-9.]+", "-", plain).strip("-")
    name += f"-{sha256(card.model.name.encode()).hexdigest()[:6]}" if options else ""
    return f"{name}-brief" if card.battery.size == "brief" else name


def card_lines(card: Card, *, everything: bool = False) -> Iterator[Any]:
    """The sentences and the main lines for the terminal, or all lines."""
    from parley.analysis.card.words import POINTS, SHARES, interval, number, sentences, verdict

    about = f"{card.model.name} as a judge · {card.battery.name} {card.battery.version}, {card.battery.size}"
    table = Table(title=escape(about), **STYLE)
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
        cells = (line.name, line.label, number(line.estimate, line), interval(line) or "–", found)
        table.add_row(*map(escape, cells))
    yield from (Text(f"- {sentence}") for sentence in sentences(card))
    yield table
    if not everything:
        yield Text(f"{plural(len(card.lines), 'line')} in all: the page, or --all", style="dim")
