"""The first screen of a report in the terminal: at most 28 lines, and what to type next.

What invalidates results comes first, then the question and its answer, then the cost. Everything else is on the page,
in the viewer, and printed by `--all` and `--json`.
"""

from __future__ import annotations

import json
import shlex
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from parley.base.errors import ParleyError
from parley.base.text import in_words, plural, visible
from parley.cli.dry_run import estimated_cost
from parley.cli.flags import as_flags, changed_settings
from parley.cli.shared import newest_runs
from parley.cli.terminal_forest import forest_lines, marks_for
from parley.runs import RunFile
from parley.runs.job import Job
from parley.runs.options import Options
from parley.runs.studies import STUDIES, find_study

if TYPE_CHECKING:
    from parley.analysis.reporting.report import Report

MOST_LINES = 28
CAUTION_LINES = 3
LEAST_ROWS = 3
"""Lines of the plot that are shown, however long the rest is."""
WIDEST = 110
"""Longer lines are hard to read."""
REAL_MODEL = "openai/gpt-6-luna"
"""What the last command runs on: the cheapest model of the price list that many people have a key for."""
EVERY_BASE = {"suite": "wide", "model": REAL_MODEL}
SMALL = ("sim/", "local/", "hf/")
"""Providers of models that are for trying things out."""


def print_first_screen(report: Report, paths: Sequence[Path], page: Path | None, console: Console) -> None:
    """Print a report's first screen.

    Args:
        report: What to show.
        paths: The run files it was made from.
        page: The page that has the rest; None if none was written.
        console: Where to print.
    """
    width = min(console.width, WIDEST)
    said = quotes(paths[0])
    above = [
        Text(visible(report.title), style="bold"),
        *_cautions(report.cautions, width),
        *_answer(report, width),
    ]
    below = [
        *(Text(line) for words in report.beside for line in _wrapped(words, width)),
        *(_quoted(quote, width) for quote in said),
        *_cost(report, page),
        *_next_commands(report, paths, said, width),
    ]
    rows = max(LEAST_ROWS, MOST_LINES - len(above) - len(below) - 1)
    plot = forest_lines(report.forests[0], width, marks_for(console), rows) if report.forests else []
    for line in (*above, *plot, *below):
        console.print(line, highlight=False, soft_wrap=True)


@dataclass(frozen=True, slots=True)
class Quote:
    """What somebody said in a debate."""

    unit: str
    speaker: str
    text: str


def quotes(path: Path) -> list[Quote]:
    """The first statement of the first debate, and the last one by somebody else; none if nobody talks to another.

    Args:
        path: The run file.
    """
    with RunFile.open(path) as file:
        lines = file.stream(
            "SELECT t.unit, t.speaker, t.text, t.parsed FROM transcript t JOIN units u ON u.id = t.unit "
            "WHERE u.status = 'done' AND t.role = 'debater' AND t.round > 0 ORDER BY u.position, t.seq"
        )
        for unit, turns in groupby(lines, key=lambda line: str(line[0])):
            said = [
                Quote(unit, str(speaker), in_words(str(text), json.loads(parsed) if parsed else None))
                for _, speaker, text, parsed in turns
            ]
            said = [quote for quote in said if quote.text]
            if replies := [quote for quote in said if quote.speaker != said[0].speaker]:
                return [said[0], replies[-1]]
    return []


def _wrapped(text: str, width: int, indent: str = "") -> list[str]:
    return textwrap.wrap(visible(text), width, subsequent_indent=indent, break_on_hyphens=False)


def _cautions(cautions: Sequence[str], width: int) -> Iterator[Text]:
    """The cautions in order, in at most three lines; the last says how many are left out."""
    lines: list[str] = []
    for number, caution in enumerate(cautions):
        left = len(cautions) - number - 1
        room = CAUTION_LINES - len(lines) - (1 if left else 0)
        wrapped = _wrapped(f"Caution: {caution}", width, "  ")
        if room < 1:
            lines.append(f"  and {plural(left + 1, 'more caution')}: parley report --all")
            break
        if len(wrapped) > room:
            rest = textwrap.shorten(" ".join(wrapped[room - 1 :]), width - 2, placeholder=" …")
            wrapped = [*wrapped[: room - 1], f"  {rest}" if room > 1 else rest]
        lines += wrapped
    for line in lines:
        yield Text(line, style="yellow")


