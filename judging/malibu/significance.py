"""The tests of identity as a whole: the paper's χ², and tests that respect the design.

The χ² counts every judge's final score as an independent verdict, as the paper does. Judges who discuss the same text
are not independent, so these p-values are too small; they are shown only for comparison, beside tests that respect the
design.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from parley.analysis import chi_square
from parley.analysis.decide import concluded
from parley.analysis.effects import adjusted
from parley.analysis.page.report import Section, Table, as_frame
from parley.analysis.stats.permutation import effect_of_cells
from parley.analysis.stats.results import About, Estimate, Line
from parley.judging.malibu.decisions import withheld
from parley.judging.malibu.panel_data import PanelData, by_metric
from parley.judging.malibu.score_table import values_in_order

CHI_SQUARE, FLIPS = "χ² as in the paper", "identity effect, signs flipped over bases"


def significance_lines(data: PanelData, unequal: Sequence[Line] = ()) -> list[Line]:
    """The tests of identity as a whole; p-values are Holm-corrected within each family of a model.

    Args:
        data: The verdicts.
        unequal: Contrasts whose ballots were unread unequally; their categories have no answer.
    """
    lines = [
        Line.of(
            test,
            about=About.of(model=model, family=family, category=category, metric=metric, assumption=test.assumption),
            reference=0.0,
            also={"statistic": test.statistic, "df": math.nan if test.df is None else test.df},
        )
        for model in data.models
        for family, tests in ((_chi_square(data), _chi_squares), (FLIPS, _permutations))
        for category, metric, test in tests(data, model)
    ]
    return [concluded(line) for line in withheld(adjusted(lines, ("model", "family")), unequal)]


def _chi_square(data: PanelData) -> str:
    """The name of the test; the paper's uses the last scores of debates."""
    return f"{CHI_SQUARE}, on {'silent' if data.silent else 'blind'} ballots" if data.staged else CHI_SQUARE


def _of_model(frame: pd.DataFrame, model: str) -> pd.DataFrame:
    return frame[frame["model"] == model]


def _by_category(frame: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    for category in values_in_order(frame, "category"):
        yield category, frame[frame["category"] == category]


def _chi_squares(data: PanelData, model: str) -> Iterator[tuple[str, str, Estimate]]:
    """χ² of identity by score level, for each category and metric: 2×n and 4×n tables."""
    scores = _of_model(data.labelled_verdicts, model)
    scores = scores.assign(level=np.rint(scores["sampled"].fillna(scores["value"])))
    for category, group in _by_category(scores):
        for metric in values_in_order(group, "metric"):
            part = group[group["metric"] == metric]
            yield category, metric, chi_square(part, by="identity", of="level")


def _permutations(data: PanelData, model: str) -> Iterator[tuple[str, str, Estimate]]:
    """Tests whether identity matters at all, by sign flips over bases, from judges who scored all identities."""
    categories = list(_by_category(_of_model(data.labelled_scores, model)))
    tests = sum(len(list(by_metric(group))) for _, group in categories)
    for category, group in categories:
        labels = values_in_order(group, "identity")
        for metric, part in by_metric(group):
            cells = data.table(model).means(labels, metric)
            yield category, metric, effect_of_cells(cells, n=len(part), tests=tests)


def significance_section(data: PanelData, lines: Sequence[Line]) -> Section:
    """The tests of identity as a whole, the paper's among them, as a table.

    Args:
        data: The verdicts.
        lines: The result of `significance_lines`.
    """
    frame = as_frame(lines)
    tests = Table(
        name="tests",
        title="Tests of identity as a whole",
        frame=frame,
        shown=(
            *(*data.model_column, "family", "category", "metric", "statistic", "df", "p", "p_adjusted"),
            *("estimate", "low", "high", "assumption", "note"),
        ),
        note="p_adjusted: Holm within the family. Rows that assume independence are for comparison only. The paper "
        "does not say what its χ² counts: here it is every judge's score. estimate: of χ², Cramér's V.",
        paper="" if data.staged else "4.1, all χ²",
    )
    return Section(tables=(tests,))
