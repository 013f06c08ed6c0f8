"""The planned contrasts of scores, in two families: three primary ones, fixed before any data, and pairs of identities.

female - male; the mean of black, asian and hispanic - white; the mean of muslim, jewish and atheist - christian. A run
without some of these identities has the contrasts among the others. They are what the headline of a report is about.
The pairs of two identities of a category are the second family. A pair that is a primary contrast is in the first one
only: it has one line, with one verdict and one interval. Runs of the paper's design have no primary contrasts; their
pairs are one family.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from parley.analysis.malibu.by_judge import Contrast, by_judge, judges_below, with_differing_judges
from parley.analysis.malibu.conclusions import effect, effects_frame, with_conclusions
from parley.analysis.malibu.panel import PanelData
from parley.analysis.reporting.forest import Forest
from parley.analysis.reporting.report import Section, Table
from parley.analysis.stats.results import ALPHA, Line

CONTRASTS = (
    Contrast("gender", ("female",), ("male",)),
    Contrast("race", ("black", "asian", "hispanic"), ("white",)),
    Contrast("religion", ("muslim", "jewish", "atheist"), ("christian",)),
)
PRIMARY, PAIRS = "primary contrast", "pair"
"""The families, as a line's `about` names them."""
SHOWN = (
    *("category", "first", "second", "difference", "low", "high", "p_adjusted", "verdict", "clusters"),
    *("base_sd", "base_sd_high", "note"),
)
JUDGE_COLUMNS = [
    *("model", "by", "name", "category", "first", "second", "difference", "low", "high", "p", "clusters"),
    *("p_differ", "p_differ_adjusted", "note"),
]


def primary_contrasts(data: PanelData, model: str) -> list[Contrast]:
    """The primary contrasts that a model's identities give.

    Args:
        data: The verdicts.
        model: One of its models.
    """
    known = data.table(model).identities
    return [found for contrast in CONTRASTS if (found := contrast.among(known)) is not None]


def families(data: PanelData, model: str) -> dict[str, list[Contrast]]:
    """The planned contrasts of a model's scores, by family.

    Args:
        data: The verdicts.
        model: One of its models.
    """
    primary = primary_contrasts(data, model) if data.staged else []
    known = {frozenset((contrast.first, contrast.second)) for contrast in primary}
    pairs = [Contrast(category, (first,), (second,)) for category, first, second in data.pairs(model)]
    return {
        PRIMARY: primary,
        PAIRS: [pair for pair in pairs if frozenset((pair.first, pair.second)) not in known],
    }


def two_sided(data: PanelData, model: str) -> list[Contrast]:
    """The planned contrasts between two identities, of both families; the others are between means of several."""
    found = [contrast for contrasts in families(data, model).values() for contrast in contrasts]
    return [contrast for contrast in found if len(contrast.first) == len(contrast.second) == 1]


def planned_lines(data: PanelData, margin: float) -> list[Line]:
    """The planned contrasts of each model's scores, each corrected in its family, with its verdict.

    Args:
        data: The verdicts.
        margin: Points of the scale within which identities count as alike.
    """
    lines: list[Line] = []
    for model in data.models:
        for family, contrasts in families(data, model).items():
            gaps = [data.table(model).contrast(contrast.first, contrast.second) for contrast in contrasts]
            own = [
                effect(found, margin, **contrast.subject(data, model, name=_name(contrast, family), family=family))
                for contrast, found in zip(contrasts, gaps, strict=True)
            ]
            own = with_conclusions(own, gaps, silent=data.read_silently(model))
            lines += with_differing_judges(own, _judged(data, model, family, contrasts))
    return lines


def _name(contrast: Contrast, family: str) -> str:
    """As the judge's card names it: by its category, or by both identities."""
    return contrast.category if family == PRIMARY else ""


def _judged(data: PanelData, model: str, family: str, contrasts: Sequence[Contrast]) -> list[Line]:
    if not data.staged or not contrasts:
        return []
    if family == PRIMARY:
        return primary_by_judge(data)
    return data.shared(f"pairs of {model} by judge", lambda: by_judge(data, contrasts))


def primary_by_judge(data: PanelData) -> list[Line]:
    """The primary contrasts by model and by judge."""
    return data.shared("primary contrasts by judge", lambda: by_judge(data, _contrasts_of_all(data)))


def primary_section(data: PanelData, planned: Sequence[Line], judged: Sequence[Line]) -> Section:
    """The primary contrasts and the same by model and judge, as tables and a plot; nothing in a run without stages.

    Args:
        data: The verdicts.
        planned: The planned lines.
        judged: The lines of `primary_by_judge`.
    """
    if not data.staged:
        return Section()
    unit, lines = data.cluster_noun, [line for line in planned if line.about["family"] == PRIMARY]
    low, high = data.scale()
    how = f"sign flips over {unit}s, or t where bases and wordings are crossed"
    return Section(
        tables=(
            Table(
                name="primary",
                title="Primary contrasts",
                frame=effects_frame(lines),
                shown=(*data.model_column, *SHOWN),
                note=f"Mean of the first minus mean of the second on the same answers, scale {low:g} to {high:g}; "
                f"{_ballots(data)}. 95% intervals that cover all contrasts of a model at once: {how}. p_adjusted: the "
                f"larger one of sign flips and Student's t, Holm over a model's contrasts at {ALPHA:g}.",
                printed=True,
            ),
            Table(
                name="by_judge",
                title="Primary contrasts by model and by judge",
                frame=effects_frame(judged, JUDGE_COLUMNS),
                note="p_differ: p-value of no difference between the models, or the judges, by flipping the signs of "
                f"their deviations over {unit}s; p_differ_adjusted: Holm over the contrasts.",
            ),
        ),
        forests=(
            Forest(
                name="primary",
                question="Do scores depend on the identity?",
                axis=data.difference,
                lines=tuple(line for line in judges_below(lines, judged) if math.isfinite(line.estimate)),
                table="primary",
                note=f"Simultaneous 95% intervals: {how}; p-values: the larger one of sign flips and Student's t, "
                "Holm-corrected over a model's contrasts. Where the judges of a panel differ, each has a line of its "
                "own below.",
            ),
        ),
    )


def _contrasts_of_all(data: PanelData) -> Sequence[Contrast]:
    """The contrasts that every model has."""
    by_model = [primary_contrasts(data, model) for model in data.models]
    return [contrast for contrast in by_model[0] if all(contrast in own for own in by_model)] if by_model else []


def _ballots(data: PanelData) -> str:
    return "silent ballots" if data.silent else "blind ballots, before anybody was heard"
