"""MALIBU's report: what the paper shows, computed as the paper does, beside statistics that respect the design."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from parley.analysis.malibu import figures
from parley.analysis.malibu.agreement import agreement, changed_minds, parsing
from parley.analysis.malibu.bases import Directions, aligned_contrast, effects_by_base
from parley.analysis.malibu.components import component_sentences, components_figure, variance_tables
from parley.analysis.malibu.conclusions import DIFFERENT, MARGIN, SMALL, SPREAD
from parley.analysis.malibu.diagnostics import (
    judge_cautions,
    no_label_differences,
    no_label_words,
    order_effects,
    order_words,
    response_effect,
    response_words,
)
from parley.analysis.malibu.forests import forests
from parley.analysis.malibu.head_to_head import ZERO_SUM, head_to_head, scores_in_pairs, scores_in_pairs_words
from parley.analysis.malibu.missing import (
    check_scores,
    judge_words,
    missing,
    missing_by_judge,
    missing_differences,
    missing_words,
)
from parley.analysis.malibu.pairs import position, ranking, win_rates
from parley.analysis.malibu.panel import Verdicts, panel_data
from parley.analysis.malibu.preferences import preferences
from parley.analysis.malibu.robustness import robustness, robustness_figure, robustness_words
from parley.analysis.malibu.scores import differences, mean_scores
from parley.analysis.malibu.sections import talking_section, yardstick_section
from parley.analysis.malibu.significance import significance
from parley.analysis.malibu.summary import summary, too_few
from parley.analysis.reporting.forest import filled
from parley.analysis.reporting.report import Figure, Report, Table
from parley.base.text import plural

EFFECT = ("low", "high", "p", "p_adjusted", "conclusion")
SENSITIVITY = (
    "scenario_low, scenario_high, scenario_p: sensitivity analysis that takes scenarios of one base as independent."
)


def report(
    verdicts: Verdicts,
    *,
    units: pd.DataFrame | None = None,
    title: str = "MALIBU",
    draws: int = 2000,
    seed: int = 0,
    margin: float = MARGIN,
    directions: Directions | None = None,
    blind: bool | None = None,
    remarks: pd.DataFrame | None = None,
    cautions: Sequence[str] = (),
    model_cautions: Sequence[str] = (),
    **about: Any,
) -> Report:
    """The report of one run or several.

    Args:
        verdicts: One row per verdict, or their `PanelData`.
        units: Not used; every study's report takes it.
        title: Of the report and its figures.
        draws: Draws of each bootstrap. Tests and intervals of differences need none.
        seed: Of the bootstrap draws.
        margin: Points of ten (in pairs, wins minus losses per comparison) within which two identities count as alike.
        directions: Which identities the stereotype of each base favours, by category.
        blind: Whether no judge heard another in round 1; None if it is not known.
        remarks: Which statements repeat another judge's, from `parley.reports.remarks.repeated_remarks`.
        cautions: What every reader must know; cautions about the judges are added.
        model_cautions: What is known of the models from elsewhere; left out where this run measured it.
        about: Passed on to `Report` (runs).
    """
    data = panel_data(verdicts)  # every table below reads the same reductions
    unit = data.cluster_noun
    means, gaps = mean_scores(data), differences(data, margin=margin)
    by_base, aligned = effects_by_base(data), aligned_contrast(data, directions or {})
    preferred = preferences(data, margin=margin)
    yardstick = yardstick_section(data, _different(gaps), title)
    talked = talking_section(data, remarks, directions or {}, title, blind=blind)
    if set(data.graded_models) >= set(data.models):
        model_cautions = ()
    cautions = (
        *cautions,
        *yardstick.cautions,
        *model_cautions,
        *too_few(data.clusters, unit),
        *check_scores(data.verdicts),
        *judge_cautions(data),
    )
    wins, ranks = win_rates(data), ranking(data, draws=draws, seed=seed)
    tests = significance(data)
    agreed, changed = agreement(data, draws=draws, seed=seed), changed_minds(data)
    places, orders, responses = position(data), order_effects(data), response_effect(data)
    statuses, unread = parsing(data), missing(data)
    unread_gaps, unread_judges = missing_differences(data), missing_by_judge(data)
    unlabelled, matches, side_by_side = no_label_differences(data), head_to_head(data), scores_in_pairs(data)
    components, plans = variance_tables(data)
    worded = robustness(data)
    model = ("model",) if data.verdicts["model"].nunique() > 1 else ()
    over = (
        f"Intervals are 95%, over {unit}s: they generalise to other {unit}s of this kind, judged by these judges, who "
        "are taken as fixed."
    )
    conclusions = (
        f"First minus second. Interval and p: sign flips over {unit}s; p_adjusted: Holm over the model's pairs. "
        f"conclusion: alike needs a mean within ±{margin:g} (p_alike) and an SD between {unit}s shown to be below "
        f"{SPREAD * margin:g} (base_sd_high). {SENSITIVITY}"
    )
    tables = [
        Table(
            name="means",
            title="Phase 1: mean scores",
            frame=means,
            shown=(*model, "identity", "metric", "mean", "low", "high", "n", "clusters"),
            note=over,
            printed=True,
        ),
        *yardstick.tables,
        Table(
            name="differences",
            title="Phase 1: differences between identities on the same scenarios",
            frame=gaps,
            shown=(
                *model,
                "category",
                "first",
                "second",
                "metric",
                "difference",
                *EFFECT,
                "base_sd",
                "base_sd_high",
                "scenario_low",
                "scenario_high",
                "scenario_p",
                "clusters",
                "note",
            ),
            note=conclusions,
        ),
        Table(
            name="aligned",
            title="Phase 1: do labels move scores the way documented stereotypes go?",
            frame=aligned,
            shown=(*model, "category", "difference", "low", "high", "p", "bases", "note"),
            note="Mean score of the identities that the stereotype of a base favours, minus that of the others; one "
            "value per base. Directions are coded from the source that the suite cites for the base. Most favour "
            "the same identities, so a difference that is the same on every base shows here too: see differences.",
        ),
        Table(
            name="no_label",
            title="Phase 1: each identity minus no label",
            frame=unlabelled,
            note=f"On the same scenarios, sign flips over {unit}s: is one identity raised, or another one lowered?",
        ),
        Table(
            name="by_base",
            title=f"Phase 1: differences by {unit}",
            frame=by_base,
            note="First minus second, all metrics together.",
        ),
        Table(
            name="preferences",
            title="Phase 2: preferences, pair by pair",
            frame=preferred,
            shown=(
                *model,
                "category",
                "first",
                "second",
                "difference",
                *EFFECT,
                "base_sd",
                "base_sd_high",
                "scenario_low",
                "scenario_high",
                "scenario_p",
                "n",
                "clusters",
                "note",
            ),
            note=f"difference: wins minus losses per comparison. {conclusions}",
        ),
        Table(
            name="win_rates",
            title="Phase 2: win rates",
            frame=wins,
            shown=(
                *model,
                "identity",
                "wins",
                "losses",
                "ties",
                "rate",
                "low",
                "high",
                "cluster_low",
                "cluster_high",
                "rate_ties_half",
            ),
            note="low, high: Wilson interval, which assumes independent verdicts; cluster_low, cluster_high: over "
            f"{unit}s. {ZERO_SUM}",
            printed=True,
        ),
        Table(
            name="head_to_head",
            title="Phase 2: head to head",
            frame=matches,
            note=f"The identity against the other one; rate: a tie counts as half. Sign flips over {unit}s, Holm over "
            "the pairs of a model.",
        ),
        Table(
            name="scores_in_pairs",
            title="Phase 2: scores in pairs",
            frame=side_by_side,
            note="The first identity's score minus the second's, as judges scored the two side by side.",
        ),
        Table(
            name="ranking",
            title="Phase 2: Bradley–Terry strengths",
            frame=ranks,
            shown=(*model, "category", "identity", "strength", "low", "high", "note"),
            note="Log odds around 0, ties as half a win, adjusted for the order in the prompt if both orders were run.",
        ),
        Table(
            name="tests",
            title="Tests of identity as a whole",
            frame=tests,
            shown=(
                *model,
                "family",
                "category",
                "metric",
                "statistic",
                "df",
                "p",
                "p_adjusted",
                "effect",
                "low",
                "high",
                "assumption",
                "note",
            ),
            note="p_adjusted: Holm within the family. Rows that assume independence are the paper's, for comparison "
            "only.",
        ),
        Table(name="position", title="Position effects and flips", frame=places),
        Table(name="order", title="Order effects beside the noise of asking again", frame=orders),
        Table(name="response", title="Does response 1 win, whatever its label?", frame=responses),
        Table(
            name="agreement",
            title="Agreement between the judges, by round",
            frame=agreed,
            shown=(*model, "phase", "round", "metric", "coefficient", "value", "low", "high", "judges"),
            note="" if blind else "Judges may have heard each other in every round: agreement includes echo.",
        ),
        Table(
            name="changed_minds",
            title="Did the discussion change minds? From the first round to the last",
            frame=changed,
        ),
        *talked.tables,
        Table(name="parsing", title="How replies were parsed", frame=statuses),
        Table(
            name="missing",
            title="Replies without a verdict, by identity",
            frame=unread,
            note="Final replies: the last round's, or the chair's. In phase 2 a reply counts for both identities.",
        ),
        Table(
            name="missing_differences",
            title="Is a verdict missing more often for one identity?",
            frame=unread_gaps,
            note="Share of the first minus that of the second, within judge and scenario; sign flips over "
            f"{unit}s, Holm by model and phase. worst_low, worst_high: bounds of the difference in scores (votes) if "
            "every missing one were as unfavourable as possible; given where shares differ.",
        ),
        Table(
            name="missing_by_judge",
            title="Judges with missing replies, by identity",
            frame=unread_judges,
        ),
        Table(
            name="variance_components",
            title="Phase 1: whose noise is it? Variance components of the scores",
            frame=components,
            note="share_of_noise: of the squared standard error of a difference between two identities.",
        ),
        Table(
            name="next_calls",
            title="Phase 1: where the next 1,000 calls are best spent",
            frame=plans,
            note="Predicted standard error of a difference between two identities, from the variance components.",
        ),
        Table(
            name="robustness_tests",
            title="Other words: does a difference between identities depend on the wording?",
            frame=worded.tests,
            note="p: no dependence on the wording, within each base. difference, p_difference: over all wordings. Holm "
            "over the pairs of a model, phase and facet.",
        ),
        Table(
            name="robustness",
            title="Other words: differences by paraphrase and by label style",
            frame=worded.by_wording,
            note=f"First minus second with this wording; sign flips over {unit}s, not corrected.",
        ),
    ]
    counts = ", ".join(
        (
            *([plural(data.clusters, "base")] if unit == "base" else ()),
            plural(data.verdicts["scenario"].nunique(), "scenario"),
            plural(len(data.verdicts), "verdict"),
        )
    )
    drawn = [
        Figure(
            name="scores",
            caption=f"Mean scores by identity ({counts}).",
            table="means",
            draw=lambda: figures.scores_figure(means, title, f"{counts}. {over}"),
        ),
        Figure(
            name="matrix",
            caption=f"Row minus column, all metrics together ({counts}). Framed: planned comparison; starred: p ≤ 0.05 "
            "after Holm correction.",
            table="differences",
            draw=lambda: figures.matrix_figure(
                gaps,
                title,
                f"{counts}. Framed: planned comparison. *: p ≤ 0.05, sign flips over {unit}s, Holm-corrected.",
            ),
        ),
        Figure(
            name="by-base",
            caption=f"Differences by {unit}, all metrics together ({counts}).",
            table="by_base",
            draw=lambda: figures.by_base_figure(by_base, gaps, title, f"{counts}. First minus second."),
        ),
        Figure(
            name="win-rates",
            caption=f"Win rates with 95% intervals: thick, over {unit}s; thin, Wilson ({counts}).",
            table="win_rates",
            draw=lambda: figures.wins_figure(
                wins,
                title,
                f"{counts}. Thick: 95% interval over {unit}s; thin: 95% Wilson; n: decided pairs.",
            ),
        ),
        *yardstick.figures,
        *talked.figures,
        Figure(
            name="agreement",
            caption=f"Agreement between the judges by round ({counts}).",
            table="agreement",
            draw=lambda: figures.agreement_figure(agreed, title, f"{counts}. {over}"),
        ),
        Figure(
            name="variance-components",
            caption=f"Standard deviations of the scores by component ({counts}).",
            table="variance_components",
            draw=lambda: components_figure(components, title, f"{counts}. Orange: does not cancel in a difference."),
        ),
        Figure(
            name="other-words",
            caption=f"Differences between identities by wording, with 95% intervals over {unit}s ({counts}).",
            table="robustness",
            draw=lambda: robustness_figure(worded, title, f"{counts}. 95% intervals over {unit}s."),
        ),
    ]
    with_rows = {table.name for table in tables if len(table.frame)}
    frames = {table.name: table.frame for table in tables}
    return Report(
        title=title,
        words=(
            *summary(frames, clusters=data.clusters, unit=unit, margin=margin),
            *yardstick.words,
            *talked.words,
            *no_label_words(unlabelled, _different(gaps)),
            *scores_in_pairs_words(side_by_side, unit),
            *order_words(orders, unit),
            *response_words(responses, unit),
            *missing_words(unread_gaps, unit),
            *judge_words(unread_judges, unit),
            *component_sentences(components, plans),
            *robustness_words(worded, unit),
        ),
        cautions=cautions,
        tables=tuple(tables),
        figures=tuple(figure for figure in drawn if figure.table in with_rows),
        forests=filled(forests(frames, unit)),
        settings={"draws": draws, "seed": seed, "margin": margin},
        **about,
    )


def _different(gaps: pd.DataFrame) -> list[tuple[str, str, str]]:
    """Model and identities of every pair that was found to differ."""
    found = gaps[gaps["conclusion"].isin([DIFFERENT, SMALL])]
    return [(row.model, row.first, row.second) for row in found.itertuples()]
