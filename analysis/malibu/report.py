"""MALIBU's report: what the paper shows, computed as the paper does, next to statistics that respect the design."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import pandas as pd

from parley.analysis.malibu.agreement import STATUSES, agreement_section, changed_minds, parsing
from parley.analysis.malibu.aligned import aligned_table
from parley.analysis.malibu.bases import by_base_section
from parley.analysis.malibu.blockers import Blockers, blockers, with_blockers, without_unequal
from parley.analysis.malibu.by_judge import ALL_MODELS, unread_judges
from parley.analysis.malibu.clusters import generalises_to
from parley.analysis.malibu.conclusions import MARGIN
from parley.analysis.malibu.contagion import contagion_table
from parley.analysis.malibu.diagnostics import no_label_table, order_effects, second_readings
from parley.analysis.malibu.echo import echo_table
from parley.analysis.malibu.forests import forests
from parley.analysis.malibu.missing import check_scores, missing_section
from parley.analysis.malibu.pairs import position, preferences_table, win_rates_section
from parley.analysis.malibu.panel import PanelData, Verdicts, panel_data
from parley.analysis.malibu.paper import beside, paper_section
from parley.analysis.malibu.pilot import mde_table
from parley.analysis.malibu.primary import primary_section
from parley.analysis.malibu.rounds import heard_own
from parley.analysis.malibu.scores import differences, differences_section, different_pairs, means_section
from parley.analysis.malibu.sentences import Sentences, judges_differ
from parley.analysis.malibu.significance import significance_table
from parley.analysis.malibu.silent_pairs import silent_pairs_section
from parley.analysis.malibu.stages import stages_section
from parley.analysis.malibu.talking import talking_section
from parley.analysis.malibu.unread import NO_VERDICT, Unequal, unequal_contrasts, unread_section
from parley.analysis.malibu.yardstick import Lines, yardstick_lines, yardstick_section
from parley.analysis.reporting.report import NO_CONTEXT, Report, ReportContext, Section, Table
from parley.base.text import plural

PHASE_OF = {"primary": 1, "differences": 1, "preferences": 2}
"""The tables whose verdicts may be blocked."""
MANY_UNREAD = 0.05
"""From this share of replies without a verdict on, every reader must be told."""
FIGURES = ("scores", "matrix", "by-base", "win-rates", "yardstick", "talking", "agreement")
"""The order of the figures on a page: the paper's first, then what qualifies them."""
BASE = "A base is an area of life, such as law or fitness, from which scenarios are derived."


def report(verdicts: Verdicts, context: ReportContext = NO_CONTEXT) -> Report:
    """The report of one run or several.

    Args:
        verdicts: One row per verdict, or their `PanelData`.
        context: What else the report is given.
    """
    data = panel_data(verdicts)  # every section reads the same reductions
    context = replace(context, title=context.title or "MALIBU")
    margin = MARGIN if context.margin is None else context.margin
    unread = unread_section(data)
    unequal = [found for table in unread.tables for found in unequal_contrasts(table.frame, data.cluster_noun)]
    gaps = without_unequal("differences", differences(data, margin=margin), unequal)
    yardstick = yardstick_lines(data, different_pairs(gaps))
    debates = data.debates
    heard = PanelData(debates.verdicts[heard_own(debates.verdicts)]) if data.staged else debates
    missing = missing_section(data, blocked={contrast.model for contrast in unequal})
    again = [Table("second_readings", "Silent ballots that were read twice", second_readings(data))]
    parts: list[Section | Table] = [
        primary_section(data, margin),
        means_section(data, context),
        yardstick_section(yardstick, data, context),
        differences_section(data, gaps, context, margin),
        mde_table(data, gaps),
        paper_section(data, gaps),
        aligned_table(data, context),
        no_label_table(data),
        by_base_section(data, gaps, context),
        preferences_table(data, margin),
        silent_pairs_section(data),
        win_rates_section(data, context),
        significance_table(data),
        Table("position", "Position effects and flips", position(data)),
        Table("order", "Order effects, next to the noise of asking again", order_effects(data)),
        agreement_section(heard, context),
        Table(
            "changed_minds", "Did the discussion change minds? From the first round to the last", changed_minds(heard)
        ),
        stages_section(data),
        talking_section(debates, context),
        contagion_table(debates, context),
        echo_table(debates, context),
        Table("parsing", "How replies were parsed", parsing(data)),
        *(again if data.staged else []),
        missing,
        unread,
    ]
    sections = [Section(tables=(part,)) if isinstance(part, Table) else part for part in parts]
    tables = [
        replace(table, frame=without_unequal(table.name, table.frame, unequal))
        for section in sections
        for table in section.tables
    ]
    blocked = blockers(data, {table.name: table.frame for table in tables}, yardstick)
    tables = [_blocked(table, blocked) for table in tables]
    frames = {table.name: table.frame for table in tables}
    drawn = [figure for section in sections for figure in section.figures if len(frames[figure.table])]
    said = list(_words(data, frames, yardstick, blocked, margin))
    # What a shipped card says about a model stands only where this run did not measure whether it can judge; it is then
    # said instead of that.
    measured = {line.about["model"] for line in yardstick["yardstick_auc"] if not line.secondary and not line.note}
    shipped = {model: text for model, text in context.model_cautions.items() if model not in measured}
    asked = [model for model in data.models if model not in shipped]
    reasons = tuple(f"{_prefix(data, model)}{blocked[model].quality}" for model in asked if blocked[model].quality)
    cannot_judge = [line for line in said if line.startswith(reasons)]
    return Report(
        title=context.title,
        words=_with_base_defined(said, cannot_judge),
        cautions=(
            *(caution for caution in context.cautions if caution not in context.model_cautions.values()),
            *unread_judges(data),
            *shipped.values(),
            *cannot_judge,
            *check_scores(data.verdicts),
            *unread.cautions,
            *missing.cautions,
            *_unread(frames["parsing"]),
        ),
        tables=tuple(tables),
        figures=tuple(sorted(drawn, key=lambda figure: FIGURES.index(figure.name))),
        forests=(
            *forests(frames, data.cluster_noun, data.scale()),
            *(forest for section in sections for forest in section.forests),
        ),
        blocked=_headline_blocked(data, blocked) or _no_verdict(frames, unequal),
        runs=tuple(context.runs),
        settings={"draws": context.draws, "seed": context.seed, "margin": margin},
        beside=tuple(beside(frames)),
    )


