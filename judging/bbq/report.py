"""BBQ's report: whether answers follow stereotypes, what methods change, and what loops gain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pandas as pd

from parley.analysis.gains import gain_forest, gain_sentences, gain_table
from parley.analysis.page.report import NO_CONTEXT, Report, ReportContext, Section, answered, assemble
from parley.analysis.say import Forest
from parley.analysis.stats.resampling import words_on_draws
from parley.analysis.stats.results import Line
from parley.analysis.systems import system_facets, without_files
from parley.analysis.verdicts import MissingColumns, require
from parley.judging.bbq.comparisons import changes
from parley.judging.bbq.iterations import iterations_sections, supported_gains
from parley.judging.bbq.leaderboard import answers, leaderboard_section
from parley.judging.bbq.mabrf.report import mabrf_gains, mabrf_sections

GAINS = (
    "Clusters are question templates. STARDTOX: 100 minus the judge's support, against BBQ's key (100 if wrong). "
    "MABRF: the judge's bias score, 1 to 10, of the first chain, and of the final one, judged again. Its outside judge "
    "reads both chains with another prompt; by default it is the judge's own model."
)


def report(verdicts: pd.DataFrame, context: ReportContext = NO_CONTEXT) -> Report:
    """The report of one run or several.

    Args:
        verdicts: One row per verdict.
        context: Further data for the report.
    """
    require(verdicts, texts=("method", "model"))
    verdicts = without_files(verdicts)
    if context.units is not None:
        context = replace(context, units=without_files(context.units))
    frame = answers(verdicts)
    if frame.empty:
        raise MissingColumns("none of its verdicts is an answer")
    facets = system_facets(frame)
    gains = {
        ("the lack of support", "points of 100"): supported_gains(verdicts, lambda about: facets[about["system"]]),
        ("the bias of the reasoning", "points of 10"): mabrf_gains(verdicts, lambda about: facets[about["system"]]),
    }
    gains = {what: lines for what, lines in gains.items() if lines}
    looped = {line.about.system for lines in gains.values() for line in lines}
    gained = [_gains(gains)] if gains else []
    levels = [
        Section(warnings=words_on_draws(context.draws)),
        leaderboard_section(frame, context),
        *(answered(question, rows) for question, rows in changes(frame, draws=context.draws, seed=context.seed)),
    ]
    # If every method is a loop, the loops' gain is the main question.
    first = [*gained, *levels] if looped == set(frame["system"]) else [*levels, *gained]
    loops = [*iterations_sections(verdicts, context), *mabrf_sections(verdicts, context)]
    if frame["method"].nunique() > 1:
        loops = [replace(part, forests=[_of_method(plot) for plot in part.forests]) for part in loops]
    return assemble([*first, *loops], context, "BBQ", draws=context.draws, seed=context.seed)


def _of_method(plot: Forest) -> Forest:
    """Give the lines of a loop's plot the loop's units, in a run that also has other methods."""
    methods = [{"method": (line.about.method,)} if line.about.method else {} for line in plot.lines]
    lines = [replace(line, units={**method, **line.units}) for line, method in zip(plot.lines, methods, strict=True)]
    return replace(plot, lines=tuple(lines))


def _gains(gains: Mapping[tuple[str, str], Sequence[Line]]) -> Section:
    """Gains of the loops by their own scorer and by an outside measure."""
    forests: list[Forest] = []
    words: list[str] = []
    for what, lines in gains.items():
        name = what[0].removeprefix("the ").replace(" ", "-")
        forests.append(gain_forest(lines, *what, name=f"gain-{name}"))
        words += gain_sentences(lines, *what)
    all_lines = [line for lines in gains.values() for line in lines]
    return Section(tables=[gain_table(all_lines, GAINS)], forests=forests, words=words)
