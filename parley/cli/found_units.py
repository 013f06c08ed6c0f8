"""Finds units: by facets, or behind a finding of the report, largest first."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

from rich.text import Text

from parley.base.errors import ConfigError
from parley.base.redaction import HiddenAddresses
from parley.base.text import plural, signed, visible
from parley.cli.command import Answer
from parley.runs import RunFile
from parley.runs.reading import compared_values, matched_units, parse_facets
from parley.runs.studies import facets_of, measures_of
from parley.viewer.figures import PANEL, VerdictRow, unit_figures

if TYPE_CHECKING:
    from parley.analysis.page.report import Report
    from parley.analysis.say import Headline
    from parley.analysis.stats.results import Line

MOST_SHOWN = 20
HOW_READ = ("unread", "on_scale", "repaired")
"""Parts of the names of measures about how replies were read, as in the viewer."""
SIDES = ("_a", "_b")
"""Suffixes of facets with the first and second identity of a pair."""


@dataclass(frozen=True, slots=True)
class FoundUnit:
    """A unit in a list.

    Args:
        id: Its id.
        status: planned, done or failed.
        facets: Its facets, as text.
        score: The score of the study's main measure, as in the viewer; None if there is none.
        choice: The verdict of a comparison: A, B or tie.
        margin: By how much the first of two is ahead.
    """

    id: str
    status: str
    facets: Mapping[str, str]
    score: float | None
    choice: str | None = None
    margin: float | None = None


def read_filters(where: Sequence[str]) -> dict[str, list[str]]:
    """The accepted values by facet, from texts like "identity=muslim"."""
    filters: dict[str, list[str]] = {}
    for text in where:
        facet, sign, value = text.partition("=")
        if not sign:
            raise ConfigError(f"--where needs FACET=VALUE, e.g. identity=muslim, got '{text}'")
        filters.setdefault(facet, []).append(value)
    return filters


def find_units(file: RunFile, filters: Mapping[str, Sequence[str]], *, read: bool = False) -> list[FoundUnit]:
    """The units that have one of the values of every facet, in the order of the plan.

    Args:
        file: The run.
        filters: Accepted values by facet.
        read: Whether to leave out units of which nothing could be read.
    """
    file.check_plan()
    info = file.info()
    hide = HiddenAddresses(info).hide  # findings hide addresses in facets too
    identities = [facet.name for facet in facets_of(info) if facet.kind == "identity"]
    # The stored order of a pair's identities is arbitrary: filters find both orders, as in the viewer.
    meant = {name: identities if name in identities and not name.endswith(SIDES) else [name] for name in filters}
    verdicts = {position: list(rows) for position, rows in groupby(file.verdicts(), key=itemgetter(0))}
    units, seen = [], dict[str, dict[str, None]]()
    _, rows = file.rows("SELECT position, id, status, facets FROM units ORDER BY position")
    for position, unit, status, text in rows:
        stored = parse_facets(text)
        facets = hide(stored)
        for name, value in facets.items():
            seen.setdefault(name, {})[value] = None
        if all(any(facets.get(facet) in filters[name] for facet in names) for name, names in meant.items()):
            given = [
                VerdictRow(judge, role, round, subject, value, words, metric)
                for _, _, judge, role, round, subject, metric, value, _, words, *_ in verdicts.get(position, ())
            ]
            figures = unit_figures(given, (), measures_of(info), stored)[PANEL]
            if figures.read or not read:
                units.append(FoundUnit(unit, status, facets, figures.score, figures.choice, figures.margin))
    if not units:
        raise ConfigError(_nothing_found(file, filters, seen))
    return units


def _nothing_found(file: RunFile, filters: Mapping[str, Sequence[str]], seen: Mapping[str, Mapping[str, None]]) -> str:
    for name, accepted in filters.items():
        if name not in seen:
            return f"no unit of {file.path} has a facet '{name}'; its facets are {', '.join(seen)}"
        if not any(value in seen[name] for value in accepted):
            values = ", ".join(value or "'' (none)" for value in list(seen[name])[:MOST_SHOWN])
            return f"no unit of {file.path} has {name}={accepted[0]}; it has {values}"
    wanted = ", ".join(f"{name}={' or '.join(accepted)}" for name, accepted in filters.items())
    return f"no unit of {file.path} has all of {wanted}"


def list_units(file: RunFile, where: Sequence[str]) -> Answer:
    """The units with certain facets, each with its score."""
    units = find_units(file, read_filters(where))
    lines = [f"{_number(unit.score)}  {unit.status:<8} {unit.id}" for unit in units]
    return Answer([asdict(unit) for unit in units], [*lines, f"{plural(len(units), 'unit')} found"])


def list_behind(file: RunFile, number: int, where: Sequence[str]) -> Answer:
    """The units behind the answer to one of the report's questions, those that show it most first.

    Args:
        file: The run.
        number: Which question: 1 is the headline's.
        where: Further filters.
    """
    from parley.reports import make_report

    report = make_report([file.path])
    if number > len(report.forests):
        questions = "; ".join(f"{place} {forest.question}" for place, forest in enumerate(report.forests, 1))
        raise ConfigError(f"there is no finding {number}; the report's questions are: {questions or 'none'}")
    behind = units_behind(file, report, number, where)
    answer, line, units, pairs = behind.answer, behind.line, behind.units, behind.pairs
    lines = [Text(visible(answer.text), style="bold")]
    if not answer.line and line:
        lines.append(Text(visible(f"Largest value (not tested): {f'{line.heading} ' * bool(line.group)}{line.label}")))
    rest = _paired(file, behind.facet, pairs) if pairs else _single(file, units, above=behind.above)
    data = [
        {"difference": difference, "units": [asdict(first), asdict(second)]} for difference, first, second in pairs
    ] or [asdict(unit) for unit in units]
    return Answer({"finding": answer.text, "units": data}, [*lines, *rest])


@dataclass(frozen=True, slots=True)
class Behind:
    """The units behind an answer of a report.

    Args:
        answer: The answer.
        line: The answer's line, or else the largest; None if there is none.
        units: The units behind that line.
        above: Whether the line is not below its reference value.
        facet: The facet in which the units of a pair differ; "" if the line compares nothing.
        pairs: Pairs of units that differ only in it, with the difference of their scores, largest first.
    """

    answer: Headline
    line: Line | None
    units: list[FoundUnit]
    above: bool
    facet: str
    pairs: list[tuple[float, FoundUnit, FoundUnit]]


def units_behind(file: RunFile, report: Report, number: int, where: Sequence[str] = ()) -> Behind:
    """The units behind the answer to one of the report's questions.

    Args:
        file: The run.
        report: Its report.
        number: Which question: 1 is the headline's.
        where: Further filters.
    """
    from parley.analysis.say import headline

    forest = report.forests[number - 1]
    answer = report.headline if number == 1 and report.headline else headline(forest)
    line = answer.line or max(
        (line for line in forest.lines if math.isfinite(line.estimate)),
        key=lambda line: (not line.secondary, abs(line.estimate - (forest.reference or 0))),
        default=None,
    )
    filters = {name: list(values) for name, values in (line.units if line else {}).items()}
    listed = find_units(file, {**filters, **read_filters(where)}, read=line is not None and rests_on_read(line))
    units = [unit for unit in listed if unit.status == "done"]
    above = line is None or line.estimate >= (forest.reference or 0)
    facet, compared = (line and compared_values(line)) or ("", ())
    return Behind(answer, line, units, above, facet, _pairs(units, facet, compared, above=above) if facet else [])


def rests_on_read(line: Line) -> bool:
    """Whether to leave out units without readable replies; not if the line is about readability."""
    return not any(word in line.measure for word in HOW_READ)


def _pairs(
    units: Sequence[FoundUnit], facet: str, compared: Sequence[tuple[str, str]], *, above: bool
) -> list[tuple[float, FoundUnit, FoundUnit]]:
    """Pairs of units that differ only in the facet, with the difference of their scores, largest first."""
    names = dict.fromkeys(name for unit in units for name in unit.facets)
    columns = {name: [unit.facets.get(name) for unit in units] for name in names}
    places = (pair for x, y in compared for pair in matched_units(columns, facet, x, y))
    pairs = ((units[first], units[second]) for first, second in places)
    scored = [(a.score - b.score, a, b) for a, b in pairs if a.score is not None and b.score is not None]
    return sorted(scored, key=itemgetter(0), reverse=above)


def _paired(file: RunFile, facet: str, pairs: Sequence[tuple[float, FoundUnit, FoundUnit]]) -> Iterator[str]:
    yield f"{plural(len(pairs), 'pair')} of units that differ only in {facet}, the largest difference first:"
    for difference, first, second in pairs[:MOST_SHOWN]:
        a, b = (f"{unit.facets[facet] or 'none'} {_number(unit.score)}" for unit in (first, second))
        yield f"{signed(difference).replace('-', '−'):>8}  {f'{a} − {b}':<34}  {first.id}"
    yield from _more(len(pairs))
    _, first, second = pairs[0]
    command = ["parley", "show", str(file.path), first.id, "--beside", f"{facet}={second.facets[facet]}"]
    yield f"{shlex.join(command)}  reads both, turn by turn"


def _single(file: RunFile, units: Sequence[FoundUnit], *, above: bool) -> Iterator[str]:
    ordered = sorted(
        (unit for unit in units if unit.score is not None), key=lambda unit: unit.score or 0.0, reverse=above
    ) or sorted((unit for unit in units if unit.choice), key=lambda unit: -abs(unit.margin or 0))
    if any(unit.score is not None for unit in ordered):
        yield f"{plural(len(ordered), 'unit')} with a score, the {'highest' if above else 'lowest'} first:"
    else:
        yield f"{plural(len(ordered), 'comparison')}, the clearest first (its verdict, and A minus B):"
    for unit in ordered[:MOST_SHOWN]:
        winner = unit.facets.get(f"identity_{(unit.choice or '').lower()}", unit.choice)
        verdict = f"{winner:>10} {signed(unit.margin or 0):>6}" if unit.score is None else f"{_number(unit.score):>10}"
        yield f"{verdict}  {unit.id}"
    yield from _more(len(ordered))
    if ordered:
        yield f"{shlex.join(['parley', 'show', str(file.path), ordered[0].id])}  reads the first one"


def _more(count: int) -> Iterator[str]:
    if count > MOST_SHOWN:
        yield f"and {count - MOST_SHOWN:,} more; --json has all"


def _number(score: float | None) -> str:
    return "–" if score is None else f"{score:.2f}"
