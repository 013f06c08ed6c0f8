"""Does identity matter? The paper's χ² beside tests that respect the design.

The χ² counts every judge's final score as an independent verdict, as the paper does. Judges who discuss the same text
are not independent, so its p-values are too small; they are included only for comparison with the paper.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from parley.analysis.malibu.pairs import win_margins
from parley.analysis.malibu.panel import PanelData, Verdicts, by_metric, panel_data, values_in_order
from parley.analysis.stats.contingency import chi_square
from parley.analysis.stats.equivalence import equivalence
from parley.analysis.stats.multiplicity import holm
from parley.analysis.stats.permutation import effect_of_cells
from parley.analysis.stats.results import Test

COLUMNS = [
    "model",
    "name",
    "family",
    "category",
    "metric",
    "statistic",
    "df",
    "p",
    "p_adjusted",
    "effect",
    "effect_name",
    "low",
    "high",
    "n",
    "clusters",
    "assumption",
    "assumes",
    "note",
]
MARGIN = 0.5
"""Points of ten: identities whose mean scores differ by less count as equivalent."""


@dataclass(frozen=True, slots=True)
class Tested:
    """A test, with the family it is corrected in and what it is about."""

    family: str
    category: str
    metric: str
    test: Test


def significance(verdicts: Verdicts, *, draws: int = 2000, seed: int = 0, margin: float = MARGIN) -> pd.DataFrame:
    """All tests of a report, one row each; p-values are Holm-corrected within each family of a model.

    Args:
        verdicts: One row per verdict, or their `PanelData`.
        draws: Draws of each permutation test.
        seed: Of all draws.
        margin: Points of ten within which identities count as equivalent.
    """
    data = panel_data(verdicts)
    rows: list[dict[str, Any]] = []
    for model in data.models:
        tests = [
            *_chi_squares(data, model),
            *_permutations(data, model, draws, seed),
            *_pairs(data, model, draws, seed),
            *_equivalences(data, model, margin),
        ]
        for family in dict.fromkeys(tested.family for tested in tests):
            members = [tested for tested in tests if tested.family == family]
            adjusted = holm([tested.test.p for tested in members], family).adjusted
            rows += [_row(model, tested, p) for tested, p in zip(members, adjusted, strict=True)]
    return pd.DataFrame(rows, columns=COLUMNS)


def _row(model: str, tested: Tested, adjusted: float) -> dict[str, Any]:
    result = {name: getattr(tested.test, name) for name in COLUMNS if hasattr(tested.test, name)}
    subject = {"family": tested.family, "category": tested.category, "metric": tested.metric}
    return {"model": model, **subject, **result, "p_adjusted": adjusted}


def _of_model(frame: pd.DataFrame, model: str) -> pd.DataFrame:
    return frame[frame["model"] == model]


def _by_category(frame: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    for category in values_in_order(frame, "category"):
        yield category, frame[frame["category"] == category]


def _chi_squares(data: PanelData, model: str) -> Iterator[Tested]:
    """χ² of identity by score level, for each category and metric: 2×n and 4×n tables."""
    scores = _of_model(data.final_scores, model)
    sampled = scores["sampled"].fillna(scores["value"])
    scores = scores.assign(level=np.rint(sampled))[scores["identity"] != ""]
    for category, group in _by_category(scores):
        for metric in values_in_order(group, "metric"):
            part = group[group["metric"] == metric]
            table = pd.crosstab(part["identity"].astype(str), part["level"])
            yield Tested("χ² of identity by score level (the paper's)", category, metric, chi_square(table))


def _permutations(data: PanelData, model: str, draws: int, seed: int) -> Iterator[Tested]:
    """Our primary test: labels permuted within scenarios."""
    for category, group in _by_category(_of_model(data.labelled_scores, model)):
        for metric, part in by_metric(group):
            means = data.category_means(model, category, metric)
            test = effect_of_cells(means, n=len(part), draws=draws, seed=seed)
            yield Tested("identity effect, permuted within scenarios", category, metric, test)


def _pairs(data: PanelData, model: str, draws: int, seed: int) -> Iterator[Tested]:
    """Phase 2, every pair: does one identity win more often than the other, scenario by scenario?"""
    for first, second, group, margins in win_margins(_of_model(data.decided_pairs, model)):
        cells = pd.DataFrame({first: margins, second: 0.0})
        test = effect_of_cells(cells, n=len(group), draws=draws, seed=seed)
        yield Tested(
            "preference in pairs, signs flipped over scenarios",
            str(group["category"].iloc[0]),
            f"{first} − {second}",
            test,
        )


def _equivalences(data: PanelData, model: str, margin: float) -> Iterator[Tested]:
    """Are mean scores equal within ±margin? Only this test supports the claim that there is no relevant difference."""
    for category in values_in_order(_of_model(data.labelled_scores, model), "category"):
        means = data.category_means(model, category)
        for first, second in combinations(means.columns, 2):
            gap = (means[first] - means[second]).dropna()
            test = equivalence(gap, gap.index, margin)
            yield Tested(f"equivalence within ±{margin:g}", category, f"{first} − {second}", test)
