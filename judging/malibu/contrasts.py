"""The planned contrasts between identities, in two families, by every measure; and the same by model and by judge.

The contrasts are those of the plan that the run stored before any data (`plan.Plan`). The headline of a report is about
the primary ones. The pairs of two identities of a category are the second family. A pair that is also a primary
contrast belongs only to the first family, so it has one verdict and one interval. Runs of the paper's design have no
primary contrasts; their pairs are one family.

Scores and preferences in pairs are measures of the same contrasts, each with its own families.

A mean over a panel hides judges that lean opposite ways: one that adds a point to an identity and one that takes a
point away give a mean of 0. So each model and judge has an estimate, and judges' differences are compared within every
cluster: if all treat identities the same way, a cluster's deviations from its mean are as likely to have the opposite
signs (`parley.analysis.stats.permutation`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pandas as pd

from parley.analysis.decide import NOT_COUNTED
from parley.analysis.effects import adjusted
from parley.analysis.stats.clustered import heterogeneity
from parley.analysis.stats.mean_test import mean_test
from parley.analysis.stats.multiplicity import holm
from parley.analysis.stats.permutation import effect_of_cells
from parley.analysis.stats.results import ALPHA, JUDGES_DIFFER, About, Contrast, Estimate, Line, simultaneous
from parley.analysis.stats.tables import Floats
from parley.analysis.unread import bounds
from parley.base.text import p_text, plural, signed
from parley.judging.ballots import PREFERRED
from parley.judging.malibu.panel_data import EXPECTED, PanelData
from parley.judging.malibu.plan import BLIND, among
from parley.judging.malibu.score_table import PairTable, ScenarioGaps, ScoreTable, values_in_order

FAMILIES = PRIMARY, PAIRS = "primary contrast", "pair"
"""Names of the families in a line's `about`."""
MODEL, JUDGE = "model", "judge"
REPAIRED, WITHOUT_REPAIRED = "repaired", "without_repaired"
SCORE, WINS = "score", "preferences"
"""Measures of a contrast: in phase 1, and in phase 2."""
BESIDE = 4
"""Families of a model beside the main one: pairs of scores, both of preferences, and win rates. They share 5%.

With 5% each, 11% of reports on judges without an effect of labels found one; now 6% do."""
ALL_MODELS = "all models"
MOST_NAMED = 3
"""Contrasts on which judges differ that have a sentence."""
Differences = Callable[[Sequence[str], Sequence[str]], ScenarioGaps]
"""A function that gives the differences between some identities and others."""


def contrast_line(
    result: Estimate,
    contrast: Contrast,
    data: PanelData,
    model: str,
    phase: int = 1,
    *,
    about: Mapping[str, Any] | None = None,
    beside_others: bool = False,
    debated: bool = False,
    label: str = "",
    **fields: Any,
) -> Line:
    """A line about a contrast of identities.

    Args:
        result: The estimate of the contrast.
        contrast: The contrast.
        data: The verdicts.
        model: The judge's model.
        phase: 1 for scores, 2 for pairs.
        about: Further properties of the line, such as its family.
        beside_others: Whether pairs of one side with third identities count too.
        debated: Whether it is from debates.
        label: What the label says after the contrast.
        fields: The line's other fields.
    """
    columns = {"model": model, "phase": phase, **(about or {}), "category": contrast.category, **contrast.sides}
    sides = {"identity": (*contrast.first, *contrast.second)}
    if phase == 2 and not beside_others:
        sides = {"identity": contrast.first, "other": contrast.second}
    return Line.of(
        result,
        about=About.of(contrast, **columns),
        label=f"{contrast.label}{label}",
        group=tuple(filter(None, (contrast.category, *data.headed_by(model)))),
        units=data.units(phase, model, debated=debated, **sides),
        cluster=data.cluster_noun,
        reference=0.0,
        **fields,
    )


def contrast_of(line: Line) -> Contrast:
    """The contrast of identities that a line is about."""
    assert line.about.contrast, f"{line.label} compares nothing"
    return line.about.contrast


