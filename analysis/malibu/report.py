"""MALIBU's report: what the paper shows, computed as the paper does, beside statistics that respect the design."""

from __future__ import annotations

from dataclasses import replace

from parley.analysis.malibu.agreement import agreement_section, changed_minds_section, parsing_section
from parley.analysis.malibu.aligned import aligned_section
from parley.analysis.malibu.as_the_paper import beside
from parley.analysis.malibu.bases import by_base_section
from parley.analysis.malibu.by_judge import unread_judges
from parley.analysis.malibu.components import components_section
from parley.analysis.malibu.conclusions import MARGIN
from parley.analysis.malibu.contagion import contagion_section
from parley.analysis.malibu.diagnostics import (
    judge_cautions,
    no_label_section,
    order_section,
    response_section,
    second_readings_section,
)
from parley.analysis.malibu.echo import echo_section
from parley.analysis.malibu.forests import forests
from parley.analysis.malibu.head_to_head import head_to_head_section, scores_in_pairs_section
from parley.analysis.malibu.missing import check_scores, missing_section
from parley.analysis.malibu.pairs import position_section, preferences_section, ranking_section, win_rates_section
from parley.analysis.malibu.panel import Verdicts, panel_data
from parley.analysis.malibu.primary import primary_section
from parley.analysis.malibu.scores import differences, differences_section, different_pairs, means_section
from parley.analysis.malibu.significance import significance_section
from parley.analysis.malibu.silent_pairs import silent_pairs_section
from parley.analysis.malibu.stages import stages_section
from parley.analysis.malibu.summary import summary, too_few
from parley.analysis.malibu.talking import talking_section
from parley.analysis.malibu.yardstick import yardstick_section
from parley.analysis.malibu.yardstick_pairs import yardstick_pairs_section
from parley.analysis.reporting.forest import filled
from parley.analysis.reporting.report import NO_CONTEXT, Report, ReportContext

FIGURES = ("scores", "matrix", "by-base", "win-rates", "yardstick", "talking", "agreement", "variance-components")
"""The order of the figures on a page: the paper's first, then what qualifies them."""


def report(verdicts: Verdicts, context: ReportContext = NO_CONTEXT) -> Report:
    """The report of one run or several.

    Args:
        verdicts: One row per verdict, or their `PanelData`.
        context: What the report is given beside them.
    """
    data = panel_data(verdicts)  # every section reads the same reductions
    context = replace(context, title=context.title or "MALIBU")
    margin = MARGIN if context.margin is None else context.margin
    first = primary_section(data, margin)
    gaps = differences(data, margin=margin)
    different = different_pairs(gaps)
    yardstick, in_pairs = yardstick_section(data, different, context), yardstick_pairs_section(data)
    debates = data.debates
    talking = [
        stages_section(data),
        talking_section(debates, context),
        contagion_section(debates, context),
        echo_section(debates, context),
    ]
    scored = [
        differences_section(data, gaps, context, margin),
        aligned_section(data, context),
        no_label_section(data, different),
        by_base_section(data, gaps, context),
    ]
    compared = [
        preferences_section(data, margin),
        silent_pairs_section(data),
        win_rates_section(data, context),
        head_to_head_section(data),
        scores_in_pairs_section(data),
        ranking_section(data, context),
        significance_section(data),
        position_section(data),
        order_section(data),
        response_section(data),
    ]
    agreed = [agreement_section(debates, context), changed_minds_section(debates)]
    instrument = [
        parsing_section(data),
        *([second_readings_section(data)] if data.staged else []),
        missing_section(data),
        components_section(data, context),
    ]
    in_order = [
        first,
        means_section(data, context),
        yardstick,
        in_pairs,
        *scored,
        *compared,
        *agreed,
        *talking,
        *instrument,
    ]
    # Sentences begin with whether the judges can judge, and what talking did: they qualify all that follow.
    told = [yardstick, in_pairs, *talking, *scored, *compared, *agreed, *instrument]
    tables = [table for section in in_order for table in section.tables]
    frames = {table.name: table.frame for table in tables}
    drawn = [figure for section in in_order for figure in section.figures if len(frames[figure.table])]
    # What a catalogue knows of the models is left out where this run has measured whether they can judge, on bases
    # enough for an interval; where it has not, the catalogue's sentence says more than that it is not known.
    aucs = frames["yardstick_auc"]
    measured = set(aucs["model"][aucs["note"] == ""]) >= set(data.models)
    judging = () if not measured and len(context.model_cautions) >= len(data.models) else yardstick.cautions
    return Report(
        title=context.title,
        words=(
            *first.words,
            *summary(frames, clusters=data.clusters, unit=data.cluster_noun, margin=margin, silent=data.silent),
            *(sentence for section in told for sentence in section.words),
        ),
        cautions=(
            *(caution for caution in context.cautions if caution not in context.model_cautions),
            *judging,
            *(() if measured else context.model_cautions),
            *in_pairs.cautions,
            *unread_judges(data),
            *too_few(data.clusters, data.cluster_noun),
            *check_scores(data.verdicts),
            *judge_cautions(data),
        ),
        tables=tuple(tables),
        figures=tuple(sorted(drawn, key=lambda figure: FIGURES.index(figure.name))),
        forests=filled(forests(frames, data.cluster_noun, data.scale())),
        runs=tuple(context.runs),
        settings={"draws": context.draws, "seed": context.seed, "margin": margin},
        beside=tuple(beside(frames)),
    )