def _answer(report: Report, width: int) -> Iterator[Text]:
    """The question, and its answer in one sentence."""
    headline = report.headline
    if headline is None:
        for words in report.words[:3]:
            yield from (Text(line) for line in _wrapped(words, width))
        return
    yield from (Text(line, style="bold") for line in _wrapped(headline.prefix + headline.question, width))
    yield from (Text(line, style="bold") for line in _wrapped(headline.answer, width))


def _quoted(quote: Quote, width: int) -> Text:
    speaker = quote.speaker.replace("_", " ")
    line = textwrap.shorten(visible(f"{speaker}: “{quote.text}”"), width, placeholder=" …”")
    return Text(line, style="italic")


def _cost(report: Report, page: Path | None) -> Iterator[Text]:
    """What the runs cost, and where to find the rest."""
    runs = report.runs  # none in the report of a user's own study
    done, failed, planned = (sum(run["units"][key] for run in runs) for key in ("done", "failed", "planned"))
    costs = [run["cost"] for run in runs]
    left = [f"{failed:,} failed"] * bool(failed) + [f"{planned:,} not yet run"] * bool(planned)
    parts = [plural(done, "unit") + (f" ({', '.join(left)})" if left else "")]
    parts += [plural(sum(run["calls"] for run in runs), "call"), plural(sum(run["tokens"] for run in runs), "token")]
    parts += ["cost unknown" if None in costs else f"${sum(costs):.2f}"]
    if runs:
        yield Text(f"It took {', '.join(parts)}.", style="dim")
    if page is not None:
        yield Text(visible(f"page: {page}"), style="dim")


def _next_commands(report: Report, paths: Sequence[Path], said: Sequence[Quote], width: int) -> Iterator[Text]:
    """Three commands to continue with: the viewer, a conversation, and a run on a real model with its price."""
    # The newest run need not be named: the lines are shorter, and easier to type.
    run = [] if newest_runs()[:1] == [paths[0]] else [str(paths[0])]
    unit = [said[0].unit] if said else []
    commands = [
        (["parley", "view", *run], "read it in the browser"),
        (["parley", "show", *run, *unit], "the whole debate" if said else "a conversation"),
        _on_a_real_model(report) or (["parley", "report", *run, "--all"], "every table and sentence"),
    ]
    typed = [visible(shlex.join(words)) for words, _ in commands]
    column = min(max(map(len, typed)), width - max(len(about) for _, about in commands) - 4)
    for command, (_, about) in zip(typed, commands, strict=True):
        fits = max(column, len(command)) + len(about) + 4 <= width
        yield Text.assemble("  ", (f"{command:<{column}}", "bold cyan"), f"  {about}" if fits else "")


def _on_a_real_model(report: Report) -> tuple[list[str], str] | None:
    """The command that runs the study on a widely used model, with its estimated price; None after such a run.

    MALIBU is then run on every base. Other studies keep the settings of this run.
    """
    if not report.runs:
        return None
    run = report.runs[0]
    study = str(run["study"])
    if study not in STUDIES or not all(str(name).startswith(SMALL) for name in run["models"]):
        return None
    schema = find_study(study).Config
    config = EVERY_BASE if study == "malibu" else {**changed_settings(schema, run["config"]), "model": REAL_MODEL}
    try:
        cost = _every_base_cost() if study == "malibu" else estimated_cost(Job.make(study, config, Options()))
    except (ParleyError, ValueError, OSError):  # the data were moved, or are not what they were
        return None
    about = f"costs about ${max(cost, 0.01):.2f}" if cost else "on a widely used model"
    return ["parley", "run", study, *as_flags(config)], about


@cache  # planning it takes longer than the rest of the screen
def _every_base_cost() -> float | None:
    """What MALIBU on every base costs; its data are shipped, so it costs the same after every run."""
    return estimated_cost(Job.make("malibu", EVERY_BASE, Options()))
