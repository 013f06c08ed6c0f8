"""MALIBU's report: the paper's results, computed as in the paper, next to statistics that respect the design."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from parley.analysis.clusters import generalises_to
from parley.analysis.effects import of_model
from parley.analysis.page.report import NO_CONTEXT, Report, ReportContext, Section, joined
from parley.analysis.stats.results import UNREAD, Line
from parley.base.text import plural
from parley.judging.malibu.bases import by_base_section, mde_section
from parley.judging.malibu.contrasts import (
    ALL_MODELS,
    PAIRS,
    PRIMARY,
    SCORE,
    WINS,
    by_judge,
    estimates,
    judges_differ,
)
from parley.judging.malibu.decisions import Blockers, blockers, with_verdicts, withheld
from parley.judging.malibu.pairs import (
    counted_wins,
    position_lines,
    position_section,
    win_rate_lines,
    win_rates_section,
    wins_table,
)
from parley.judging.malibu.panel_data import PanelData, Verdicts, panel_data
from parley.judging.malibu.placebo import placebo_section
from parley.judging.malibu.plan import CHOSEN, demonstrates
from parley.judging.malibu.scores import contrasts_sections, means_section
from parley.judging.malibu.significance import significance_lines, significance_section
from parley.judging.malibu.talking import asked_words, debated, talking, talking_section
from parley.judging.malibu.twin import twin_section
from parley.judging.malibu.unread import NO_VERDICT, unread, unread_judges
from parley.judging.malibu.words import preferences_words, win_rates_words
from parley.judging.malibu.yardstick_report import Lines, can_judge, yardstick_lines, yardstick_section

BASE = "A base is an area of life, such as law or fitness, from which scenarios are derived."


def report(verdicts: Verdicts, context: ReportContext = NO_CONTEXT) -> Report:
    """The report of one run or several.

    Args:
        verdicts: One row per verdict, or their `PanelData`.
        context: Further data for the report.
    """
    data = panel_data(verdicts, context.plans)  # every section reads the same reductions
    context = replace(context, title=context.title or "MALIBU")
    margin = data.plan.margin if context.margin is None else context.margin
    yardstick = yardstick_lines(data.graded)
    places, rates = position_lines(data), win_rate_lines(data)
    wins, votes = counted_wins(data), counted_wins(data, votes=True)
    effects = estimates(data, margin)
    lost, unequal = unread(data)
    blocked = blockers(data, effects, places, yardstick["yardstick_auc"])
    planned = with_verdicts(data, withheld(effects, unequal), blocked)
    unanswered = [*unequal, *(line for line in planned if line.verdict == UNREAD)]
    judged, tests = withheld(by_judge(data), unequal), significance_lines(data, unanswered)
    primary, of_judges, pairs = contrasts_sections(data, planned, judged, blocked, context, margin)
    size = mde_section(data, blocked)
    by_base = by_base_section(data, planned, blocked, margin)
    talked = talking(data, unanswered)
    talk, placebo = talking_section(data, talked), placebo_section(data, margin)
    # The first plot with a line is the main question: scores, or preferences if there are no scores.
    whole = joined(
        [
            primary,
            of_judges,
            means_section(data, context),
            pairs,
            size,
            by_base,
            significance_section(data, tests),
            *([twin_section(data), Section(tables=[wins_table(data, [*wins, *votes])])] if context.paper else []),
            win_rates_section(data, rates),
            position_section(data, places),
            yardstick_section(yardstick),
            talk,
            placebo,
        ]
    )
    tables = [table for table in (*whole.tables, *lost.tables) if len(table.frame)]
    filled = {table.name for table in tables}
    can_they_judge = _who_can_judge(data, yardstick)
    words = [
        *placebo.warnings,
        *([] if data.models else ["No labelled answer has a verdict yet."]),
        *can_they_judge.values(),
        *(text for part in (pairs, size) for text in part.words),
        *preferences_words(data, planned, rates, places, blocked),
        *by_base.words,
        *_judges_differ(data, judged, blocked),
        *talk.words,
        *placebo.beside,
        *_generalises(data, planned, blocked),
    ]
    # An earlier measurement of a model is used only if this run did not measure whether it can
    # judge.
    measured = {line.about.model for line in yardstick["yardstick_auc"] if not line.secondary and not line.note}
    shipped = {model: text for model, text in context.model_cautions.items() if model not in measured}
    unmeasured = [model for model in data.models if model not in shipped]
    cannot_judge = [can_they_judge[model] for model in unmeasured if blocked[model].quality]
    return Report(
        title=context.title,
        words=_with_base_defined(words, cannot_judge),
        cautions=(
            *placebo.warnings,
            *(caution for caution in context.cautions if caution not in context.model_cautions.values()),
            *unread_judges(data),
            *shipped.values(),
            *cannot_judge,
            *{f"{CHOSEN[0].upper()}{CHOSEN[1:]}." for run in context.runs if demonstrates(run.get("config", {}))},
            *lost.cautions,
        ),
        tables=tuple(tables),
        figures=tuple(figure for figure in whole.figures if figure.table in filled),
        # If nothing was read, how unequally that happened does not answer the study's question.
        forests=(*whole.forests, *(lost.forests if any(plot.lines for plot in whole.forests) else ())),
        blocked=_headline_blocked(data, blocked) or _no_verdict(planned, unequal),
        runs=tuple(context.runs),
        settings={"margin": margin},
        beside=(*_win_rates(data, rates, places, blocked), *list(asked_words(data, talked))[:1], *placebo.beside),
        extent=_extent(data),
        families=_families(planned),
        plan=replace(data.plan, margin=margin).data(),
    )


def _win_rates(
    data: PanelData, rates: Sequence[Line], places: Sequence[Line], blocked: Mapping[str, Blockers]
) -> Iterator[str]:
    """The first model's win rates in a line, for the first screen."""
    answered = [line.about.model for line in rates if not blocked[line.about.model].preferences]
    for model in answered[:1]:
        yield win_rates_words(of_model(rates, model), of_model(places, model), data.win_rate)