def families(data: PanelData, model: str, phase: int = 1) -> dict[str, list[Contrast]]:
    """The planned contrasts of a model's scores, or of its pairs, by family.

    Args:
        data: The verdicts.
        model: One of its models.
        phase: 1 for scores, 2 for pairs.
    """
    compared = [sides for _, *sides in data.compared_pairs(model)]
    labels = data.table(model).identities if phase == 1 else [label for sides in compared for label in sides]
    primary = list(among(data.plan.primary, labels))
    tested = [{contrast.first, contrast.second} for contrast in primary]
    pairs = [pair for pair in among(data.plan.pairs, labels) if {pair.first, pair.second} not in tested]
    return {
        PRIMARY: primary,
        PAIRS: [pair for pair in pairs if phase == 1 or {*pair.first, *pair.second} in map(set, compared)],
    }


def pairs_of(planned: Iterable[Line], measure: str = "") -> list[Line]:
    """The planned lines about two identities, in any family; the others are about means of several.

    Args:
        planned: The planned lines.
        measure: Only those of this measure; "": all.
    """
    return [
        line
        for line in planned
        if measure in ("", line.measure)
        if line.about.contrast and len(line.about.contrast.first) == len(line.about.contrast.second) == 1
    ]


def estimates(data: PanelData, margin: float) -> list[Line]:
    """The planned contrasts with intervals and p-values, corrected in their families; verdicts follow later.

    Args:
        data: The verdicts.
        margin: Points of the scale within which identities count as alike; preferences have the plan's own margin.
    """
    lines: list[Line] = []
    for model in data.models:
        main = True  # the first family with contrasts is the headline's
        scores, pairs = data.table(model), _pair_table(data, model)
        counted = data.readout(model) == EXPECTED
        for phase, measure, differences, unread, least in (
            (1, SCORE, scores.contrast, _unread_scores(data, model), margin),
            (2, WINS, pairs.contrast, partial(_pair_bounds, pairs), data.plan.preference_margin),
        ):
            numbers = partial(_numbers, unread, measure=measure, margin=least, counted=counted)
            compared = by_family(data, model, phase, differences, numbers, measure=measure, margin=least)
            for effects, gaps in compared:
                lines += corrected_effects(effects, gaps, 1 if main else BESIDE)
                main = main and not effects
    return lines


def _pair_table(data: PanelData, model: str) -> PairTable:
    units = data.compared[data.compared["model"] == model]
    return PairTable.of(units, units["lead"])


def _unread_scores(data: PanelData, model: str) -> Callable[[Contrast], dict[str, float]]:
    """What unread scores could change in a contrast, and the contrast without scores that were requested again."""
    scores = data.labelled_verdicts[data.labelled_verdicts["model"] == model]
    of_label = dict(list(scores.groupby("identity", observed=True)["value"]))
    repaired = (scores["status"] == REPAIRED).any()

    def numbers(contrast: Contrast) -> dict[str, float]:
        sides = contrast.first, contrast.second
        first, second = (pd.concat([of_label[name] for name in side]) for side in sides)

        def filled(low: float, high: float) -> Estimate:
            return tested(data.table(model, low).contrast(*sides, minus=data.table(model, high)))

        also = bounds(first, second, data.scale(model), filled)
        if repaired:
            also[WITHOUT_REPAIRED] = tested(data.table(model, without=REPAIRED).contrast(*sides)).estimate
        return also

    return numbers


def _pair_bounds(pairs: PairTable, contrast: Contrast) -> dict[str, float]:
    """What comparisons that could not be read could change: each may have preferred either side."""
    if pairs.units["lead"].notna().all():  # selecting a contrast's units takes a hundredth of a report's time
        return {}
    sides = contrast.first, contrast.second
    leads = pairs.leads(*sides)
    return bounds(leads, leads, (-1.0, 1.0), lambda low, high: tested(pairs.contrast(*sides, (low - high) / 2)))


def by_family(
    data: PanelData,
    model: str,
    phase: int,
    differences: Differences,
    numbers: Callable[[str, Contrast, ScenarioGaps], Mapping[str, Any]],
    **fields: Any,
) -> Iterator[tuple[list[Line], list[ScenarioGaps]]]:
    """Lines on the planned contrasts of one outcome, with what they are estimated from: a family at a time, without
    correction.

    Args:
        data: The verdicts.
        model: One of its models.
        phase: 1 for single responses, 2 for pairs.
        differences: Those of the outcome, between the first and the second identities.
        numbers: Fields of a line, from its family, its contrast and its differences.
        fields: Fields of all lines.
    """
    for family, contrasts in families(data, model, phase).items():
        gaps = [differences(contrast.first, contrast.second) for contrast in contrasts]
        yield (
            [
                contrast_line(
                    tested(each),
                    contrast,
                    data,
                    model,
                    phase,
                    about={"family": family},
                    **fields,
                    **numbers(family, contrast, each),
                )
                for contrast, each in zip(contrasts, gaps, strict=True)
            ],
            gaps,
        )


