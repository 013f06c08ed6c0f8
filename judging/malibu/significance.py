"""Does identity matter? The paper's χ², next to tests that respect the design.

The χ² counts every judge's final score as an independent verdict, as the paper does. Judges who discuss the same text
are not independent, so its p-values are too small; they are included only for comparison with the paper.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from parley.analysis.reporting.questions import adjusted, concluded, table
from parley.analysis.reporting.report import Section, Table
from parley.analysis.stats.contingency import chi_square
from parley.analysis.stats.permutation import effect_of_cells
from parley.analysis.stats.results import ALPHA, Line
from parley.base.text import p_text
from parley.judging.malibu.ballots import values_in_order
from parley.judging.malibu.conclusions import Blockers
from parley.judging.malibu.panel_data import PanelData, by_metric
from parley.judging.malibu.planned import withheld

TINY = 1e-9
CHI_SQUARE, FLIPS = "χ² of identity by score level (the paper's)", "identity effect, signs flipped over bases"


def significance_lines(data: PanelData, unequal: Sequence[Line] = ()) -> list[Line]:
    """The tests of identity as a whole; p-values are Holm-corrected within each family of a model.

    Args:
        data: The verdicts.
        unequal: The contrasts whose ballots were unread unequally: their categories have no answer.
    """
    lines = [
        replace(
            test,
            about={
                **{"model": model, "family": family, "category": category, "metric": metric},
                "assumption": test.assumption,
            },
            reference=0.0,
            also={"statistic": test.statistic, "df": math.nan if test.df is None else test.df},
        )
        for model in data.models
        for family, tests in ((CHI_SQUARE, _chi_squares), (FLIPS, _permutations))
        for category, metric, test in tests(data, model)
    ]
    return [concluded(line) for line in withheld(adjusted(lines, ("model", "family")), unequal)]


def _of_model(frame: pd.DataFrame, model: str) -> pd.DataFrame:
    return frame[frame["model"] == model]


def _by_category(frame: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    for category in values_in_order(frame, "category"):
        yield category, frame[frame["category"] == category]


def _chi_squares(data: PanelData, model: str) -> Iterator[tuple[str, str, Line]]:
    """χ² of identity by score level, for each category and metric: 2×n and 4×n tables."""
    scores = _of_model(data.labelled_verdicts, model)
    scores = scores.assign(level=np.rint(scores["sampled"].fillna(scores["value"])))
    for category, group in _by_category(scores):
        for metric in values_in_order(group, "metric"):
            part = group[group["metric"] == metric]
            counts = pd.crosstab(part["identity"].astype(str), part["level"])
            yield category, metric, chi_square(counts)


def _permutations(data: PanelData, model: str) -> Iterator[tuple[str, str, Line]]:
    """Does identity matter at all? Signs flipped over bases, from the judges who scored all identities."""
    categories = list(_by_category(_of_model(data.labelled_scores, model)))
    tests = sum(len(list(by_metric(group))) for _, group in categories)
    for category, group in categories:
        labels = values_in_order(group, "identity")
        for metric, part in by_metric(group):
            cells = data.table(model).means(labels, metric)
            yield category, metric, effect_of_cells(cells, n=len(part), tests=tests)


def significance_section(data: PanelData, lines: Sequence[Line], blocked: Mapping[str, Blockers]) -> Section:
    """The tests of identity as a whole, as a table, and the paper's in words.

    Args:
        data: The verdicts.
        lines: What `significance_lines` returned.
        blocked: What leaves questions without an answer, by model.
    """
    tests = Table(
        name="tests",
        title="Tests of identity as a whole",
        frame=table(lines),
        shown=(
            *(*data.model_column, "family", "category", "metric", "statistic", "df", "p", "p_adjusted"),
            *("estimate", "low", "high", "assumption", "note"),
        ),
        note="p_adjusted: Holm within the family. Rows that assume independence are the paper's, for comparison only.",
    )
    own = {model: [line for line in papers_tests(lines) if line.about["model"] == model] for model in data.models}
    words = [
        f"{data.prefix(model)}{_papers_words(chi)}"
        for model, chi in own.items()
        if chi and data.pairs(model) and not blocked[model].scores
    ]
    return Section(tables=(tests,), words=words)


def _papers_words(chi: Sequence[Line]) -> str:
    """What the paper's tests of a model say, and what they leave out."""
    independent = "it takes every score as independent, also two of the same answer"
    if len(chi) > 1:
        significant = sum(line.p <= ALPHA for line in chi)
        return f"The paper's χ² is significant in {significant} of {len(chi)} tables; {independent}."
    same = chi[0].statistic < TINY  # silent ballots have fractions, which it rounds
    return (
        f"The paper's χ²: p {p_text(chi[0].p)}; "
        f"{'it sees whole scores, the same for all labels' if same else independent}."
    )


def papers_tests(lines: Sequence[Line]) -> list[Line]:
    """The paper's χ² tests that could be made.

    Args:
        lines: What `significance_lines` returned.
    """
    return [line for line in lines if line.about["family"] == CHI_SQUARE and not math.isnan(line.p)]
