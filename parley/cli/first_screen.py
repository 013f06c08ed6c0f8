"""The first screen of a report in the terminal: at most 28 lines (unless cautions need more), with the next commands.

It has what was run, cautions, the question with its answer, and examples; everything else is on the page, in the
viewer, and in `--json`.
"""

from __future__ import annotations

import json
import shlex
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from parley.base.redaction import HiddenAddresses
from parley.base.text import as_written, in_words, plural, visible
from parley.cli.found_units import units_behind
from parley.cli.shared import newest_runs
from parley.cli.terminal_forest import forest_lines, marks_for
from parley.reports.cautions import PRACTICE
from parley.runs import RunFile
from parley.runs.reading import parse_facets

if TYPE_CHECKING:
    from parley.analysis.page.report import Report

MOST_LINES = 28
LEAST_ROWS = 3
"""Minimum lines of the plot, however long the rest is."""
WIDEST = 110
"""Maximum width, since longer lines are hard to read."""


def first_screen(report: Report, paths: Sequence[Path], page: Path | None, console: Console) -> Iterator[Text]:
    """The lines of a report's first screen.

    Args:
        report: The report.
        paths: Its run files.
        page: The report's page; None if none was written.
        console: The output.
    """
    width = min(console.width, WIDEST)
    example = find_example(report, paths)
    above = [
        *_header(report, width),
        *_cautions(report.cautions, width),
        *_answer(report, width),
    ]
    below = [
        *(Text(line) for words in report.beside for line in _wrapped(f"  {words}", width, "  ")),
        *_in_words(report, paths, example, width),
        *_next_commands(report, paths, example, width),
        *([Text(visible(f"page: {page}"), style="dim")] if page else []),
    ]
    rows = max(LEAST_ROWS, MOST_LINES - len(above) - len(below) - 3)
    plot = forest_lines(report.forests[0], width, marks_for(console), rows) if report.forests else []
    for line in (*above, *([Text()] if report.headline else []), *plot, *([Text()] if report.beside else []), *below):
        line.no_wrap = True
        yield line


@dataclass(frozen=True, slots=True)
class Quote:
    """A statement in a debate."""

    speaker: str
    text: str


@dataclass(frozen=True, slots=True)
class Example:
    """A debate behind the answer.

    Args:
        run: Its run file.
        unit: Its unit's id.
        quotes: Its first statement, and the last one by somebody else.
    """

    run: Path
    unit: str
    quotes: tuple[Quote, ...]


def find_example(report: Report, paths: Sequence[Path]) -> Example | None:
    """Find a debate behind the headline's line, or behind any line of its plot; None if there is none.

    Args:
        report: The report.
        paths: The run files it was made from.
    """
    named = report.headline.line if report.headline else None
    lines = [named] if named else report.forests[0].lines if report.forests else []
    behind = [line.units for line in lines if line.units] or ([{}] if len(paths) == 1 else [])
    # Where several runs have the same model, its name has the run's.
    named_runs = [
        path for path, run in zip(paths, report.runs, strict=False) if named and f"({run['file']})" in named.heading
    ]
    return next((example for path in named_runs or paths if (example := _example(path, behind))), None)


def _example(path: Path, behind: Sequence[Mapping[str, Sequence[str]]]) -> Example | None:
    """The first debate of a run with such facets."""
    with RunFile.open(path) as file:
        hide = HiddenAddresses(file.info()).hide  # as in the report
        units = file.stream(
            "SELECT u.id, u.facets FROM units u JOIN messages m ON m.unit = u.id "
            "WHERE u.status = 'done' AND m.role = 'debater' AND m.round > 0 "
            "GROUP BY u.id HAVING count(DISTINCT m.speaker) > 1 ORDER BY u.position"
        )
        for unit, text in units:
            facets = hide(parse_facets(text))
            wanted = any(all(facets.get(name) in values for name, values in those.items()) for those in behind)
            if wanted and (quotes := _quotes(file, unit)):
                return Example(path, unit, quotes)
    return None


