"""BBQ's report: whether a method lowers bias and at what price, how biased answers are, and what loops gain.

The main question is about the methods that revise, if the run has any, else about all but the baseline.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from parley.analysis.gains import OUTSIDE, gain_forest, gain_sentences, gain_table
from parley.analysis.page.report import NO_CONTEXT, Report, ReportContext, Section, assemble
from parley.analysis.say import Forest
from parley.analysis.stats.resampling import words_on_draws
from parley.analysis.stats.results import Line
from parley.analysis.systems import system_facets, without_files
from parley.analysis.verdicts import MissingColumns, require
from parley.judging.bbq.comparisons import against_default
from parley.judging.bbq.iterations import iterations_sections
from parley.judging.bbq.leaderboard import answers, leaderboard_section
from parley.judging.bbq.mabrf.loop import MARK
from parley.judging.bbq.mabrf.report import mabrf_gains, mabrf_sections
from parley.judging.bbq.methods import REVISED

GAINS = (
    "Clusters are question templates. The judge's bias score, 1 to 10, of the first chain, and of the final one, "
    "judged again where it was. The outside judge reads both chains with another prompt; by default it is the judge's "
    "own model."
)


def report(verdicts: pd.DataFrame, context: ReportContext = NO_CONTEXT) -> Report:
    """The report of one run or several.

    Args:
        verdicts: One row per verdict.
        context: Further data for the report.
    """
    require(verdicts, texts=("method", "model"), numbers=("question", "example_id"))
    verdicts = without_files(verdicts)
    if context.units is not None:
        context = replace(context, units=without_files(context.units))
    frame = answers(verdicts)
    if frame.empty:
        raise MissingColumns("none of its verdicts is an answer")
    facets = system_facets(frame)
    gains = mabrf_gains(verdicts, lambda about: facets[about["system"]])
    revised = verdicts[verdicts["metric"].astype(str).isin([REVISED, MARK])]
    methods, looped = set(frame["method"]), set(revised["method"].astype(str))
    changed = against_default(frame, looped or methods, draws=context.draws, seed=context.seed)
    levels = [
        Section(warnings=words_on_draws(context.draws)),
        *changed,
        leaderboard_section(frame, context),
    ]
    loops = [*iterations_sections(verdicts, context), *mabrf_sections(verdicts, context)]
    gained = [_gains(gains)] if gains else []
    # What no outside judge measured is no answer: the chosen chain's score is low because it was chosen.
    loops = [*gained, *loops] if any(line.n for line in gains if line.measure == OUTSIDE) else [*loops, *gained]
    if len(methods) > 1:
        loops = [replace(part, forests=[_of_method(plot) for plot in part.forests]) for part in loops]
    sections = [*loops, *levels] if looped == methods else [*levels, *loops]
    return assemble(sections, context, "BBQ", draws=context.draws, seed=context.seed)


def _of_method(plot: Forest) -> Forest:
    """Give the lines of a loop's plot the loop's units, in a run that also has other methods."""
    methods = [{"method": (line.about.method,)} if line.about.method else {} for line in plot.lines]
    lines = [replace(line, units={**method, **line.units}) for line, method in zip(plot.lines, methods, strict=True)]
    return replace(plot, lines=tuple(lines))


def _gains(lines: Sequence[Line]) -> Section:
    """MABRF's gains by its own judge and by an outside one."""
    what = "the bias of the reasoning", "points of 10"
    plot = gain_forest(lines, *what, name="gain-bias-of-the-reasoning")
    return Section(tables=[gain_table(lines, GAINS)], forests=[plot], words=list(gain_sentences(lines, *what)))
