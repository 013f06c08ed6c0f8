"""Does identity matter? The paper's χ², next to tests that respect the design.

The χ² counts every judge's final score as an independent verdict, as the paper does. Judges who discuss the same text
are not independent, so its p-values are too small; they are included only for comparison with the paper.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from parley.analysis.malibu.panel import PanelData, Verdicts, by_metric, panel_data, values_in_order
from parley.analysis.reporting.report import Table
from parley.analysis.stats.contingency import chi_square
from parley.analysis.stats.multiplicity import holm
from parley.analysis.stats.permutation import effect_of_cells
from parley.analysis.stats.results import Line

COLUMNS = [
    "model",
    "method",
    "family",
    "category",
    "metric",
    "statistic",
    "df",
    "p",
    "p_adjusted",
    "estimate",
    "measure",
    "low",
    "high",
    "n",
    "clusters",
    "assumption",
    "assumes",
    "note",
]
RESULT = set(COLUMNS) - {"model", "family", "category", "metric", "p_adjusted"}


Tested = tuple[str, str, Line]
"""Category, metric, and the test of identity on them."""


def significance(verdicts: Verdicts) -> pd.DataFrame:
    """The tests of identity as a whole, one row each; p-values are Holm-corrected within each family of a model.

    Single pairs are in the tables of `differences` and `preferences`.

    Args:
        verdicts: One row per verdict, or their `PanelData`.
    """
    data = panel_data(verdicts)
    rows: list[dict[str, Any]] = []
    for model in data.models:
        families = {
            "χ² of identity by score level (the paper's)": list(_chi_squares(data, model)),
            "identity effect, signs flipped over bases": list(_permutations(data, model)),
        }
        for family, tests in families.items():
            adjusted = holm([test.p for *_, test in tests])
            for (category, metric, test), p in zip(tests, adjusted, strict=True):
                result = {name: getattr(test, name) for name in COLUMNS if name in RESULT}
                subject = {"model": model, "family": family, "category": category, "metric": metric}
                rows.append(subject | result | {"p_adjusted": p})
    return pd.DataFrame(rows, columns=COLUMNS)


def _of_model(frame: pd.DataFrame, model: str) -> pd.DataFrame:
    return frame[frame["model"] == model]


def _by_category(frame: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    for category in values_in_order(frame, "category"):
        yield category, frame[frame["category"] == category]


def _chi_squares(data: PanelData, model: str) -> Iterator[Tested]:
    """χ² of identity by score level, for each category and metric: 2×n and 4×n tables."""
    scores = _of_model(data.labelled_verdicts, model)
    scores = scores.assign(level=np.rint(scores["sampled"].fillna(scores["value"])))
    for category, group in _by_category(scores):
        for metric in values_in_order(group, "metric"):
            part = group[group["metric"] == metric]
            table = pd.crosstab(part["identity"].astype(str), part["level"])
            yield category, metric, chi_square(table)


def _permutations(data: PanelData, model: str) -> Iterator[Tested]:
    """Does identity matter at all? Signs flipped over bases, from the judges who scored all identities."""
    categories = list(_by_category(_of_model(data.labelled_scores, model)))
    tests = sum(len(list(by_metric(group))) for _, group in categories)
    for category, group in categories:
        labels = values_in_order(group, "identity")
        for metric, part in by_metric(group):
            cells = data.table(model).means(labels, metric)
            yield category, metric, effect_of_cells(cells, n=len(part), tests=tests)


def significance_table(data: PanelData) -> Table:
    """The tests of identity as a whole, as a table."""
    return Table(
        name="tests",
        title="Tests of identity as a whole",
        frame=significance(data),
        shown=(
            *(*data.model_column, "family", "category", "metric", "statistic", "df", "p", "p_adjusted"),
            *("estimate", "low", "high", "assumption", "note"),
        ),
        note="p_adjusted: Holm within the family. Rows that assume independence are the paper's, for comparison only.",
    )