def _quotes(file: RunFile, unit: str) -> tuple[Quote, ...]:
    _, turns = file.rows(
        "SELECT speaker, text, parsed FROM transcript WHERE unit = ? AND role = 'debater' AND round > 0 ORDER BY seq",
        (unit,),
    )
    quotes = [
        Quote(str(speaker), words)
        for speaker, text, parsed in turns
        if (words := in_words(str(text), json.loads(parsed) if parsed else None))
    ]
    replies = [quote for quote in quotes if quote.speaker != quotes[0].speaker]
    return (quotes[0], replies[-1]) if replies else ()


def _wrapped(text: str, width: int, indent: str = "") -> list[str]:
    return textwrap.wrap(visible(text), width, subsequent_indent=indent, break_on_hyphens=False)


def _cautions(cautions: Sequence[str], width: int) -> Iterator[Text]:
    """All cautions, complete, the severest first."""
    for caution in cautions:
        words = caution if caution.startswith(PRACTICE) else f"Caution: {caution}"
        yield from (Text(line, style="yellow") for line in _wrapped(words, width, "  "))


def _header(report: Report, width: int) -> Iterator[Text]:
    """What was run, how many units, and the cost."""
    runs = report.runs  # none in the report of a user's own study
    costs = [run["cost"] for run in runs]
    cost = "cost unknown" if None in costs else f"${sum(costs):.2f}"
    extent = report.extent or plural(sum(run["calls"] for run in runs), "call")
    line = " · ".join([report.title, *([extent, cost] if runs else [])])
    yield from (Text(part, style="bold") for part in _wrapped(line, width, "  "))


def _answer(report: Report, width: int) -> Iterator[Text]:
    """The question, and its answer in one sentence."""
    headline = report.headline
    if headline is None:
        for words in report.words[:3]:
            yield from (Text(line) for line in _wrapped(words, width))
        return
    yield Text()
    yield from (Text(line, style="bold") for line in _wrapped(headline.prefix + headline.question, width))
    yield from (Text(line, style="bold") for line in _wrapped(f"  {headline.answer}", width, "  "))


def _in_words(report: Report, paths: Sequence[Path], example: Example | None, width: int) -> Iterator[Text]:
    """Quotes from a debate behind the answer; without one, the scores of one answer under two labels."""
    if example and example.quotes:
        yield Text()
        yield Text("In the debate", style="bold")
        yield from (_quoted(quote, width) for quote in example.quotes)
    elif report.forests and len(report.runs) == 1:
        with RunFile.open(paths[0]) as file:
            behind = units_behind(file, report, 1)
        for _, first, second in behind.pairs[:1]:
            yield Text()
            what = {"identity": "answer under two labels"}.get(behind.facet, f"unit under two {behind.facet}s")
            yield Text(f"The same {what}, where scores differ most", style="bold")
            both = (f"{as_written(unit.facets[behind.facet] or 'none')}: {unit.score:.2f}" for unit in (first, second))
            yield from (Text(line) for line in _wrapped(f"  {', '.join(both)} ({first.id})", width, "  "))


def _quoted(quote: Quote, width: int) -> Text:
    speaker = quote.speaker.replace("_", " ")
    line = textwrap.shorten(visible(f"{speaker}: “{quote.text}”"), width - 2, placeholder=" …”")
    return Text(f"  {line}", style="italic")


def _next_commands(report: Report, paths: Sequence[Path], example: Example | None, width: int) -> Iterator[Text]:
    """The next commands: the units behind the answer, and the viewer."""
    shown = example.run if example else paths[0]
    run = [] if newest_runs()[:1] == [shown] else [str(shown)]
    unit, about = ([example.unit], "the whole debate") if example else ([], "a conversation")
    if report.forests:
        unit, about = ["--finding", "1"], "what this answer rests on, the largest first"
    commands = [
        (shlex.join(["parley", "show", *run, *unit]), about),
        (shlex.join(["parley", "view", *run]), "everything, in the browser"),
    ]
    typed = [visible(command) for command, _ in commands]
    column = max(map(len, typed))
    yield Text()
    yield Text("Next", style="bold")
    for command, (_, about) in zip(typed, commands, strict=True):
        fits = column + len(about) + 4 <= width
        yield Text.assemble("  ", (f"{command:<{column}}", "bold cyan"), f"  {about}" if fits else "")
        if not fits:
            yield Text(f"    {about}")