def _blocked(table: Table, blocked: Mapping[str, Blockers]) -> Table:
    phase = PHASE_OF.get(table.name)
    return table if phase is None else replace(table, frame=with_blockers(table.frame, blocked, phase))


def _headline_blocked(data: PanelData, blocked: Mapping[str, Blockers]) -> str:
    """The blocker that all models share, which replaces the headline's answer."""
    asked = "scores" if len(data.labelled_scores) else "preferences"
    found = {getattr(own, asked) for own in blocked.values()}
    return found.pop() if len(found) == 1 else ""


def _no_verdict(frames: Mapping[str, pd.DataFrame], unequal: Sequence[Unequal]) -> str:
    """What replaces the headline's answer if each of its contrasts is without a verdict."""
    asked = (frames[name] for name in ("primary", "differences", "preferences") if name in frames)
    main = next((table for table in asked if table["difference"].notna().any()), pd.DataFrame({"note": []}))
    reasons = {contrast.why for contrast in unequal}
    return NO_VERDICT if len(main) and main["note"].isin(reasons).all() else ""


def _unread(parsing: pd.DataFrame) -> Iterator[str]:
    unread = int(parsing[["unparsed", "refused", "cut"]].to_numpy().sum())
    total = int(parsing[list(STATUSES)].to_numpy().sum())
    if total and unread > MANY_UNREAD * total:
        yield f"{unread:,} of {plural(total, 'reply', 'replies')} gave no verdict: they are left out, not counted as 0."


def _prefix(data: PanelData, model: str) -> str:
    return f"{model}: " if len(data.models) > 1 else ""


def _with_base_defined(words: Sequence[str], cautions: Sequence[str]) -> tuple[str, ...]:
    """The sentences; the first that speaks of bases, and is not a caution, says what a base is."""
    spoken = (place for place, line in enumerate(words) if line not in cautions and re.search(r"\bbases?\b", line))
    first = next(spoken, None)
    return tuple(f"{line} {BASE}" if place == first else line for place, line in enumerate(words))


def _words(
    data: PanelData,
    frames: Mapping[str, pd.DataFrame],
    yardstick: Lines,
    blocked: Mapping[str, Blockers],
    margin: float,
) -> Iterator[str]:
    if not data.models:
        yield "No labelled answer has a verdict yet."
    reversible = ""
    for model in data.models:
        sentences = Sentences(
            tables={name: frame[frame["model"] == model] for name, frame in frames.items() if "model" in frame},
            yardstick={
                name: [line for line in lines if line.about["model"] == model] for name, lines in yardstick.items()
            },
            blocked=blocked[model],
            unit=data.cluster_noun,
            margin=margin,
            silent=data.read_silently(model),
        )
        yield from (f"{_prefix(data, model)}{text}" for text in sentences.all())
        reversible = reversible or sentences.reversible()
    if "by_judge" in frames:
        yield from judges_differ(frames["by_judge"][frames["by_judge"]["model"] == ALL_MODELS])
    scored, compared = len(data.labelled_scores) > 0, len(data.decided_pairs) > 0
    if any((scored and not own.scores) or (compared and not own.preferences) for own in blocked.values()):
        to = " ".join(generalises_to(data.verdicts)) or (
            f"These results generalise to other {data.cluster_noun}s of this kind, judged by these judges."
        )
        yield f"{to}{reversible}"