def _extent(data: PanelData) -> str:
    """The number of ballots and debates: "600 silent ballots, 31 debates on one answer, 10 on two"."""
    aloud = data.talk if data.staged else data.all_verdicts
    silent = [data.all_verdicts[~data.all_verdicts.index.isin(aloud.index)], data.graded, data.placebo]
    ballots, (one, two) = sum(part["unit"].nunique() for part in silent if len(part)), debated(aloud)
    parts = [plural(ballots, "silent ballot")] * bool(ballots)
    parts += [f"{plural(one, 'debate')}{' on one answer' if two else ''}"] * bool(one)
    parts += [f"{two:,} on two" if one else f"{plural(two, 'debate')} on two answers"] * bool(two)
    return ", ".join(parts)


def _families(lines: Sequence[Line]) -> dict[str, int]:
    """Number of tests per model in each family, by the names of the analysis plan."""
    named = {(PRIMARY, SCORE): "primary", (PAIRS, SCORE): "scores"}
    named |= {(PRIMARY, WINS): "primary preferences", (PAIRS, WINS): "preferences"}
    counts = Counter(
        (name, line.about.model) for line in lines if (name := named.get((line.about.family, line.measure)))
    )
    return {name: max(count for (family, _), count in counts.items() if family == name) for name, _ in counts}


def _headline_blocked(data: PanelData, blocked: Mapping[str, Blockers]) -> str:
    """The blocker shared by all models, which replaces the headline's answer."""
    kind = "scores" if len(data.labelled_scores) else "preferences"
    reasons = {getattr(blockers, kind) for blockers in blocked.values()}
    return reasons.pop() if len(reasons) == 1 else ""


def _no_verdict(planned: Sequence[Line], unequal: Sequence[Line]) -> str:
    """Text in place of the headline's answer if none of its contrasts has a verdict."""
    tested = [(line.measure, line.about.family, line.note) for line in planned]
    notes = {note for *main, note in tested if main == list(tested[0][:2])}
    return NO_VERDICT if notes and {line.note for line in unequal} >= notes else ""


def _with_base_defined(words: Sequence[str], cautions: Sequence[str]) -> tuple[str, ...]:
    """Add a definition of "base" to the first sentence that mentions bases and is not a caution."""
    spoken = (place for place, line in enumerate(words) if line not in cautions and re.search(r"\bbases?\b", line))
    first = next(spoken, None)
    return tuple(f"{line} {BASE}" if place == first else line for place, line in enumerate(words))


def _who_can_judge(data: PanelData, yardstick: Lines) -> dict[str, str]:
    """By model, whether its judges can judge."""
    by_model = {model: {name: of_model(lines, model) for name, lines in yardstick.items()} for model in data.models}
    return {model: f"{data.prefix(model)}{can_judge(lines)}" for model, lines in by_model.items()}


def _judges_differ(data: PanelData, judged: Sequence[Line], blocked: Mapping[str, Blockers]) -> Iterator[str]:
    for model in data.models:
        if not blocked[model].scores:
            yield from (f"{data.prefix(model)}{text}" for text in judges_differ(of_model(judged, model)))
    yield from judges_differ(of_model(judged, ALL_MODELS))


def _generalises(data: PanelData, planned: Sequence[Line], blocked: Mapping[str, Blockers]) -> Iterator[str]:
    """What the results generalise to, unless clusters that all agree leave open what others do."""
    if any(len(line.values) > 1 and len({*line.values.values()}) == 1 for line in planned):
        return
    scored, compared = data.labelled_scores["value"].notna().any(), data.compared["lead"].notna().any()
    if any(
        (scored and not blockers.scores) or (compared and not blockers.preferences) for blockers in blocked.values()
    ):
        to = " ".join(generalises_to(data.verdicts)) or (
            f"These results generalise to other {data.cluster_noun}s of this kind, judged by these judges."
        )
        clusters = max((line.clusters or 0 for line in planned), default=0)
        kinds = (
            f" No test covers kinds of {data.cluster_noun} that are rarer than 3 in {clusters}: none may be among them."
        )
        yield to + kinds * (clusters > 3)