def _numbers(
    unread: Callable[[Contrast], dict[str, float]],
    family: str,
    contrast: Contrast,
    gaps: ScenarioGaps,
    *,
    measure: str,
    margin: float,
    counted: bool,
) -> dict[str, Any]:
    """A planned contrast's name (its category or both identities, and the measure if not scores) and numbers."""
    name = contrast.category if family == PRIMARY else "-".join(contrast.names)
    values = gaps.named() if len(gaps.values) else {}
    also = _further(gaps, margin, counted) | (unread(contrast) if values else {})
    return {"name": name if measure == SCORE else f"{measure}.{name}", "also": also, "values": values}


def tested(gaps: ScenarioGaps | Floats) -> Estimate:
    """The mean difference over clusters, with its interval and p-value; n counts what it was averaged from.

    Args:
        gaps: The differences by cell, or by cluster.
    """
    return replace(gaps.test(), n=len(gaps.values)) if isinstance(gaps, ScenarioGaps) else mean_test(gaps)


def _further(gaps: ScenarioGaps, margin: float, counted: bool) -> dict[str, float]:
    """Whether a mean difference and those of single bases lie within the margin, and how much they vary.

    Single bases are not counted where replies are written, or averaged from samples: they are too noisy.
    """
    if not len(gaps.values):
        return {}
    spread = heterogeneity(gaps.values, gaps.bases)
    return {
        "p_alike": gaps.alike_p(margin),
        **(gaps.within(margin) if counted else NOT_COUNTED),
        "base_sd": spread.estimate,
        "p_bases": spread.p,
    }


def corrected_effects(lines: Sequence[Line], gaps: Sequence[ScenarioGaps], beside: int = 1) -> list[Line]:
    """The lines of one family with corrected p-values and simultaneous intervals.

    A line's own interval is among its further numbers.

    Args:
        lines: The lines.
        gaps: The differences that they are estimated from.
        beside: Number of families that share the error rate of 5%.
    """
    families = zip(adjusted(lines, (), ("p_alike", "p_bases"), beside), gaps, strict=True)
    return [_with_simultaneous(line, of_line) if line.clusters else line for line, of_line in families]


def _with_simultaneous(line: Line, gaps: ScenarioGaps) -> Line:
    tests = line.tests or 1
    limit = 1.0 if line.measure == WINS else math.inf  # a difference of shares
    ends = simultaneous(line, gaps.test(1 - ALPHA / tests))
    interval = (max(-limit, ends[0]), min(limit, ends[1])) if ends else None
    low, high = interval or (-math.inf, math.inf)
    pointwise = {"pointwise_low": max(-limit, line.low), "pointwise_high": min(limit, line.high)}
    return replace(
        line,
        low=low,
        high=high,
        simultaneous=interval if tests > 1 else None,
        also={**pointwise, **line.also},
    )


def by_judge(data: PanelData, family: str = "") -> list[Line]:
    """Each contrast of a family by model and by judge, one line each, with the p-value of no difference between them.

    Models are compared within a panel whose judges have different models, and between the models of a run if scale and
    read-out are the same. Holm's correction is over all contrasts of all comparisons.

    Args:
        data: The verdicts.
        family: The family; "": the one that the headline is about.
    """
    named = {
        name: [*dict.fromkeys(c for model in data.models for c in families(data, model)[name])] for name in FAMILIES
    }
    family = family or next((name for name in FAMILIES if named[name]), PAIRS)
    return data.shared(f"{family} by judge", lambda: _by_judge(data, named[family]))


def _by_judge(data: PanelData, contrasts: Sequence[Contrast]) -> list[Line]:
    compared = [
        (scope, by, contrast, of_each)
        for scope, by, column, scores in (_comparisons(data) if contrasts else ())
        for contrast, of_each in _of_each(scores, column, contrasts)
    ]
    p_differ = [_differ(of_each) for *_, of_each in compared]
    return [
        contrast_line(
            tested(gaps),
            contrast,
            data,
            scope,
            about={"by": by, "name": name},
            label=f" · {name}",
            name=f"{contrast.category}.{name}",
            measure=SCORE,
            also={"p_differ": p, "p_differ_adjusted": p_adjusted},
            secondary=True,
        )
        for (scope, by, contrast, of_each), p, p_adjusted in zip(compared, p_differ, holm(p_differ), strict=True)
        for name, gaps in of_each.items()
    ]


