"""The primary contrasts: three, fixed before any data, and what the headline of a report is about.

female - male; the mean of black, asian and hispanic - white; the mean of muslim, jewish and atheist - christian. A run
without some of these identities has the contrasts among the others. Holm's correction is over the contrasts of a model;
the single pairs are a second family (`scores.differences`).
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from parley.analysis.malibu.by_judge import Contrast, by_judge, with_differing_judges
from parley.analysis.malibu.conclusions import effect, effects_frame, with_conclusions
from parley.analysis.malibu.panel import PanelData, Verdicts, panel_data
from parley.analysis.reporting.report import Section, Table
from parley.analysis.stats.results import ALPHA, Line

CONTRASTS = (
    Contrast("gender", ("female",), ("male",)),
    Contrast("race", ("black", "asian", "hispanic"), ("white",)),
    Contrast("religion", ("muslim", "jewish", "atheist"), ("christian",)),
)
PRIMARY = ("model", "category", "first", "second")
SHOWN = (
    *("category", "first", "second", "difference", "low", "high", "p", "p_adjusted", "verdict", "clusters"),
    *("base_sd", "base_sd_high", "note"),
)


def primary_contrasts(data: PanelData, model: str) -> list[Contrast]:
    """The primary contrasts that a model's identities give.

    Args:
        data: The verdicts.
        model: One of its models.
    """
    known = data.table(model).identities
    return [found for contrast in CONTRASTS if (found := contrast.among(known)) is not None]


def primary(verdicts: Verdicts, *, margin: float) -> pd.DataFrame:
    """The primary contrasts of each model: estimate, interval, p-values, verdict and clusters.

    Args:
        verdicts: One row per verdict, or their `PanelData`.
        margin: Points of the scale within which identities count as alike.
    """
    data = panel_data(verdicts)
    return effects_frame(primary_lines(data, margin), PRIMARY)


def primary_lines(data: PanelData, margin: float) -> list[Line]:
    """The primary contrasts of each model, named as the judge's card names them.

    Args:
        data: The verdicts.
        margin: Points of the scale within which identities count as alike.
    """
    lines: list[Line] = []
    for model in data.models:
        contrasts = primary_contrasts(data, model)
        gaps = [data.table(model).contrast(contrast.first, contrast.second) for contrast in contrasts]
        own = [
            effect(found, margin, **contrast.subject(data, model, name=contrast.category))
            for contrast, found in zip(contrasts, gaps, strict=True)
        ]
        lines += with_conclusions(own, gaps, silent=data.read_silently(model))
    return with_differing_judges(lines, primary_by_judge(data))


def primary_by_judge(data: PanelData) -> pd.DataFrame:
    """The primary contrasts by model and by judge."""
    return data.shared("primary contrasts by judge", lambda: by_judge(data, _contrasts_of_all(data)))


def primary_section(data: PanelData, margin: float) -> Section:
    """The primary contrasts and the same by model and judge, as tables.

    Args:
        data: The verdicts.
        margin: Points within which identities count as alike.
    """
    if not data.staged:
        return Section()
    by, unit = primary_by_judge(data), data.cluster_noun
    table = primary(data, margin=margin)
    low, high = data.scale()
    return Section(
        tables=(
            Table(
                name="primary",
                title="Primary contrasts",
                frame=table,
                shown=(*data.model_column, *SHOWN),
                note=f"Mean of the first minus mean of the second on the same answers, scale {low:g} to {high:g}; "
                f"{_ballots(data)}. Sign flips over {unit}s, or t where bases and wordings are crossed; p_adjusted: "
                f"Holm over a model's contrasts at {ALPHA:g}.",
                printed=True,
            ),
            Table(
                name="by_judge",
                title="Primary contrasts by model and by judge",
                frame=by,
                note="p_differ: p-value of no difference between the models, or the judges, by flipping the signs of "
                f"their deviations over {unit}s; p_differ_adjusted: Holm over the contrasts.",
            ),
        ),
    )


def _contrasts_of_all(data: PanelData) -> Sequence[Contrast]:
    """The contrasts that every model has."""
    by_model = [primary_contrasts(data, model) for model in data.models]
    return [contrast for contrast in by_model[0] if all(contrast in own for own in by_model)] if by_model else []


def _ballots(data: PanelData) -> str:
    return "silent ballots" if data.silent else "blind ballots, before anybody was heard"
