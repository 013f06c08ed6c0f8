"""The first screen of a report in the terminal: at most 28 lines, and what to type next.

What was run comes first, then what invalidates results, the question and its answer, and words behind it. Everything
else is on the page, in the viewer, and printed by `--all` and `--json`.
"""

from __future__ import annotations

import json
import shlex
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from parley.agents.models.prices import price_of
from parley.agents.providers import provider_of
from parley.base.errors import ParleyError
from parley.base.redaction import HiddenAddresses
from parley.base.text import in_words, plural, visible
from parley.cli.dry_run import estimated_cost
from parley.cli.flags import as_flags
from parley.cli.found_units import units_behind
from parley.cli.shared import newest_runs
from parley.cli.terminal_forest import forest_lines, marks_for
from parley.reports.cautions import PRACTICE
from parley.runs import RunFile
from parley.runs.job import Job
from parley.runs.options import Options
from parley.runs.reading import parse_facets
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
PARTS = ("quick", "tiny")
"""Suites for trying things out, which are parts of the suite `wide`."""
SAMPLES = ("limit", "per_base")
"""Settings that leave out a part of a suite."""


def first_screen(
    report: Report, paths: Sequence[Path], page: Path | None, console: Console, typed: Sequence[str] = ()
) -> Iterator[Text]:
    """The lines of a report's first screen.

    Args:
        report: What to show.
        paths: The run files it was made from.
        page: The page that has the rest; None if none was written.
        console: Where they are printed.
        typed: Flags that the report was made with, to be repeated.
    """
    width = min(console.width, WIDEST)
    example = find_example(report, paths)
    newest = newest_runs()[:1] == list(paths)
    # The newest run need not be named: the lines are shorter, and easier to type.
    everything = shlex.join(["parley", "report", *([] if newest else map(str, paths)), *typed, "--all"])
    above = [
        *_header(report, width),
        *_cautions(report.cautions, width, everything),
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
    """What somebody said in a debate."""

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
    """A debate behind the line that the headline names, or else behind any line of its plot.

    None where there is none, and where the units behind the answer are not known.

    Args:
        report: The report.
        paths: The run files it was made from.
    """
    named = report.headline.line if report.headline else None
    lines = [named] if named else report.forests[0].lines if report.forests else []
    behind = [line.units for line in lines if line.units] or ([{}] if len(paths) == 1 else [])
    # Where several runs have the same model, its name has the run's.
    own = [path for path, run in zip(paths, report.runs, strict=False) if named and f"({run['file']})" in named.group]
    return next((example for path in own or paths if (example := _example(path, behind))), None)


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
    said = [
        Quote(str(speaker), words)
        for speaker, text, parsed in turns
        if (words := in_words(str(text), json.loads(parsed) if parsed else None))
    ]
    replies = [quote for quote in said if quote.speaker != said[0].speaker]
    return (said[0], replies[-1]) if replies else ()


def _wrapped(text: str, width: int, indent: str = "") -> list[str]:
    return textwrap.wrap(visible(text), width, subsequent_indent=indent, break_on_hyphens=False)


def _cautions(cautions: Sequence[str], width: int, everything: str) -> Iterator[Text]:
    """The cautions in order, in at most three lines; the last says how many are left out, and what prints them."""
    lines: list[str] = []
    for number, caution in enumerate(cautions):
        left = len(cautions) - number - 1
        room = CAUTION_LINES - len(lines) - (1 if left else 0)
        wrapped = _wrapped(caution if caution.startswith(PRACTICE) else f"Caution: {caution}", width, "  ")
        if room < 1:
            lines.append(visible(f"  and {plural(left + 1, 'more caution')}: {everything}"))
            break
        if len(wrapped) > room:
            rest = textwrap.shorten(" ".join(wrapped[room - 1 :]), width - 2, placeholder=" …")
            wrapped = [*wrapped[: room - 1], f"  {rest}" if room > 1 else rest]
        lines += wrapped
    for line in lines:
        yield Text(line, style="yellow")


def _header(report: Report, width: int) -> Iterator[Text]:
    """What was run, how much of it, and what it cost."""
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
    """What was said in a debate behind the answer; without one, the scores of one answer under two labels."""
    if example and example.quotes:
        yield Text()
        yield Text("In the debate", style="bold")
        yield from (_quoted(quote, width) for quote in example.quotes)
    elif report.forests and len(report.runs) == 1:
        with RunFile.open(paths[0]) as file:
            behind = units_behind(file, report, 1)
        for _, first, second in behind.pairs[:1]:
            yield Text()
            yield Text(f"The same twice but for the {behind.facet}, where it differs most", style="bold")
            both = (f"{unit.facets[behind.facet] or 'none'}: {unit.score:.2f}" for unit in (first, second))
            yield from (Text(line) for line in _wrapped(f"  {', '.join(both)} ({first.id})", width, "  "))


def _quoted(quote: Quote, width: int) -> Text:
    speaker = quote.speaker.replace("_", " ")
    line = textwrap.shorten(visible(f"{speaker}: “{quote.text}”"), width - 2, placeholder=" …”")
    return Text(f"  {line}", style="italic")


def _next_commands(report: Report, paths: Sequence[Path], example: Example | None, width: int) -> Iterator[Text]:
    """What to type next: what is behind the answer, the viewer, and after a practice run one on a real model."""
    shown = example.run if example else paths[0]
    run = [] if newest_runs()[:1] == [shown] else [str(shown)]
    unit, about = ([example.unit], "the whole debate") if example else ([], "a conversation")
    if report.forests:
        unit, about = ["--finding", "1"], "what this answer rests on, the largest first"
    commands = [
        (shlex.join(["parley", "show", *run, *unit]), about),
        (shlex.join(["parley", "view", *run]), "everything, in the browser"),
        *_on_a_real_model(report),
    ]
    typed = [visible(command) for command, _ in commands]
    column = max(map(len, typed[:2]))  # the third is long, and its remark short
    yield Text()
    yield Text("Next", style="bold")
    for command, (_, about) in zip(typed, commands, strict=True):
        fits = max(column, len(command)) + len(about) + 4 <= width
        yield Text.assemble("  ", (f"{command:<{column}}", "bold cyan"), f"  {about}" if fits else "")
        if not fits:
            yield Text(f"    {about}")


def _on_a_real_model(report: Report) -> Iterator[tuple[str, str]]:
    """The command that runs the study on a widely used model, with its estimated price; none after such a run.

    It has the settings of this run. MALIBU is then run on every base of its suite, a part of `wide` on all of that.
    """
    if not report.runs or not report.runs[0]["models"]:
        return
    run = report.runs[0]
    study = str(run["study"])
    if study not in STUDIES or not all(provider_of(str(name)).in_process for name in run["models"]):
        return
    try:
        chosen = _chosen(study, run["config"])
        # A simulated model's replies are shorter than a real one's; local models' are as long.
        same_plan = not any(provider_of(str(name)).simulated for name in run["models"])
        if study == "malibu":
            suite = run["config"]["suite"]
            own = {key: value for key, value in chosen.items() if key not in ("suite", *SAMPLES)}
            same_plan = same_plan and suite not in PARTS and not any(key in chosen for key in SAMPLES)
            chosen = {"suite": "wide" if suite in PARTS else suite, **own}
        config = {key: value for key, value in chosen.items() if key != "model"} | {"model": REAL_MODEL}
        if same_plan:
            cost = _cost_of_tokens(run)
        elif config == EVERY_BASE:
            cost = _every_base_cost()
        else:
            cost = estimated_cost(Job.make(study, config, Options()))
    except (ParleyError, ValueError, KeyError, OSError):  # the data were moved, or are not what they were
        return
    about = f"costs about ${max(cost, 0.01):.2f}" if cost else "on a widely used model"
    yield shlex.join(["parley", "run", study, *as_flags(config)]), about


def _chosen(study: str, config: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a run that its study, suite or design would not have chosen.

    Args:
        study: The study's name.
        config: All settings, as the run has stored them.
    """
    settings = find_study(study).Config
    fields = settings.model_fields
    usual = {key: field.get_default(call_default_factory=True) for key, field in fields.items()}
    leading: dict[str, Any] = {key: config[key] for key in ("suite", "design") if key in config and key in fields}
    if leading:
        usual = settings(**leading).model_dump(mode="json") | {key: usual[key] for key in leading}
    chosen = {key: config[key] for key in usual if key in config and config[key] not in (None, usual[key])}
    return {key: value for key, value in chosen.items() if value is not False or usual[key] is not None}


def _cost_of_tokens(run: Mapping[str, Any]) -> float | None:
    """What as many tokens as one model of this run took would cost; planning the units again takes much longer."""
    with RunFile.open(Path(run["path"])) as file:
        _, rows = file.rows(
            "SELECT sum(c.prompt_tokens), sum(c.completion_tokens) FROM calls c JOIN units u ON u.id = c.unit "
            "WHERE u.status = 'done'"
        )
    share = sum(run["units"].values()) / run["units"]["done"] / len(run["models"])
    prompt, completion = (share * (tokens or 0) for tokens in rows[0])
    return price_of(REAL_MODEL).cost(prompt, completion)


@cache  # planning it takes longer than the rest of the screen
def _every_base_cost() -> float | None:
    """What MALIBU on every base costs; its data are shipped, so it costs the same after every run."""
    return estimated_cost(Job.make("malibu", EVERY_BASE, Options()))