Comparison = tuple[str, str, str, pd.DataFrame]
"""The compared group (a panel, or all models), the kind of member, the column that identifies it, and the scores."""


def _comparisons(data: PanelData) -> Iterator[Comparison]:
    scores = data.final_scores
    panels = [(model, scores[scores["model"] == model]) for model in data.models]
    for model, panel in panels:
        if panel["judge_model"].nunique() > 1:
            yield model, MODEL, "judge_model", panel
    if len(panels) > 1:
        # Points on different scales, or averages of samples, are not comparable.
        kinds = (
            scores["model"].astype(str).map({model: (data.scale(model), data.readout(model)) for model, _ in panels})
        )
        for _, part in scores.groupby(kinds.astype(str), sort=False):
            if part["model"].nunique() > 1:
                yield ALL_MODELS, MODEL, "model", part
    for model, panel in panels:
        table = panel
        if panel["judge"].nunique() < 2 and len(data.talk):
            # The panel of a staged run casts its silent ballots on the units that it talks about afterwards.
            talk = data.talk[(data.talk["model"] == model) & (data.talk["phase"] == 1)]
            table = talk[(talk["round"] < BLIND) & (talk["metric"] != PREFERRED)]
        of_judges = table[["judge", "judge_model"]].drop_duplicates()
        if len(of_judges) > of_judges["judge_model"].nunique():  # else a judge is a model, compared above
            yield model, JUDGE, "judge", table


def _of_each(
    scores: pd.DataFrame, column: str, contrasts: Sequence[Contrast]
) -> Iterator[tuple[Contrast, dict[str, ScenarioGaps]]]:
    """The differences by judge or by model, for the contrasts that at least two of them have."""
    tables = {name: ScoreTable.of(scores[scores[column] == name]) for name in values_in_order(scores, column)}
    for contrast in contrasts:
        differences = {
            name: table.contrast(contrast.first, contrast.second)
            for name, table in tables.items()
            if {*contrast.first, *contrast.second} <= {*table.identities}
        }
        of_each = {name: gaps for name, gaps in differences.items() if len(gaps.values)}
        if len(of_each) > 1:
            yield contrast, of_each


def _differ(gaps: dict[str, ScenarioGaps]) -> float:
    """The p-value of the hypothesis that all have the same difference in every cluster."""
    table = pd.DataFrame({name: pd.Series(each.named(), dtype=float) for name, each in gaps.items()}).dropna()
    return float(effect_of_cells(table).p) if len(table) else float("nan")


def differing(judged: Iterable[Line]) -> list[Line]:
    return [line for line in judged if line.also["p_differ_adjusted"] <= ALPHA]


def model_and_contrast(line: Line) -> tuple[str, Contrast | None]:
    return line.about.model, line.about.contrast


def judges_below(lines: Iterable[Line], judged: Sequence[Line]) -> Iterator[Line]:
    """Add lines for single judges below the contrasts on which a panel's judges differ.

    Args:
        lines: The lines of contrasts.
        judged: The lines of `by_judge` on the same contrasts.
    """
    for line in lines:
        yield line
        if line.verdict == JUDGES_DIFFER:
            key = model_and_contrast(line)
            yield from (by_judge for by_judge in differing(judged) if model_and_contrast(by_judge) == key)


def judges_differ(judged: Iterable[Line]) -> Iterator[str]:
    """A sentence for each of the clearest contrasts on which judges or models differ significantly.

    Args:
        judged: The lines of `by_judge`, or some of them.
    """
    groups: dict[tuple[str, str, Contrast], list[Line]] = {}
    for line in sorted(differing(judged), key=lambda line: line.also["p_differ_adjusted"]):
        groups.setdefault((line.about.columns["by"], line.about.model, contrast_of(line)), []).append(line)
    for (by, _, contrast), lines in [*groups.items()][:MOST_NAMED]:
        who = "with" if by == MODEL else "by"
        named = [f"{signed(line.estimate)} points {who} {line.about.columns['name']}" for line in lines]
        p = p_text(lines[0].also["p_differ_adjusted"])
        yield f"The {by}s differ on {contrast.label}: {', '.join(named)} (p {p} after Holm's correction)."
    if (more := len(groups) - MOST_NAMED) > 0:
        yield f"They differ on {plural(more, 'more contrast')} (table by_judge)."
