"""Phase 1: mean scores by identity, and differences between identities on the same scenarios."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import pandas as pd

from parley.analysis.malibu.conclusions import (
    EFFECT_COLUMNS,
    MARGIN,
    SPREAD,
    Blockers,
    effects_frame,
    estimate,
    tested_words,
)
from parley.analysis.malibu.panel import ALL, PanelData, Verdicts, by_metric, panel_data, values_in_order
from parley.analysis.malibu.primary import PAIRS, PRIMARY, planned_lines
from parley.analysis.malibu.score_figures import matrix_figure, scores_figure
from parley.analysis.reporting.forest import Forest
from parley.analysis.reporting.report import Figure, ReportContext, Section, Table
from parley.analysis.stats.clustered import cluster_mean
from parley.analysis.stats.multiplicity import benjamini_hochberg
from parley.analysis.stats.results import ALIKE, ALPHA, DIFFERENT, ON_AVERAGE, SMALL, Line, columns
from parley.analysis.stats.signflips import clusters_to_reject
from parley.base.text import plural, signed

NO_LABEL = "(no label)"
SENSITIVITY = (
    "scenario_low, scenario_high, scenario_p: sensitivity analysis that takes scenarios of one base as independent."
)
EFFECT = (
    *("difference", "low", "high", "p", "p_adjusted", "verdict", "base_sd", "base_sd_high"),
    *("scenario_low", "scenario_high", "scenario_p"),
)
"""The `EFFECT_COLUMNS` that tables of pairs show."""
MEANS = ["model", "category", "identity", "metric", "mean", "low", "high", "n", "clusters"]
DIFFERENCES = ("model", "category", "first", "second", "metric", "within", "family", *EFFECT_COLUMNS)
NAMED = {PRIMARY: (PRIMARY,), PAIRS: ("pair of labels", "pairs of labels")}


def mean_scores(verdicts: Verdicts) -> pd.DataFrame:
    """Mean score by model, identity and metric (the paper's figure 9), with intervals over bases.

    Args:
        verdicts: One row per verdict, or their `PanelData`.
    """
    data = panel_data(verdicts)
    names = ["model", "category", "identity"]
    rows: list[dict[str, Any]] = []
    for keys, group in data.scores.groupby(names, sort=False, observed=True):
        about = dict(zip(names, map(str, keys), strict=True))
        about["identity"] = about["identity"] or NO_LABEL
        for metric, part in by_metric(group):
            mean = cluster_mean(part["value"], part["cluster"], scale=data.scale(about["model"]))
            rows.append(about | {"metric": metric} | columns(mean, "mean", "n", "clusters"))
    return pd.DataFrame(rows, columns=MEANS)


def differences(verdicts: Verdicts, *, margin: float = MARGIN) -> pd.DataFrame:
    """First minus second on the same scenarios, for every two identities (the paper's figure 4).

    The planned comparisons, within a category and on all metrics together, are Holm-corrected in their family and have
    a verdict. By single metric the correction is Benjamini and Hochberg's, as those tests are exploratory. Differences
    between categories are estimated but not tested: they answer no question of the study.

    Args:
        verdicts: One row per verdict, or their `PanelData`.
        margin: Points of the scale within which two identities count as alike.
    """
    data = panel_data(verdicts)
    return differences_frame(data, planned_lines(data, margin))


def differences_frame(data: PanelData, planned: Sequence[Line]) -> pd.DataFrame:
    """The planned pairs of two identities, and all others.

    Args:
        data: The verdicts.
        planned: The planned lines.
    """
    lines: list[Line] = []
    for model in data.models:
        if data.pairs(model):
            own = [line for line in pairs_of(planned) if line.about["model"] == model]
            lines += [replace(line, about={**line.about, "metric": ALL, "within": True}) for line in own]
            lines += [*_unplanned(data, model), *_by_metric(data, model)]
    return effects_frame(lines, DIFFERENCES)


def _unplanned(data: PanelData, model: str) -> list[Line]:
    """Pairs of different categories, or that differ in several parts: an estimate with its interval, and no test."""
    table = data.table(model)
    known = {(first, second) for _, first, second in data.pairs(model)}
    labels = [name for name in values_in_order(data.labelled_scores, "identity") if name in table.identities]
    lines = [
        replace(estimate(table.gaps(*pair)), p=math.nan, **_about(model, "", *pair))
        for pair in combinations(labels, 2)
        if pair not in known
    ]
    # Categories with label wordings of their own share no cell, so that there is nothing to estimate.
    return [line for line in lines if line.clusters or not data.staged]


def _by_metric(data: PanelData, model: str) -> list[Line]:
    metrics = values_in_order(data.labelled_scores, "metric")
    lines = [
        replace(estimate(data.table(model).gaps(*pair[1:], metric)), **_about(model, *pair, metric))
        for metric in (metrics if len(metrics) > 1 or not data.staged else ())
        for pair in data.pairs(model)
    ]
    adjusted = benjamini_hochberg([line.p for line in lines])
    tests = sum(not math.isnan(p) for p in adjusted)
    return [replace(line, p_adjusted=p, tests=tests) for line, p in zip(lines, adjusted, strict=True)]


def _about(model: str, category: str, first: str, second: str, metric: str = ALL) -> dict[str, Any]:
    sides = {"model": model, "category": category, "first": first, "second": second}
    return {"about": {**sides, "metric": metric, "within": bool(category), "family": ""}}


def pairs_of(planned: Iterable[Line]) -> list[Line]:
    """The planned lines about two identities, whatever their family; the others are about means of several.

    Args:
        planned: The planned lines.
    """
    return [line for line in planned if len(line.units["identity"]) == 2]


def different_pairs(planned: Iterable[Line]) -> list[tuple[str, str, str]]:
    """Model and identities of every pair that was found to differ.

    Args:
        planned: The planned lines.
    """
    found = [line.about for line in pairs_of(planned) if line.verdict in (DIFFERENT, SMALL)]
    return [(about["model"], about["first"], about["second"]) for about in found]


def means_section(data: PanelData, context: ReportContext) -> Section:
    """The mean scores, as a table and the paper's figure 9."""
    means, counts = mean_scores(data), data.counts(data.final_scores)
    table = Table(
        name="means",
        title="Phase 1: mean scores",
        frame=means,
        shown=(*data.model_column, "identity", "metric", "mean", "low", "high", "n", "clusters"),
        note=data.intervals,
        printed=True,
    )
    figure = Figure(
        name="scores",
        caption=f"Mean scores by identity ({counts}).",
        table="means",
        draw=lambda: scores_figure(means, context.title, f"{counts}. {data.intervals}", data.scale()),
    )
    return Section(tables=(table,), figures=(figure,))


def differences_section(
    data: PanelData,
    planned: Sequence[Line],
    blocked: Mapping[str, Blockers],
    context: ReportContext,
    margin: float,
) -> Section:
    """The differences between identities: a table, the paper's figure 4, a plot of the pairs, and what they say.

    Args:
        data: The verdicts.
        planned: The planned lines.
        blocked: What leaves questions without an answer, by model.
        context: What the report is given.
        margin: The margin of the lines.
    """
    unit, counts, gaps = data.cluster_noun, data.counts(data.labelled_verdicts), differences_frame(data, planned)
    table = Table(
        name="differences",
        title="Phase 1: differences between identities on the same scenarios",
        frame=gaps,
        shown=(*data.model_column, "category", "first", "second", "metric", *EFFECT, "clusters", "note"),
        note=conclusions_note(unit, margin),
    )
    figure = Figure(
        name="matrix",
        caption=f"Row minus column, all metrics together ({counts}). Framed: planned comparison; starred: "
        "p ≤ 0.05 after Holm correction.",
        table="differences",
        draw=lambda: matrix_figure(
            gaps,
            context.title,
            f"{counts}. Framed: planned comparison. *: p ≤ 0.05, sign flips over {unit}s, Holm-corrected.",
            data.points,
        ),
    )
    forest = Forest(
        name="differences",
        question="Which identities differ, by pairs?" if data.staged else "Do scores depend on the identity?",
        axis=data.difference,
        lines=tuple(line for line in planned if line.about["family"] == PAIRS and math.isfinite(line.estimate)),
        table="differences",
        note=f"Simultaneous 95% intervals: sign flips over {unit}s; p-values: the larger one of sign flips and "
        "Student's t, Holm-corrected over the pairs of a model.",
    )
    words = (
        f"{data.prefix(model)}{text}"
        for model in data.models
        if (text := scores_words([line for line in planned if line.about["model"] == model], blocked[model], margin))
    )
    return Section(tables=(table,), figures=(figure,), forests=(forest,), words=tuple(words))


def scores_words(planned: Sequence[Line], blocked: Blockers, margin: float) -> str:
    """What the planned lines of a model show, in words; "" where nothing was asked.

    Args:
        planned: The lines.
        blocked: What leaves questions without an answer.
        margin: Points within which identities count as alike.
    """
    tested = [line for line in planned if not math.isnan(line.p)]
    if blocked.scores or not tested:
        return blocked.scores
    families = {name: [line for line in tested if line.about["family"] == name] for name in (PRIMARY, PAIRS)}
    families = {name: lines for name, lines in families.items() if lines}
    different = [line for line in tested if line.verdict in (DIFFERENT, SMALL)]
    alike = sum(line.verdict in (ALIKE, ON_AVERAGE) for line in tested)
    alike_text = f"{alike} {'is' if alike == 1 else 'are'} alike within ±{margin:g} points"
    quality = ", which were not shown to measure quality" if blocked.quality else ""
    if different:
        largest = max(different, key=lambda line: abs(line.estimate))
        counted = " and ".join(
            f"{sum(line in different for line in lines)} of {plural(len(lines), name)}"
            for name, lines in families.items()
        )
        verb = "differs" if len(different) == 1 else "differ"
        more = f" and {alike_text}" if alike else ""
        sides = [_side(line_side) for line_side in (largest.about["first"], largest.about["second"])]
        higher, lower = sides if largest.estimate > 0 else reversed(sides)
        return (
            f"Labels move the scores{quality}: {counted} {verb}{more}. The largest difference: {higher} scored "
            f"{abs(largest.estimate):.2f} points above {lower} on the same answers "
            f"({tested_words(largest, largest.cluster)}{_asymmetry(largest)})."
        )
    asked = " and ".join(plural(len(lines), *NAMED[name]) for name, lines in families.items())
    if all("can be significant" in line.note for line in tested):
        fewest, lines = min((len(lines), name) for name, lines in families.items())
        unit = tested[0].cluster
        return (
            f"With {plural(max(line.clusters or 0 for line in tested), unit)} no difference between labels could be "
            f"shown, whatever its size: the correction for {plural(fewest, lines)} needs at least "
            f"{clusters_to_reject(ALPHA, fewest)} {unit}s."
        )
    if alike:
        left = len(tested) - alike
        rest = f"; {left} {'is' if left == 1 else 'are'} undecided, which does not show that the judges are fair"
        return f"No difference between labels was shown in {asked}; {alike_text}{rest if left else ''}."
    which, nor = (f"None of {asked} was", "and none") if len(tested) > 1 else ("The two labels were not", "nor")
    return f"{which} shown to differ, {nor} to be alike; this does not show that the judges are fair."


def _side(names: str) -> str:
    """One identity, or several whose mean is compared."""
    quoted = [f"'{name}'" for name in names.split(", ")]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} and {quoted[-1]} together"


def _asymmetry(line: Line) -> str:
    if math.isnan(line.also["skewness"]):
        return ""
    share = f"one {line.cluster} makes up {line.also['largest_base']:.0%} of it"
    return f"; over {line.cluster}s it has a skewness of {signed(line.also['skewness'], 1)}, and {share}"


def conclusions_note(unit: str, margin: float) -> str:
    """How the columns of `EFFECT` are to be read.

    Args:
        unit: What a cluster is: "base" or "scenario".
        margin: The difference that still counts as none.
    """
    return (
        f"First minus second. Sign flips over {unit}s; the interval covers all pairs of a model at once. p_adjusted: "
        "the larger one of sign flips and Student's t, Holm over the model's pairs. verdict: alike needs a mean within "
        f"±{margin:g} (p_alike) and an SD between {unit}s shown to be below {SPREAD * margin:g} "
        f"(base_sd_high). {SENSITIVITY}"
    )
