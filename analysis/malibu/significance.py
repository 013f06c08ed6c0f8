"""Does identity matter? The paper's χ² beside tests that respect how the data were made.

The χ² counts every judge's final score as an independent verdict, as the paper does. Judges who talk about the same
text are no such thing, so its p-values come out too small; they are here to be compared with the paper's, no more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from parley.analysis.malibu.pairs import decided, margins
from parley.analysis.malibu.panel import checked, in_order, panel_preferences, panel_scores
from parley.analysis.malibu.scores import by_metric
from parley.analysis.reporting.verdicts import final_verdicts
from parley.analysis.stats.contingency import chi_square
from parley.analysis.stats.equivalence import equivalence
from parley.analysis.stats.multiplicity import holm
from parley.analysis.stats.permutation import effect_of_cells
from parley.analysis.stats.results import Test
from parley.analysis.stats.tables import cell_means

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
]
MORE = ["low", "high", "n", "clusters", "assumption", "assumes", "note"]
MARGIN = 0.5
"""Points of ten within which scores count as alike, for tests of equivalence."""


@dataclass(frozen=True, slots=True)
class Tested:
    family: str
    category: str
    metric: str
    test: Test


def significance(verdicts: pd.DataFrame, *, draws: int = 2000, seed: int = 0, margin: float = MARGIN) -> pd.DataFrame:
    """Every test of a report, one row each; p-values are corrected within a model's family by Holm."""
    verdicts = checked(verdicts)
    rows: list[dict[str, Any]] = []
    for model in in_order(verdicts, "model"):
        mine = verdicts[verdicts["model"] == model]
        found = [
            *_chi_squares(mine),
            *_permutations(mine, draws, seed),
            *_pairs(mine, draws, seed),
            *_equivalences(mine, margin),
        ]
        for family in dict.fromkeys(one.family for one in found):
            members = [one for one in found if one.family == family]
            adjusted = holm([one.test.p for one in members], family).adjusted
            rows += [_row(model, one, p) for one, p in zip(members, adjusted, strict=True)]
    return pd.DataFrame(rows, columns=[*COLUMNS, *MORE])


def _row(model: str, tested: Tested, adjusted: float) -> dict[str, Any]:
    test = tested.test
    shown = {name: getattr(test, name) for name in (*COLUMNS, *MORE) if hasattr(test, name)}
    placed = {"family": tested.family, "category": tested.category, "metric": tested.metric}
    return {"model": model, **placed, **shown, "p_adjusted": adjusted}


def _chi_squares(verdicts: pd.DataFrame) -> Iterator[Tested]:
    """χ² of identity by score level, for each category and metric: 2×n and 4×n tables."""
    scores = final_verdicts(verdicts[(verdicts["phase"] == 1) & (verdicts["metric"] != "preferred")])
    said = scores["sampled"].fillna(scores["value"])
    scores = scores.assign(level=np.rint(said))[scores["identity"] != ""]
    for category in in_order(scores, "category"):
        here = scores[scores["category"] == category]
        for metric in in_order(here, "metric"):
            part = here[here["metric"] == metric]
            table = pd.crosstab(part["identity"].astype(str), part["level"])
            yield Tested("χ² of identity by score level (the paper's)", category, metric, chi_square(table))


def _permutations(verdicts: pd.DataFrame, draws: int, seed: int) -> Iterator[Tested]:
    """Our primary test: labels permuted within scenarios."""
    scores = panel_scores(verdicts)
    scores = scores[scores["identity"] != ""]
    for category in in_order(scores, "category"):
        here = scores[scores["category"] == category]
        for metric, part in by_metric(here):
            cells = cell_means(part["value"], part["identity"], part["scenario"])
            test = effect_of_cells(cells, n=len(part), draws=draws, seed=seed)
            yield Tested("identity effect, permuted within scenarios", category, metric, test)


def _pairs(verdicts: pd.DataFrame, draws: int, seed: int) -> Iterator[Tested]:
    """Phase 2, every pair: does one identity win more than the other, scenario by scenario?"""
    for first, second, group, means in margins(decided(panel_preferences(verdicts))):
        cells = pd.DataFrame({first: means, second: 0.0})
        test = effect_of_cells(cells, n=len(group), draws=draws, seed=seed)
        yield Tested(
            "preference in pairs, signs flipped over scenarios",
            str(group["category"].iloc[0]),
            f"{first} − {second}",
            test,
        )


def _equivalences(verdicts: pd.DataFrame, margin: float) -> Iterator[Tested]:
    """Are identities scored alike within ±margin? Only this may say "no difference worth speaking of"."""
    scores = panel_scores(verdicts)
    scores = scores[scores["identity"] != ""]
    for category in in_order(scores, "category"):
        here = scores[scores["category"] == category]
        cells = cell_means(here["value"], here["identity"], here["scenario"])
        for at, first in enumerate(cells.columns):
            for second in cells.columns[at + 1 :]:
                gap = (cells[first] - cells[second]).dropna()
                test = equivalence(gap, gap.index, margin)
                yield Tested(f"equivalence within ±{margin:g}", category, f"{first} − {second}", test)
